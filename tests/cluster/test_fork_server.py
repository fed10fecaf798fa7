"""The process from which children are forked: each is one of its own, and ends with it."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from laststand.emulator.cluster import fork_server
from laststand.emulator.cluster.child import EndCause, ProcessEnd, ProcessSpec
from laststand.emulator.cluster.fork_server import ForkServer, Start
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.types import NodeRole
from laststand.emulator.module_command import module_command, source_environment
from laststand.emulator.node.module_names import modules_of

pytestmark = pytest.mark.cluster

SLEEP = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)")


CLIENT = "laststand.emulator.client.process"


async def end_of(spec: ProcessSpec) -> ProcessEnd:
    async with Supervisor() as supervisor, asyncio.timeout(20):
        return await (await supervisor.start(spec)).wait()


async def test_a_forked_child_is_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await end_of(ProcessSpec(name="0", argv=("true",), stderr_path=tmp_path / "first"))  # the server is there now
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXTRA", "yes")
    monkeypatch.delenv("HOME")
    command = module_command("tests.cluster.forked", "7", "a b")
    end = await end_of(ProcessSpec(name="0", argv=command, imports=("decimal",), stderr_path=tmp_path / "log"))
    assert (end.cause, end.exit_code) == (EndCause.UNEXPECTED, 7)
    (line,) = end.stderr_tail
    assert json.loads(line) == {
        "command": list(command),
        "arguments": ["7", "a b"],
        "environment": {"EXTRA": "yes", "HOME": None},
        "directory": str(tmp_path),
        "group": True,
        "decimal": True,
        "descriptors": ["0", "1", "2", "3"],  # 3 is that of the folder which lists them
    }


async def test_any_environment_and_argument_reach_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        monkeypatch.setenv(f"LONG_{number}", "x" * 100_000)
    monkeypatch.setenv("LATIN", os.fsdecode(b"\xe9"))
    program = "import os, sys; sys.exit(os.environb[b'LATIN'] != os.fsencode(sys.argv[1]))"
    argv = (sys.executable, "-I", "-S", "-c", program, os.fsdecode(b"\xe9"))
    end = await end_of(ProcessSpec(name="0", argv=argv, stderr_path=tmp_path / "log"))
    assert end.exit_code == 0, end.stderr_tail


async def test_a_module_that_cannot_be_imported_ends_its_own_process_only(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        running = await supervisor.start(ProcessSpec(name="running", argv=SLEEP, stderr_path=tmp_path / "running"))
        command = module_command("tests.cluster.no_such_program")
        end = await end_of(
            ProcessSpec(name="0", argv=command, imports=("tests.cluster.no_such_program",), stderr_path=tmp_path / "0")
        )
        assert "No module named tests.cluster.no_such_program" in end.stderr_tail[-1]
        assert running.end is None


async def test_a_child_starts_where_the_harness_is_even_if_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    end = await end_of(ProcessSpec(name="0", argv=("readlink", "/proc/self/cwd"), stderr_path=tmp_path / "log"))
    assert (end.exit_code, end.stderr_tail) == (0, (f"{tmp_path}/gone (deleted)",))


def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "module_command", lambda *_: module_command("tests.cluster.no_such_program"))
    with contextlib.closing(ForkServer()) as server, pytest.raises(ConnectionResetError, match="No module named"):
        server.start(Start(argv=(b"true",), imports=(), environment={}), ())


def test_a_server_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "ANSWER_TIMEOUT_S", 0.01)
    monkeypatch.setattr(fork_server, "die_with_parent", lambda _: ["sleep", "60"])
    server = ForkServer()
    with pytest.raises(TimeoutError, match=r"did not answer within 0\.01 s"):
        server.start(Start(argv=(b"true",), imports=(), environment={}), ())
    assert not server.is_alive


async def test_children_end_with_their_server_and_the_next_one_has_another(tmp_path: Path) -> None:
    async with Supervisor() as supervisor, asyncio.timeout(20):
        child = await supervisor.start(ProcessSpec(name="0", argv=SLEEP, stderr_path=tmp_path / "0"))
        assert await child.pause()
        server = psutil.Process(child.pid).parent()
        assert server is not None
        server.kill()
        end = await child.wait()
        assert (end.cause, end.signal_number) == (EndCause.UNEXPECTED, signal.SIGKILL)
        again = await supervisor.start(ProcessSpec(name="0", argv=SLEEP, stderr_path=tmp_path / "0"))
        assert (await again.stop()).cause is EndCause.STOPPED


def test_a_harness_that_ignores_its_children_gets_exit_codes(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        server = ForkServer()
    finally:
        signal.signal(signal.SIGCHLD, before)
    order = Start(argv=(b"sh", b"-c", b"exit 7"), imports=(), environment=dict(os.environb))
    with contextlib.closing(server), (tmp_path / "log").open("wb") as log:
        assert server.collect(server.start(order, (log.fileno(),))) == 7
        assert server.collect(1) == -signal.SIGKILL  # no child of the server
        assert server.is_alive


def test_nothing_that_is_imported_before_a_fork_starts_a_thread() -> None:
    roles = (NodeRole.CONTROLLER, NodeRole.BROKER)
    names = {name for role in roles for name in modules_of(role, has_zookeeper=True, has_metrics=True, has_kafka=True)}
    assert not [name for name in names if name.endswith("__main__")]  # runpy would warn of it in each log
    program = f"""
import importlib, os
for name in {(*sorted(names), CLIENT)}:
    importlib.import_module(name)
print(len(os.listdir("/proc/self/task")))
"""
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(
        command, env={**os.environ, **source_environment()}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"
