"""The supervisor with real processes: starting, ready lines, signals and ends."""

import asyncio
import signal
import socket
import sys
import threading
from pathlib import Path

import psutil
import pytest

from laststand.emulator.cluster.child import Child, EndCause, ProcessEnd, ProcessSpec, Readiness, StartError
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.errors import InvariantError

pytestmark = pytest.mark.cluster

SERVE = """
import json, os, socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
with os.fdopen(int(os.environ["LASTSTAND_READY_FD"]), "w") as ready:
    ready.write(json.dumps({"ready": True, "port": server.getsockname()[1]}) + "\\n")
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
"""
REFUSE_TO_STOP = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVE


def serving(
    directory: Path, *, name: str = "0", port: int = 0, program: str = SERVE, readiness: Readiness = Readiness.REPORTED
) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        argv=(sys.executable, "-I", "-S", "-c", program, str(port)),
        stderr_path=directory / "nodes" / name / "stderr.log",
        readiness=readiness,
    )


def greeting(port: int) -> bytes:
    with socket.create_connection((LOOPBACK, port), timeout=10) as connection:
        return connection.recv(5)


async def test_ready_line_names_the_port_that_answers(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        child = await supervisor.start(serving(tmp_path))
        assert await asyncio.to_thread(greeting, child.ready.port) == b"hello"
        assert supervisor.children == {"0": child}


async def test_children_start_side_by_side(tmp_path: Path) -> None:
    # Each waits until all five are there: one after the other, none would become ready.
    program = """
import os, sys, time
here = sys.argv[1]
open(os.path.join(here, str(os.getpid())), "w").close()
while len(os.listdir(here)) < 5:
    time.sleep(0.001)
with os.fdopen(int(os.environ["LASTSTAND_READY_FD"]), "w") as ready:
    ready.write('{"ready": true, "port": 1}\\n')
time.sleep(3600)
"""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    specs = [
        ProcessSpec(
            name=str(i),
            argv=(sys.executable, "-I", "-S", "-c", program, str(meeting)),
            stderr_path=tmp_path / str(i),
            readiness=Readiness.REPORTED,
        )
        for i in range(5)
    ]
    async with Supervisor() as supervisor:
        await asyncio.gather(*(supervisor.start(spec) for spec in specs))
        assert sorted(supervisor.children) == ["0", "1", "2", "3", "4"]


async def test_a_restarted_child_gets_its_port_back_though_clients_were_connected(tmp_path: Path) -> None:
    port = ReservedPort()
    async with Supervisor() as supervisor:
        for _ in range(3):
            with port.lent():
                child = await supervisor.start(serving(tmp_path, port=port.number))
            assert child.ready.port == port.number
            assert await asyncio.to_thread(greeting, port.number) == b"hello"
            await child.kill()
    port.close()


async def test_a_reserved_port_is_not_given_to_others() -> None:
    port = ReservedPort()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, port.number))
    port.close()


async def test_no_other_process_listens_on_the_port_of_a_stopped_child(tmp_path: Path) -> None:
    port = ReservedPort()
    async with Supervisor() as supervisor:
        with port.lent():
            child = await supervisor.start(serving(tmp_path, port=port.number))
        await child.kill()
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            stranger.bind((LOOPBACK, port.number))
    port.close()


async def test_an_unexpected_exit_is_noticed_with_code_and_last_words(tmp_path: Path) -> None:
    noticed: asyncio.Future[ProcessEnd] = asyncio.get_running_loop().create_future()
    async with Supervisor(on_end=noticed.set_result) as supervisor:
        spec = serving(
            tmp_path,
            program="import sys; sys.stderr.write('one\\ntwo\\n'); sys.exit(7)",
            readiness=Readiness.UNREPORTED,
        )
        child = await supervisor.start(spec)
        async with asyncio.timeout(20):
            end = await noticed
        assert end == ProcessEnd(
            name="0",
            pid=child.pid,
            cause=EndCause.UNEXPECTED,
            exit_code=7,
            signal_number=None,
            stderr_tail=("one", "two"),
        )
        assert supervisor.ends == (end,)
        assert supervisor.children == {}


