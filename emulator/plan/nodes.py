"""The nodes of every cluster: the well-known ids, and references by role or name."""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.types import CLIENT_ID, NodeId, TopicPartition

CONTROLLER: Final = NodeId(100)
"""The controller, or in clusters with ZooKeeper its server. Brokers are 0 to N-1."""

CONTROLLER_COUNTS: Final = (1, 3, 5)
"""Controllers of a cluster: an even number survives no more than one less."""


STANDBY_CONTROLLERS_MAX: Final = 4
"""Controllers that a quorum may be given later."""


def controller_ids(count: int) -> tuple[NodeId, ...]:
    """Returns the ids of a number of controllers, ascending."""
    return tuple(NodeId(CONTROLLER + index) for index in range(count))


def machine_of(node_id: NodeId, *, controllers: int) -> tuple[NodeId, ...]:
    """Returns the nodes that share a process in combined mode (broker 0 and controller 100, and so on)."""
    index = node_id - CONTROLLER if node_id >= CONTROLLER else node_id
    return (NodeId(index), NodeId(CONTROLLER + index)) if index < controllers else (node_id,)


CLIENT: Final = CLIENT_ID
"""The client process as an end of links; it is no node of the cluster."""

KAFKA: Final = "kafka"
"""Name of the client of Kafka in a cluster where nobody named one."""

KAFKA_CLIENTS_MAX: Final = 50
"""Clients of Kafka with links of their own in one cluster: each takes two ports of each broker."""

NODE_NAME_RULE: Final = "lower-case words that mean nothing else"

HARNESS: Final = NodeId(2000)
"""Whoever breaks and mends things, on the event lines that say so."""

ACTIVE_CONTROLLER: Final = "active-controller"
_LEADING_CONTROLLER: Final = "leader(controllers)"
"""Another word for it."""

ZOOKEEPER_WORD: Final = "zookeeper"
"""The name of ``CONTROLLER`` in clusters with ZooKeeper."""

_NAMES: Final = {CLIENT: "client", CONTROLLER: "controller"}
_WORDS: Final = {**{word: node for node, word in _NAMES.items()}, ZOOKEEPER_WORD: CONTROLLER}
_ROLE: Final = re.compile(r"([a-z-]+)(?:\((.+)-(\d+)\))?")
_GROUP: Final = re.compile(r"(any|random|rack)\((.+)\)")
_DRAWN: Final = re.compile(r"(\d+) of (brokers|replicas|isr|elr|followers)(?:\((.+)-(\d+)\))?")
_RACK: Final = re.compile(r"[A-Za-z0-9._-]+")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_CERTIFIED: Final = re.compile(r"(?:client|harness|authority|(?:broker|controller|client)-\d+)(-client)?")
"""Names in certificates of others than clients of Kafka, and of the files of those that they dial with."""


def check_kafka_clients(names: Sequence[str]) -> str | None:
    """Returns why these cannot be the names of a cluster's Kafka clients; ``None`` if they can."""
    unfit = next((name for name in names if not is_node_name(name)), None)
    if unfit is not None:
        return f"{unfit!r} cannot be a client's name, allowed: {NODE_NAME_RULE}"
    certified = next((name for name in names if _CERTIFIED.fullmatch(name)), None)
    if certified is not None:
        return f"{certified!r} is the name of a node, or of its certificate"
    both = next((name for name in names if f"{name}-client" in names), None)
    if both is not None:
        return f"'{both}-client' is the name of a certificate of {both!r}"
    if len(set(names)) != len(names):
        return "each name stands for one client"
    return None if len(names) <= KAFKA_CLIENTS_MAX else f"there are at most {KAFKA_CLIENTS_MAX}"


def is_client(end: NodeId) -> bool:
    """Returns whether an end of a link stands for clients, not for a node of the cluster."""
    return CLIENT <= end < HARNESS


def is_kafka_client(end: NodeId) -> bool:
    """Returns whether an end of a link stands for one client of Kafka."""
    return CLIENT < end < HARNESS


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


class ActiveController(msgspec.Struct, frozen=True, kw_only=True, tag="active-controller"):
    """The controller that is active when the action is due: of several, the one that was elected last."""

    def __str__(self) -> str:
        return ACTIVE_CONTROLLER


class QuorumRole(Enum):
    """Role of one of several controllers."""

    FOLLOWER = "follower"
    """Voter with the lowest id that does not lead."""

    VOTER = "voter"
    """Voter with the lowest id."""


