"""The event files of a simulated run, with the seals and digests that files of processes have."""

from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.simulator.nodes.event_log import NS_PER_MS
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.storage.evidence_files import vouchers
from laststand.emulator.storage.file_digest import FileDigest

_ENCODER: Final = msgspec.json.Encoder()
_CAUSE: Final = CauseId("harness")


class _EventFile:
    """One incarnation's file, while it is collected."""

    def __init__(self, run: str, node_id: NodeId, incarnation: int) -> None:
        self._envelope = {"run": run, "node": node_id, "incarnation": incarnation}
        self._digest = FileDigest()
        self._lines: list[bytes] = []
        self._last: events.Event | None = None
        self.name = "harness-0.jsonl" if node_id == HARNESS else f"{node_id}-{incarnation}.jsonl"

    def add(self, event: events.Event, *, now_ms: int) -> None:
        """Adds an event."""
        envelope = {**self._envelope, "sequence": len(self._lines), "time_ns": now_ms * NS_PER_MS}
        line = _ENCODER.encode(envelope)[:-1] + b"," + _ENCODER.encode(event)[1:] + b"\n"
        self._digest.update(line)
        self._lines.append(line)
        self._last = event

    def write(self, folder: Path, *, now_ms: int) -> None:
        """Writes the file; it is sealed if its process ended in order."""
        if isinstance(self._last, events.NodeStopped):
            digest = self._digest.hexdigest()
            self.add(events.FileSealed(cause_id=_CAUSE, lines=self._digest.lines, digest=digest), now_ms=now_ms)
        (folder / self.name).write_bytes(b"".join(self._lines))


def write_event_files(journal: Journal, directory: Path, *, problem: str | None) -> None:
    """Writes the events of a run into its directory, after all its other files.

    Raises:
        OSError: a file cannot be written.
    """
    folder = directory / "events"
    last_ms = journal.entries[-1].now_ms
    files: dict[tuple[NodeId, int], _EventFile] = {}
    for now_ms, node_id, incarnation, event in journal.entries:
        file = files.get((node_id, incarnation))
        if file is None:
            file = files[node_id, incarnation] = _EventFile(directory.name, node_id, incarnation)
        file.add(event, now_ms=now_ms)
    harness = files.pop((HARNESS, 0))
    for file in files.values():
        file.write(folder, now_ms=last_ms)
    for voucher in vouchers(directory, but_for=folder / harness.name, cause_id=_CAUSE):
        harness.add(voucher, now_ms=last_ms)
    harness.add(events.RunEnded(cause_id=_CAUSE, problem=problem), now_ms=last_ms)
    harness.add(events.NodeStopped(cause_id=_CAUSE), now_ms=last_ms)
    harness.write(folder, now_ms=last_ms)