async def test_a_kill_from_outside_is_unexpected(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        child = await supervisor.start(serving(tmp_path))
        psutil.Process(child.pid).kill()
        async with asyncio.timeout(20):
            end = await child.wait()
    assert (end.cause, end.signal_number) == (EndCause.UNEXPECTED, signal.SIGKILL)


async def test_a_crash_just_before_the_kill_stays_a_crash(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        child = await supervisor.start(serving(tmp_path))
        psutil.Process(child.pid).send_signal(signal.SIGABRT)
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
            pass  # the event loop must not see the end before the kill does
        end = await child.kill()
    assert (end.cause, end.signal_number) == (EndCause.UNEXPECTED, signal.SIGABRT)


async def test_stop_kill_and_a_deadline_that_passes_are_distinguished(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        stopped = await supervisor.start(serving(tmp_path, name="stopped"))
        killed = await supervisor.start(serving(tmp_path, name="killed"))
        stubborn = await supervisor.start(serving(tmp_path, name="stubborn", program=REFUSE_TO_STOP))
        assert (await stopped.stop()).cause is EndCause.STOPPED
        assert (await killed.kill()).cause is EndCause.KILLED
        assert (await stubborn.stop(timeout_s=0.05)).cause is EndCause.STOP_TIMED_OUT
        assert [end.name for end in supervisor.ends] == ["stopped", "killed", "stubborn"]


async def test_a_stop_that_ends_in_an_error_is_unexpected(tmp_path: Path) -> None:
    program = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n" + SERVE
    async with Supervisor() as supervisor:
        child = await supervisor.start(serving(tmp_path, program=program))
        end = await child.stop()
    assert (end.cause, end.exit_code) == (EndCause.UNEXPECTED, 3)


async def test_pause_and_resume_bite_once(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        child = await supervisor.start(serving(tmp_path))
        assert not await child.resume()
        assert await child.pause()
        assert psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
        assert not await child.pause()
        assert await child.resume()
        assert await asyncio.to_thread(greeting, child.ready.port) == b"hello"
        await child.kill()
        assert not await child.pause()


async def test_a_paused_child_can_be_stopped_and_killed(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        first = await supervisor.start(serving(tmp_path, name="first"))
        second = await supervisor.start(serving(tmp_path, name="second"))
        assert await first.pause()
        assert await second.pause()
        assert (await first.stop()).cause is EndCause.STOPPED
        assert (await second.kill()).cause is EndCause.KILLED


@pytest.mark.parametrize(
    ("program", "reason", "timeout_s"),
    [
        ("raise SystemExit('no disk')", "ended before it was ready", 60),
        (
            "import os, time; os.write(int(os.environ['LASTSTAND_READY_FD']), b'yes\\n'); time.sleep(60)",
            "instead of",
            60,
        ),
        ("import time; time.sleep(60)", "not ready within", 0.2),
    ],
)
async def test_a_child_that_does_not_become_ready_is_ended(
    tmp_path: Path, program: str, reason: str, timeout_s: float
) -> None:
    async with Supervisor() as supervisor:
        with pytest.raises(StartError, match=reason) as caught:
            await supervisor.start(serving(tmp_path, program=program), timeout_s=timeout_s)
        assert supervisor.children == {}
        assert supervisor.ends == (caught.value.end,)


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        starting = asyncio.ensure_future(supervisor.start(serving(tmp_path, program="import time; time.sleep(60)")))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert supervisor.children == {}
        assert [end.cause for end in supervisor.ends] == [EndCause.KILLED]


async def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        spec = ProcessSpec(
            name="0", argv=("/no/such/program",), stderr_path=tmp_path / "stderr.log", readiness=Readiness.REPORTED
        )
        with pytest.raises(StartError, match="/no/such/program: No such file"):
            await supervisor.start(spec)


async def test_leaving_the_block_kills_what_runs(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        running = await supervisor.start(serving(tmp_path, name="running"))
        paused = await supervisor.start(serving(tmp_path, name="paused"))
        await paused.pause()
    assert not psutil.pid_exists(running.pid)
    assert not psutil.pid_exists(paused.pid)


async def test_a_name_lives_once(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        await supervisor.start(serving(tmp_path))
        with pytest.raises(InvariantError, match="runs already"):
            await supervisor.start(serving(tmp_path))


def test_children_are_started_from_the_main_thread_only(tmp_path: Path) -> None:
    caught: list[BaseException] = []

    async def start() -> None:
        Child(serving(tmp_path), on_end=lambda _end: None)

    def run() -> None:
        try:
            asyncio.run(start())
        except InvariantError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [str(error) for error in caught] == [
        "a process that dies with its parent is started from the main thread only"
    ]


async def test_the_environment_has_the_allocator_settings_and_additions(tmp_path: Path) -> None:
    program = "import os, sys; sys.stderr.write(os.environ['MALLOC_TOP_PAD_'] + ' ' + os.environ['EXTRA'])"
    spec = ProcessSpec(
        name="0",
        argv=(sys.executable, "-c", program),
        stderr_path=tmp_path / "stderr.log",
        environment={"EXTRA": "yes"},
    )
    async with Supervisor() as supervisor:
        child = await supervisor.start(spec)
        async with asyncio.timeout(20):
            end = await child.wait()
    assert end.stderr_tail == ("67108864 yes",)


async def test_stop_all_stops_side_by_side(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        for i in range(3):
            await supervisor.start(serving(tmp_path, name=str(i)))
        ends = await supervisor.stop_all()
        assert {end.cause for end in ends} == {EndCause.STOPPED}
        assert sorted(end.name for end in supervisor.ends) == ["0", "1", "2"]
        assert await supervisor.stop_all() == ()
