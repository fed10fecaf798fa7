"""Contents of ``story.json``: what logs held and lost, what was promised, who led, what was broken."""

import json
from itertools import pairwise
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.struct_docs import field_meanings
from laststand.emulator.core.struct_schema import structs_of
from laststand.emulator.core.types import CauseId, Offset, TopicId
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.judge import Judgement, join_stories, judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.schemas import STORY_SCHEMA_FILE
from laststand.emulator.verification.story.causes import CAUSES_MAX, EVENTS_MAX
from laststand.emulator.verification.story.flushed_logs import thinned_steps
from laststand.emulator.verification.story.run import Point, RunStory
from laststand.emulator.verification.story.story_file import STORY_FILE, read_story, write_story
from laststand.emulator.verification.story.thinning import POINTS_MAX, thinned
from tests.verification.run_builder import RunBuilder, healthy, last_replica_standing

REGRESSIONS = Path(__file__).parents[2] / "simulation" / "regressions"


def judged(run: RunBuilder) -> Judgement:
    return judge(plan_run(0, open_run_directory(run.finish())))


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    return judged(last_replica_standing(tmp_path_factory.mktemp("story") / "story" / "1", era="kafka-3.9"))


def test_a_log_rises_with_its_appends_and_falls_with_its_cuts(lost: Judgement) -> None:
    [partition] = lost.story.partitions
    held = {(each.node, each.leader_epoch): [point.value for point in each.ends] for each in partition.held}
    assert held[0, 0] == [10, 20, 30, 40, 50, 50, 0]
    assert held[1, 1] == [60, 70, 80, 90, 100, 100, 50]
    assert held[2, 2] == [110, 110, 100]
    assert held[2, 4] == [10]
    assert {each.first for each in partition.held if each.leader_epoch == 1} == {50}
    cuts = {each.node: (each.became, each.old_end, each.new_end) for each in partition.cuts}
    assert cuts == {
        0: (CopyFate.TRUNCATED, 50, 0),
        1: (CopyFate.TRUNCATED, 100, 0),
        2: (CopyFate.POWER_LOST, 110, 0),
    }


def test_final_logs_and_what_was_promised_are_reported_by_epoch(lost: Judgement) -> None:
    [partition] = lost.story.partitions
    assert [(each.node, each.leader_epoch, each.first, each.last) for each in partition.final] == [
        (0, 4, 0, 9),
        (1, 4, 0, 9),
        (2, 4, 0, 9),
    ]
    assert {each.leader_epoch: each.ends[-1].value for each in partition.promised} == {0: 50, 1: 100, 4: 10}
    assert {each.acks: each.records[-1].value for each in partition.acknowledged} == {-1: 110, 1: 10}


def test_committed_states_and_what_brokers_took_themselves_for_are_reported(lost: Judgement) -> None:
    [partition] = lost.story.partitions
    first, *_, last = partition.changes
    assert (first.leader, first.isr, first.min_isr, first.election) == (0, (0, 1, 2), 2, events.Election.NONE)
    assert (last.leader, last.leader_epoch, last.isr) == (2, 4, (0, 1, 2))
    assert [change.leader for change in partition.changes].count(None) == 1
    assert {(each.node, each.leader_epoch) for each in partition.leaderships if each.is_leading} >= {(0, 0), (2, 4)}


def test_faults_end_where_they_were_mended_and_processes_as_the_harness_says(lost: Judgement) -> None:
    assert [(fault.fault, fault.nodes, fault.healed_us is None) for fault in lost.story.faults] == [
        ("isolate", (0,), False),
        ("isolate", (1,), False),
    ]
    ends = {(each.node, each.incarnation): each.end for each in lost.story.processes}
    assert ends[2, 0] is events.IncarnationEnd.POWER_LOST
    assert ends[2, 1] is events.IncarnationEnd.STOPPED
    assert [each.broker for each in lost.story.registrations if not each.is_first] == [2]


def test_the_answers_that_a_verdict_names_have_their_time(lost: Judgement) -> None:
    [partition] = lost.story.partitions
    answers = [line.events[0] for loss in lost.report.losses for line in loss.story if line.kind.value == "lost"]
    assert [each.event for each in partition.named_events] == answers


