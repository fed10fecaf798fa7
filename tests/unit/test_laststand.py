"""The package that programs of users import is quick to import."""

import subprocess
import sys

_IMPORT = """
import sys
from pathlib import Path
import laststand
assert not {"pyspark", "py4j", "asyncio", "laststand.emulator"} & set(sys.modules), "heavy"
assert laststand.__all__ == ["analyses", "read_runs", "run", "run_async", "spark"]
"""


def test_importing_it_imports_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", _IMPORT], check=True, timeout=60)
