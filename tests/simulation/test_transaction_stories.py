"""``docs/transactions.md``: every story is there once, and what its table says of each era is what happens there."""

import re
from pathlib import Path
from typing import Final

import msgspec
import pytest

from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.simulation import Simulation

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = (ROOT / "docs" / "transactions.md").read_text(encoding="utf-8")
VECTORS: Final = (ROOT / "tests" / "conformance" / "vectors" / "txn.json").read_text(encoding="utf-8")
STORIES: Final = [f"T{number:02}" for number in range(1, 34)]
HEADER, *ROWS = [
    [cell.strip(" `") for cell in line.strip("|").split("|")]
    for line in DOCUMENT.partition("## On Apache Kafka")[0].splitlines()
    if line.startswith(("| Story", "| T"))
]
ERAS: Final = HEADER[2:]
REASONS: Final = dict(re.findall(r"^- (T\d\d): (.+)$", DOCUMENT, re.MULTILINE))
PLANS: Final = [row for row in ROWS if row[1].endswith(".txt")]
SCENARIOS: Final = [row for row in ROWS if not row[1].endswith(".txt")]


def words(cell: str) -> set[str]:
    """Returns the checks in a cell."""
    return set() if cell == "—" else set(cell.split())


def test_every_story_is_played_or_has_a_reason() -> None:
    assert sorted([*(row[0] for row in ROWS), *REASONS]) == STORIES
    named = [name for reason in REASONS.values() for name in re.findall(r"`([a-z-]+-\d\d\d)`", reason)]
    assert [name for name in named if f'"{name}"' not in VECTORS] == []
    assert all("`" in reason for reason in REASONS.values())


@pytest.mark.parametrize("row", PLANS, ids=lambda row: row[0])
def test_a_plan_leads_in_each_era_to_what_the_table_says(row: list[str]) -> None:
    plan = parse_plan((ROOT / row[1]).read_text(encoding="utf-8"))
    assert row[0].lower() in row[1]
    for era, cell in zip(ERAS, row[2:], strict=True):
        simulation = Simulation(msgspec.structs.replace(plan, switches=(), era=era))
        simulation.play_plan()
        found = {alarm.check_id for alarm in simulation.outcome().alarms}
        assert {check for check in found if check[0] in "RX" or check == "D12"} == words(cell), era


@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row[0])
def test_a_scenario_expects_of_each_era_what_the_table_says(row: list[str]) -> None:
    scenario = load_scenario(ROOT / "chaos" / "scenarios" / f"{row[1]}.yaml")
    assert row[0] in scenario.source
    expected = {era: set(wanted.checks or ()) for era, wanted in scenario.expect if " " not in era}
    assert expected == {era: words(cell) for era, cell in zip(ERAS, row[2:], strict=True) if cell}
