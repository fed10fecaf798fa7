"""Findings that a promise leaves out are reported: a check without any other is ``exempt``, never ``ok``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.core import events as e
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.junit import Case, junit
from laststand.emulator.verification.verdict.report import CheckResult, CheckStatus, Verdict, VerdictReport
from tests.verification.run_builder import healthy
from tests.verification.test_checks import (
    beside_zookeeper,
    leader_lacks_records_for_a_time,
    loses_everything,
    story,
    topic_is_created_again,
)

WANTED: Final = frozenset({Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS, Exemption.TOPICS_BEING_DELETED})
"""Exemptions of what somebody wanted to be gone: that it is gone is no finding."""

NOTHING_EXPECTED: Final = frozenset({("E1", Exemption.KILLED_PROCESSES)})
"""E1 expects of a log only what events say, and a killed process left none of what it did last."""


def what_one_broker_acknowledged_is_lost(path: Path) -> Path:
    """A leader is deposed before anybody has copied what it acknowledged with acks=1."""
    run = healthy(path)
    lost = run.send(acks=1, to=(0,))
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.send()
    run.truncate(0, lost.base_offset)
    return run.finish()


def leader_gives_an_offset_again(path: Path) -> Path:
    """Offsets 30 to 49 are acknowledged with acks=1 by a leader that loses them; its successor begins at 30."""
    run = healthy(path)
    run.send(acks=1, to=(0,))
    run.send(acks=1, to=(0,))
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.truncate(0, 30)
    run.send()
    return run.finish()


def consumer_misses_acks_1_of_the_next_topic(path: Path) -> Path:
    run = topic_is_created_again(path)
    for _ in range(4):
        run.send(acks=1)
    run.poll(run.logs[0, "orders", 0][3:])
    return run.finish()


def nobody_may_lead(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="broker_fenced", broker=2, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=())
    run.settle()
    return run.finish()


def candidate_lacks_what_was_committed_before_an_unclean_election(path: Path) -> Path:
    """Broker 2 is in the ISR without a batch that the unclean leader has."""
    run = healthy(path)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(1,))
    run.expand((1, 2))
    run.logs[2, "orders", 0].pop()
    return run.finish()


def candidate_is_killed_with_a_batch_less(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.ISR, isr=(0, 1, 2))
    run.end(2, e.IncarnationEnd.KILLED)
    run.logs[2, "orders", 0].pop()
    return run.finish()


def follower_truncates_after_an_unclean_election(path: Path) -> Path:
    run = healthy(path)
    run.alter(reason="elect_leaders", leader=1, election=e.Election.UNCLEAN, isr=(1,))
    run.truncate(0, 20)
    return run.finish()


def leaving_candidate_falls_behind(path: Path) -> Path:
    run = beside_zookeeper(path)
    run.alter(reason="reassignment", removing=(2,))
    run.send(to=(0, 1))
    run.alter(reason="elect_leaders", leader=1, election=e.Election.ISR, removing=(2,))
    return run.finish()


def killed_member_falls_behind(path: Path) -> Path:
    run = beside_zookeeper(path)
    run.send(to=(0, 1))
    run.end(2, e.IncarnationEnd.KILLED)
    return run.finish()


EXEMPT: Final[Mapping[tuple[str, Exemption], Callable[[Path], Path]]] = {
    ("D1", Exemption.ACKS_1): what_one_broker_acknowledged_is_lost,
    ("D1", Exemption.NO_CANDIDATE): nobody_may_lead,
    ("D2", Exemption.UNCLEAN_ELECTIONS): leader_lacks_records_for_a_time,
    ("D3", Exemption.UNCLEAN_ELECTIONS): candidate_lacks_what_was_committed_before_an_unclean_election,
    ("D3", Exemption.LOST_DISKS): story("kafka-3.9"),
    ("D3", Exemption.KILLED_PROCESSES): candidate_is_killed_with_a_batch_less,
    ("D3", Exemption.LEAVING_REPLICAS): leaving_candidate_falls_behind,
    ("D4", Exemption.LOST_DISKS): loses_everything,
    ("D4", Exemption.ACKS_1): what_one_broker_acknowledged_is_lost,
    ("D14", Exemption.ACKS_1): leader_gives_an_offset_again,
    ("D15", Exemption.UNCLEAN_ELECTIONS): follower_truncates_after_an_unclean_election,
    ("C2", Exemption.ACKS_1): what_one_broker_acknowledged_is_lost,
    ("C4", Exemption.ACKS_1): consumer_misses_acks_1_of_the_next_topic,
    ("Z3", Exemption.KILLED_PROCESSES): killed_member_falls_behind,
    ("Z3", Exemption.LEAVING_REPLICAS): leaving_candidate_falls_behind,
}
"""By check and exemption, a run in which the check finds nothing else, or nothing else of the kind."""


def results_of(report: VerdictReport) -> dict[str, CheckResult]:
    return {check.check_id: check for check in report.checks}


def test_every_exemption_but_those_of_what_was_wanted_has_a_run() -> None:
    listed = {
        (check.check_id, exemption)
        for check in CHECKS
        for exemption in PROMISES[check.check_id].exempts
        if exemption not in WANTED
    }
    assert set(EXEMPT) == listed - NOTHING_EXPECTED


@pytest.mark.parametrize(("check_id", "exemption"), EXEMPT)
def test_what_a_promise_leaves_out_is_named_and_is_not_ok(check_id: str, exemption: Exemption, tmp_path: Path) -> None:
    result = results_of(judge_here(EXEMPT[check_id, exemption](tmp_path / "1")).report)[check_id]
    assert result.status is CheckStatus.EXEMPT
    assert (result.count, result.examples, result.guarantee) == (0, (), None)
    assert [each.exemption for each in result.exempted] == [exemption]


def test_what_is_exempt_is_no_violation_and_stands_in_every_form(tmp_path: Path) -> None:
    report = judge_here(leader_gives_an_offset_again(tmp_path / "1")).report
    names = "D1 AckedDurable 2, D4 NoGlobalLoss 2, D14 RealTime 1, C2 PollSkip 1"
    line = f"exempt, what its leader alone acknowledged (acks=1): {names}"
    assert report.verdict is Verdict.VALID
    assert report.exempted() == (line,)
    assert f"  {line}" in summary(report).splitlines()
    assert str(results_of(report)["D14"].exempted[0]) == (
        "1 exempt, what its leader alone acknowledged (acks=1): orders-0 offset 30 was given to a batch of producer-0 "
        "that was sent after offset 49 had been acknowledged"
    )
    assert f'<property name="exempt" value="{line}" />' in junit((Case.of(report),))


def test_what_is_exempt_is_named_beside_a_violation(tmp_path: Path) -> None:
    result = results_of(judge_here(story("kafka-3.9")(tmp_path / "1")).report)["D1"]
    assert result.status is CheckStatus.VIOLATED
    assert [(each.exemption, each.count) for each in result.exempted] == [(Exemption.ACKS_1, 1)]
