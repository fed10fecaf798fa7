"""What processes around a real ZooKeeper server cannot do, beside what no processes can; and what only they can."""

from typing import Final

from emulator.plan.actions import (
    ActionTemplate,
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

_OF_DISKS: Final = (PowerLoss, SlowDisk, LoseSyncs, DiskError, DiskFull)


def server_refusal(action: ActionTemplate, *, has_zookeeper: bool) -> str | None:
    """Returns why an action cannot be done beside a real ZooKeeper server, or beside none; ``None`` if it can."""
    if not has_zookeeper:
        return "there is no ZooKeeper in this era" if isinstance(action, ExpireSession) else None
    if isinstance(action, OnChannel) and CONTROLLER in (action.channel.source, action.channel.target):
        return "single messages to a real ZooKeeper server are not told apart; links to it can be cut"
    if isinstance(action, OnNodes) and isinstance(action, _OF_DISKS) and CONTROLLER in action.nodes:
        return "a real ZooKeeper server uses the machine's disk as it is"
    return None
