"""Axes, curves, roles and words of pictures, and the picture as text."""

import re

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laststand.emulator.report.axes import RecordAxis, TimeAxis
from laststand.emulator.report.curves import curve
from laststand.emulator.report.edges import causes_of, edges_of
from laststand.emulator.report.figure import draw
from laststand.emulator.report.markup import visible
from laststand.emulator.report.numbers import number
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.report.spans import Role, absent_spans, cut_off_spans, joined, mistaken_spans, role_spans
from laststand.emulator.report.text_picture import COLUMNS, text_picture
from laststand.emulator.report.words import faults_and_repairs, offset_ranges, seconds
from laststand.emulator.report.worst_first import worst_first
from laststand.emulator.report.worst_moment import fewest_copies
from laststand.emulator.verification.story.run import BrokenLink, Point
from tests.unit.report.judged_runs import kept, lost


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return lost(tmp_path_factory.mktemp("lost") / "story" / "1")


@pytest.fixture(scope="module")
def survival(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return kept(tmp_path_factory.mktemp("kept") / "story" / "1")


@settings(deadline=None)
@given(st.lists(st.integers(0, 20_000_000), max_size=40), st.integers(1, 20_000_000))
def test_time_never_runs_backwards_and_fills_the_picture(happenings: list[int], end_us: int) -> None:
    axis = TimeAxis([each for each in happenings if each < end_us], end_us=end_us, left=10, right=700)
    places = axis.xs(np.linspace(0, end_us, 50))
    assert np.all(np.diff(places) >= 0)
    assert (places[0], round(places[-1], 6)) == (10, 700)
    assert np.allclose(axis.times(places), np.linspace(0, end_us, 50), atol=1.0)


def test_a_stretch_is_as_wide_as_the_root_of_its_duration() -> None:
    axis = TimeAxis([1_000_000], end_us=10_000_000, left=0, right=400)
    assert axis.x(1_000_000) == pytest.approx(100)
    assert [words for _, words in axis.ticks()][:3] == ["0 s", "1 s", "3 s"]


def test_a_record_keeps_its_place_when_its_offset_is_used_again(loss: ReportedRun) -> None:
    axis = RecordAxis(loss.story.partitions[0])
    first, second, *_, last = axis.spans
    assert [span.leader_epoch for span in axis.spans] == [0, 1, 2, 4]
    assert first.low == 0.0
    assert last.high == pytest.approx(1.0)
    assert axis.height(first, 5) < first.high <= axis.height(second, 55) < axis.height(last, 5)


def test_a_curve_is_held_over_a_pause_and_falls_at_once() -> None:
    points = [Point(0, 0), Point(100, 10), Point(10_000, 20), Point(20_000, 20), Point(20_000, 5)]
    drawn = curve(points, start=0, end_us=30_000)
    assert drawn.at(np.array([50.0, 9_000.0, 10_000.0, 20_002.0, 30_000.0])).tolist() == [5, 10, 20, 5, 5]
    assert drawn.peak[-1] == 20


def test_roles_and_beliefs_of_a_deposed_leader(loss: ReportedRun) -> None:
    [partition], story = loss.story.partitions, loss.story
    roles = [span.role for span in role_spans(partition, 0, story.end_us)]
    assert roles[:2] == [Role.LEADER, Role.OUT]
    assert roles[-1] is Role.ISR
    [cut_off] = cut_off_spans(story, 0)
    assert cut_off.words == "cut off from every node"
    assert next(span.words for span in absent_spans(story, 2) if span.kind == "down") == "no power"
    assert all(span.words.startswith("out, but thinks") for span in joined(mistaken_spans(partition, story, 1)))


def test_the_worst_moment_names_the_replicas_with_every_record(loss: ReportedRun, survival: ReportedRun) -> None:
    kept_at = fewest_copies(survival.story.partitions[0], survival.story)
    lost_at = fewest_copies(loss.story.partitions[0], loss.story)
    assert kept_at is not None
    assert kept_at.holders == (1,)
    assert lost_at is not None
    assert lost_at.holders == ()


def test_the_picture_as_text_has_roles_and_copies(loss: ReportedRun) -> None:
    [partition] = worst_first(loss.verdict, loss.story)
    rows = {line[:10].strip(): line[10:] for line in text_picture(loss.verdict, partition, loss.story).splitlines()}
    assert set(rows["leader"].strip()) <= set("012.")
    assert set(rows["broker 2"]) >= set("iLx")
    assert rows["copies 0"].rstrip()[-1] == "0"
    assert rows["copies 1"].rstrip()[-1] == "0"
    assert max(map(len, rows.values())) <= COLUMNS + 20
    assert "a cut off" in rows


def test_faults_and_repairs_are_reported_once(loss: ReportedRun) -> None:
    told = [words for _, words, _ in faults_and_repairs(loss.story)]
    assert told == ["cut off broker 0", "cut off broker 1", "start broker 2", "end of every isolate"]
    assert len(told) == len(set(told))


def test_what_holds_messages_of_one_kind_is_reported_as_that_and_not_as_a_cut(loss: ReportedRun) -> None:
    fault = msgspec.structs.replace(
        loss.story.faults[0],
        fault="hold",
        target="1->100 AlterPartition request",
        nodes=(),
        links=(BrokenLink(source=1, target=100),),
        begun_us=10,
        healed_us=20,
    )
    heal = msgspec.structs.replace(loss.story.heals[0], fault="heal", target=fault.target, begun_us=20)
    story = msgspec.structs.replace(loss.story, faults=(fault,), heals=(heal,), processes=())
    assert [words for _, words, _ in faults_and_repairs(story)] == [
        "hold broker 1 to broker 100 (AlterPartition request)",
        "heal broker 1 to broker 100 (AlterPartition request)",
    ]
    assert [span.words for span in cut_off_spans(story, 1)] == ["no AlterPartition request with broker 100"]
    brief = msgspec.structs.replace(story, faults=(msgspec.structs.replace(fault, begun_us=20),))
    assert len(faults_and_repairs(brief)) == 1


def test_numbers_and_ranges_are_written_for_people() -> None:
    assert number(1234567) == "1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567"
    assert offset_ranges([(0, 9), (20, 20)]) == "0 to 20 in 2 ranges"
    assert offset_ranges([(7, 7)]) == "7"
    assert [seconds(each) for each in (0, 34_000, 499_999, 500_000, 5_040_000)] == [
        *("0.0 s", "0.034 s", "0.500 s", "0.5 s", "5.0 s")
    ]


def test_a_partition_of_which_nothing_is_known_has_no_worst_moment(loss: ReportedRun) -> None:
    partition = msgspec.structs.replace(loss.story.partitions[0], promised=())
    assert fewest_copies(partition, loss.story) is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 3), st.floats(-2, 2)), min_size=2, max_size=200))
