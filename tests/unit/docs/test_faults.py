"""Every fault of real processes is in ``docs/faults.md``, and in a bundled scenario that ``chaos/README.md`` lists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario, scenario_names
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "docs/faults.md").read_text(encoding="utf-8")
_README = (_ROOT / "chaos/README.md").read_text(encoding="utf-8")

FAULTS = [
    row for row in actions.ACTION_SPECS.values() if row.fault is not None and DriverName.PROCESS not in row.refused
]


@pytest.fixture(scope="module")
def played() -> dict[str, set[type]]:
    """By listed scenario, the kinds of its actions."""
    return {name: set(_kinds(name)) for name in scenario_names() if f"`{name}`" in _README}


def _kinds(name: str) -> Iterator[type]:
    for step in load_scenario(find_scenario(name)).steps:
        if not isinstance(step.action, conditions.Until):
            yield actions.spec_of(step.action).kind


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.fault)
def test_a_fault_is_played_by_a_listed_scenario_and_documented(
    fault: actions.ActionSpec, played: dict[str, set[type]]
) -> None:
    assert any(fault.kind in kinds for kinds in played.values()), "no bundled scenario in chaos/README.md plays it"
    assert f"| `{fault.verb}" in _PAGE or f", `{fault.verb}`" in _PAGE


def test_the_table_has_every_bundled_scenario_and_no_other() -> None:
    table = _README[_README.index("## Bundled scenarios") :]
    assert _listed(table) == scenario_names()


def _listed(table: str) -> list[str]:
    """Names in the first column, sorted; one that begins with a dash goes on from the row's first."""
    found = []
    for row in re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE):
        first, *others = re.findall(r"`(.+?)`", row)
        stem = first.removesuffix("-none")
        found += [first, *(f"{stem}{name}" if name.startswith("-") else name for name in others)]
    return sorted(found)
