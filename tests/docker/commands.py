"""Commands as a user types them, in a directory of their own, and the containers that they leave."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import docker

from laststand.emulator.cluster.containers.labels import LOCK, NODE

ROOT: Final = Path(__file__).parents[2]
FAST: Final = (
    *("--set", "broker.session.timeout.ms=2000"),
    *("--set", "broker.heartbeat.interval.ms=250"),
    *("--set", "replica.lag.time.max.ms=1500"),
)
_DEADLINE_S: Final = 180


class Commands:
    """Types ``laststand ...``.

    Args:
        directory: in which; its ``store`` has the runs.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.variables: dict[str, str] = {}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "laststand.cli", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.variables},
        )

    def type(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Returns what a command printed; it must exit with ``code``."""
        with self.start(*arguments) as command:
            try:
                stdout, stderr = command.communicate(stdin, timeout=_DEADLINE_S)
            except subprocess.TimeoutExpired:
                command.kill()
                raise
        assert command.returncode == code, f"{arguments}: {command.returncode}\n{stdout}{stderr}"
        assert "Traceback" not in stderr, stderr
        return stdout + (stderr if code else "")

    def containers(self) -> list[str]:
        """Names of all containers of nodes and proxies whose run is below this directory, ended ones included."""
        return self._containers(LOCK, NODE)

    def helpers(self) -> list[str]:
        """Names of those that harnesses made for something else."""
        return sorted({*self._containers(LOCK)} - {*self.containers()})

    def wait_for_helpers_to_end(self) -> None:
        """Waits until none is left: the engine removes one some time after its harness has let go of it."""
        deadline = time.monotonic() + _DEADLINE_S
        while self.helpers():
            assert time.monotonic() < deadline, self.helpers()
            time.sleep(0.1)

    def _containers(self, *labels: str) -> list[str]:
        client = docker.from_env()
        try:
            found = client.containers.list(all=True, filters={"label": [*labels]}, ignore_removed=True)
            return [each.name or "" for each in found if Path(each.labels[LOCK]).is_relative_to(self.directory)]
        finally:
            client.close()

    def end_supervisors(self) -> None:
        """Ends the supervisors of standing clusters below this directory, which a failed test leaves."""
        for entry in Path("/proc").iterdir():
            try:
                arguments = (entry / "cmdline").read_text().split("\0") if entry.name.isdecimal() else []
            except OSError:
                continue
            if "laststand.chaos.standing" in " ".join(arguments) and any(
                str(self.directory) in each for each in arguments
            ):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry.name), signal.SIGTERM)

    def networks(self) -> list[str]:
        """Names of all networks whose run is below this directory."""
        client = docker.from_env()
        try:
            found = client.networks.list(filters={"label": LOCK})
            return [
                each.name or "" for each in found if Path(each.attrs["Labels"][LOCK]).is_relative_to(self.directory)
            ]
        finally:
            client.close()
