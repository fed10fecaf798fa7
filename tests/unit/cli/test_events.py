"""Events of a run are printed as JSON lines, whatever their form; a torn line is left out."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from laststand.cli.commands.events import print_events
from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.storage.line_file import read_lines


def test_both_forms_are_printed(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    paths = [tmp_path / "events" / name for name in ("0-0.packed", "100-0.jsonl")]
    for path, node in zip(paths, (0, 100), strict=True):
        writer = EventWriter(str(path), run="r", node_id=NodeId(node), incarnation=0)
        writer.add(events.NodeStopped(cause_id=CauseId("c")))
        writer.close()
    expected = b"".join(map(read_lines, paths))
    for path in paths:
        path.write_bytes(path.read_bytes() + b"\x01{torn")
    result = CliRunner().invoke(print_events, [str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout_bytes == expected
    assert len(expected.splitlines()) == 4


@pytest.mark.parametrize("options", [[], ["--history"]])
def test_a_run_without_what_is_asked_for_is_refused(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    result = CliRunner().invoke(print_events, [str(tmp_path), *options])
    assert isinstance(result.exception, ConfigError)
    assert str(tmp_path) in str(result.exception)
