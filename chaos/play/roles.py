"""Resolves nodes: roles by the committed state, names by the steps that gave them."""

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias, assert_never

from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan.nodes import (
    CONTROLLER,
    ActiveController,
    DrawnFrom,
    DrawnNodes,
    NamedNode,
    NodeGroup,
    NodeRef,
    QuorumNode,
    QuorumRole,
    RackNodes,
    ReplicaRole,
    RoleNode,
    controller_ids,
)

_CONTROLLERS_MIN: Final = 3

NodeNames: TypeAlias = Mapping[str, NodeId]
"""Nodes by the names that steps gave them."""


def resolve(node: NodeRef, image: MetadataImage, names: NodeNames, *, taken: Collection[NodeId] = ()) -> NodeId | None:
    """Returns the node, or ``None`` if no node has the role.

    Args:
        node: as written.
        image: the committed metadata.
        names: given by earlier steps.
        taken: nodes that the same step names before, for which a role of the quorum does not stand again.
    """
    match node:
        case int():
            return node
        case ActiveController():
            return _active(image)
        case QuorumNode(role=role):
            return _in_quorum(role, image, taken)
        case NamedNode(name=name):
            return names.get(name)
        case RoleNode(role=role, partition=partition):
            state = image.partitions.get(partition or _only_partition(image))
            found = None if state is None else _holder(role, state)
            return None if found is None else NodeId(found)
        case DrawnNodes() | RackNodes():
            return None  # several nodes, not one
        case _:
            assert_never(node)


def _active(image: MetadataImage) -> NodeId:
    return CONTROLLER if image.controller_id is None else image.controller_id


def _in_quorum(role: QuorumRole, image: MetadataImage, taken: Collection[NodeId]) -> NodeId | None:
    """Returns a voter of a given role; until the voters change, all controllers (at least three) are voters."""
    voters = image.voters or controller_ids(_CONTROLLERS_MIN)
    left_out = {*taken, _active(image)} if role is QuorumRole.FOLLOWER else set(taken)
    return min((voter for voter in voters if voter not in left_out), default=None if taken else _active(image))


def candidates(group: NodeGroup, image: MetadataImage) -> tuple[NodeId, ...]:
    """Returns the brokers that are a group, or among which it is drawn, ascending.

    ``any`` draws among all registered brokers.
    """
    match group:
        case RackNodes(rack=rack):
            found = {broker_id for broker_id, each in image.brokers.items() if each.rack == rack}
        case DrawnNodes(drawn_from=DrawnFrom.BROKERS):
            found = set(image.brokers)
        case DrawnNodes(drawn_from=drawn_from, partition=partition):
            state = image.partitions.get(partition or _only_partition(image))
            found = set() if state is None else set(_members(drawn_from, state))
        case _:
            assert_never(group)
    return tuple(NodeId(broker_id) for broker_id in sorted(found))


def _members(drawn_from: DrawnFrom, state: PartitionState) -> tuple[BrokerId, ...]:
    match drawn_from:
        case DrawnFrom.REPLICAS:
            return state.replicas
        case DrawnFrom.ISR:
            return state.isr
        case DrawnFrom.ELR:
            return state.elr
        case DrawnFrom.FOLLOWERS:
            return tuple(replica for replica in state.replicas if replica != state.leader)
        case DrawnFrom.BROKERS:
            raise AssertionError("these are no replicas")
        case _:
            assert_never(drawn_from)


def missing(node: NodeRef) -> str:
    """Describes why ``resolve`` found no node."""
    match node:
        case RoleNode(role=ReplicaRole.LEADER, partition=partition):
            return f"{partition} has no leader"
        case RoleNode(role=ReplicaRole.FOLLOWER, partition=partition):
            return f"{partition} has no follower in the ISR"
        case RoleNode(role=ReplicaRole.LAST_ISR, partition=partition):
            return f"the ISR of {partition} is not down to one member"
        case RoleNode(role=ReplicaRole.ELR, partition=partition):
            return f"the ELR of {partition} is empty"
        case _:
            return f"there is no node {node}"


def _only_partition(image: MetadataImage) -> TopicPartition:
    return next(iter(sorted(image.partitions)), TopicPartition("", 0))


def _holder(role: ReplicaRole, state: PartitionState) -> BrokerId | None:
    match role:
        case ReplicaRole.LEADER:
            return state.leader
        case ReplicaRole.FOLLOWER:
            return min((member for member in state.isr if member != state.leader), default=None)
        case ReplicaRole.LAST_ISR:
            return state.isr[0] if len(state.isr) == 1 else None
        case ReplicaRole.ELR:
            return min(state.elr, default=None)
        case _:
            assert_never(role)
