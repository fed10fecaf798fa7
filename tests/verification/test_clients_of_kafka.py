"""Clients that write no history: they are named, and only what they may have been told is held against a cluster."""

from pathlib import Path
from typing import cast

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.history import UNKNOWN_PRODUCER, ForeignProcess
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import NodeId
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from tests.verification.run_builder import CAUSE, HARNESS, healthy, last_replica_standing

APP = NodeId(1001)


def lost_to_app(path: Path, *, silenced: tuple[events.FaultLink, ...] = ()) -> VerdictReport:
    """Judges the story in which all is lost, its producer being a client of Kafka."""
    run = last_replica_standing(path, era="kafka-3.9")
    for line in run.history:
        if line["f"] == "send":
            line["process"] = str(ForeignProcess("app", APP, node_of(line), 0, 1))
    cut = events.FaultInjected(
        cause_id=CAUSE, fault="cut", target="1001->0", links=silenced, effect="silent", begun_ns=0, silenced=silenced
    )
    if silenced:
        run.note(HARNESS, cut)
    return judge_here(run.finish()).report


def node_of(line: dict[str, object]) -> NodeId:
    attempts = line["attempts"]
    assert isinstance(attempts, list)
    return NodeId(attempts[0]["node"]) if attempts else NodeId(0)


def test_processes_are_read_as_they_are_written() -> None:
    process = ForeignProcess("a@b->c", APP, NodeId(2), 3, 4)
    assert str(process) == "kafka:a@b->c@1001->2-3.4"
    assert ForeignProcess.parse(str(process)) == process
    assert ForeignProcess.parse("producer-0") is None


def test_a_loss_names_the_client_that_got_the_acknowledgement(tmp_path: Path) -> None:
    report = lost_to_app(tmp_path)
    assert (report.verdict, report.lost_records) == (Verdict.VIOLATION, 100)
    assert all("to client app of Kafka" in loss.story[0].text for loss in report.losses)
    (finding, *_) = next(check.examples for check in report.checks if check.check_id == "D1")
    assert "acknowledged by broker 0 to client app of Kafka: " in str(finding)


def test_an_answer_that_a_fault_may_have_swallowed_does_not_count_as_received(tmp_path: Path) -> None:
    report = lost_to_app(tmp_path, silenced=(events.FaultLink(APP, NodeId(0)),))
    assert (report.verdict, report.lost_records) == (Verdict.VIOLATION, 50)
    assert {loss.acked_by for loss in report.losses} == {1}


@pytest.mark.parametrize(("topic", "findings"), [(OFFSETS_TOPIC, 0), ("payments", 5)])
def test_what_coordinators_write_no_producer_has_to_have_sent(tmp_path: Path, topic: str, findings: int) -> None:
    run = healthy(tmp_path)
    run.create_topic(topic)
    batch = run.new_batch(topic)
    for node in (0, 1, 2):
        run.append(node, batch, topic, leader=node == 0)
    run.advance(10, topic)
    report = judge_here(run.finish()).report
    assert next(check.count for check in report.checks if check.check_id == "D10") == findings


@pytest.mark.parametrize(("crc_change", "findings"), [(0, 0), (1, 1)])
def test_a_client_may_be_given_what_a_producer_of_the_project_sent(
    tmp_path: Path, crc_change: int, findings: int
) -> None:
    run = healthy(tmp_path)
    batch = run.send()
    run.poll([batch], process=str(ForeignProcess("app", APP, NodeId(0), 0, 1)), position=batch.base_offset, seek=True)
    (given,) = cast("list[dict[str, object]]", run.history[-1]["batches"])
    given.update(producer=UNKNOWN_PRODUCER, first_record_id=0, crc=batch.crc + crc_change)
    report = judge_here(run.finish()).report
    assert next(check.count for check in report.checks if check.check_id == "D10") == findings


@pytest.mark.parametrize(("topic", "findings"), [(OFFSETS_TOPIC, 0), ("payments", 1)])
def test_positions_of_transactions_that_share_an_epoch_are_no_duplicates(
    tmp_path: Path, topic: str, findings: int
) -> None:
    run = healthy(tmp_path)
    run.create_topic(topic)
    first = run.new_batch(topic)
    for batch in (first, msgspec.structs.replace(first, base_offset=first.last_offset + 1)):
        for node in (0, 1, 2):
            run.append(node, batch, topic, leader=node == 0)
    run.advance(20, topic)
    report = judge_here(run.finish()).report
    assert next(check.count for check in report.checks if check.check_id == "D12") == findings
