"""Checks that files of evidence are unaltered: their seals, and the harness's digests of them.

A file whose writer closed it ends with a seal, the digest of all its lines. The harness writes down the digest of every
other file once its writer has ended, whether in order or not. Its own last file is sealed, and no other file records
its digest. The harness also records the digests of files without seals: descriptions of the run, and files of nodes.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from laststand.emulator.core.events import (
    EVIDENCE_FORMAT,
    ClientStarted,
    FileSealed,
    FileVouched,
    IncarnationStarted,
    NodeStopped,
    RunEnded,
)
from laststand.emulator.core.history import HistorySealed
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.reading.census import FileCensus
from laststand.emulator.verification.reading.digest import FileContent
from laststand.emulator.verification.reading.run import RunEvidence
from laststand.emulator.verification.rules.check import Evidence
from laststand.emulator.verification.tables.vocabulary import tag

HISTORY_FILES: Final = ("history.packed", "history.jsonl")
"""Histories of a run's own clients; those of Kafka clients are in a folder."""

_STORED: Final = "nodes"
"""The folder of the nodes' directories."""

_Process = tuple[int, int]
"""Node and incarnation."""


def seal_doubts(evidence: RunEvidence) -> Iterator[Doubt]:
    """Yields a doubt for each file that lacks its seal."""
    last = _last_harness(evidence)
    seals = _seals(evidence)
    for census in evidence.files:
        name = f"events/{census.file_name}"
        for process, part in census.parts.items():
            if process not in seals and (part.last_type == tag(NodeStopped) or process in last):
                sentence = f"{name} is not sealed, though its writer closed it"
                yield Doubt(about=Evidence.EVENTS, sentence=sentence, file=name)
    for name, seal in _history_seals(evidence):
        if seal is None:
            yield Doubt(about=Evidence.HISTORY, sentence=f"{name} does not end with a seal", file=name)


def alterations(evidence: RunEvidence) -> Iterator[Doubt]:
    """Yields a doubt for each file that was altered after it was written."""
    for census in evidence.files:
        name = f"events/{census.file_name}"
        for sentence in _event_file_problems(census, evidence):
            yield Doubt(about=Evidence.EVENTS, sentence=f"{name} {sentence}", file=name)
    for name, seal in _history_seals(evidence):
        for sentence in () if seal is None else _seal_problems(seal, evidence.contents[name]):
            yield Doubt(about=Evidence.HISTORY, sentence=f"{name} {sentence}", file=name)
    for node, owner in sorted(evidence.owners.items()):
        if owner != str(node):
            name = f"{_STORED}/{node}/data/meta.properties"
            yield Doubt(about=Evidence.FINAL_LOGS, sentence=f"{name} names node {owner}", file=name, node=node)
    last = _last_harness(evidence)
    if last:
        yield from _against_harness(evidence, last)


def newer_formats(evidence: RunEvidence) -> Iterator[Doubt]:
    """Yields a doubt if a later version wrote the run: what its evidence shows may mean something else."""
    written = max(_formats(evidence), default=0)
    if written > EVIDENCE_FORMAT:
        sentence = f"the evidence has format {written}, and this version reads formats up to {EVIDENCE_FORMAT}"
        yield Doubt(about=None, sentence=sentence)


def _against_harness(evidence: RunEvidence, last: set[_Process]) -> Iterator[Doubt]:
    """Yields a doubt for each file that is not as the harness found it when the run was over."""
    events = evidence.facts.cluster.events
    vouched = {
        collected.event.file: FileContent(collected.event.lines, collected.event.digest)
        for collected in events.of(FileVouched)
    }
    if max(_formats(evidence), default=0) >= EVIDENCE_FORMAT:
        yield from _other_files(
            evidence, {name: expected for name, expected in vouched.items() if expected.lines is None}
        )
    own = {f"events/{census.file_name}" for census in evidence.files if last & census.parts.keys()}
    are_lines = {name for name, found in evidence.contents.items() if found.lines is not None}
    for name in sorted(are_lines - own):
        found = evidence.contents[name]
        for sentence in _alterations(name, found, vouched.get(name)) if found.lines or name in vouched else ():
            yield Doubt(about=_kind_of(name), sentence=sentence, file=name)
    for name in sorted(
        name for name, expected in vouched.items() if expected.lines is not None and name not in are_lines
    ):
        if not _is_announced(name, evidence):
            for sentence in _alterations(name, None, vouched[name]):
                yield Doubt(about=_kind_of(name), sentence=sentence, file=name)


