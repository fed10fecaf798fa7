"""The other notation of actions: steps of a scenario, each a mapping of one verb to its arguments.

    - kill: {node: 1}                                   # or {nodes: [1, 2]}
    - isolate: {node: leader(orders-0), clients: connected}
    - cut: {from: 0, to: controller}
    - heal: all

``ACTION_SPECS`` has the verbs. Several actions may share one: ``heal: all``, ``heal: {node: 1}`` and
``heal: {from: 0, to: 1}`` are three, distinguished by their keys.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import yaml

from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import YamlValue
from laststand.emulator.plan.names import ALL, Names
from laststand.emulator.plan.nodes import GROUP_WORDS, DrawnNodes, NodeRef, RackNodes, parse_node
from laststand.emulator.plan.yaml_cursor import Cursor, Fields, open_document

VERBS: Final = tuple(dict.fromkeys(row.verb for row in actions.ACTION_SPECS.values()))
"""All verbs, in the order of the table."""

BINDING: Final = "as"
"""Key beside ``node``: what later steps call it."""

_OTHER_KEYS: Final = ("nodes", *GROUP_WORDS)
"""Keys that may stand in place of ``node``."""

_WIDTH: Final = 10_000
_TEXTS_MAX: Final = 4096
"""Texts of actions that are kept: an action is written when it is played, and again with its plan."""

_CLOSE: Final = 0.6


_MEANT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "partition": ("cut", "isolate"),
        "network_partition": ("cut", "isolate"),
        "disconnect": ("cut", "isolate"),
        "drop": ("lose", "cut"),
        "reorder": ("hold",),
        "lose_responses": ("lose",),
        "crash": ("kill", "power_loss"),
        "poweroff": ("power_loss",),
        "shutdown": ("stop",),
        "restart": ("stop", "start"),
        "freeze": ("pause",),
        "suspend": ("pause",),
        "unpause": ("resume",),
        "latency": ("slow",),
        "sleep": ("until",),
        "expect": ("until",),
        "assert": ("until",),
    }
)
"""Names that other tools have for a step."""


def unknown_step(word: str, allowed: Sequence[str]) -> str:
    """Returns the error for an unknown step or fault, with similar names."""
    plain_word = word.lower().replace("-", "_")
    close = _MEANT.get(plain_word) or get_close_matches(plain_word, allowed, n=2, cutoff=_CLOSE)
    near = [verb for verb in close if verb in allowed]
    meant = f"; did you mean {' or '.join(repr(verb) for verb in near)}?" if near else ""
    return f"there is no such step or fault, allowed: {', '.join(allowed)}{meant}"


def read_action(verb: str, argument: Cursor, names: Names) -> tuple[actions.ActionTemplate, str | None]:
    """Returns the action of a verb and its arguments, and the name that the step gives its node with ``as``.

    Args:
        verb: one of ``VERBS``.
        argument: the value of the verb's key.
        names: the allowed names; a step that creates partitions adds to them.

    Raises:
        ScenarioError: there is no such action.
    """
    rows = [row for row in actions.ACTION_SPECS.values() if row.verb == verb]
    bare = next((row for row in rows if not row.fields), None)
    if bare is not None and argument.is_scalar:
        if argument.text() != ALL:
            argument.fail(_how_to_write(verb, rows, argument))
        return bare.kind(), None  # type: ignore[return-value]
    with_fields = [row for row in rows if row.fields]
    if not argument.is_mapping or not with_fields:
        argument.fail(_how_to_write(verb, rows, argument))
    with argument.fields() as fields:
        given = fields.optional(BINDING) if {"node", *GROUP_WORDS} & set(fields.keys) else None
        bind = None if given is None else names.new_name(given)
        action = _read_fields(with_fields, fields, names)
        names.add_partitions(action.new_partitions)
        if given is not None and not all(map(_is_one, actions.nodes_of(action))):
            given.fail("a name is for one node, and there are several")
        return action, bind


def _is_one(node: NodeRef) -> bool:
    return not isinstance(node, RackNodes) and not (isinstance(node, DrawnNodes) and node.count > 1)


def _how_to_write(verb: str, rows: list[actions.ActionSpec], argument: Cursor) -> str:
    """Returns the correct notation of an action whose argument is no mapping, with the argument if it fits."""
    given = argument.text() if argument.is_scalar else argument.flow_text()
    forms = []
    for row in rows:
        keys = [key for field in row.fields.values() for key in field.keys]
        required = [key for field in row.fields.values() if field.is_required for key in field.keys]
        if not row.fields:
            forms.append(f"{verb}: {ALL}")
        elif argument.is_list and "nodes" in keys:
            forms.append(f"{verb}: {{nodes: {given}}}")
        elif argument.is_scalar and "node" in keys and _is_node(given):
            forms.append(f"{verb}: {{node: {given}}}")
        else:
            forms.append(
                f"{verb}: {{{', '.join(f'{key}: ...' for key in required or keys if key not in _OTHER_KEYS)}}}"
            )
    return f"{given} alone says too little, write {' or '.join(forms)}"


def _is_node(text: str) -> bool:
    try:
        parse_node(text)
    except ValueError:
        return False
    return True


def _read_fields(rows: list[actions.ActionSpec], fields: Fields, names: Names) -> actions.ActionTemplate:
    row = max(rows, key=lambda row: sum(key in fields.keys for field in row.fields.values() for key in field.keys))
    given = {name: field.read(fields, names) for name, field in row.fields.items()}
    action: actions.ActionTemplate = row.kind(**given)  # type: ignore[assignment]
    for problem in action.problems():
        fields.owner.fail(problem)
    return action


def read_text(text: str, names: Names, *, path: Path) -> actions.ActionTemplate:
    """Returns the action of a step that stands alone.

    Raises:
        ScenarioError: the text is not such a step.
    """
    cursor = open_document(path, text)
    with cursor.fields() as verbs:
        if len(verbs.keys) != 1:
            cursor.fail(f"a step is one of {', '.join(VERBS)}, found {', '.join(verbs.keys) or 'nothing'}")
        ((verb, argument),) = verbs.pop_rest()
    if verb not in VERBS:
        argument.fail(unknown_step(verb, VERBS))
    return read_action(verb, argument, names)[0]


def action_entry(action: actions.ActionTemplate) -> dict[str, YamlValue]:
    """Returns an action as an entry of a document, which ``read_action`` reads."""
    row = actions.spec_of(action)
    entries: dict[str, YamlValue] = {}
    for name, field in row.fields.items():
        entries.update(field.write(getattr(action, name)))
    return {row.verb: entries if row.fields else ALL}


@lru_cache(maxsize=_TEXTS_MAX)
def action_text(action: actions.ActionTemplate) -> str:
    """Returns an action as one line of YAML, such as ``{kill: {node: 1}}``."""
    return flow_text(action_entry(action))


def flow_text(entry: dict[str, YamlValue]) -> str:
    """Returns an entry as one line of YAML."""
    return yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=_WIDTH).strip()
