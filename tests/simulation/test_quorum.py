"""Schedules of the quorum: clean with every rule, the same twice, and a finding without some of them.

All of it at length, and every mutant, is ``make quorum-soak``.
"""

import pytest

from laststand.emulator.core.quorum_rules import QuorumRules
from tests.simulation import test_quorum_stories
from tests.simulation.quorum.schedule import QuorumSchedule
from tests.simulation.quorum_mutants import QUORUM_MUTANTS, Harmless, Lethal, without
from tests.simulation.quorum_soak import hunt, play_all


def test_schedules_find_nothing_while_every_rule_is_on() -> None:
    outcomes = play_all(range(60))

    assert [outcome for outcome in outcomes if outcome.findings] == []
    assert sum(outcome.elections for outcome in outcomes) > 60
    assert sum(outcome.commits for outcome in outcomes) > 200


def test_a_seed_is_a_schedule() -> None:
    first, second = (QuorumSchedule(11, QuorumRules()).play() for _ in range(2))

    assert first == second


def test_every_rule_has_a_row() -> None:
    assert set(QUORUM_MUTANTS) == set(QuorumRules.__struct_fields__)


def test_what_schedules_cannot_find_has_a_story() -> None:
    stories = {row.test for row in QUORUM_MUTANTS.values() if isinstance(row, Harmless)}

    assert [story for story in stories if not hasattr(test_quorum_stories, story)] == []


def test_a_rule_that_is_needed_beside_another_alone_holds_where_only_the_other_is_missing() -> None:
    """Else the hunt would find what the other rule prevents."""
    (row,) = [row for row in QUORUM_MUTANTS.values() if isinstance(row, Lethal) and row.beside is not None]
    assert row.beside is not None
    rules = without(row.beside)

    outcomes = [QuorumSchedule(seed, rules, asked=row.checks).play() for seed in range(60)]

    assert [outcome for outcome in outcomes if outcome.findings] == []


@pytest.mark.parametrize("rule", ["commit_own_epoch", "leader_syncs_first", "follower_syncs_first", "vote_is_durable"])
def test_schedules_find_what_a_rule_prevents(rule: str) -> None:
    found = hunt(rule, limit_s=20)

    assert isinstance(QUORUM_MUTANTS[rule], Lethal)
    assert found.is_as_expected, found.line()
