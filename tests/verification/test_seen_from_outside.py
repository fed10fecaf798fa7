"""Brokers of which only roles, cuts of logs and rises of their starts are known, from what they print."""

import json
from pathlib import Path

import pytest

from laststand.emulator.core import events as e
from laststand.emulator.core.types import Offset
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.tables.vocabulary import tag
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport
from tests.verification.resealing import reseal
from tests.verification.run_builder import CONTROLLER, RunBuilder

PRINTED = {
    tag(kind)
    for kind in (
        e.NodeStarted,
        e.NodeStopped,
        e.BecameLeader,
        e.BecameFollower,
        e.LogTruncated,
        e.LogStartOffsetRaised,
    )
}


def judged(run: RunBuilder) -> VerdictReport:
    """Returns the verdict if brokers tell no more than Kafka's, and clients know of the first term alone."""
    directory = run.finish()
    for path in (directory / "events").glob("[0-9]*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line["type"] == tag(e.NodeStarted):
                line["witness"] = "harness"
        if not path.name.startswith(f"{CONTROLLER}-"):
            lines = [line for line in lines if line["type"] in PRINTED]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = directory / "history.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for attempt in line.get("attempts", ()):
            attempt["leader_epoch"] = 0
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reseal(directory)
    return judge_here(directory).report


def test_what_was_appended_in_a_later_term_than_the_client_knew_was_not_lost_by_its_leader(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    run.alter(reason="reassignment", leader=0)
    run.send()
    run.settle()
    report = judged(run)
    assert (report.verdict, report.losses) == (Verdict.VALID, ())


def test_what_a_leader_said_that_it_lacks_was_lost_even_if_it_is_back(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batch = run.send(acks=1, to=(0,))
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    for node in (1, 2):
        run.append(node, batch)
    run.expand((0, 1, 2))
    run.send()
    run.settle()
    assert {counts.acks: counts.lost for counts in judged(run).counts} == {-1: 0, 1: 10}


@pytest.mark.parametrize(("acks", "lost"), [(-1, 0), (1, 10)])
def test_what_waited_for_replication_may_have_been_acknowledged_when_its_leader_led_again(
    acks: int, lost: int, tmp_path: Path
) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batch = run.send(acks=acks, to=(0,))
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1,), elr=(0,))
    run.alter(reason="broker_fenced", broker=1, leader=0, election=e.Election.ELR, isr=(0,))
    for node in (1, 2):
        run.append(node, batch)
    run.expand((0, 1, 2))
    run.settle()
    [counts] = judged(run).counts
    assert (counts.acks, counts.lost) == (acks, lost)


def test_checks_that_need_to_know_what_brokers_append_are_not_asked(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    run.alter(reason="reassignment", leader=0)
    run.truncate(2, 0)
    run.send()
    run.settle()
    asked = {check.check_id for check in judged(run).checks if check.status is not CheckStatus.NOT_ASKED}
    assert asked.isdisjoint(("D2", "D3", "D8", "D9", "D15", "E1", "H1", "H2", "H3", "L1", "L3", "M15"))
    assert {"M8", "M9", "M13"} <= asked


def test_a_broker_that_cut_its_log_has_to_have_a_full_copy(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    run.truncate(2, 0)
    run.settle()
    [full_copy] = [check for check in judged(run).checks if check.check_id == "L6"]
    assert full_copy.status is CheckStatus.VIOLATED


def deleting(path: Path, *, asked: int) -> RunBuilder:
    """An administrator asks for the deletion of records below an offset, and all replicas delete them below 10."""
    run = RunBuilder(path)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    run.send()
    run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", Offset(asked)),))
    for node in (0, 1, 2):
        run.delete(node, 10)
    run.settle()
    return run


@pytest.mark.parametrize(("asked", "lost"), [(10, 0), (5, 10)])
def test_deleted_records_are_not_lost_if_somebody_asked_for_that(asked: int, lost: int, tmp_path: Path) -> None:
    report = judged(deleting(tmp_path / "run", asked=asked))
    assert (sum(loss.records for loss in report.losses), report.doubts) == (lost, ())


def test_nothing_is_said_of_a_rise_past_a_high_watermark_that_is_not_reported(tmp_path: Path) -> None:
    [bounds] = [check for check in judged(deleting(tmp_path / "run", asked=10)).checks if check.check_id == "D9"]
    assert bounds.status is CheckStatus.NOT_ASKED


def test_a_power_loss_may_undo_a_rise_that_a_broker_reported(tmp_path: Path) -> None:
    run = deleting(tmp_path / "run", asked=10)
    run.starts[2, "orders", 0] = 0
    assert judged(run).doubts == ()


def test_the_settled_leader_is_that_of_the_moment_when_the_cluster_had_settled(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    run.settle()
    run.read_all()
    run.alter(reason="controlled_shutdown", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.logs[1, "orders", 0].clear()
    report = judged(run)
    assert report.losses == ()


def test_cuts_and_power_losses_are_reported_of_logs_that_may_have_had_what_is_lost(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.truncate(0, 0)
    run.power_loss(2)
    run.logs[1, "orders", 0].clear()
    run.settle()
    [loss] = judged(run).losses
    told = [line.text for line in loss.story]
    assert "Broker 0 truncated its log from 10 to 0 (diverging epoch), following leader 1 in epoch 1." in told
    assert any(line.startswith("Broker 2 lost power") for line in told)


def test_a_truncation_before_the_epoch_of_a_lost_record_is_not_reported_for_it(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.start_brokers(0, 1, 2)
    run.create_topic()
    batch = run.send(acks=1, to=(0,))
    run.append(2, batch)
    run.truncate(2, 0)
    run.logs[0, "orders", 0].clear()
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.send(to=(1,))
    run.alter(reason="broker_fenced", broker=1, leader=0, election=e.Election.UNCLEAN, isr=(0,))
    run.settle()
    stories = [loss.story for loss in judged(run).losses if loss.leader_epoch == 1]
    assert len(stories) == 1
    assert not any("truncated" in line.text for line in stories[0])
