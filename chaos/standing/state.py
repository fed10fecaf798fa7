"""The state of a standing cluster for its next supervisor: ``state.json``.

It is written when the cluster starts, before and after each step, and at an orderly end. A supervisor that died leaves
it without an end, and the next one derives from it what that means for the evidence.
"""

import os
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.user_files import read_bytes

STATE_FILE: Final = "state.json"

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class Ended(Enum):
    """The way in which a supervisor left the cluster."""

    STOPPED = "stopped"
    """The cluster was stopped cleanly; it can be started again."""

    DOWN = "down"
    """The cluster was stopped cleanly, and its final logs were read: the record is closed."""


class StandingState(msgspec.Struct, frozen=True, kw_only=True):
    """One supervisor's cluster.

    Attributes:
        incarnation: number of the supervisor in this run, from 0; it names the harness's event file.
        pid: the supervisor's process.
        boot_id: of the machine, since it was booted.
        since: when the supervisor started.
        first_since: when the first supervisor of the run started; ``None`` if it is this one.
        stood_s: how long the cluster had been up when this was written, in seconds, over all supervisors.
        cluster_id: of the nodes' data.
        ports: port of each node.
        metrics_ports: metrics port of each node.
        kafka_ports: port of each Kafka client on each broker, by the client's name.
        steps: number of steps played, over all supervisors.
        step: the step being played; ``None`` between steps.
        problem: the reason why the verdict will be ``unknown``; ``None`` if there is none.
        ended: ``None`` while the supervisor lives, and without end if it died.
    """

    incarnation: int
    pid: int
    boot_id: str
    since: datetime
    first_since: datetime | None = None
    stood_s: float = 0.0
    cluster_id: str
    ports: dict[int, int]
    metrics_ports: dict[int, int]
    kafka_ports: dict[str, dict[int, int]] = {}
    steps: int = 0
    step: str | None = None
    problem: str | None = None
    ended: Ended | None = None

    @property
    def began(self) -> datetime:
        """The start of the run."""
        return self.first_since or self.since

    def doubt(self) -> str | None:
        """Returns ``problem``, or what the death of the supervisor means for the evidence; ``None`` without either."""
        if self.problem is not None or self.ended is not None:
            return self.problem
        if self.boot_id != boot_id():
            return "the machine went down while the cluster stood, and with it what had not reached the disk"
        if self.step is not None:
            return f"the supervisor died while it played {self.step}"
        return None


def new_state(
    *,
    incarnation: int,
    cluster_id: str,
    ports: dict[int, int],
    metrics: dict[int, int],
    before: StandingState | None = None,
) -> StandingState:
    """Returns the state of a cluster that this process starts now; ``before`` is the last supervisor's state."""
    return StandingState(
        incarnation=incarnation,
        pid=os.getpid(),
        boot_id=boot_id(),
        since=datetime.now(UTC),
        first_since=None if before is None else before.began,
        stood_s=0.0 if before is None else before.stood_s,
        cluster_id=cluster_id,
        ports=ports,
        metrics_ports=metrics,
    )


def boot_id() -> str:
    """Returns the id of this boot of the machine."""
    return _BOOT_ID.read_text().strip()


_DECODER: Final = msgspec.json.Decoder(StandingState)


def write_state(directory: Path, state: StandingState) -> None:
    """Replaces the state in a run directory at once."""
    fresh = directory / f".{STATE_FILE}"
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    fresh.replace(directory / STATE_FILE)


def read_state(directory: Path) -> StandingState | None:
    """Returns the state in a run directory; ``None`` if no cluster has written one.

    Raises:
        ConfigError: the file is damaged.
    """
    try:
        content = read_bytes(directory / STATE_FILE)
    except FileNotFoundError:
        return None
    try:
        return _DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(key=STATE_FILE, value=str(directory), expected=f"a supervisor's ({error})") from None