class QuorumNode(msgspec.Struct, frozen=True, kw_only=True, tag="quorum-role"):
    """The controller that has a role in the quorum when the action is due; prints as ``voter(controllers)``."""

    role: QuorumRole

    def __str__(self) -> str:
        return f"{self.role.value}(controllers)"


_QUORUM_NODES: Final = {str(node): node for node in (QuorumNode(role=role) for role in QuorumRole)}


class NamedNode(msgspec.Struct, frozen=True, kw_only=True, tag="name"):
    """The node to which an earlier step gave this name."""

    name: str

    def __str__(self) -> str:
        return self.name


class DrawnFrom(Enum):
    """Brokers among which some are drawn."""

    BROKERS = "brokers"
    """Those to which the action can be done: that run, or for ``start`` those that do not."""

    REPLICAS = "replicas"
    ISR = "isr"
    ELR = "elr"
    FOLLOWERS = "followers"
    """Replicas that do not lead."""


class DrawnNodes(msgspec.Struct, frozen=True, kw_only=True, tag="drawn"):
    """A number of brokers, drawn when the action is due; prints as ``any(1)`` or ``random(2 of isr(orders-0))``.

    Attributes:
        count: number of brokers.
        drawn_from: among which.
        partition: the partition whose replicas are meant; ``None`` for the cluster's only one.
    """

    count: int
    drawn_from: DrawnFrom
    partition: TopicPartition | None = None

    def __str__(self) -> str:
        if self.drawn_from is DrawnFrom.BROKERS:
            return f"any({self.count})"
        return f"random({self.inner})"

    @property
    def inner(self) -> str:
        """The words after ``random``."""
        where = "" if self.partition is None else f"({self.partition})"
        return f"{self.count} of {self.drawn_from.value}{where}"


class RackNodes(msgspec.Struct, frozen=True, kw_only=True, tag="rack"):
    """All brokers of a rack that are registered when the action is due; prints as ``rack(a)``."""

    rack: str

    def __str__(self) -> str:
        return f"rack({self.rack})"


NodeGroup: TypeAlias = DrawnNodes | RackNodes
"""Several brokers at once."""

NodeRef: TypeAlias = NodeId | RoleNode | ActiveController | QuorumNode | NamedNode | NodeGroup
"""A node as people write it, or a group of them."""

GROUP_WORDS: Final = ("any", "random", "rack")
"""Words that begin a group."""


def node_text(node: NodeRef) -> str:
    """Returns the notation of a node: ``client``, ``controller``, an id, a role or a name."""
    return _NAMES.get(node, str(node)) if isinstance(node, int) else str(node)


def is_node_name(text: str) -> bool:
    """Returns whether a step may give a node this name: a lower-case word without another meaning."""
    reserved = {*_WORDS, ACTIVE_CONTROLLER, *GROUP_WORDS, "all", *(role.value for role in ReplicaRole)}
    return _NAME.fullmatch(text) is not None and text not in reserved


def parse_group(word: str, inner: str) -> NodeGroup:
    """Returns the group that begins with one of ``GROUP_WORDS``: ``any`` and ``2``, ``random`` and ``1 of isr``.

    Raises:
        ValueError: there is no such group.
    """
    if word == "rack" and _RACK.fullmatch(inner):
        return RackNodes(rack=inner)
    if word == "any" and inner.isdecimal() and int(inner):
        return DrawnNodes(count=int(inner), drawn_from=DrawnFrom.BROKERS)
    drawn = _DRAWN.fullmatch(inner) if word == "random" else None
    if drawn is None or not int(drawn[1]):
        raise ValueError(inner)
    partition = None if drawn[3] is None else TopicPartition(drawn[3], int(drawn[4]))
    return DrawnNodes(count=int(drawn[1]), drawn_from=DrawnFrom(drawn[2]), partition=partition)


def parse_node(text: str) -> NodeRef:
    """Inverse of ``node_text``; a word that is no role is a name.

    Raises:
        ValueError: no node can have that name.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text in (ACTIVE_CONTROLLER, _LEADING_CONTROLLER):
        return ActiveController()
    if text in _QUORUM_NODES:
        return _QUORUM_NODES[text]
    if text.isdecimal():
        return NodeId(int(text))
    group = _GROUP.fullmatch(text)
    if group is not None:
        return parse_group(group[1], group[2])
    match = _ROLE.fullmatch(text)
    roles = {role.value: role for role in ReplicaRole}
    if match is not None and match[1] in roles:
        partition = None if match[2] is None else TopicPartition(match[2], int(match[3]))
        return RoleNode(role=roles[match[1]], partition=partition)
    if is_node_name(text):
        return NamedNode(name=text)
    raise ValueError(text)
