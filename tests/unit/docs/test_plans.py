"""``docs/plans.md`` lists exactly the actions that there are, and its example is a plan."""

import re
from pathlib import Path

from chaos.plans.action_steps import NotExpressibleError, steps_of
from emulator.simulator.actions import FORMS, Form, parse_action
from emulator.simulator.plan import parse_plan

_DOCUMENT = (Path(__file__).parents[3] / "docs/plans.md").read_text(encoding="utf-8")


def _on_processes(form: Form) -> str:
    try:
        steps_of(parse_action(form.example))
    except NotExpressibleError:
        return "no"
    return "yes"


def test_the_table_is_that_of_the_forms() -> None:
    rows = [line for line in _DOCUMENT.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{form.example}` | {form.meaning} | {_on_processes(form)} |" for form in FORMS]


def test_the_example_is_a_plan() -> None:
    example = re.search(r"```\n(# A follower.*?)```", _DOCUMENT, re.DOTALL)
    assert example is not None
    assert len(parse_plan(example[1]).actions) == 4
