"""Names in a plan: brokers, topics, partitions, producers, APIs, and nodes that earlier steps gave a name.

The methods that take a ``Cursor`` read a place of a YAML document and report errors with that place. The others yield,
in words, why a value can never be meant; they serve lines of plans and requests on a standing cluster, too.
"""

from collections.abc import Iterable, Iterator
from typing import Final, get_args

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.errors import suggestion
from laststand.emulator.core.quorum.messages import QuorumRequest
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan.channels import KAFKA_APIS, STREAM, SYNC, ZOOKEEPER_APIS, Channel, Link
from laststand.emulator.plan.nodes import (
    ACTIVE_CONTROLLER,
    CLIENT,
    CONTROLLER,
    CONTROLLER_COUNTS,
    GROUP_WORDS,
    NODE_NAME_RULE,
    STANDBY_CONTROLLERS_MAX,
    ZOOKEEPER_WORD,
    ActiveController,
    DrawnFrom,
    DrawnNodes,
    NamedNode,
    NodeGroup,
    NodeRef,
    QuorumNode,
    RackNodes,
    ReplicaRole,
    RoleNode,
    is_node_name,
    node_text,
    parse_group,
    parse_node,
)
from laststand.emulator.plan.yaml_cursor import Cursor

ALL: Final = "all"
"""Stands for every partition."""

_APIS: Final = (
    *sorted(
        {
            *(each.__name__.removesuffix("Request") for each in get_args(messages.Request | QuorumRequest)),
            *ZOOKEEPER_APIS,
            *KAFKA_APIS,
        }
    ),
    STREAM,
    SYNC,
)
_GROUP_FORMS: Final = {
    "any": "a number from 1 on",
    "random": "such as 2 of isr, or 1 of followers(orders-0); also of elr, replicas, brokers",
    "rack": "a rack's name",
}
_ROLES: Final = tuple(role.value for role in ReplicaRole)
FEW_BROKERS: Final = "each controller shares the process of a broker"
"""The reason for which a cluster with fewer brokers than controllers has no combined mode."""

NO_QUORUM_TO_JOIN: Final = "a single controller is no quorum that others could join, allowed beside controllers: 3 or 5"
"""The reason for which a single controller has no standby controllers."""


def read_controllers(cursor: Cursor | None) -> int:
    """Returns the number of controllers of a cluster, by default one.

    Raises:
        ScenarioError: clusters cannot have that many.
    """
    if cursor is None:
        return 1
    count = cursor.integer(low=1, high=max(CONTROLLER_COUNTS))
    if count not in CONTROLLER_COUNTS:
        cursor.fail(f"no cluster has {count} controllers, allowed: {', '.join(map(str, CONTROLLER_COUNTS))}")
    return count


def read_standby_controllers(cursor: Cursor | None, *, controllers: int) -> int:
    """Returns the number of controllers that may join a quorum later, by default none.

    Raises:
        ScenarioError: there is no quorum, or the number is too large.
    """
    if cursor is None:
        return 0
    count = cursor.integer(low=0, high=STANDBY_CONTROLLERS_MAX)
    if count and controllers == 1:
        cursor.fail(NO_QUORUM_TO_JOIN)
    return count


def read_combined(cursor: Cursor | None, *, brokers: int, controllers: int) -> bool:
    """Returns whether each controller shares a process with a broker; by default, it does not.

    Raises:
        ScenarioError: the value is no truth value, or there are fewer brokers than controllers.
    """
    if cursor is None or cursor.choice(("true", "false")) == "false":
        return False
    if brokers < controllers:
        cursor.fail(f"{FEW_BROKERS}, allowed with at least {controllers}")
    return True


