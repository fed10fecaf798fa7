"""Promises of a cluster whose nodes follow different rules, by hand-written runs that break them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from laststand.emulator.core import events as e
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport
from tests.verification.conftest import Judge
from tests.verification.run_builder import CONTROLLER, TRANSACTIONS, RunBuilder, healthy
from tests.verification.test_checks import elect_uncleanly, finish_recovery

WITHOUT_ELR: Final = {"elr": "off"}
RENAMES: Final = {"stray_cleanup": "rename"}


def restarted(run: RunBuilder, node: int, rules: dict[str, str]) -> None:
    """A node is started again with rules of its own."""
    run.end(node, e.IncarnationEnd.STOPPED)
    run.own[node] = run.given[node] = rules
    if node == CONTROLLER:
        run.start(node, role="controller")
    else:
        run.restart(node, clean=True)
        run.unfence(node)


def eligible_beside_a_full_isr(run: RunBuilder) -> None:
    """M3."""
    run.alter(reason="alter_partition", broker=0, isr=(0, 1), elr=(2,))


def smaller_min_isr(run: RunBuilder) -> None:
    """M21."""
    run.alter(reason="broker_fenced", broker=2, isr=(0, 1), effective_min_isr=1)
    run.expand((0, 1, 2))


def moves_under_min_isr(run: RunBuilder) -> None:
    """H2, by broker 0."""
    run.alter(reason="alter_partition", broker=0, isr=(0,), elr=(1,))
    batch = run.send(acks=1)
    run.advance(batch.last_offset + 1, effective_min_isr=1)


def appends_while_it_recovers(run: RunBuilder) -> None:
    """M18, by broker 1."""
    elect_uncleanly(run)
    run.append(1, run.new_batch(), leader=True)
    finish_recovery(run)


def sends_markers_too_early(run: RunBuilder) -> None:
    """R4, by broker 0."""
    run.create_topic(TRANSACTIONS)
    run.transit("Empty", "Ongoing")
    run.begin_transition("Ongoing", "PrepareCommit")
    run.send_markers(decided_at=run.write_own(TRANSACTIONS, is_committed=False))
    run.commit_own(TRANSACTIONS)
    run.end_transition()


def finds_the_log_of_another_topic(run: RunBuilder) -> None:
    """M15, by broker 2."""
    run.create_topic("other", replicas=(0, 1))
    run.logs[2, "other", 0] = list(run.logs[2, "orders", 0])
    run.open(2, "other")


class Mixed(NamedTuple):
    """A run in which something breaks a promise: which nodes lacked the rule since when, and whether that counts."""

    check_id: str
    breaks: Callable[[RunBuilder], None]
    rule: str
    always: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    counts: bool = False


CASES: Final[Mapping[str, Mixed]] = {
    "M3, a broker lacks it": Mixed("M3", eligible_beside_a_full_isr, "elr", after=(2,), counts=True),
    "M3, the controller lacks it": Mixed("M3", eligible_beside_a_full_isr, "elr", before=(CONTROLLER,)),
    "M3, the controller lacks it later": Mixed(
        "M3", eligible_beside_a_full_isr, "elr", after=(CONTROLLER,), counts=True
    ),
    "M21, brokers lack it": Mixed("M21", smaller_min_isr, "min_isr_per_partition", always=(0, 1, 2), counts=True),
    "M21, the controller lacks it": Mixed("M21", smaller_min_isr, "min_isr_per_partition", always=(CONTROLLER,)),
    "H2, others lack it": Mixed(
        "H2", moves_under_min_isr, "hw_requires_min_isr", always=(1, 2, CONTROLLER), counts=True
    ),
    "H2, it lacks it": Mixed("H2", moves_under_min_isr, "hw_requires_min_isr", always=(0,)),
    "H2, it lacked it before": Mixed("H2", moves_under_min_isr, "hw_requires_min_isr", before=(0,), counts=True),
    "H2, it lacks it later": Mixed("H2", moves_under_min_isr, "hw_requires_min_isr", after=(0,), counts=True),
    "M18, others lack it": Mixed("M18", appends_while_it_recovers, "recovering_gate", always=(0, 2), counts=True),
    "M18, it lacks it": Mixed("M18", appends_while_it_recovers, "recovering_gate", always=(1,)),
    "R4, others lack it": Mixed(
        "R4", sends_markers_too_early, "coordinator_awaits_commit", always=(1, 2, CONTROLLER), counts=True
    ),
    "R4, it lacks it": Mixed("R4", sends_markers_too_early, "coordinator_awaits_commit", always=(0,)),
    "M15, others lack it": Mixed("M15", finds_the_log_of_another_topic, "stray_cleanup", always=(0, 1), counts=True),
    "M15, it lacks it": Mixed("M15", finds_the_log_of_another_topic, "stray_cleanup", always=(2,)),
    "M15, it lacked it before": Mixed("M15", finds_the_log_of_another_topic, "stray_cleanup", before=(2,)),
}


def played(path: Path, case: Mixed) -> Path:
    lacking = {case.rule: "off"}
    run = healthy(path, own=dict.fromkeys((*case.always, *case.before), lacking))
    for node in case.before:
        restarted(run, node, {})
    case.breaks(run)
    for node in case.after:
        restarted(run, node, lacking)
    return run.finish()


def doubtful(path: Path, *, given: dict[str, str] | None) -> Path:
    """Broker 2 has other rules than the harness gave it."""
    run = healthy(path)
    run.end(2, e.IncarnationEnd.STOPPED)
    run.own[2] = WITHOUT_ELR
    if given is not None:
        run.given[2] = given
    run.restart(2, clean=True)
    return run.finish()


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("mixed")
    return judge(
        {
            **{name: played(base / str(number), case) for number, (name, case) in enumerate(CASES.items())},
            "says nothing": doubtful(base / "nothing", given=None),
            "says otherwise": doubtful(base / "otherwise", given=RENAMES),
        }
    )


@pytest.mark.parametrize("name", CASES)
def test_what_one_process_did_counts_where_those_promised_it_whose_rule_it_is(
    name: str, reports: dict[str, VerdictReport]
) -> None:
    case = CASES[name]
    [check] = [check for check in reports[name].checks if check.check_id == case.check_id]
    assert check.status is (CheckStatus.VIOLATED if case.counts else CheckStatus.NOT_PROMISED)
    assert (check.count > 0) is case.counts


def test_what_no_process_is_accused_of_is_not_promised_while_one_lacks_the_rule(
    reports: dict[str, VerdictReport],
) -> None:
    status = {check.check_id: check.status for check in reports["H2, it lacks it"].checks}
    assert status["M15"] is CheckStatus.OK
    assert status["H2"] is CheckStatus.NOT_PROMISED


@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        ("says nothing", "the nodes of the run did not all have the same switches"),
        ("says otherwise", "the harness gave incarnation 1 of node 2 elr=on, and it had elr=off"),
    ],
)
def test_rules_that_the_harness_did_not_give_are_doubtful(
    name: str, doubt: str, reports: dict[str, VerdictReport]
) -> None:
    assert reports[name].verdict is Verdict.UNKNOWN
    assert doubt in reports[name].unknown_reasons
