"""Starts the supervisor of a standing cluster, and waits until the cluster serves."""

import os
import signal
import subprocess
import sys
from typing import Final

from chaos.standing.order import StandingOrder, write_order
from emulator.cluster.process_cluster import source_environment
from emulator.core.errors import EmulatorError

_LOG_FILE: Final = "run.log"


class NotStartedError(EmulatorError):
    """The cluster did not come up, and nothing of it runs."""


def launch(order: StandingOrder) -> int:
    """Starts a supervisor that outlives this process, and returns its process id when the cluster serves.

    Raises:
        NotStartedError: it does not.
    """
    write_order(order)
    read_fd, write_fd = os.pipe()
    with (order.path / _LOG_FILE).open("ab") as log, os.fdopen(read_fd, "rb") as report:
        try:
            supervisor = subprocess.Popen(
                (sys.executable, "-m", "chaos.standing", order.directory, str(write_fd)),
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
            supervisor.send_signal(signal.SIGKILL)
            supervisor.wait()
            raise
    if line == b"\n":
        supervisor.returncode = 0  # it is on its own now: nobody here waits for it
        return supervisor.pid
    code = supervisor.wait()
    reason = line.decode().strip() or f"its supervisor ended with {code}"
    raise NotStartedError(f"no cluster came up: {reason}; see {order.path / _LOG_FILE}")