def test_times_count_from_the_creation_of_the_topic_and_long_pauses_are_reported(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run", begin_s=5)
    run.start_brokers(0, 1, 2)
    run.at(7)
    run.create_topic()
    for seconds in (8.0, 8.4, 9.5):
        run.at(seconds)
        run.poll([run.send()])
    story = judged(run).story
    [partition] = story.partitions
    [acked] = partition.acknowledged
    assert story.origin_ns == 7_000_000_000
    assert acked.records == (Point(1_000_000, 10), Point(1_400_000, 20), Point(2_500_000, 30))
    assert acked.pauses == (Point(1_400_000, 1_100_000),)


def test_the_shutdown_of_a_cluster_that_never_settled_is_not_reported(tmp_path: Path) -> None:
    plan = parse_plan((REGRESSIONS / "truncation-undone-by-power-loss.txt").read_text())
    write_run(plan, tmp_path / "run", name="unsettled")
    assert "ClusterSettled" not in (tmp_path / "run/events/harness-0.jsonl").read_text()
    story = judge(plan_run(0, open_run_directory(tmp_path / "run"))).story
    [partition] = story.partitions
    told = [change for change in partition.changes if change.time_us <= story.end_us]
    assert (told[-1].leader, told[-1].isr) == (0, (1, 2, 0))
    assert partition.changes[-1].leader is None
    assert all(each.begun_us <= story.end_us for each in story.faults)


def test_what_is_written_is_what_the_schema_says_and_is_read_back(lost: Judgement, tmp_path: Path) -> None:
    write_story(lost.story, tmp_path)
    assert read_story(tmp_path) == lost.story
    schema = json.loads(STORY_SCHEMA_FILE.read_text())
    written = json.loads((tmp_path / STORY_FILE).read_text())
    jsonschema.Draft202012Validator(schema).validate(written)
    written["partitions"][0]["held"][0]["ends"][0] = "early"
    assert not jsonschema.Draft202012Validator(schema).is_valid(written)


@pytest.mark.parametrize("content", [None, b"{", b'{"version": 2}'])
def test_a_story_that_is_missing_torn_or_of_another_version_is_refused(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / STORY_FILE).write_bytes(content)
    with pytest.raises(ConfigError):
        read_story(tmp_path)


def test_every_field_is_described() -> None:
    lacking = {
        kind.__name__: set(kind.__struct_encode_fields__) - field_meanings(kind).keys() for kind in structs_of(RunStory)
    }
    assert {name: fields for name, fields in lacking.items() if fields} == {}


def test_a_story_that_cannot_be_written_says_so_and_changes_no_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = judged(healthy(tmp_path / "whole")).report

    def fail(*_: object) -> None:
        raise ZeroDivisionError("no points")

    monkeypatch.setattr("laststand.emulator.verification.judge.partition_story", fail)
    found = judged(healthy(tmp_path / "untold"))
    assert found.story == RunStory(problem="ZeroDivisionError: no points")
    assert (found.report.verdict, found.report.checks) == (expected.verdict, expected.checks)
    assert join_stories(ClusterFacts(), [found.story]) == found.story


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000)), min_size=1, max_size=3000))
def test_a_thinned_curve_is_near_the_whole_one(steps: list[tuple[int, int]]) -> None:
    times, values = np.cumsum(np.array(steps, np.int64), axis=0).T
    kept = thinned(times, values)
    assert len(kept) <= 2 * POINTS_MAX + 2
    assert kept[0] == 0
    assert kept[-1] == len(times) - 1
    for curve in (times, values):
        part = (curve[-1] - curve[0]) / (POINTS_MAX // 2 - 1)
        assert all(curve[end - 1] - curve[begin] <= part + 1e-6 for begin, end in pairwise(kept))
    pauses = np.flatnonzero(np.diff(times) > (times[-1] - times[0]) / (POINTS_MAX // 2))
    assert set(pauses) | set(pauses + 1) <= set(kept)


def test_a_story_is_small_however_long_the_run(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    for _ in range(400):
        run.poll([run.send()])
    [partition] = judged(run).story.partitions
    curves = [each.ends for each in partition.held] + [each.ends for each in partition.promised]
    assert max(map(len, curves)) <= POINTS_MAX + 2
    assert len(msgspec.json.encode(partition)) < 20_000


def flushed(run: RunBuilder, node: int, recovery_point: int) -> None:
    topic_id = TopicId(run.partitions["orders", 0].topic_id)
    event = events.LogFlushed(
        cause_id=CauseId("flush"), topic="orders", partition=0, topic_id=topic_id, recovery_point=Offset(recovery_point)
    )
    run.note(node, event)


def test_what_is_on_disks_rises_with_flushes_and_is_what_a_power_loss_leaves(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    flushed(run, 1, 20)
    run.poll([run.send()])
    flushed(run, 2, 40)
    run.truncate(2, 30)
    run.power_loss(1, keep=20)
    [partition] = judged(run).story.partitions
    points = {each.node: [point.value for point in each.points] for each in partition.flushed}
    assert points == {0: [0, 40], 1: [0, 20, 20], 2: [0, 40, 30, 30]}  # brokers 0 and 2 stop in order in the end


def test_of_a_node_that_never_reports_its_logs_nothing_is_known_to_be_on_disk(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    directory = run.finish()
    for path in (directory / "events").glob("2-0.*"):
        lines = [line for line in path.read_bytes().splitlines(keepends=True) if b'"LogOpened"' not in line]
        path.write_bytes(b"".join(lines))
    [partition] = judge(plan_run(0, open_run_directory(directory))).story.partitions
    assert {each.node for each in partition.flushed} == {0, 1}


def test_steps_are_thinned_and_their_falls_are_kept() -> None:
    points = [Point(time, time) for time in range(1000)] + [Point(1000, 5), Point(2000, 7)]
    kept = list(thinned_steps(points))
    assert len(kept) < 2 * POINTS_MAX
    assert kept[-3:] == [Point(999, 999), Point(1000, 5), Point(2000, 7)]
    assert list(thinned_steps([])) == []


def test_a_lost_acknowledgement_is_reported_with_its_request_and_its_appends(lost: Judgement) -> None:
    [partition] = lost.story.partitions
    causes = {cause.cause_id: cause for cause in partition.causes}
    assert len(causes) == len(partition.causes) <= CAUSES_MAX
    first = partition.causes[0]
    assert partition.named_events[0].event in {each.event for each in first.events}
    kinds = [each.text.split()[0] for each in first.events]
    assert (kinds.count("BatchAppended"), kinds.count("ProduceAnswered")) == (3, 1)
    assert {each.node for each in first.events} == {0, 1, 2}
    assert [each.time_us for each in first.events] == sorted(each.time_us for each in first.events)
    assert all(len(cause.events) <= EVENTS_MAX for cause in partition.causes)
    named = {each.event for cause in partition.causes for each in cause.events}
    assert {cut.event for cut in partition.cuts} - named == set() or any(cause.left_out for cause in partition.causes)