class Names:
    """The names known so far.

    Args:
        brokers: their number.
        controllers: their number, including those that may join the quorum later.
        partitions: all partitions.
        producers: by their names.
        kafka_clients: names of the Kafka clients, which dial only brokers.

    Attributes:
        brokers: their number.
        apis: kinds of messages.
        zookeeper_at: line that first names ZooKeeper's server as such; ``None`` if none does.
    """

    apis: Final = _APIS

    def __init__(
        self,
        *,
        brokers: int,
        controllers: int = 1,
        partitions: Iterable[TopicPartition],
        producers: tuple[str, ...] = (),
        kafka_clients: Iterable[str] = (),
    ) -> None:
        self.brokers = brokers
        self.controllers = controllers
        self._kafka_clients = frozenset(kafka_clients)
        self.zookeeper_at: int | None = None
        self._producers = producers
        self._partitions = {str(partition): partition for partition in partitions}
        self._given: set[str] = set()

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Adds partitions that later steps may name."""
        self._partitions.update({str(partition): partition for partition in partitions})

    def add_name(self, name: str) -> None:
        """Adds a name that stands for a node in later steps."""
        self._given.add(name)

    def new_name(self, cursor: Cursor) -> str:
        """Returns a name that a step gives.

        Raises:
            ScenarioError: the name has another meaning.
        """
        text = cursor.text()
        if not is_node_name(text) or text in self._kafka_clients:
            cursor.fail(f"{text!r} cannot be a name, allowed: {NODE_NAME_RULE}")
        return text

    # --- Topics, partitions, producers ----------------------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions so far."""
        return tuple(self._partitions.values())

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics so far."""
        return tuple(dict.fromkeys(partition.topic for partition in self.partitions))

    def topic(self, cursor: Cursor) -> str:
        """Returns the name of a topic that exists or existed."""
        return cursor.choice(self.topics)

    def topic_problems(self, topic: str) -> Iterator[str]:
        """Yields why there is no such topic."""
        if topic not in self.topics:
            yield f"no such topic; there are {', '.join(self.topics)}"

    def partition_set(self, cursor: Cursor) -> tuple[TopicPartition, ...]:
        """Returns one partition, or all of them."""
        if cursor.text() == ALL:
            return self.partitions
        return (self.partition(cursor),)

    def partition(self, cursor: Cursor) -> TopicPartition:
        """Returns one partition."""
        text = cursor.text()
        self._check_partition(cursor, text)
        return self._partitions[text]

    def _check_partition(self, cursor: Cursor, text: str) -> None:
        if text not in self._partitions:
            allowed = ", ".join(self._partitions) or "none, as there are no topics"
            cursor.fail(f"no partition {text!r}, allowed: {allowed}{suggestion(text, self._partitions)}")

    def partition_problems(self, partition: TopicPartition) -> Iterator[str]:
        """Yields why there is no such partition."""
        if str(partition) not in self._partitions:
            yield f"no such partition; there are {', '.join(self._partitions)}"

    def producer(self, cursor: Cursor) -> str:
        """Returns the name of a producer."""
        return cursor.choice(self._producers)

    # --- Nodes ----------------------------------------------------------------------------------------------------

    @property
    def broker_range(self) -> str:
        """The range of broker ids, in words."""
        return "broker 0" if self.brokers == 1 else f"brokers 0 to {self.brokers - 1}"

    @property
    def _controller_range(self) -> str:
        last = CONTROLLER + self.controllers - 1
        return f"the controller {CONTROLLER}" if self.controllers == 1 else f"controllers {CONTROLLER} to {last}"

    @property
    def _named_nodes(self) -> str:
        controllers = "controller" if self.controllers == 1 else f"{self._controller_range}, {ACTIVE_CONTROLLER}"
        return ", ".join((self.broker_range, controllers, *(f"client {name}" for name in sorted(self._kafka_clients))))

    def broker_id(self, cursor: Cursor) -> BrokerId:
        """Returns a broker by its id."""
        number = cursor.integer(low=0)
        if number >= self.brokers:
            cursor.fail(f"no broker {number}, allowed: 0 to {self.brokers - 1}")
        return BrokerId(NodeId(number))

    def replicas(self, cursor: Cursor) -> tuple[BrokerId, ...]:
        """Returns the replicas of a partition, in order."""
        ids = tuple(self.broker_id(each) for each in cursor.items())
        if not ids or len(set(ids)) != len(ids):
            cursor.fail(f"{list(ids)} are no replicas of a partition, allowed: different brokers, at least one")
        return ids

    def broker(self, cursor: Cursor) -> NodeRef:
        """Returns a broker by id, name or role."""
        node = self.node(cursor)
        if isinstance(node, ActiveController | QuorumNode) or (isinstance(node, int) and self.is_controller(node)):
            cursor.fail("must be a broker, not the controller")
        return node

    def controller(self, cursor: Cursor) -> NodeRef:
        """Returns one of several controllers, named by id, name or role."""
        node = self.node(cursor)
        for problem in self.controller_problems(node):
            cursor.fail(problem)
        return node

    def controller_problems(self, node: NodeRef) -> Iterator[str]:
        """Yields the reasons for which a reference does not name one of several controllers."""
        if self.controllers == 1:
            yield "there is no quorum; the cluster has one controller (controllers: 3)"
        elif isinstance(node, RoleNode | NodeGroup) or (isinstance(node, int) and not self.is_controller(node)):
            yield f"must be a controller, {CONTROLLER} to {CONTROLLER + self.controllers - 1}"
        else:
            yield from self.node_problems(node)

    def broker_list(self, cursor: Cursor) -> tuple[NodeRef, ...]:
        """Returns brokers."""
        return tuple(self.broker(each) for each in cursor.items())

    def is_controller(self, node: NodeId) -> bool:
        """Returns whether an id is that of a controller, or of ZooKeeper's server."""
        return CONTROLLER <= node < CONTROLLER + self.controllers

    def _is_node(self, node: NodeId) -> bool:
        return 0 <= node < self.brokers or self.is_controller(node)

    def node(self, cursor: Cursor) -> NodeRef:
        """Returns a broker or the controller."""
        return self._named(cursor, cursor.text())

    def group(self, cursor: Cursor, word: str) -> NodeGroup:
        """Returns the group that follows one of ``GROUP_WORDS``."""
        try:
            group = parse_group(word, cursor.text())
        except ValueError:
            cursor.fail(f"{cursor.text()!r} is no group, allowed: {_GROUP_FORMS[word]}")
        return self._checked_group(cursor, group)

    def node_or_group(self, cursor: Cursor) -> NodeRef:
        """Returns a broker, the controller, or a group such as ``any(2)``."""
        group = self._group(cursor, cursor.text())
        return self.node(cursor) if group is None else group

    def _group(self, cursor: Cursor, text: str) -> NodeGroup | None:
        word, bracket, _ = text.partition("(")
        if not bracket or word not in GROUP_WORDS:
            return None
        try:
            group = parse_node(text)
        except ValueError:
            cursor.fail(f"{text!r} is no group, allowed: {word}({_GROUP_FORMS[word]})")
        assert isinstance(group, DrawnNodes | RackNodes), "that is what these words begin"
        return self._checked_group(cursor, group)

    def _checked_group(self, cursor: Cursor, group: NodeGroup) -> NodeGroup:
        if isinstance(group, RackNodes):
            return group
        if group.count > self.brokers:
            cursor.fail(f"there are only {self.brokers} brokers")
        if group.drawn_from is DrawnFrom.BROKERS:
            return group
        if group.partition is None:
            return msgspec.structs.replace(group, partition=self._only_partition(cursor, group.drawn_from.value))
        self._check_partition(cursor, str(group.partition))
        return group

    def end(self, cursor: Cursor, text: str) -> NodeRef:
        """Returns an end of a link, which may be the client process, or one broker that is drawn."""
        group = self._group(cursor, text)
        if group is not None:
            if isinstance(group, RackNodes) or group.count > 1:
                cursor.fail(f"a link has one node at its end, not {group}, allowed: any(1), random(1 of isr)")
            return group
        if text in self._kafka_clients:
            return NamedNode(name=text)
        return CLIENT if text == node_text(CLIENT) else self._named(cursor, text)

    def _named(self, cursor: Cursor, text: str) -> NodeRef:
        if text == ZOOKEEPER_WORD and self.zookeeper_at is None:
            self.zookeeper_at = cursor.line
        try:
            node = parse_node(text)
        except ValueError:
            node = NamedNode(name=text)
        match node:
            case RoleNode(role=role, partition=None):
                return RoleNode(role=role, partition=self._only_partition(cursor, role.value))
            case RoleNode(partition=partition):
                self._check_partition(cursor, str(partition))
                return node
            case NamedNode(name=name) if name in self._given:
                return node
            case ActiveController():
                return node
            case QuorumNode() if self.controllers > 1:
                return node
            case int() if self._is_node(node):
                return node
            case int() if text.isdecimal():
                cursor.fail(f"no node {text}, allowed: {self.broker_range}, controller")
            case _:
                allowed = [f"0 to {self.brokers - 1}", "controller", ACTIVE_CONTROLLER, *sorted(self._given)]
                allowed += [f"{role}(PARTITION)" for role in _ROLES]
                hint = suggestion(text, [*_ROLES, *self._given])
                cursor.fail(f"no node {text!r}, allowed: {', '.join(allowed)}{hint}")

    def _only_partition(self, cursor: Cursor, role: str) -> TopicPartition:
        if len(self._partitions) != 1:
            cursor.fail(f"whose {role}? There are several partitions, write {role}(PARTITION)")
        return next(iter(self._partitions.values()))

    def node_problems(self, node: NodeRef) -> Iterator[str]:
        """Yields why no broker or controller is meant."""
        match node:
            case RoleNode(partition=None) if len(self._partitions) != 1:
                yield f"whose {node}? Write {node}(PARTITION)"
            case RoleNode(partition=partition) if partition is not None:
                yield from self.partition_problems(partition)
            case DrawnNodes(partition=partition) if partition is not None:
                yield from self.partition_problems(partition)
            case DrawnNodes(drawn_from=drawn_from) if (
                drawn_from is not DrawnFrom.BROKERS and len(self._partitions) != 1
            ):
                yield f"whose {drawn_from.value}? Write {drawn_from.value}(PARTITION)"
            case DrawnNodes(count=count) if count > self.brokers:
                yield f"there are only {self.brokers} brokers"
            case QuorumNode() if self.controllers == 1:
                yield f"there is no quorum; {CONTROLLER} is the only controller"
            case NamedNode(name=name) if name not in self._given:
                yield f"no node {name!r}; there are {self._named_nodes}, and roles as leader(PARTITION)"
            case int() if not self._is_node(node):
                yield f"no node {node}; there are {self.broker_range} and {self._controller_range}"
            case _:
                pass

    def broker_problems(self, node: NodeRef) -> Iterator[str]:
        """Yields why no broker is meant."""
        if (isinstance(node, int) and not 0 <= node < self.brokers) or isinstance(node, ActiveController | QuorumNode):
            yield f"no broker {node}; there are {self.broker_range}"
        elif not isinstance(node, int):
            yield from self.node_problems(node)

    def channel_problems(self, channel: Channel[NodeRef]) -> Iterator[str]:
        """Yields why nodes never exchange such messages."""
        if channel.api not in self.apis:
            yield f"no such kind of message; there are {', '.join(self.apis)}"
        if channel.api in KAFKA_APIS and not self._is_kafka_client(channel.source):
            yield f"only clients of Kafka that the cluster names ask {channel.api}"
        yield from self.link_problems(Link(channel.source, channel.target))

    def _is_kafka_client(self, end: NodeRef) -> bool:
        return isinstance(end, NamedNode) and end.name in self._kafka_clients

    def link_problems(self, link: Link[NodeRef]) -> Iterator[str]:
        """Yields why no node dials this link."""
        for end in link:
            if end != CLIENT and not self._is_kafka_client(end):
                yield from self.node_problems(end)
        if link.target == CLIENT or self._is_kafka_client(link.target):
            yield "nothing dials the client, so it cannot be the target of a link"
        if self._is_kafka_client(link.source) and link.target == CONTROLLER:
            yield f"{link.source} is a client of Kafka, which dials brokers only"
        if link.source == link.target and not isinstance(link.source, DrawnNodes):
            yield f"a link from {node_text(link.source)} to itself does not exist"