def _formats(evidence: RunEvidence) -> Iterator[int]:
    return (start.event.evidence_format or 0 for start in evidence.facts.cluster.started.values())


def _last_harness(evidence: RunEvidence) -> set[_Process]:
    return {(collected.node, collected.incarnation) for collected in evidence.facts.cluster.events.of(RunEnded)}


def _seals(evidence: RunEvidence) -> dict[_Process, FileSealed]:
    return {
        (collected.node, collected.incarnation): collected.event
        for collected in evidence.facts.cluster.events.of(FileSealed)
    }


def _history_seals(evidence: RunEvidence) -> Iterator[tuple[str, HistorySealed | None]]:
    for file_name, seal in evidence.history.seals.items():
        yield file_name if file_name in HISTORY_FILES else f"history/{file_name}", seal


def _other_files(evidence: RunEvidence, vouched: Mapping[str, FileContent]) -> Iterator[Doubt]:
    """Yields doubts about altered descriptions of the run, and at most two about the altered files of each node."""
    found = {name: content for name, content in evidence.contents.items() if content.lines is None}
    altered = sorted(name for name in found.keys() | vouched.keys() if found.get(name) != vouched.get(name))
    for owner, names in groupby(altered, key=_owner_of):
        first, *others = names
        about = None if owner is None else Evidence.FINAL_LOGS
        for name in (first, *others) if owner is None else (first,):
            for sentence in _alterations(name, found.get(name), vouched.get(name)):
                yield Doubt(about=about, sentence=sentence, file=name, node=owner)
        if owner is not None and others:
            sentence = f"more files of node {owner} are not what the harness found at the end: {len(others)}"
            yield Doubt(about=about, sentence=sentence, file=others[0], node=owner)


def _alterations(name: str, found: FileContent | None, vouched: FileContent | None) -> Iterator[str]:
    if vouched is None:
        yield f"the harness does not vouch for {name}"
    elif found is None:
        yield f"{name} is missing, for which the harness vouches"
    elif found != vouched:
        yield f"{name} is not what the harness found at the end: {_difference(vouched, found)}"


def _owner_of(name: str) -> int | None:
    """Returns the node that stored a file; ``None`` for a description of the run."""
    folder, _, rest = name.partition("/")
    return int(rest.partition("/")[0]) if folder == _STORED else None


def _event_file_problems(census: FileCensus, evidence: RunEvidence) -> Iterator[str]:
    seals = _seals(evidence)
    for process, part in census.parts.items():
        seal = seals.get(process)
        if seal is None:
            continue
        if not part.is_sealed:
            yield "goes on after its seal"
        else:
            yield from _seal_problems(seal, evidence.contents[f"events/{census.file_name}"])


def _seal_problems(seal: FileSealed | HistorySealed, found: FileContent) -> Iterator[str]:
    sealed = FileContent(seal.lines, seal.digest)
    if found != sealed:
        yield f"is not what its writer sealed: {_difference(sealed, found)}"


def _difference(expected: FileContent, found: FileContent) -> str:
    if found.lines is None:
        return "its content has another digest"
    if expected.lines != found.lines:
        return f"{found.lines} lines instead of {expected.lines}"
    return "its lines have another digest"


def _kind_of(name: str) -> Evidence:
    return Evidence.EVENTS if name.startswith("events/") else Evidence.HISTORY


def _is_announced(name: str, evidence: RunEvidence) -> bool:
    """Returns whether another check reports that the file is missing: the start of its writer names the file."""
    started = evidence.facts.cluster.events.of(IncarnationStarted)
    clients = evidence.facts.cluster.events.of(ClientStarted)
    return name in {
        *HISTORY_FILES,
        *(f"events/{collected.event.event_file.rpartition('/')[2]}" for collected in started),
        *(collected.event.history_file for collected in clients),
    }
