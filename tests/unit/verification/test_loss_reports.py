"""Lost records in a verdict: numbers, where, who, what became of each copy, and the events behind it."""

import json
from pathlib import Path

import pytest

from laststand.emulator.core import events as e
from laststand.emulator.core.types import LogDeletedReason, Offset, TopicId
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.tables.timeline import EventPlace
from laststand.emulator.verification.verdict.loss_report import FirstLacking, OffsetRange, StoryKind
from laststand.emulator.verification.verdict.report import GoneRange, ProducerCounts, VerdictReport
from tests.verification.run_builder import CAUSE, RunBuilder, healthy, last_replica_standing

TYPES = {
    StoryKind.LOST: "ProduceAnswered",
    StoryKind.POWER_LOST: "PowerLost",
    StoryKind.REGISTERED: "BrokerRegistered",
    StoryKind.ELECTED: "PartitionChanged",
    StoryKind.TRUNCATED: "LogTruncated",
}
FATES = {
    CopyFate.POWER_LOST: "PowerLost",
    CopyFate.TRUNCATED: "LogTruncated",
    CopyFate.LOG_DELETED: "LogDeleted",
    CopyFate.NOT_RECOVERED: "LogOpened",
}


def report_on(run: RunBuilder) -> VerdictReport:
    return judge(plan_run(0, open_run_directory(run.finish()))).report


def type_at(run: Path, place: EventPlace) -> str:
    line = json.loads((run / place.file).read_text().splitlines()[place.sequence])
    assert line["sequence"] == place.sequence
    return str(line["type"])


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> VerdictReport:
    return report_on(last_replica_standing(tmp_path_factory.mktemp("story") / "story" / "1", era="kafka-3.9"))


def test_a_loss_says_where_the_records_were_and_who_acknowledged_them(story: VerdictReport) -> None:
    first, second = story.losses
    assert (first.topic, first.topic_id, first.partition, first.records) == ("orders", "orders-id", 0, 50)
    assert (first.leader_epoch, first.offsets) == (0, (OffsetRange(first=0, last=49),))
    assert (first.acked_by, first.isr, first.acked_at) == (0, (0, 1, 2), 7)
    assert (second.leader_epoch, second.acked_by, second.isr) == (1, 1, (1, 2))
    assert first.first_lacking == FirstLacking(node=2, leader_epoch=4, log_end_offset=0)
    assert (first.settled_leader, first.settled_epoch, first.holders) == (2, 4, ())


def test_a_loss_says_what_became_of_each_copy(story: VerdictReport) -> None:
    for loss in story.losses:
        held_by = (0, 1, 2) if loss.leader_epoch == 0 else (1, 2)
        assert tuple(copy.node for copy in loss.copies) == held_by
        assert {copy.node: copy.became for copy in loss.copies} == {
            node: CopyFate.POWER_LOST if node == 2 else CopyFate.TRUNCATED for node in held_by
        }
        assert {(copy.records, copy.offsets) for copy in loss.copies} == {(50, None)}


def test_the_events_behind_lines_and_copies_are_there(story: VerdictReport) -> None:
    run = Path(story.run)
    for loss in story.losses:
        for line in loss.story:
            assert [type_at(run, place) for place in line.events] == [
                TYPES[line.kind] for _ in range(line.kind is not StoryKind.GUARANTEE)
            ]
        for copy in loss.copies:
            assert copy.event is not None
            assert type_at(run, copy.event) == FATES[copy.became]


def test_lines_name_node_and_metadata_offset(story: VerdictReport) -> None:
    lines = {line.kind: line for line in story.losses[0].story}
    assert [line.kind for line in story.losses[0].story] == [
        StoryKind.LOST,
        StoryKind.POWER_LOST,
        StoryKind.REGISTERED,
        StoryKind.ELECTED,
        StoryKind.TRUNCATED,
        StoryKind.TRUNCATED,
        StoryKind.GUARANTEE,
    ]
    assert (lines[StoryKind.LOST].node, lines[StoryKind.POWER_LOST].node) == (0, 2)
    elected = lines[StoryKind.ELECTED]
    assert elected.metadata_offset is not None
    assert f'"metadata_offset": {elected.metadata_offset}' in (Path(story.run) / "events/100-0.jsonl").read_text()


def test_counts_are_reported_by_partition_and_producer(story: VerdictReport) -> None:
    (partition,) = story.partitions
    assert (partition.topic, partition.partition) == ("orders", 0)
    assert partition.producers == (
        ProducerCounts(process="producer-0", acks=-1, sent=110, acked=110, lost=100, never_acked=0),
        ProducerCounts(process="producer-0", acks=1, sent=10, acked=10, lost=10, never_acked=0),
    )
    assert {(each.acks, each.sent, each.lost) for each in story.counts} == {(-1, 110, 100), (1, 10, 10)}


def test_what_is_gone_is_reported_by_epoch_and_offset(story: VerdictReport) -> None:
    (partition,) = story.partitions
    assert partition.gone == (
        GoneRange(topic_id="orders-id", leader_epoch=0, first=0, last=49),
        GoneRange(topic_id="orders-id", leader_epoch=1, first=50, last=99),
    )


def test_copies_that_fared_differently_are_distinguished(tmp_path: Path) -> None:
    run = healthy(tmp_path / "apart" / "1")
    run.truncate(2, 20)
    run.end(1, e.IncarnationEnd.KILLED)
    del run.logs[1, "orders", 0][1:]
    run.restart(1)
    run.logs[0, "orders", 0].clear()
    run.truncate(2, 0)
    report = report_on(run)
    kept, gone = report.losses
    assert (kept.offsets, gone.offsets) == ((OffsetRange(first=0, last=9),), (OffsetRange(first=10, last=29),))
    fates = [[(copy.node, copy.became, copy.offsets) for copy in loss.copies] for loss in report.losses]
    assert fates[0] == [
        (0, CopyFate.UNEXPLAINED, None),
        (1, CopyFate.KEPT, None),
        (2, CopyFate.TRUNCATED, None),
    ]
    assert fates[1] == [
        (0, CopyFate.UNEXPLAINED, None),
        (1, CopyFate.NOT_RECOVERED, None),
        (2, CopyFate.TRUNCATED, (OffsetRange(first=10, last=19),)),
        (2, CopyFate.TRUNCATED, (OffsetRange(first=20, last=29),)),
    ]


def test_a_log_that_was_deleted_takes_its_copies_along(tmp_path: Path) -> None:
    run = healthy(tmp_path / "deleted" / "1")
    deleted = e.LogDeleted(
        cause_id=CAUSE,
        topic="orders",
        partition=0,
        topic_id=TopicId("orders-id"),
        reason=LogDeletedReason.DELETED,
        log_end_offset=Offset(30),
    )
    for node in (0, 1, 2):
        run.note(node, deleted)
        run.logs[node, "orders", 0].clear()
    (loss,) = report_on(run).losses
    assert {copy.became for copy in loss.copies} == {CopyFate.LOG_DELETED}
