"""Reads the steps of a scenario file.

A step is a mapping of one key, its verb; ``as: NAME`` beside a node names that node for later steps::

    - until: {acked: 500, acks: all, per: partition, within: 45 s}
    - until: {partition: orders-0, leader: 1, isr: [1, 2], elr: [0]}      # partition: all means each of them
    - until: {node: 2, unfenced: true}
    - isolate: {node: leader(orders-0), clients: connected, as: first}
    - cut: {from: 0, to: controller}
    - lose: {responses: 0 -> 1}
    - kill: {node: first}                                                 # also pause, resume, start, stop
    - power_loss: {nodes: [1, 2], keep: torn}
    - heal: all                                                           # or {node: 0}, or {from: 0, to: 1}
"""

import re
from typing import Final

from chaos.scenario import (
    CLIENT,
    CONTROLLER,
    DEFAULT_WITHIN_MS,
    Acked,
    Action,
    BrokerIs,
    Clients,
    Condition,
    Count,
    Cut,
    FixedNode,
    HealAll,
    HealLink,
    HealNode,
    Isolate,
    Kill,
    LoseResponses,
    NamedNode,
    NodeRef,
    NoLeader,
    PartitionIs,
    Pause,
    PowerLoss,
    Resume,
    Role,
    RoleNode,
    Start,
    Step,
    Stop,
    Until,
)
from chaos.yaml_cursor import Cursor, Fields, suggestion
from emulator.core.types import Acks, NodeId, TopicPartition
from emulator.storage.power_loss_plan import Keep

ACKS: Final = {"all": Acks.ALL, "-1": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}
"""How a file writes ``acks``."""

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min)")
_UNIT_MS: Final = {"ms": 1, "s": 1000, "min": 60_000}
_ROLE: Final = re.compile(r"([a-z-]+)(?:\((.+)\))?")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_LINK: Final = re.compile(r"(.+?)\s*(?:->|→)\s*(.+)")
_VERBS: Final = (
    "until",
    "isolate",
    "cut",
    "lose",
    "kill",
    "pause",
    "resume",
    "power_loss",
    "start",
    "stop",
    "heal",
)
_ALL: Final = "all"


def duration_ms(cursor: Cursor) -> int:
    """Returns a duration such as ``30 s``, ``500 ms`` or ``2 min`` in ms."""
    match = _DURATION.fullmatch(cursor.text().strip())
    if match is None:
        cursor.fail(f"{cursor.text()!r} is no duration, allowed: a number and ms, s or min, such as 30 s")
    return max(1, int(float(match[1]) * _UNIT_MS[match[2]]))


