"""A Spark session that is given up while it starts."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

GIVEN_UP = """
import sys
import threading
from pathlib import Path

import psutil

from laststand.emulator.verification.spark import session
from laststand.emulator.verification.spark.gateway import SparkGateway

is_connected, is_stopped = threading.Event(), threading.Event()
make, stop = session._context, SparkGateway.stop


def make_late(master, settings):
    is_connected.set()
    is_stopped.wait(60)
    return make(master, settings)


def stop_and_tell(gateway, **how):
    stop(gateway, **how)
    is_stopped.set()


session._context, SparkGateway.stop = make_late, stop_and_tell
starter = session.SparkSessionStarter(log_path=Path(sys.argv[1]))
starter.start()
assert is_connected.wait(60)
starter.stop()
print(starter._failure is not None, [child.name() for child in psutil.Process().children()])
"""


def test_one_that_is_stopped_while_it_connects_starts_no_second_jvm(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", GIVEN_UP, str(tmp_path / "jvm.log")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert answer.stdout == "True []\n", answer.stderr
