"""Applications of the user: commands that a run starts beside its cluster, as clients of Kafka.

Each finds the addresses of its own links in its environment, as ``BOOTSTRAP_SERVERS``, gets SIGTERM once the steps are
over, and may end earlier with exit code 0. Its output is in the run directory: ``application-NAME.log``.
"""

import asyncio
import logging
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from laststand.emulator.cluster.child import EndCause, ProcessEnd, ProcessSpec
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.descendant_death import with_descendants

ADDRESSES: Final = "BOOTSTRAP_SERVERS"
"""Environment variable in which an application finds its brokers."""


class ApplicationStartError(EmulatorError):
    """A command could not be started.

    Attributes:
        name: of the application.
        reason: in words.
    """

    def __init__(self, *, name: str, reason: str) -> None:
        super().__init__(f"application {name} could not be started: {reason}")
        self.name = name
        self.reason = reason


class Applications:
    """The applications of one run; nothing that it starts outlives its ``async with`` block.

    Args:
        commands: by name, split as the shell would.
        directory: of the run.
        logger: of ``run.log``.
        on_problem: called with a description, when an application ends in an unexpected way.
    """

    def __init__(
        self,
        commands: Mapping[str, str],
        *,
        directory: Path,
        logger: logging.Logger,
        on_problem: Callable[[str], None],
    ) -> None:
        self._commands = commands
        self._directory = directory
        self._logger = logger
        self._on_problem = on_problem
        self._supervisor = Supervisor(on_end=self._note_end)

    async def __aenter__(self) -> "Applications":
        """Returns itself; starts nothing yet."""
        await self._supervisor.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Kills what still runs."""
        await self._supervisor.__aexit__(None, None, None)

    async def start(self, addresses: Mapping[str, str]) -> None:
        """Starts all of them.

        Args:
            addresses: ``bootstrap.servers`` of each.

        Raises:
            ApplicationStartError: there is no such program.
        """
        for name, command in self._commands.items():
            argv = tuple(shlex.split(command))
            if shutil.which(argv[0]) is None:
                raise ApplicationStartError(name=name, reason=f"there is no program {argv[0]!r}")
            spec = ProcessSpec(
                name=name,
                argv=tuple(with_descendants(argv)),
                stderr_path=self._directory / f"application-{name}.log",
                environment={ADDRESSES: addresses[name]},
                exits_with_signal_number=True,
            )
            child = await self._supervisor.start(spec)
            self._logger.info("application=%s pid=%d command=%s", name, child.pid, command)

    async def stop(self, *, timeout_ms: int) -> None:
        """Ends those that still run: with SIGTERM, and with SIGKILL after a time, which is a problem."""
        await asyncio.gather(
            *(child.stop(timeout_s=timeout_ms / 1000) for child in tuple(self._supervisor.children.values()))
        )

    def _note_end(self, end: ProcessEnd) -> None:
        how = f"exit code {end.exit_code}" if end.signal_number is None else f"signal {end.signal_number}"
        self._logger.info("application=%s ended with %s", end.name, how)
        is_orderly = end.cause is EndCause.STOPPED or end.exit_code == 0
        if not is_orderly and end.cause is not EndCause.KILLED:
            why = "did not end in time" if end.cause is EndCause.STOP_TIMED_OUT else f"ended with {how}"
            self._on_problem("\n  ".join([f"application {end.name} {why}", *end.stderr_tail[-1:]]))
