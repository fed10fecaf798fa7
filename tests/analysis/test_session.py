"""The session that ``laststand`` gives to programs of users is the oracle's own, and there is one."""

import subprocess
import sys

import pytest

_PROGRAM = """
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


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_session_is_the_oracles_and_there_is_one() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=170)
