"""Nothing is left of a run whose harness was killed, whatever it was doing."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from tests.cluster.survivors import DEADLINE_S, MARK, await_end, survivors

pytestmark = pytest.mark.cluster

BUSY_HARNESS = """
import asyncio, sys
from pathlib import Path
from laststand.emulator.cluster.child import ProcessSpec
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.cluster.toxiproxy import Link, Toxiproxy
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.cluster.zookeeper_program import find_zookeeper, server_settings
from laststand.emulator.verification.spark.gateway import SparkGateway
from laststand.emulator.rpc.run_token import RunToken
from laststand.emulator.verification.spark.java import find_java

def node(directory, name):
    program = "import time; time.sleep(3600)"
    argv = (sys.executable, "-c", program)
    return ProcessSpec(name=name, argv=argv, stderr_path=directory / name)

async def main(directory):
    RunToken.read_or_draw(directory / "token")
    async with Supervisor() as supervisor:
        await supervisor.start(node(directory, "running"))
        paused = await supervisor.start(node(directory, "paused"))
        assert await paused.pause()
        proxies = await Toxiproxy.start(
            supervisor=supervisor,
            program=find_toxiproxy(),
            log_path=directory / "toxiproxy",
            token_file=directory / "token",
        )
        await proxies.create({Link(0, 1): "127.0.0.1:1"})
        settings = directory / "zoo.cfg"
        settings.write_text(server_settings(data=directory, host="127.0.0.1", port=0, session_timeout_ms=2000))
        command = find_zookeeper(find_java().executable).command(settings)
        await supervisor.start(ProcessSpec(name="zookeeper", argv=command, stderr_path=directory / "zookeeper"))
        gateway = SparkGateway.start(java=find_java(), log_path=directory / "spark", heap_mb=256)
        print("spark starts", flush=True)
        await asyncio.to_thread(gateway.attach, timeout_s=100)
        print("spark listens", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main(Path(sys.argv[1])))
"""

STARTING_HARNESS = """
import asyncio, sys
from pathlib import Path
from laststand.emulator.cluster.child import Child, ProcessSpec

async def main(directory):
    print("starts", flush=True)
    for i in range(30):
        argv = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)")
        Child(ProcessSpec(name=str(i), argv=argv, stderr_path=directory / "log"), on_end=print)
    await asyncio.sleep(3600)

asyncio.run(main(Path(sys.argv[1])))
"""


def killed_at(line: str, *, program: str, directory: Path) -> tuple[str, int]:
    """Run a harness, kill it when it prints ``line``; returns the mark of its descendants and how many it had."""
    mark = uuid.uuid4().hex
    command = [sys.executable, "-c", program, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, MARK: mark}) as harness:
        assert harness.stdout is not None
        for printed in harness.stdout:
            if printed.strip() == line:
                break
        else:
            pytest.fail(f"the harness ended with {harness.wait()} and never said {line!r}")
        descendants = len(survivors(mark)) - 1
        harness.kill()
    return mark, descendants


@pytest.mark.parametrize("moment", ["spark starts", "spark listens"])
def test_nothing_outlives_a_killed_harness(moment: str, tmp_path: Path) -> None:
    mark, descendants = killed_at(moment, program=BUSY_HARNESS, directory=tmp_path)
    assert descendants == 6  # the fork server among them
    assert await_end(mark) == []


def test_nothing_outlives_a_harness_that_is_killed_while_it_starts_children(tmp_path: Path) -> None:
    mark, _ = killed_at("starts", program=STARTING_HARNESS, directory=tmp_path)
    assert await_end(mark) == []


def test_an_untethered_child_is_found_among_the_survivors(tmp_path: Path) -> None:
    program = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print("started", flush=True)
time.sleep(3600)
"""
    mark, _ = killed_at("started", program=program, directory=tmp_path)
    left = survivors(mark)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=DEADLINE_S)
    assert len(left) == 1
