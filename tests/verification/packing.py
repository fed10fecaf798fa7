"""Copies of run directories whose brokers and clients packed their lines, as real processes do.

A file with a line that no writer would pack stays as it is.
"""

import contextlib
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.history import HistoryLine
from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.core.packed.writing import LinePacker
from laststand.emulator.storage.file_digest import FileDigest, content_of, line_count_of
from laststand.emulator.verification.verdict.report import VerdictReport
from tests.verification.resealing import Line

_EVENT: Final[msgspec.json.Decoder[events.AnyEvent]] = msgspec.json.Decoder(events.AnyEvent)
_OPERATION: Final[msgspec.json.Decoder[HistoryLine]] = msgspec.json.Decoder(HistoryLine)
_ENVELOPE: Final = ("run", "node", "incarnation")
_SEGMENT_BYTES: Final = 5_000
"""So that files have several."""
_CONTROLLER: Final = 100


def pack_run(source: Path, target: Path) -> Path:
    """Copies a run of JSON lines; returns where it is then."""
    shutil.copytree(source, target)
    packed: dict[str, Path] = {}
    for path in sorted(target.glob("events/*.jsonl")):
        if path.name.partition("-")[0].isdigit() and int(path.name.partition("-")[0]) < _CONTROLLER:
            with contextlib.suppress(msgspec.ValidationError):
                packed[f"events/{path.name}"] = _pack(path, name="sequence")
    for path in (*target.glob("history.jsonl"), *target.glob("history/*.jsonl")):
        with contextlib.suppress(msgspec.ValidationError):
            packed[str(path.relative_to(target))] = _pack(path, name="index")
    for path in target.glob("events/*.jsonl"):
        _tell_of(packed, path)
    return target


def without_place(report: VerdictReport) -> bytes:
    """Returns a verdict as JSON, without the path of its run and with its files under the names of unpacked ones."""
    content = msgspec.json.encode(msgspec.structs.replace(report, run="", scenario=""))
    return content.replace(SUFFIX.encode(), b".jsonl")


def _pack(path: Path, *, name: str) -> Path:
    target = path.with_suffix(SUFFIX)
    texts = path.read_bytes().split(b"\n")
    told: Line = json.loads(texts[0]) if texts[0] else {}
    packer = LinePacker(
        {key: told[key] for key in _ENVELOPE} if name == "sequence" else {}, segment_bytes=_SEGMENT_BYTES
    )
    digest, parts = FileDigest(line_count_of(target)), [packer.pop()]
    digest.update(parts[0])
    for text in texts[:-1]:
        packer_input, line = _struct(text, name), json.loads(text)
        if line.get("f") == "sealed" or line.get("type") == "FileSealed":
            text = json.dumps(line | {"digest": digest.hexdigest()}, separators=(",", ":")).encode()
        packer.add(packer_input, number=line[name], time_ns=line["time_ns"], text=partial(bytes, text))
        parts.append(packer.pop())
        digest.update(parts[-1])
    target.write_bytes(b"".join(parts))
    path.unlink()
    return target


def _struct(text: bytes, name: str) -> msgspec.Struct:
    return _EVENT.decode(text) if name == "sequence" else _OPERATION.decode(text)


def _tell_of(packed: dict[str, Path], path: Path) -> None:
    """Has a harness name the packed files, and vouch for them."""
    lines: list[Line] = [json.loads(text) for text in path.read_bytes().splitlines()]
    if lines[0].get("role") != "harness":
        return
    kept = []
    for line in lines:
        event_file, file = f"events/{line.get('event_file')}", line.get("file")
        if event_file in packed:
            line["event_file"] = packed[event_file].name
        if isinstance(file, str) and file in packed:
            content = content_of(packed[file])
            line |= {"file": file.removesuffix(".jsonl") + SUFFIX, "lines": content.lines, "digest": content.digest}
        kept.append(json.dumps(line) + "\n")
        if line["type"] == "FileSealed":
            digest = FileDigest()
            digest.update("".join(kept[:-1]).encode())
            kept[-1] = json.dumps(line | {"digest": digest.hexdigest()}) + "\n"
    path.write_text("".join(kept))
