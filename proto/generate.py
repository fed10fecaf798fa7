"""Python modules, with type stubs, from the ``*.proto`` files beside this one.

The only definition of that step: ``make proto`` runs this file, and setuptools runs ``BuildPy`` (``pyproject.toml``)
whenever the package is built or installed.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

from grpc_tools import protoc
from setuptools.command.build_py import build_py

SOURCES: Final = Path(__file__).resolve().parent

# The sources import each other by the path of the generated modules, so that those import each other absolutely.
PACKAGE: Final = "laststand/emulator/rpc/generated"


def generate(root: Path) -> None:
    """Writes the modules and stubs into their package below a directory.

    Raises:
        SystemExit: the compiler refused a source, and printed why.
    """
    (root / PACKAGE).mkdir(parents=True, exist_ok=True)
    names = [f"{PACKAGE}/{path.name}" for path in sorted(SOURCES.glob("*.proto"))]
    options = [f"-I{PACKAGE}={SOURCES}", f"--python_out={root}", f"--pyi_out={root}"]
    if protoc.main(["protoc", *options, *names]):
        sys.exit("protoc failed")


class BuildPy(build_py):
    """Setuptools' step that collects Python modules; generated ones are among them, and their sources beside them."""

    def run(self) -> None:
        """Builds into ``build_lib``, or for an editable install generates into the checkout."""
        super().run()
        if self.editable_mode:
            generate(SOURCES.parent)
            return
        root = Path(self.build_lib)
        generate(root)
        for path in SOURCES.glob("*.proto"):
            shutil.copy(path, root / PACKAGE)


if __name__ == "__main__":
    generate(SOURCES.parent)
