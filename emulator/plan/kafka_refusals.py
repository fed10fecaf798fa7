"""Refuses actions that are impossible on Apache Kafka but possible on Laststand's processes, with the reason."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.kafka.api_names import API_KEYS, FETCH, QUORUM_API_KEYS
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import STREAM, SYNC, Channel
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import (
    CLIENT,
    CONTROLLER_COUNTS,
    STANDBY_CONTROLLERS_MAX,
    ActiveController,
    NodeRef,
    QuorumNode,
    controller_ids,
)

_DISK: Final = "Kafka's processes use the machine's disk as it is"
_CLOCK: Final = "Kafka's processes have the machine's clock"
_API: Final = "Kafka's nodes and clients do not call this API"
_CONTROLLER_DIALS: Final = "Kafka's controllers call each other, and no broker"
_FETCHED_METADATA: Final = f"what brokers fetch from the controller is {STREAM}"
_NO_STREAM: Final = f"{STREAM} is the metadata that brokers get from the controller"
_NO_ZOOKEEPER: Final = "Kafka's processes have no ZooKeeper here"
NO_TLS: Final = "Kafka's nodes speak no TLS here"
_CONTROLLERS: Final = controller_ids(CONTROLLER_COUNTS[-1] + STANDBY_CONTROLLERS_MAX)
_ENDS_ITSELF: Final = "a broker of Kafka ends itself when its fetch of metadata is refused"
_ERA: Final = "a release of Apache Kafka has the rules that it has; kafka beside era names another one"
_ELECTION: Final = "Kafka has no such election"

_REFUSED: Final[Mapping[type, str]] = MappingProxyType(
    {
        actions.SlowDisk: _DISK,
        actions.LoseSyncs: _DISK,
        actions.DiskError: _DISK,
        actions.DiskFull: _DISK,
        actions.ClockRate: _CLOCK,
        actions.ClockJump: _CLOCK,
        actions.ExpireSession: _NO_ZOOKEEPER,
        actions.ExpireCertificate: NO_TLS,
        actions.RenewCertificate: NO_TLS,
        actions.DeposeController: _NO_ZOOKEEPER,
    }
)


def refusal_on_kafka(action: actions.ActionTemplate) -> str | None:
    """Returns why an action cannot be done to Apache Kafka; ``None`` if it can."""
    if isinstance(action, actions.ElectLeaders) and action.election > admin_messages.RequestedElection.UNCLEAN:
        return _ELECTION
    if isinstance(action, actions.Start):
        return _ERA if action.era is not None and action.kafka is None else None
    if isinstance(action, actions.Revoke) and _ends_brokers(action):
        return _ENDS_ITSELF
    if isinstance(action, actions.OnChannel) and (reason := _refused_messages(action.channel)) is not None:
        return reason
    return refused_kind(type(action)) or action.refused_by(DriverName.PROCESS)


def refused_kind(kind: type) -> str | None:
    """Returns why actions of a class are impossible on Apache Kafka, whatever their arguments."""
    return _REFUSED.get(kind) or actions.ACTION_SPECS[kind].refused.get(DriverName.KAFKA)


def _ends_brokers(action: actions.Revoke[NodeRef]) -> bool:
    """Returns whether brokers lose the permission to fetch metadata (``KafkaRaftClient.handleTopLevelError``)."""
    if action.topic is not None or set(action.nodes) <= {CLIENT, *_CONTROLLERS}:
        return False
    return action.operation in (actions.GrantedOperation.CLUSTER_ACTION, actions.GrantedOperation.ALL)


def _refused_messages(channel: Channel[NodeRef]) -> str | None:
    if channel.api == SYNC:
        return None
    is_to_controller = _is_controller(channel.target)
    if _is_controller(channel.source):
        dialled = _CONTROLLER_DIALS if not is_to_controller else _API
        return None if is_to_controller and channel.api in QUORUM_API_KEYS else dialled
    if channel.api == STREAM:
        return None if is_to_controller else _NO_STREAM
    if channel.api == FETCH and is_to_controller:
        return _FETCHED_METADATA
    return None if channel.api in API_KEYS else _API


def _is_controller(node: NodeRef) -> bool:
    return isinstance(node, ActiveController | QuorumNode) or node in _CONTROLLERS
