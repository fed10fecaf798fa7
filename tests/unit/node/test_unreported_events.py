"""Reading earlier event files back, torn lines and missing files included."""

from pathlib import Path

from laststand.emulator.core.events import ControllerEvent, FeatureChanged
from laststand.emulator.core.types import CauseId, MetadataOffset, NodeId
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.node.unreported_events import event_files, read_reported, unreported_events


def events(count: int) -> list[ControllerEvent]:
    return [
        FeatureChanged(
            cause_id=CauseId("unit"), metadata_offset=MetadataOffset(offset), name='a "type": b', feature_level=1
        )
        for offset in range(count)
    ]


def write(path: Path, told: list[ControllerEvent], *, incarnation: int) -> None:
    writer = EventWriter(str(path), run="run", node_id=NodeId(100), incarnation=incarnation)
    for event in told:
        writer.add(event)
    writer.close()


def test_what_no_earlier_file_has_is_unreported(tmp_path: Path) -> None:
    kept = events(5)
    write(tmp_path / "100-0.jsonl", kept[:2], incarnation=0)
    write(tmp_path / "100-2.jsonl", kept[2:4], incarnation=2)
    files = event_files(str(tmp_path / "100-3.jsonl"), [NodeId(100)])
    assert [Path(file).name for file in files] == ["100-0.jsonl", "100-2.jsonl"]
    assert unreported_events(kept, read_reported(files)) == kept[4:]


def test_an_event_on_a_torn_line_is_unreported(tmp_path: Path) -> None:
    kept = events(3)
    path = tmp_path / "100-0.jsonl"
    write(path, kept, incarnation=0)
    whole = b"".join(path.read_bytes().splitlines(keepends=True)[:3])
    path.write_bytes(whole[:-2])
    files = event_files(str(tmp_path / "100-1.jsonl"), [NodeId(100)])
    assert unreported_events(kept, read_reported(files)) == kept[2:]


def test_another_controller_may_have_reported_it(tmp_path: Path) -> None:
    kept = events(3)
    write(tmp_path / "101-0.jsonl", kept[:2], incarnation=0)
    files = event_files(str(tmp_path / "100-0.jsonl"), [NodeId(100), NodeId(101)])
    assert unreported_events(kept, read_reported(files)) == kept[2:]
    assert event_files(str(tmp_path / "100-0.jsonl"), [NodeId(100)]) == []
