"""``docs/plans.md`` lists exactly the actions that there are, and its examples are the same plan."""

import re
from pathlib import Path

from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.plan.plan_yaml import read_plan_yaml

_DOCUMENT = (Path(__file__).parents[3] / "docs/plans.md").read_text(encoding="utf-8")


def _row(spec: actions.ActionSpec) -> str:
    in_containers = "in containers" if spec.is_on_processes else "no"
    on_processes = "yes" if DriverName.PROCESS not in spec.refused else in_containers
    return f"| `{spec.example}` | {spec.meaning} | {on_processes} |"


def test_the_table_is_that_of_the_actions() -> None:
    rows = [line for line in _DOCUMENT.splitlines() if line.startswith("| `")]
    assert rows == [_row(spec) for spec in actions.ACTION_SPECS.values()]


def test_the_examples_are_one_plan_in_both_forms() -> None:
    lines = re.search(r"```\n(# A follower.*?)```", _DOCUMENT, re.DOTALL)
    document = re.search(r"```\n(name: .*?)```", _DOCUMENT, re.DOTALL)
    assert lines is not None
    assert document is not None
    plan = parse_plan(lines[1])
    assert len(plan.actions) == 3
    assert read_plan_yaml(Path("plan.yaml"), document[1]) == plan
