"""Whether files of evidence are what was written: their seals, and what the harness found in them.

A file whose writer closed it ends with a seal, the digest of all its lines. The harness writes down the digest of every
other file once its writer has ended, however that ended; its own last file is sealed, and nobody else vouches for it.
"""

from collections.abc import Iterator
from typing import Final

from emulator.core.events import ClientStarted, FileSealed, FileVouched, IncarnationStarted, NodeStopped, RunEnded
from emulator.core.history import HistorySealed
from emulator.verification.census import FileCensus
from emulator.verification.check import Evidence
from emulator.verification.doubt import Doubt
from emulator.verification.lines_digest import FileContent
from emulator.verification.run_reader import RunEvidence
from emulator.verification.vocabulary import tag

HISTORY_FILES: Final = ("history.packed", "history.jsonl")
"""Histories of a run's own clients; those of others are in a folder."""


def seal_doubts(evidence: RunEvidence) -> Iterator[Doubt]:
    """Yields a doubt for each file that is not what was written."""
    events = evidence.facts.cluster.events
    vouched = {told.event.file: FileContent(told.event.lines, told.event.digest) for told in events.of(FileVouched)}
    last = {(told.node, told.incarnation) for told in events.of(RunEnded)}
    for census in evidence.files:
        name = f"events/{census.file_name}"
        for sentence in _event_file_problems(census, evidence, is_last=bool(last & census.parts.keys())):
            yield Doubt(about=Evidence.EVENTS, sentence=f"{name} {sentence}", file=name)
    for file_name, seal in evidence.history.seals.items():
        name = file_name if file_name in HISTORY_FILES else f"history/{file_name}"
        for sentence in _history_problems(seal, evidence.contents[name]):
            yield Doubt(about=Evidence.HISTORY, sentence=f"{name} {sentence}", file=name)
    if not last:
        return
    own = {f"events/{census.file_name}" for census in evidence.files if last & census.parts.keys()}
    for name in sorted(evidence.contents.keys() - own):
        found = evidence.contents[name]
        if found.lines and name not in vouched:
            yield Doubt(about=_kind_of(name), sentence=f"the harness does not vouch for {name}", file=name)
        elif found.lines and found != vouched[name]:
            yield Doubt(
                about=_kind_of(name),
                sentence=f"{name} is not what the harness found at the end: {_told(vouched[name], found)}",
                file=name,
            )
    for name in sorted(vouched.keys() - evidence.contents.keys()):
        if not _is_announced(name, evidence):
            yield Doubt(about=_kind_of(name), sentence=f"{name} is missing, for which the harness vouches", file=name)


def _event_file_problems(census: FileCensus, evidence: RunEvidence, *, is_last: bool) -> Iterator[str]:
    seals = {(told.node, told.incarnation): told.event for told in evidence.facts.cluster.events.of(FileSealed)}
    for process, part in census.parts.items():
        seal = seals.get(process)
        if seal is None:
            if part.last_type == tag(NodeStopped) or is_last:
                yield "is not sealed, though its writer closed it"
        elif not part.is_sealed:
            yield "goes on after its seal"
        else:
            found = evidence.contents[f"events/{census.file_name}"]
            yield from _seal_problems(FileContent(seal.lines, seal.digest), found)


def _history_problems(seal: HistorySealed | None, found: FileContent) -> Iterator[str]:
    if seal is None:
        yield "does not end with a seal"
    else:
        yield from _seal_problems(FileContent(seal.lines, seal.digest), found)


def _seal_problems(sealed: FileContent, found: FileContent) -> Iterator[str]:
    if found != sealed:
        yield f"is not what its writer sealed: {_told(sealed, found)}"


def _told(told: FileContent, found: FileContent) -> str:
    if told.lines != found.lines:
        return f"{found.lines} lines instead of {told.lines}"
    return "its lines have another digest"


def _kind_of(name: str) -> Evidence:
    return Evidence.EVENTS if name.startswith("events/") else Evidence.HISTORY


def _is_announced(name: str, evidence: RunEvidence) -> bool:
    """Whether its absence is noticed already, by who was started."""
    started = evidence.facts.cluster.events.of(IncarnationStarted)
    clients = evidence.facts.cluster.events.of(ClientStarted)
    return name in {
        *HISTORY_FILES,
        *(f"events/{told.event.event_file.rpartition('/')[2]}" for told in started),
        *(told.event.history_file for told in clients),
    }
