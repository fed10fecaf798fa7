"""Reads the steps of a scenario file.

A step is a mapping of one key, its verb; ``as: NAME`` beside a node names that node for later steps::

    - until: {acked: 500, acks: all, per: partition, within: 45 s}        # see condition_reader for all of them
    - delete_topic: {name: orders}                                        # see administration_reader for its like
    - isolate: {node: leader(orders-0), clients: connected, as: first}
    - cut: {from: 0, to: controller}
    - lose: {responses: 0 -> 1}
    - kill: {node: first}                                                 # also pause, resume, start, stop
    - power_loss: {nodes: [1, 2], keep: torn}                             # kept, truncation, names: what exactly
    - replace_disk: {node: 1}
    - produce: {producer: producer-0, partition: orders-0, records: 2}
    - heal: all                                                           # or {node: 0}, or {from: 0, to: 1}
"""

import re
from typing import Final

from chaos.administration_reader import ADMINISTRATION_VERBS, read_administration
from chaos.condition_reader import read_condition
from chaos.name_reader import ALL, NameReader
from chaos.scenario import (
    CLIENT,
    DEFAULT_WITHIN_MS,
    Action,
    Clients,
    Cut,
    FixedNode,
    HealAll,
    HealLink,
    HealNode,
    Isolate,
    Kill,
    LoseResponses,
    NodeRef,
    Pause,
    PowerLoss,
    Produce,
    ReplaceDisk,
    Resume,
    Start,
    Step,
    Stop,
    Until,
)
from chaos.yaml_cursor import Cursor, Fields, suggestion
from emulator.storage.power_loss_plan import ExactLoss, Keep, NamesFate, TruncationFate

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min)")
_UNIT_MS: Final = {"ms": 1, "s": 1000, "min": 60_000}
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
    "replace_disk",
    "produce",
    "start",
    "stop",
    "heal",
    *ADMINISTRATION_VERBS,
)


def duration_ms(cursor: Cursor) -> int:
    """Returns a duration such as ``30 s``, ``500 ms`` or ``2 min`` in ms."""
    match = _DURATION.fullmatch(cursor.text().strip())
    if match is None:
        cursor.fail(f"{cursor.text()!r} is no duration, allowed: a number and ms, s or min, such as 30 s")
    return max(1, int(float(match[1]) * _UNIT_MS[match[2]]))


class StepReader:
    """Reads steps in order, and remembers the names that they give."""

    def __init__(self, names: NameReader) -> None:
        self._names = names

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
            self._names.add_name(bind)
        return Step(action=action, text=text, line=cursor.line, bind=bind)

    def _check_verb(self, argument: Cursor, verb: str) -> None:
        if verb not in _VERBS:
            argument.fail(f"no such step, allowed: {', '.join(_VERBS)}{suggestion(verb, _VERBS)}")

    def _action(self, verb: str, argument: Cursor) -> tuple[Action, str | None]:
        if verb == "heal" and argument.is_scalar:
            argument.choice((ALL,))
            return HealAll(), None
        with argument.fields() as fields:
            if verb == "until":
                within = fields.optional("within")
                within_ms = DEFAULT_WITHIN_MS if within is None else duration_ms(within)
                return Until(condition=read_condition(fields, self._names), within_ms=within_ms), None
            if verb in ADMINISTRATION_VERBS:
                return read_administration(verb, fields, self._names), None
            if verb == "produce":
                return self._produce(fields), None
            if verb == "lose":
                return self._lose(fields.required("responses")), None
            if verb == "cut" or (verb == "heal" and "node" not in fields.keys):
                source, target = self._link(fields.required("from"), fields.required("to"))
                return (Cut if verb == "cut" else HealLink)(source=source, target=target), None
            if verb == "power_loss" and "nodes" in fields.keys:
                nodes = tuple(self._names.node(each) for each in fields.required("nodes").items())
                return self._power_loss(fields, nodes), None
            named = fields.required("node")
            node = self._names.broker(named) if verb == "replace_disk" else self._names.node(named)
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
            case "replace_disk":
                return ReplaceDisk(node=node)
            case "start":
                return Start(node=node)
            case _:
                return Stop(node=node)

    def _produce(self, fields: Fields) -> Produce:
        return Produce(
            producer=self._names.producer(fields.required("producer")),
            partition=self._names.partition(fields.required("partition")),
            records=fields.required("records").integer(low=1, high=10_000),
        )

    def _power_loss(self, fields: Fields, nodes: tuple[NodeRef, ...]) -> PowerLoss:
        keep, seed = fields.optional("keep"), fields.optional("seed")
        kept, truncation, names = fields.optional("kept"), fields.optional("truncation"), fields.optional("names")
        exact = None
        if kept is not None or truncation is not None or names is not None:
            fates = [each.value for each in TruncationFate]
            exact = ExactLoss(
                kept=0 if kept is None else kept.integer(low=0),
                truncation=TruncationFate.UNDONE if truncation is None else TruncationFate(truncation.choice(fates)),
                names=NamesFate.UNDONE
                if names is None
                else NamesFate(names.choice([each.value for each in NamesFate])),
            )
        return PowerLoss(
            nodes=nodes,
            keep=Keep.NONE if keep is None else Keep(keep.choice([each.value for each in Keep])),
            seed=None if seed is None else seed.integer(low=0),
            exact=exact,
        )

    def _binding(self, fields: Fields) -> str | None:
        name = fields.optional("as")
        return None if name is None else self._names.new_name(name)

    # --- Links ----------------------------------------------------------------------------------------------------

    def _lose(self, cursor: Cursor) -> LoseResponses:
        match = _LINK.fullmatch(cursor.text().strip())
        if match is None:
            cursor.fail(f"{cursor.text()!r} is no link, allowed: a -> b")
        source, target = self._names.end(cursor, match[1]), self._names.end(cursor, match[2])
        self._check_link(cursor, source, target)
        return LoseResponses(source=source, target=target)

    def _link(self, source: Cursor, target: Cursor) -> tuple[NodeRef, NodeRef]:
        ends = self._names.end(source, source.text()), self._names.end(target, target.text())
        self._check_link(target, *ends)
        return ends

    def _check_link(self, cursor: Cursor, source: NodeRef, target: NodeRef) -> None:
        if source == target:
            cursor.fail(f"a link from {source} to itself does not exist")
        if target == FixedNode(node_id=CLIENT):
            cursor.fail("nothing dials the client, so it cannot be the target of a link")
