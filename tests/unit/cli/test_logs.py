"""Logs are read on from where reading ended, over all incarnations, and events become text with a time of day."""

import time
from pathlib import Path

import pytest

from laststand.cli.commands.logs import Source
from laststand.cli.program.user_error import UserError
from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, IncarnationId, MetadataOffset, NodeId, NodeRole
from laststand.emulator.node.event_writer import EventWriter

CAUSE = CauseId("test")


def run_directory(path: Path) -> Path:
    (path / "nodes/0").mkdir(parents=True)
    (path / "events").mkdir()
    return path


def start(directory: Path, incarnation: int) -> EventWriter:
    writer = EventWriter(
        str(directory / f"events/0-{incarnation}.jsonl"), run="r", node_id=NodeId(0), incarnation=incarnation
    )
    writer.add(
        events.NodeStarted(
            cause_id=CAUSE,
            role=NodeRole.BROKER,
            incarnation_id=IncarnationId("i"),
            switches={},
            properties={},
            wall_time_ns=time.time_ns(),
        )
    )
    writer.flush()
    return writer


def test_events_are_text_in_the_order_of_incarnations(tmp_path: Path) -> None:
    directory = run_directory(tmp_path)
    source = Source(directory, "0", wants_events=True, as_text=True)
    for incarnation in (0, 2, 10):
        start(directory, incarnation)
    shown = list(source.lines())
    assert [line.split()[2] for line in shown] == ["0-0", "0-2", "0-10"]
    assert shown[0].startswith(time.strftime("%Y-%m-", time.gmtime()))
    assert "#0 NodeStarted role=broker" in shown[0]


def test_only_what_was_added_is_read_again_and_only_whole_lines(tmp_path: Path) -> None:
    directory = run_directory(tmp_path)
    log = directory / "nodes/0/node.log"
    source = Source(directory, "0", wants_events=False, as_text=True)
    assert list(source.lines()) == []
    log.write_text("one\ntw")
    assert list(source.lines()) == ["one"]
    log.write_text("one\ntwo\n")
    assert list(source.lines()) == ["two"]
    assert list(source.lines()) == []


def test_events_as_they_stand_in_the_file(tmp_path: Path) -> None:
    directory = run_directory(tmp_path)
    writer = start(directory, 0)
    source = Source(directory, "0", wants_events=True, as_text=False)
    first = list(source.lines())
    writer.add(events.MetadataApplied(cause_id=CAUSE, start_offset=MetadataOffset(0), end_offset=MetadataOffset(1)))
    writer.close()
    assert "\n".join([*first, *source.lines(), ""]) == (directory / "events/0-0.jsonl").read_text()


def test_a_line_that_is_no_event_is_shown_as_it_is(tmp_path: Path) -> None:
    directory = run_directory(tmp_path)
    (directory / "events/harness-0.jsonl").write_text("nonsense\n")
    assert list(Source(directory, None, wants_events=True, as_text=True).lines()) == ["nonsense"]


@pytest.mark.parametrize("node", ["5", "..", "../..", "0/"])
def test_a_node_that_there_is_not_is_refused(node: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"no node {node}; there are: 0"):
        Source(run_directory(tmp_path), node, wants_events=True, as_text=True)
