"""Children that run a module of this program never import from the working directory."""

import re
import subprocess
from pathlib import Path

from laststand.emulator.module_command import module_command

ROOT = Path(__file__).resolve().parents[2]


def test_a_package_in_the_working_directory_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "grpc").mkdir()
    (tmp_path / "grpc/__init__.py").write_text("raise ImportError('the package of the user')")
    subprocess.run(
        module_command("laststand.emulator.node", "--help"), cwd=tmp_path, check=True, capture_output=True, timeout=60
    )


def test_no_other_code_runs_modules_on_this_machine() -> None:
    """In containers the working directory is the image's."""
    found = {
        str(path.relative_to(ROOT))
        for package in ("emulator", "chaos", "laststand")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r'"-m",', path.read_text())
    }
    assert found == {
        "emulator/module_command.py",
        "emulator/cluster/containers/container_host.py",
        "emulator/cluster/containers/volume_files.py",
    }
