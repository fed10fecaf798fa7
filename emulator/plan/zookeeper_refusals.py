"""Refuses actions that are impossible in a cluster with ZooKeeper, with a real server, or without ZooKeeper."""

from typing import Final

from laststand.emulator.core.eras import node_rules
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import SESSION_APIS
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import CONTROLLER, NodeRef

NO_ZOOKEEPER: Final = "there is no ZooKeeper in this era"

_ONE_RELEASE: Final = f"brokers beside ZooKeeper run one release; {PROPERTY} is what they differ in"
_NO_AUTHORIZER: Final = "access control lists in ZooKeeper are not emulated"
_NO_TLS: Final = "clusters with ZooKeeper speak no TLS between nodes"

_OF_DISKS: Final = (actions.SlowDisk, actions.LoseSyncs, actions.DiskError, actions.DiskFull)
_OF_CLOCKS: Final = (actions.ClockRate, actions.ClockJump)


def era_refusal(action: actions.ActionTemplate, *, kind: ClusterKind) -> str | None:
    """Returns why no driver has an action in clusters of a kind; ``None`` if some have."""
    if isinstance(action, actions.Start) and action.era is not None:
        if kind is ClusterKind.ZOOKEEPER:
            return _ONE_RELEASE
        if node_rules(action.era).kind is not kind:
            return f"{action.era} is an era with ZooKeeper, and this cluster has none"
    is_upgrade = isinstance(action, actions.Start) and action.inter_broker_protocol_version is not None
    if kind is ClusterKind.KRAFT and (
        is_upgrade or isinstance(action, actions.ExpireSession | actions.DeposeController)
    ):
        return NO_ZOOKEEPER
    if kind is ClusterKind.ZOOKEEPER and isinstance(action, actions.Grant | actions.Revoke):
        return _NO_AUTHORIZER
    if kind is ClusterKind.ZOOKEEPER and isinstance(action, actions.ExpireCertificate | actions.RenewCertificate):
        return _NO_TLS
    return None


def server_refusal(action: actions.ActionTemplate, *, kind: ClusterKind, driver: DriverName) -> str | None:
    """Returns why an action is impossible with a real ZooKeeper server, or without one; ``None`` if it is possible.

    Args:
        action: the action.
        kind: of the cluster.
        driver: the driver, one with processes.
    """
    if (reason := era_refusal(action, kind=kind)) is not None:
        return reason
    if kind is ClusterKind.KRAFT:
        return None
    if isinstance(action, actions.OnChannel) and CONTROLLER in (action.channel.source, action.channel.target):
        return _refused_messages(action)
    if not isinstance(action, actions.OnNodes) or CONTROLLER not in action.nodes:
        return None
    if isinstance(action, _OF_DISKS):
        return "a real ZooKeeper server uses the machine's disk as it is"
    if isinstance(action, _OF_CLOCKS):
        return "a real ZooKeeper server uses the machine's clock as it is"
    if isinstance(action, actions.PowerLoss) and driver is DriverName.DOCKER:
        return "it is not recorded what a ZooKeeper server in a container syncs"
    return None


def _refused_messages(action: actions.OnChannel[NodeRef]) -> str | None:
    if action.channel.source == CONTROLLER:
        return "a ZooKeeper server calls nobody"
    if action.channel.api not in SESSION_APIS:
        return f"brokers ask a ZooKeeper server for {', '.join(SESSION_APIS)}"
    if isinstance(action, actions.Duplicate | actions.DuplicateNext | actions.ReleaseNewest):
        return "a connection to a ZooKeeper server carries each message once, and in order"
    return None
