"""``laststand power-loss`` on databases that registries of packages have: RocksDB, through rocksdict of PyPI."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.programs import ROCKSDB, python_environment

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]

WRITE = """\
import sys, time
from rocksdict import Options, Rdict, WriteOptions
database = Rdict("database", options=Options(raw_mode=True))
how = WriteOptions()
how.sync = "sync" in sys.argv
for number in range(5): database.put(b"%d" % number, b"value", write_opt=how)
print("committed", flush=True)
time.sleep(60)
"""

READ = """\
from rocksdict import Options, Rdict
print(len(list(Rdict("database", options=Options(raw_mode=True)).keys())))
"""


@pytest.mark.parametrize("disk", ["posix", "ext4"])
@pytest.mark.parametrize(("how", "left"), [("not", 0), ("sync", 5)])
def test_rocksdb_keeps_what_it_has_synced(how: str, left: int, disk: str, tmp_path: Path) -> None:
    python = str(python_environment(ROCKSDB) / "bin" / "python")
    options = ("--after-output", "committed", "--keep", "none", "--disk", disk)
    command = [sys.executable, "-m", "laststand.cli", "power-loss", *options, "--", python, "-c", WRITE, how]
    lost = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert lost.returncode == 0, lost.stderr
    read = subprocess.run([python, "-c", READ], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(read.stdout) == left
