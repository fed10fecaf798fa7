"""The session that ``laststand`` gives to programs of users is the oracle's own, and there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import laststand
from pathlib import Path
session = laststand.spark()
assert laststand.spark() is session
assert session.conf.get("spark.app.name") == "laststand"
assert session.conf.get("spark.ui.enabled") == "false"
assert session.range(5).count() == 5
session.sql("SHOW TABLES").collect()
assert not Path("spark-warehouse").exists()
"""


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_session_is_the_oracles_there_is_one_and_it_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, cwd=tmp_path, check=True, timeout=170)
    assert list(tmp_path.glob("laststand-*")) == []