def test_points_are_left_out_only_where_it_is_not_visible(steps: list[tuple[float, float]]) -> None:
    xs, ys = np.cumsum(np.array(steps), axis=0).T
    kept = visible(xs, ys)
    assert (kept[0], kept[-1]) == (0, len(xs) - 1)
    for place in set(range(len(xs))) - set(kept.tolist()):
        before = kept[kept < place][-1]
        assert abs(ys[place] - ys[before]) < 0.5


def test_a_level_curve_is_two_points_and_a_fall_keeps_both_ends() -> None:
    xs = np.arange(100, dtype=np.float64)
    assert visible(xs, np.zeros(100)).tolist() == [0, 99]
    ys = np.where(xs < 50, 10.0, 0.0)
    assert visible(xs, ys).tolist() == [0, 49, 50, 99]


def test_edges_stand_in_their_lanes_and_name_the_line_that_records_them(loss: ReportedRun) -> None:
    drawn = draw(loss.verdict, loss.story.partitions[0], loss.story, prefix="p0-")
    edges = edges_of(drawn.picture, drawn.boxes)
    assert [edge.time_us for edge in edges] == sorted(edge.time_us for edge in edges)
    cut = next(edge for edge in edges if edge.words.startswith("broker 0 cuts its log to follow broker 2"))
    assert (cut.top, cut.bottom) == (round(drawn.boxes["broker 0"].top, 1), round(drawn.boxes["broker 0"].bottom, 1))
    file, _, number = cut.event.rpartition(":")
    line = (loss.directory / file).read_text().splitlines()[int(number) - 1]
    assert '"type":"LogTruncated"' in line.replace(" ", "")
    name, _, told = causes_of(drawn.picture)[cut.cause]
    assert f'"cause_id":"{name}"' in line.replace(" ", "")
    assert [each.event for each in told] == [cut.event]
    acked = next(edge for edge in edges if edge.words.endswith("acknowledges"))
    name, _, told = causes_of(drawn.picture)[acked.cause]
    assert name.startswith("send-")
    assert any(each.event == acked.event for each in told)
    words = " ".join(edge.words for edge in edges)
    for part in ("broker 2 loses power", "broker 2 starts again", "cut off broker 0", "no leader", "acknowledges"):
        assert part in words


def test_what_is_in_the_page_cache_alone_is_drawn_and_nothing_where_it_is_not_known(loss: ReportedRun) -> None:
    [partition] = loss.story.partitions
    assert 'class="unflushed"' in draw(loss.verdict, partition, loss.story, prefix="x").svg
    unknown = msgspec.structs.replace(partition, flushed=())
    assert 'class="unflushed"' not in draw(loss.verdict, unknown, loss.story, prefix="x").svg
    flushed = msgspec.structs.replace(
        partition,
        flushed=tuple(msgspec.structs.replace(each, points=(Point(-1, 1_000_000),)) for each in partition.flushed),
    )
    assert 'class="unflushed"' not in draw(loss.verdict, flushed, loss.story, prefix="x").svg


def test_what_is_flushed_at_the_very_end_was_in_the_page_cache_until_then(loss: ReportedRun) -> None:
    [partition] = loss.story.partitions

    def drawn_at_the_end(flushed_us: int) -> set[str]:
        points = (Point(-1, 0), Point(flushed_us, 1_000_000))
        flushed = tuple(msgspec.structs.replace(each, points=points) for each in partition.flushed)
        svg = draw(loss.verdict, msgspec.structs.replace(partition, flushed=flushed), loss.story, prefix="x").svg
        paths = re.findall(r'<path d="([^"]*)" class="unflushed"', svg)
        return {
            point for path in paths for point in re.findall(r"[\d.]+ [\d.]+", path) if float(point.split()[0]) > 811
        }

    assert len(drawn_at_the_end(loss.story.end_us + 1)) > 1
    assert drawn_at_the_end(loss.story.end_us) == drawn_at_the_end(loss.story.end_us + 1)


def test_an_epoch_of_which_nobody_held_anything_before_the_end_has_no_row_of_copies(survival: ReportedRun) -> None:
    [partition] = survival.story.partitions
    last = max(each.leader_epoch for each in partition.promised)
    first_us = min(each.ends[0].time_us for each in partition.held if each.leader_epoch == last)
    text = text_picture(survival.verdict, partition, msgspec.structs.replace(survival.story, end_us=first_us - 1))
    assert "copies 1" in text
    assert f"copies {last}" not in text
