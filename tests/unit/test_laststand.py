"""The package that programs of users import is quick to import."""

import subprocess
import sys
from pathlib import Path

_IMPORT = """
import sys
from pathlib import Path
import laststand
assert not {"pyspark", "py4j", "emulator"} & set(sys.modules), "heavy"
assert laststand.__all__ == ["analyses", "read_runs", "run", "run_async", "spark"]
"""


def test_importing_it_imports_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", _IMPORT], check=True, timeout=60)


def test_a_package_that_hides_its_own_is_named(tmp_path: Path) -> None:
    (tmp_path / "chaos").mkdir()
    (tmp_path / "chaos/__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", "import laststand; laststand.run('kip-966/last-replica-standing')"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert f"HiddenPackageError: {tmp_path}/chaos hides Laststand's own package 'chaos'" in done.stderr
