"""The other notation of actions: steps of a scenario, each a mapping of one verb to its arguments.

    - kill: {node: 1}                                   # or {nodes: [1, 2]}
    - isolate: {node: leader(orders-0), clients: connected}
    - cut: {from: 0, to: controller}
    - heal: all

``DEEDS`` has the verbs. Several actions may share one: ``heal: all``, ``heal: {node: 1}`` and
``heal: {from: 0, to: 1}`` are three, told apart by their keys.
"""

from pathlib import Path
from typing import Final

import yaml

from emulator.plan.actions import DEEDS, ActionTemplate, Deed, deed_of
from emulator.plan.fields import YamlValue
from emulator.plan.names import ALL, Names
from emulator.plan.yaml_cursor import Cursor, Fields, open_document, suggestion

VERBS: Final = tuple(dict.fromkeys(row.verb for row in DEEDS.values()))
"""All verbs, in the order of the table."""

BINDING: Final = "as"
"""Key beside ``node``: what later steps call it."""

_WIDTH: Final = 10_000


def read_action(verb: str, argument: Cursor, names: Names) -> tuple[ActionTemplate, str | None]:
    """Returns the action of a verb and its arguments, and the name that it gives its node with ``as``.

    Args:
        verb: one of ``VERBS``.
        argument: what stands behind it.
        names: what may be named; a step that creates a topic adds to it.

    Raises:
        ScenarioError: there is no such action.
    """
    rows = [row for row in DEEDS.values() if row.verb == verb]
    bare = next((row for row in rows if not row.fields), None)
    if bare is not None and argument.is_scalar:
        argument.choice((ALL,))
        return bare.kind(), None  # type: ignore[return-value]
    with argument.fields() as fields:
        given = fields.optional(BINDING) if "node" in fields.keys else None
        bind = None if given is None else names.new_name(given)
        return _read_fields([row for row in rows if row.fields], fields, names), bind


def _read_fields(rows: list[Deed], fields: Fields, names: Names) -> ActionTemplate:
    row = max(rows, key=lambda row: sum(key in fields.keys for field in row.fields.values() for key in field.keys))
    given = {name: field.read(fields, names) for name, field in row.fields.items()}
    action: ActionTemplate = row.kind(**given)  # type: ignore[assignment]
    for problem in action.problems():
        fields.owner.fail(problem)
    return action


def read_text(text: str, names: Names, *, path: Path) -> ActionTemplate:
    """Returns the action of a step that stands alone.

    Raises:
        ScenarioError: it is none.
    """
    cursor = open_document(path, text)
    with cursor.fields() as verbs:
        if len(verbs.keys) != 1:
            cursor.fail(f"a step is one of {', '.join(VERBS)}, found {', '.join(verbs.keys) or 'nothing'}")
        ((verb, argument),) = verbs.take_rest()
    if verb not in VERBS:
        argument.fail(f"no such step, allowed: {', '.join(VERBS)}{suggestion(verb, VERBS)}")
    return read_action(verb, argument, names)[0]


def action_entry(action: ActionTemplate) -> dict[str, YamlValue]:
    """Returns an action as an entry of a document, which ``read_action`` reads."""
    row = deed_of(action)
    entries: dict[str, YamlValue] = {}
    for name, field in row.fields.items():
        entries.update(field.write(getattr(action, name)))
    return {row.verb: entries if row.fields else ALL}


def action_text(action: ActionTemplate) -> str:
    """Returns an action as one line of YAML, such as ``{kill: {node: 1}}``."""
    return flow_text(action_entry(action))


def flow_text(entry: dict[str, YamlValue]) -> str:
    """Returns an entry as one line of YAML."""
    return yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=_WIDTH).strip()
