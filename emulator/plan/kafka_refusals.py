"""Which actions cannot be done to Apache Kafka, and why: beside what our own processes do not have either."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from emulator.core.admin_messages import RequestedElection
from emulator.plan.actions import (
    ActionTemplate,
    ClockJump,
    ClockRate,
    DiskError,
    DiskFull,
    ElectLeaders,
    ExpireSession,
    LoseSyncs,
    OnChannel,
    SlowDisk,
)
from emulator.plan.drivers import DriverName

_DISK: Final = "Kafka's processes use the machine's disk as it is"
_CLOCK: Final = "Kafka's processes have the machine's clock"
_MESSAGES: Final = "single messages are not told apart on links between Kafka's processes"
_ELECTION: Final = "Kafka has no such election"

_REFUSED: Final[Mapping[type, str]] = MappingProxyType(
    {
        SlowDisk: _DISK,
        LoseSyncs: _DISK,
        DiskError: _DISK,
        DiskFull: _DISK,
        ClockRate: _CLOCK,
        ClockJump: _CLOCK,
        ExpireSession: "Kafka's processes have no ZooKeeper here",
    }
)


def refusal_on_kafka(action: ActionTemplate) -> str | None:
    """Returns why an action cannot be done to Apache Kafka; ``None`` if it can."""
    if isinstance(action, ElectLeaders) and action.election > RequestedElection.UNCLEAN:
        return _ELECTION
    return refused_kind(type(action)) or action.refused_by(DriverName.PROCESS)


def refused_kind(kind: type) -> str | None:
    """Returns why actions of a class cannot be done to Apache Kafka, whatever their arguments."""
    return _MESSAGES if issubclass(kind, OnChannel) else _REFUSED.get(kind)
