"""Starts the supervisor of a standing cluster, for the first time or again, and waits until the cluster serves."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from laststand.chaos.play.run_directory import make_latest
from laststand.chaos.process.hosts import remove_leftovers
from laststand.chaos.standing.link import is_standing
from laststand.chaos.standing.order import StandingOrder, read_order, write_order
from laststand.chaos.standing.state import Ended, read_state
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.module_command import module_command, source_environment
from laststand.emulator.parent_death import die_with_parent
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.zookeeper_refusals import era_refusal
from laststand.emulator.storage.line_file import line_files

_LOG_FILE: Final = "run.log"
_INTERRUPTION_TIMEOUT_S: Final = 20.0
"""For a supervisor to remove the containers that it has made so far."""


class NotStartedError(EmulatorError):
    """The cluster did not start, and nothing of it runs."""


def launch(order: StandingOrder) -> int:
    """Starts a supervisor that outlives this process, and returns its process id when the cluster serves.

    Raises:
        NotStartedError: the cluster did not come up.
    """
    supervisor = _launch(order, _supervisor)
    supervisor.returncode = 0  # it is on its own now: nobody here waits for it
    return supervisor.pid


def launch_owned(order: StandingOrder) -> subprocess.Popen[bytes]:
    """Starts a supervisor that dies with this process, and returns it when the cluster serves. Main thread only.

    Raises:
        NotStartedError: the cluster did not come up.
    """
    return _launch(order, lambda order, ready_fd: die_with_parent(_supervisor(order, ready_fd)))


def _supervisor(order: StandingOrder, ready_fd: int) -> list[str]:
    return list(module_command("laststand.chaos.standing", order.directory, str(ready_fd)))


def _launch(order: StandingOrder, command: Callable[[StandingOrder, int], list[str]]) -> subprocess.Popen[bytes]:
    write_order(order)
    make_latest(order.path)
    read_fd, write_fd = os.pipe()
    with (order.path / _LOG_FILE).open("ab") as log, os.fdopen(read_fd, "rb") as report:
        try:
            supervisor = subprocess.Popen(
                command(order, write_fd),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **source_environment()},
                pass_fds=(write_fd,),
                start_new_session=True,
                cwd="/",
            )
        finally:
            os.close(write_fd)
        try:
            line = report.readline()
        except BaseException:  # Ctrl-C while the cluster comes up: nothing may be left of it
            _interrupt(supervisor, order)
            raise
    if line == b"\n":
        return supervisor
    code = supervisor.wait()
    reason = line.decode().strip() or f"its supervisor ended with {code}"
    raise NotStartedError(f"no cluster came up: {reason}; see {order.path / _LOG_FILE}")


def _interrupt(supervisor: subprocess.Popen[bytes], order: StandingOrder) -> None:
    """Ends a supervisor that is still starting its cluster, and all processes of the cluster."""
    supervisor.send_signal(signal.SIGTERM)
    try:
        supervisor.wait(_INTERRUPTION_TIMEOUT_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # it hangs, or a second Ctrl-C
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
        remove_leftovers(order.driver, order.path)


def order_again(directory: Path, *, toxiproxy: Path | None, era: str | None = None) -> StandingOrder:
    """Returns the order to start a cluster again that was stopped, or whose supervisor died.

    Args:
        directory: of the run; it may have been moved.
        toxiproxy: the program, for a cluster that had proxies.
        era: the era of every node from now on; ``None`` for the previous one.

    Raises:
        NotStartedError: there is nothing to start again; the text says why.
        ConfigError: a file is damaged, or there is no such era.
    """
    order, state = read_order(directory), read_state(directory)
    if is_standing(directory):
        raise NotStartedError(f"the cluster in {directory} is up already")
    if state is None:
        raise NotStartedError(f"the cluster in {directory} never came up; see {directory / _LOG_FILE}")
    if state.ended is Ended.DOWN or line_files(directory, "history"):
        raise NotStartedError(
            f"the cluster in {directory} was taken down, and its record is closed; verify it with: "
            f"laststand verify {directory}; a cluster that shall start again is ended with: laststand stop"
        )
    if era is not None and (refused := _refused_era(order, era)) is not None:
        raise NotStartedError(f"--era {era}: {refused}")
    has_proxies = order.toxiproxy is not None
    program = str(toxiproxy) if has_proxies and toxiproxy is not None else None
    return msgspec.structs.replace(
        order, directory=str(directory), toxiproxy=program, started_as=order.started_as if era is None else era
    )


def _refused_era(order: StandingOrder, era: str) -> str | None:
    """Returns why a cluster cannot continue in an era; ``None`` if it can."""
    start = actions.Start(nodes=order.broker_ids, era=era)
    if (reason := era_refusal(start, kind=order.rules().kind)) is not None:
        return reason
    return None if order.driver is DriverName.PROCESS else "nodes in containers keep the era that they were made with"