class StepReader:
    """Reads steps in order, and remembers the names that they give."""

    def __init__(self, *, brokers: int, partitions: tuple[TopicPartition, ...]) -> None:
        self._brokers = brokers
        self._partitions = {str(partition): partition for partition in partitions}
        self._names: set[str] = set()

    def read(self, cursor: Cursor, *, text: str) -> Step:
        """Returns one step; ``text`` is how it is shown.

        Raises:
            ScenarioError: it cannot be played.
        """
        with cursor.fields() as verbs:
            if len(verbs.keys) != 1:
                cursor.fail(f"a step is one of {', '.join(_VERBS)}, found {', '.join(verbs.keys) or 'nothing'}")
            verbs.allow(_VERBS)
            ((verb, argument),) = verbs.take_rest()
        self._check_verb(argument, verb)
        action, bind = self._action(verb, argument)
        if bind is not None:
            self._names.add(bind)
        return Step(action=action, text=text, line=cursor.line, bind=bind)

    def _check_verb(self, argument: Cursor, verb: str) -> None:
        if verb not in _VERBS:
            argument.fail(f"no such step, allowed: {', '.join(_VERBS)}{suggestion(verb, _VERBS)}")

    def _action(self, verb: str, argument: Cursor) -> tuple[Action, str | None]:
        if verb == "heal" and argument.is_scalar:
            argument.choice((_ALL,))
            return HealAll(), None
        with argument.fields() as fields:
            if verb == "until":
                within = fields.optional("within")
                within_ms = DEFAULT_WITHIN_MS if within is None else duration_ms(within)
                return Until(condition=self._condition(fields), within_ms=within_ms), None
            if verb == "lose":
                return self._lose(fields.required("responses")), None
            if verb == "cut" or (verb == "heal" and "node" not in fields.keys):
                source, target = self._link(fields.required("from"), fields.required("to"))
                return (Cut if verb == "cut" else HealLink)(source=source, target=target), None
            if verb == "power_loss" and "nodes" in fields.keys:
                nodes = tuple(self._broker_or_controller(each) for each in fields.required("nodes").items())
                return self._power_loss(fields, nodes), None
            node = self._broker_or_controller(fields.required("node"))
            return self._node_action(verb, fields, node), self._binding(fields)

    def _node_action(self, verb: str, fields: Fields, node: NodeRef) -> Action:
        match verb:
            case "isolate":
                clients = fields.optional("clients")
                words = [each.value for each in Clients]
                return Isolate(node=node, clients=Clients(clients.choice(words)) if clients else Clients.CUT)
            case "power_loss":
                return self._power_loss(fields, (node,))
            case "heal":
                return HealNode(node=node)
            case "kill":
                return Kill(node=node)
            case "pause":
                return Pause(node=node)
            case "resume":
                return Resume(node=node)
            case "start":
                return Start(node=node)
            case _:
                return Stop(node=node)

    def _power_loss(self, fields: Fields, nodes: tuple[NodeRef, ...]) -> PowerLoss:
        keep, seed = fields.optional("keep"), fields.optional("seed")
        return PowerLoss(
            nodes=nodes,
            keep=Keep.NONE if keep is None else Keep(keep.choice([each.value for each in Keep])),
            seed=None if seed is None else seed.integer(low=0),
        )

    def _binding(self, fields: Fields) -> str | None:
        name = fields.optional("as")
        if name is None:
            return None
        text = name.text()
        if _NAME.fullmatch(text) is None or text in ("client", "controller", _ALL, *(role.value for role in Role)):
            name.fail(f"{text!r} cannot be a name, allowed: lower-case words that mean nothing else")
        return text

    # --- Conditions -----------------------------------------------------------------------------------------------

    def _condition(self, fields: Fields) -> Condition:
        if "acked" in fields.keys:
            return self._acked(fields)
        if "partition" in fields.keys:
            return self._partition_is(fields)
        if "node" in fields.keys:
            return self._broker_is(fields)
        fields.owner.fail("waits for nothing, allowed: acked, partition or node")

    def _acked(self, fields: Fields) -> Acked:
        count = fields.required("acked").integer(low=1)
        acks, per, partition = fields.optional("acks"), fields.optional("per"), fields.optional("partition")
        return Acked(
            count=count,
            acks=None if acks is None else ACKS[acks.choice(ACKS)],
            partitions=tuple(self._partitions.values()) if partition is None else self._partition_set(partition),
            per=Count.TOTAL if per is None else Count(per.choice([each.value for each in Count])),
        )

    def _partition_is(self, fields: Fields) -> PartitionIs:
        partitions = self._partition_set(fields.required("partition"))
        leader, isr, elr = fields.optional("leader"), fields.optional("isr"), fields.optional("elr")
        if leader is None and isr is None and elr is None:
            fields.owner.fail("waits for nothing of the partition, allowed: leader, isr, elr")
        return PartitionIs(
            partitions=partitions,
            leader=None if leader is None else self._leader(leader),
            isr=None if isr is None else tuple(self._broker(each) for each in isr.items()),
            elr=None if elr is None else tuple(self._broker(each) for each in elr.items()),
        )

    def _broker_is(self, fields: Fields) -> BrokerIs:
        node = self._broker(fields.required("node"))
        unfenced, fenced = fields.optional("unfenced"), fields.optional("fenced")
        if (unfenced is None) == (fenced is None):
            fields.owner.fail("needs one of unfenced and fenced")
        if unfenced is not None:
            return BrokerIs(node=node, unfenced=unfenced.choice(("true", "false")) == "true")
        assert fenced is not None
        return BrokerIs(node=node, unfenced=fenced.choice(("true", "false")) == "false")

    def _leader(self, cursor: Cursor) -> NodeRef | NoLeader:
        return NoLeader.NONE if cursor.text() == NoLeader.NONE.value else self._broker(cursor)

    # --- Nodes, links, partitions ---------------------------------------------------------------------------------

    def _partition_set(self, cursor: Cursor) -> tuple[TopicPartition, ...]:
        if cursor.text() == _ALL:
            return tuple(self._partitions.values())
        return (self._partition(cursor, cursor.text()),)

    def _partition(self, cursor: Cursor, text: str) -> TopicPartition:
        if text not in self._partitions:
            allowed = ", ".join(self._partitions) or "none, as there are no topics"
            cursor.fail(f"no partition {text!r}, allowed: {allowed}{suggestion(text, self._partitions)}")
        return self._partitions[text]

    def _lose(self, cursor: Cursor) -> LoseResponses:
        match = _LINK.fullmatch(cursor.text().strip())
        if match is None:
            cursor.fail(f"{cursor.text()!r} is no link, allowed: a -> b")
        source, target = self._end(cursor, match[1]), self._end(cursor, match[2])
        self._check_link(cursor, source, target)
        return LoseResponses(source=source, target=target)

    def _link(self, source: Cursor, target: Cursor) -> tuple[NodeRef, NodeRef]:
        ends = self._end(source, source.text()), self._end(target, target.text())
        self._check_link(target, *ends)
        return ends

    def _check_link(self, cursor: Cursor, source: NodeRef, target: NodeRef) -> None:
        if source == target:
            cursor.fail(f"a link from {source} to itself does not exist")
        if target == FixedNode(node_id=CLIENT):
            cursor.fail("nothing dials the client, so it cannot be the target of a link")
        if source == FixedNode(node_id=CONTROLLER):
            cursor.fail("the controller dials nobody, so it cannot be the source of a link")

    def _end(self, cursor: Cursor, text: str) -> NodeRef:
        return FixedNode(node_id=CLIENT) if text == "client" else self._named(cursor, text)

    def _broker(self, cursor: Cursor) -> NodeRef:
        ref = self._named(cursor, cursor.text())
        if ref == FixedNode(node_id=CONTROLLER):
            cursor.fail("must be a broker, not the controller")
        return ref

    def _broker_or_controller(self, cursor: Cursor) -> NodeRef:
        return self._named(cursor, cursor.text())

    def _named(self, cursor: Cursor, text: str) -> NodeRef:
        if text in ("controller", str(CONTROLLER)):
            return FixedNode(node_id=CONTROLLER)
        if text.isdecimal():
            if int(text) >= self._brokers:
                cursor.fail(f"no node {text}, allowed: brokers 0 to {self._brokers - 1}, controller")
            return FixedNode(node_id=NodeId(int(text)))
        if text in self._names:
            return NamedNode(name=text)
        match = _ROLE.fullmatch(text)
        roles = {role.value: role for role in Role}
        if match is None or match[1] not in roles:
            allowed = [f"0 to {self._brokers - 1}", "controller", *sorted(self._names)]
            allowed += [f"{role}(PARTITION)" for role in roles]
            cursor.fail(f"no node {text!r}, allowed: {', '.join(allowed)}{suggestion(text, [*roles, *self._names])}")
        return RoleNode(role=roles[match[1]], partition=self._role_partition(cursor, match[1], match[2]))

    def _role_partition(self, cursor: Cursor, role: str, text: str | None) -> TopicPartition:
        if text is not None:
            return self._partition(cursor, text)
        if len(self._partitions) != 1:
            cursor.fail(f"whose {role}? There are several partitions, write {role}(PARTITION)")
        return next(iter(self._partitions.values()))
