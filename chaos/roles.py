"""Who a step means: resolves roles on the committed state, and names on what earlier steps called a node."""

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from chaos.scenario import FixedNode, NamedNode, NodeRef, Role, RoleNode
from emulator.core.image import MetadataImage, PartitionState
from emulator.core.types import BrokerId, NodeId

NodeNames: TypeAlias = Mapping[str, NodeId]
"""Nodes by the names that steps gave them."""


def resolve(ref: NodeRef, image: MetadataImage, names: NodeNames) -> NodeId | None:
    """Returns the node that is meant, or ``None`` where nobody has the role now."""
    match ref:
        case FixedNode(node_id=node_id):
            return node_id
        case NamedNode(name=name):
            return names[name]
        case RoleNode(role=role, partition=partition):
            state = image.partitions.get(partition)
            found = None if state is None else _holder(role, state)
            return None if found is None else NodeId(found)
        case _:
            assert_never(ref)


def _holder(role: Role, state: PartitionState) -> BrokerId | None:
    match role:
        case Role.LEADER:
            return state.leader
        case Role.FOLLOWER:
            return min((member for member in state.isr if member != state.leader), default=None)
        case Role.LAST_ISR:
            return state.isr[0] if len(state.isr) == 1 else None
        case Role.ELR:
            return min(state.elr, default=None)
        case _:
            assert_never(role)
