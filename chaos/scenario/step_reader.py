"""Reads the steps of a scenario file: barriers, actions (``laststand.emulator.plan.steps``) and control flow.

Control flow is unrolled when it is read: repeated steps occur as often as they are played, so that steps have numbers
and a recorded plan has them all.
"""

import dataclasses
from typing import Final

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.conditions_yaml import ANY, read_any_of, read_until
from laststand.chaos.scenario.scenario import RoundLimit, Step
from laststand.emulator.plan import steps
from laststand.emulator.plan.fields import duration_ms
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.yaml_cursor import Cursor, Fields

UNTIL: Final = "until"
REPEAT: Final = "repeat"
EVERY: Final = "every"
PARALLEL: Final = "parallel"
CONTROL_FLOW: Final = (REPEAT, EVERY, PARALLEL)
"""Steps that contain steps, in scenario files only."""

VERBS: Final = (UNTIL, ANY, *CONTROL_FLOW, *steps.VERBS)
"""The words that a step may begin with."""

REPEATS_MAX: Final = 1000
STEPS_MAX: Final = 10_000


def read_steps(cursor: Cursor, names: Names) -> tuple[Step, ...]:
    """Returns the steps of a list; repeated steps occur as often as they are played.

    Raises:
        ScenarioError: a step cannot be played, or there are too many.
    """
    found: list[Step] = []
    for item in cursor.items():
        found += _read_item(item, names)
        if len(found) > STEPS_MAX:
            item.fail(f"these are more than {STEPS_MAX} steps")
    return tuple(found)


def _read_item(item: Cursor, names: Names) -> tuple[Step, ...]:
    verb, argument = _verb(item, VERBS)
    if verb == REPEAT:
        with argument.fields() as fields:
            times = fields.required("times").integer(low=1, high=REPEATS_MAX)
            return _rounds(read_steps(fields.required("steps"), names), times)
    if verb == EVERY:
        with argument.fields() as fields:
            return _every(fields, names, line=item.line)
    if verb == PARALLEL:
        branches = read_steps(argument, names)
        if len(branches) < 2 or any(isinstance(step.action, conditions.Until) or step.together for step in branches):
            argument.fail("allowed: two actions at least, without barriers and without another parallel")
        return tuple(dataclasses.replace(step, together=str(item.line)) for step in branches)
    return (_read_one(verb, argument, names, text=item.flow_text(), line=item.line),)


def _every(fields: Fields, names: Names, *, line: int) -> tuple[Step, ...]:
    period, span = fields.required("period"), fields.required("for")
    period_ms, span_ms = duration_ms(period), duration_ms(span)
    if not 0 < period_ms <= span_ms <= period_ms * REPEATS_MAX:
        span.fail(f"allowed: from one period on to {REPEATS_MAX} of them, and a period is longer than 0")
    done = read_steps(fields.required("do"), names)
    pace = conditions.Until(
        condition=conditions.Elapsed(duration_ms=period_ms, steps=len(done)),
        within_ms=period_ms + conditions.DEFAULT_WITHIN_MS,
    )
    text = f"{{until: {{elapsed: {period_ms} ms}}}}"
    once = (*done, Step(action=pace, text=text, line=line))
    found = list(_rounds(once, span_ms // period_ms))
    for begin in range(len(once), len(found), len(once)):
        limit = RoundLimit(span_ms=span_ms, before=begin, rest=len(found) - begin)
        found[begin] = dataclasses.replace(found[begin], limit=limit)
    return tuple(found)


def _rounds(steps: tuple[Step, ...], times: int) -> tuple[Step, ...]:
    """Returns steps repeated a number of times; parallel steps stay parallel within each round."""
    return tuple(
        step if step.together is None else dataclasses.replace(step, together=f"{step.together}/{number}")
        for number in range(times)
        for step in steps
    )


def read_step(cursor: Cursor, names: Names, *, text: str) -> Step:
    """Returns one step that is no control flow; later steps may use the names that it gives.

    Args:
        cursor: its place in the document.
        names: the allowed names.
        text: its text for users.

    Raises:
        ScenarioError: the step cannot be played.
    """
    verb, argument = _verb(cursor, tuple(verb for verb in VERBS if verb not in CONTROL_FLOW))
    return _read_one(verb, argument, names, text=text, line=cursor.line)


def _verb(cursor: Cursor, allowed: tuple[str, ...]) -> tuple[str, Cursor]:
    with cursor.fields() as verbs:
        if len(verbs.keys) != 1:
            cursor.fail(f"a step is one of {', '.join(allowed)}, found {', '.join(verbs.keys) or 'nothing'}")
        ((verb, argument),) = verbs.pop_rest()
    if verb not in allowed:
        argument.fail(steps.unknown_step(verb, allowed))
    return verb, argument


def _read_one(verb: str, argument: Cursor, names: Names, *, text: str, line: int) -> Step:
    if verb in (UNTIL, ANY):
        read = read_until if verb == UNTIL else read_any_of
        return Step(action=read(argument, names), text=text, line=line)
    action, bind = steps.read_action(verb, argument, names)
    if bind is not None:
        names.add_name(bind)
    return Step(action=action, text=text, line=line, bind=bind)
