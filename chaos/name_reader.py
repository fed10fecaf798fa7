"""Reads the names in a scenario file: nodes, brokers, partitions and topics; complains about what is none."""

import re
from collections.abc import Iterable
from typing import Final

from chaos.administration import TopicPlan
from chaos.scenario import CLIENT, CONTROLLER, FixedNode, NamedNode, NodeRef, NoLeader, Role, RoleNode
from chaos.yaml_cursor import Cursor, suggestion
from emulator.core.types import BrokerId, NodeId, TopicPartition

ALL: Final = "all"
"""Stands for every partition."""

_ROLE: Final = re.compile(r"([a-z-]+)(?:\((.+)\))?")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


class NameReader:
    """What may be named: brokers, topics so far, producers, and nodes that earlier steps gave a name."""

    def __init__(self, *, brokers: int, partitions: Iterable[TopicPartition], producers: tuple[str, ...] = ()) -> None:
        self.brokers = brokers
        self._producers = producers
        self._partitions = {str(partition): partition for partition in partitions}
        self._names: set[str] = set()

    def add_topic(self, topic: TopicPlan) -> None:
        """From here on its partitions may be named."""
        self._partitions.update({str(partition): partition for partition in topic.partitions})

    def add_name(self, name: str) -> None:
        """From here on this stands for a node."""
        self._names.add(name)

    def new_name(self, cursor: Cursor) -> str:
        """Returns a name that a step gives.

        Raises:
            ScenarioError: it means something else.
        """
        text = cursor.text()
        if _NAME.fullmatch(text) is None or text in ("client", "controller", ALL, *(role.value for role in Role)):
            cursor.fail(f"{text!r} cannot be a name, allowed: lower-case words that mean nothing else")
        return text

    # --- Topics and partitions ------------------------------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions so far."""
        return tuple(self._partitions.values())

    def topic(self, cursor: Cursor) -> str:
        """Returns the name of a topic that is or was there."""
        return cursor.choice(dict.fromkeys(partition.topic for partition in self.partitions))

    def partition_set(self, cursor: Cursor) -> tuple[TopicPartition, ...]:
        """Returns one partition, or all of them."""
        if cursor.text() == ALL:
            return self.partitions
        return (self.partition(cursor),)

    def partition(self, cursor: Cursor) -> TopicPartition:
        """Returns one partition."""
        return self._partition(cursor, cursor.text())

    def _partition(self, cursor: Cursor, text: str) -> TopicPartition:
        if text not in self._partitions:
            allowed = ", ".join(self._partitions) or "none, as there are no topics"
            cursor.fail(f"no partition {text!r}, allowed: {allowed}{suggestion(text, self._partitions)}")
        return self._partitions[text]

    def producer(self, cursor: Cursor) -> str:
        """Returns the name of a producer."""
        return cursor.choice(self._producers)

    # --- Nodes ----------------------------------------------------------------------------------------------------

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
        ref = self.node(cursor)
        if ref == FixedNode(node_id=CONTROLLER):
            cursor.fail("must be a broker, not the controller")
        return ref

    def broker_list(self, cursor: Cursor) -> tuple[NodeRef, ...]:
        """Returns brokers."""
        return tuple(self.broker(each) for each in cursor.items())

    def broker_or_none(self, cursor: Cursor) -> NodeRef | NoLeader:
        """Returns a broker, or that there is none."""
        return NoLeader.NONE if cursor.text() == NoLeader.NONE.value else self.broker(cursor)

    def node(self, cursor: Cursor) -> NodeRef:
        """Returns a broker or the controller."""
        return self._named(cursor, cursor.text())

    def end(self, cursor: Cursor, text: str) -> NodeRef:
        """Returns an end of a link, which may be the client process."""
        return FixedNode(node_id=CLIENT) if text == "client" else self._named(cursor, text)

    def _named(self, cursor: Cursor, text: str) -> NodeRef:
        if text in ("controller", str(CONTROLLER)):
            return FixedNode(node_id=CONTROLLER)
        if text.isdecimal():
            if int(text) >= self.brokers:
                cursor.fail(f"no node {text}, allowed: brokers 0 to {self.brokers - 1}, controller")
            return FixedNode(node_id=NodeId(int(text)))
        if text in self._names:
            return NamedNode(name=text)
        match = _ROLE.fullmatch(text)
        roles = {role.value: role for role in Role}
        if match is None or match[1] not in roles:
            allowed = [f"0 to {self.brokers - 1}", "controller", *sorted(self._names)]
            allowed += [f"{role}(PARTITION)" for role in roles]
            cursor.fail(f"no node {text!r}, allowed: {', '.join(allowed)}{suggestion(text, [*roles, *self._names])}")
        return RoleNode(role=roles[match[1]], partition=self._role_partition(cursor, match[1], match[2]))

    def _role_partition(self, cursor: Cursor, role: str, text: str | None) -> TopicPartition:
        if text is not None:
            return self._partition(cursor, text)
        if len(self._partitions) != 1:
            cursor.fail(f"whose {role}? There are several partitions, write {role}(PARTITION)")
        return next(iter(self._partitions.values()))
