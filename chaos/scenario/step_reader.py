"""Reads the steps of a scenario file: barriers (``conditions_yaml``) and actions (``emulator.plan.steps``)."""

from typing import Final

from chaos.scenario.conditions_yaml import read_until
from chaos.scenario.scenario import Step
from emulator.plan import steps
from emulator.plan.names import Names
from emulator.plan.yaml_cursor import Cursor

UNTIL: Final = "until"

VERBS: Final = (UNTIL, *steps.VERBS)
"""What a step may begin with."""


def read_step(cursor: Cursor, names: Names, *, text: str) -> Step:
    """Returns one step; the names that it gives may be used from here on.

    Args:
        cursor: where it stands.
        names: what it may name.
        text: how it is shown.

    Raises:
        ScenarioError: it cannot be played.
    """
    with cursor.fields() as verbs:
        if len(verbs.keys) != 1:
            cursor.fail(f"a step is one of {', '.join(VERBS)}, found {', '.join(verbs.keys) or 'nothing'}")
        ((verb, argument),) = verbs.take_rest()
    if verb == UNTIL:
        return Step(action=read_until(argument, names), text=text, line=cursor.line)
    if verb not in VERBS:
        argument.fail(steps.unknown_step(verb, VERBS))
    action, bind = steps.read_action(verb, argument, names)
    if bind is not None:
        names.add_name(bind)
    return Step(action=action, text=text, line=cursor.line, bind=bind)
