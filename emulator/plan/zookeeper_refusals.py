"""What cannot be done in a cluster with ZooKeeper, on processes around a real server, or in one without."""

from typing import Final

from emulator.plan.actions import (
    ActionTemplate,
    ClockJump,
    ClockRate,
    DeposeController,
    DiskError,
    DiskFull,
    ExpireSession,
    LoseSyncs,
    OnChannel,
    OnNodes,
    PowerLoss,
    SlowDisk,
)
from emulator.plan.nodes import CONTROLLER

NO_ZOOKEEPER: Final = "there is no ZooKeeper in this era"

_OF_DISKS: Final = (PowerLoss, SlowDisk, LoseSyncs, DiskError, DiskFull)
_OF_CLOCKS: Final = (ClockRate, ClockJump)


def era_refusal(action: ActionTemplate, *, has_zookeeper: bool) -> str | None:
    """Returns why no driver has an action in an era with ZooKeeper, or in one without; ``None`` if some have."""
    if not has_zookeeper and isinstance(action, ExpireSession | DeposeController):
        return NO_ZOOKEEPER
    return None


def server_refusal(action: ActionTemplate, *, has_zookeeper: bool) -> str | None:
    """Returns why an action cannot be done beside a real ZooKeeper server, or beside none; ``None`` if it can."""
    if not has_zookeeper:
        return era_refusal(action, has_zookeeper=False)
    if isinstance(action, OnChannel) and CONTROLLER in (action.channel.source, action.channel.target):
        return "single messages to a real ZooKeeper server are not told apart; links to it can be cut"
    if not isinstance(action, OnNodes) or CONTROLLER not in action.nodes:
        return None
    if isinstance(action, _OF_DISKS):
        return "a real ZooKeeper server uses the machine's disk as it is"
    if isinstance(action, _OF_CLOCKS):
        return "a real ZooKeeper server uses the machine's clock as it is"
    return None
