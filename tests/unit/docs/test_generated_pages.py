"""The pages that follow from the program are up to date, and what they say by hand is what the program reads."""

from pathlib import Path
from typing import get_args

import pytest

from docs.generate import (
    CLUSTER_KEYS,
    CONDITIONS,
    CONSUMER_KEYS,
    DOCS,
    EXPECTATION_KEYS,
    FINDINGS,
    PAGES,
    PRODUCER_KEYS,
    SUBJECTS,
    TOP_KEYS,
    WORKLOAD_KEYS,
    allowed_keys,
)
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.chaos.scenario.step_reader import read_step
from laststand.emulator.core.promises import PROMISES
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.yaml_cursor import open_document

_SCENARIO = """
name: a
cluster: {brokers: 3 CLUSTER}
topics: [{name: orders, replicas: [[0, 1, 2]]}]
workload: {producers: [{acks: all, rate: 1 PRODUCER}], consumers: [{topics: [orders] CONSUMER}] WORKLOAD}
steps: [{kill: {node: 0}}]
expect: {kip-966: {verdict: violation EXPECTATION}}
"""
_PLACES = ("CLUSTER", "PRODUCER", "CONSUMER", "WORKLOAD", "EXPECTATION")


def _with_stranger(place: str) -> str:
    text = _SCENARIO + ("unheard.of: 1\n" if place == "TOP" else "")
    for each in _PLACES:
        text = text.replace(f" {each}", ", unheard.of: 1" if each == place else "")
    return text


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "make docs writes it"


@pytest.mark.parametrize(
    ("place", "table"),
    [
        ("TOP", TOP_KEYS),
        ("CLUSTER", CLUSTER_KEYS),
        ("WORKLOAD", WORKLOAD_KEYS),
        ("PRODUCER", PRODUCER_KEYS),
        ("CONSUMER", CONSUMER_KEYS),
        ("EXPECTATION", EXPECTATION_KEYS),
    ],
)
def test_the_keys_of_a_scenario_are_those_that_are_read(place: str, table: tuple[tuple[str, ...], ...]) -> None:
    allowed = allowed_keys(_with_stranger(place), read_scenario)
    assert allowed == {key for key, *_ in table}


def test_without_a_stranger_the_scenario_is_one() -> None:
    assert allowed_keys(_with_stranger(""), read_scenario) == frozenset()


def test_every_kind_of_condition_is_listed_with_an_example_of_it() -> None:
    assert set(CONDITIONS) == set(get_args(conditions.Condition)) - {conditions.AnyOf}, "that is a step of its own"
    for kind, (example, _, _) in CONDITIONS.items():
        names = Names(brokers=3, partitions=(TopicPartition("orders", 0),))
        cursor = open_document(Path("step"), f"until: {{{example}}}")
        condition = getattr(read_step(cursor, names, text="").action, "condition", None)
        assert type(condition) is kind


def test_every_argument_of_an_action_has_a_value_and_a_meaning() -> None:
    lacking = {
        type(field).__name__
        for row in actions.ACTION_SPECS.values()
        for field in row.fields.values()
        if not getattr(field, "options", ())
    }
    assert [name for name in sorted(lacking) if not all(SUBJECTS.get(name, ("", "")))] == []


def test_every_promise_is_in_the_catalogue() -> None:
    page = PAGES["checks.md"]()
    assert [check_id for check_id in PROMISES if f"\n### {check_id}\n" not in page] == []
    assert page.count("\n- Evidence: ") == len(PROMISES)
    assert FINDINGS.exists()
