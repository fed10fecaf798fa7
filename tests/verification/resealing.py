"""Seals a run directory as its writers and its harness do, or again, as somebody who has altered it would."""

import json
from pathlib import Path

from laststand.emulator.core import events as e
from laststand.emulator.storage.file_digest import content_of
from laststand.emulator.storage.line_file import line_files
from laststand.emulator.verification.tables.vocabulary import tag

Line = dict[str, object]

_ENDS = (tag(e.NodeStopped), tag(e.RunEnded))


def reseal(directory: Path) -> None:
    """Numbers all events again, seals each file whose writer closed it, and has the harness vouch for all others."""
    histories = (*directory.glob("history.jsonl"), *directory.glob("history/*.jsonl"))
    for path in histories:
        _write(path, [line for line in _lines(path) if line["f"] != "sealed"])
        lines, digest = content_of(path)
        _append(path, {"f": "sealed", "index": lines, "time_ns": lines, "lines": lines, "digest": digest})
    harness = []
    for path in sorted(directory.glob("events/*.jsonl")):
        found = [line for line in _lines(path) if line["type"] not in (tag(e.FileSealed), tag(e.FileVouched))]
        if any(line.get("role") == "harness" for line in found):
            harness.append(path)
        _write_events(path, found)
    for path in harness:
        found = _lines(path)
        if tag(e.RunEnded) in {line["type"] for line in found}:
            kept = [line for line in found if line["type"] != tag(e.FileSealed)]
            vouchers = [
                _voucher(kept[0], each, directory)
                for each in sorted({*line_files(directory / "events"), *line_files(directory, "history"), *histories})
                if each != path
            ]
            end = next(index for index, line in enumerate(kept) if line["type"] == tag(e.RunEnded))
            _write_events(path, [*kept[:end], *vouchers, *kept[end:]])


def _voucher(first: Line, path: Path, directory: Path) -> Line:
    lines, digest = content_of(path)
    name = str(path.relative_to(directory))
    return first | {"type": tag(e.FileVouched), "file": name, "lines": lines, "digest": digest}


def _lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _write_events(path: Path, lines: list[Line]) -> None:
    _write(path, [line | {"sequence": number} for number, line in enumerate(lines)])
    if lines and lines[-1]["type"] in _ENDS:
        count, digest = content_of(path)
        seal: Line = {"sequence": count, "type": tag(e.FileSealed), "lines": count, "digest": digest}
        _append(path, {key: lines[0].get(key) for key in ("run", "node", "incarnation", "time_ns", "cause_id")} | seal)


def _write(path: Path, lines: list[Line]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _append(path: Path, line: Line) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
