"""The nodes of every cluster: the well-known ids, and references by role or name."""

import re
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from emulator.core.types import CLIENT_ID, NodeId, TopicPartition

CONTROLLER: Final = NodeId(100)
"""The controller. Brokers are 0 to N-1."""

CLIENT: Final = CLIENT_ID
"""The client process as an end of links; it is no node of the cluster."""

HARNESS: Final = NodeId(2000)
"""Whoever breaks and mends things, on the event lines that say so."""

_WORDS: Final = {"client": CLIENT, "controller": CONTROLLER}
_NAMES: Final = {node: word for word, node in _WORDS.items()}
_ROLE: Final = re.compile(r"([a-z-]+)(?:\((.+)-(\d+)\))?")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


class ReplicaRole(Enum):
    """Role of a node in a partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    """Lowest member of the ISR that does not lead."""

    LAST_ISR = "last-isr"
    """Only member of the ISR."""

    ELR = "elr"
    """Lowest eligible leader replica."""


class RoleNode(msgspec.Struct, frozen=True, kw_only=True, tag="role"):
    """The node that has a role when the action is due; without a partition, in the cluster's only one."""

    role: ReplicaRole
    partition: TopicPartition | None

    def __str__(self) -> str:
        return self.role.value if self.partition is None else f"{self.role.value}({self.partition})"


class NamedNode(msgspec.Struct, frozen=True, kw_only=True, tag="name"):
    """The node to which an earlier step gave this name."""

    name: str

    def __str__(self) -> str:
        return self.name


NodeRef: TypeAlias = NodeId | RoleNode | NamedNode
"""A node as people write it."""


def node_text(node: NodeRef) -> str:
    """Returns how people write a node: ``client``, ``controller``, an id, a role or a name."""
    return _NAMES.get(node, str(node)) if isinstance(node, int) else str(node)


def is_node_name(text: str) -> bool:
    """Whether a step may give a node this name: a lower-case word that means nothing else."""
    return _NAME.fullmatch(text) is not None and text not in {*_WORDS, "all", *(role.value for role in ReplicaRole)}


def parse_node(text: str) -> NodeRef:
    """Inverse of ``node_text``; a word that is no role is a name.

    Raises:
        ValueError: nothing can be named so.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text.isdecimal():
        return NodeId(int(text))
    match = _ROLE.fullmatch(text)
    roles = {role.value: role for role in ReplicaRole}
    if match is not None and match[1] in roles:
        partition = None if match[2] is None else TopicPartition(match[2], int(match[3]))
        return RoleNode(role=roles[match[1]], partition=partition)
    if is_node_name(text):
        return NamedNode(name=text)
    raise ValueError(text)
