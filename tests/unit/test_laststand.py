"""The package that programs of users import: quick to import, and the oracle's own session."""

import subprocess
import sys

import pytest

_IMPORT = """
import sys
import laststand
assert not {"pyspark", "py4j", "emulator"} & set(sys.modules), "heavy"
assert laststand.__all__ == ["read_runs", "spark"]
"""

_SESSION = """
import os, tempfile
from pathlib import Path
import laststand
log = Path(tempfile.mkdtemp()) / "spark.log"
session = laststand.spark(log_path=log)
assert laststand.spark() is session
assert session.conf.get("spark.app.name") == "laststand"
assert session.conf.get("spark.ui.enabled") == "false"
assert session.range(5).count() == 5
assert log.exists()
"""


def test_importing_it_imports_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", _IMPORT], check=True, timeout=60)


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_session_is_the_oracles_and_there_is_one() -> None:
    subprocess.run([sys.executable, "-c", _SESSION], check=True, timeout=170)
