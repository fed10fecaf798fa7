"""The live view of event files that grow, beside what the oracle tells of the same run in the end."""

from pathlib import Path

import pytest

from laststand.emulator.live.live_story import LiveStory
from laststand.emulator.live.tail import EventTail
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.verification.story.run import RunStory
from tests.unit.live.packed_runs import SEGMENT_BYTES, event_lines, packed_events
from tests.unit.report.judged_runs import kept, lost

LINES_AT_ONCE = 17


def read_at_once(directory: Path, run: ReportedRun) -> RunStory:
    packed_events(run.directory, directory / "events")
    return LiveStory(directory).read(now_ns=run.story.origin_ns + run.story.end_us * 1000)


def read_as_it_grows(directory: Path, run: ReportedRun) -> RunStory:
    """Looks again and again while lines come in the order of time, the last of them torn."""
    files = event_lines(run.directory)
    (directory / "events").mkdir(parents=True)
    times = sorted(time_ns for lines in files.values() for time_ns, _ in lines)
    story = LiveStory(directory)
    for place in range(0, len(times) + LINES_AT_ONCE, LINES_AT_ONCE):
        until_ns = times[min(place, len(times) - 1)]
        for name, lines in files.items():
            count = next((place for place, (time_ns, _) in enumerate(lines) if time_ns > until_ns), len(lines))
            torn = b"".join(content[: len(content) // 3] for _, content in lines[count : count + 1])
            (directory / "events" / name).write_bytes(b"".join(content for _, content in lines[:count]) + torn)
        found = story.read(now_ns=run.story.origin_ns + run.story.end_us * 1000)
    return found


@pytest.mark.parametrize("read", [read_at_once, read_as_it_grows])
@pytest.mark.parametrize("make", [lost, kept])
def test_it_reports_what_the_oracle_reports_in_the_end(make: object, read: object, tmp_path: Path) -> None:
    assert callable(make)
    assert callable(read)
    run = make(tmp_path / "run" / "1")
    found, told = read(tmp_path / "live", run), run.story
    assert max(path.stat().st_size for path in (tmp_path / "live" / "events").iterdir()) > 2 * SEGMENT_BYTES
    assert (found.origin_ns, found.end_us) == (told.origin_ns, told.end_us)
    assert (found.processes, found.heals, found.steps) == (told.processes, told.heals, told.steps)
    assert found.faults == told.faults
    [own], [other] = found.partitions, told.partitions
    assert own.changes == other.changes
    assert [(each.node, each.time_us, each.is_leading) for each in own.leaderships] == [
        (each.node, each.time_us, each.is_leading) for each in other.leaderships
    ]
    ends = {(each.node, each.leader_epoch): (each.first, each.ends[-1].value) for each in own.held}
    assert ends == {(each.node, each.leader_epoch): (each.first, each.ends[-1].value) for each in other.held}
    assert {(each.acks, each.records[-1].value) for each in own.acknowledged} == {
        (each.acks, each.records[-1].value) for each in other.acknowledged
    }
    on_disk = {(each.node, each.points[-1].value) for each in own.flushed}
    assert on_disk == {(each.node, each.points[-1].value) for each in other.flushed} != set()
    cuts = [(each.node, each.became, each.old_end, each.new_end) for each in own.cuts]
    assert sorted(cuts, key=str) == sorted(
        [(each.node, each.became, each.old_end, each.new_end) for each in other.cuts], key=str
    )


def test_a_file_that_is_none_is_left_out_and_the_others_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    packed_events(lost(tmp_path / "run" / "1").directory, tmp_path / "events")
    good = {new.file for new in EventTail(tmp_path / "events").read()}
    (tmp_path / "events" / "7-0.packed").write_bytes(b"\x04" * 320)
    (tmp_path / "events" / "8-0.jsonl").write_text("no event\n")
    tail = EventTail(tmp_path / "events")
    assert {new.file for new in tail.read()} == good
    assert "7-0.packed is left out" in caplog.text
    assert "8-0.jsonl is left out" in caplog.text
    caplog.clear()
    assert list(tail.read()) == []
    assert caplog.text == ""


def test_before_anything_happens_the_story_is_empty(tmp_path: Path) -> None:
    assert LiveStory(tmp_path).read(now_ns=1).partitions == ()
