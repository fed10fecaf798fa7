"""Compares controllers' logs: each record, the controllers that have it, and whether the quorum has committed it.

Files show who has a record, not whether it was committed. A record is certainly committed if a majority of the voters
has it and none of their logs has a later epoch: its leader may count it, and no controller without it can be elected.
All earlier records of those logs are then committed, too. A leader that answers also knows its high watermark. Other
records of a majority may be committed or not; even records of a minority may have been committed before a disk was
replaced.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from laststand.emulator.autopsy.log_directories import LogDirectoryFacts
from laststand.emulator.core import records
from laststand.emulator.core.errors import ConfigError, CorruptRecordError, StorageError
from laststand.emulator.core.quorum.batches import ControlRecord, KRaftVoters, LeaderChange
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId, TopicId
from laststand.emulator.kafka.metadata_records import MetadataRecordDecoder, OtherRecord
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches
from laststand.emulator.storage.control_records import decode_control
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.quorum_state import QUORUM_STATE, parse_quorum_state
from laststand.emulator.storage.record_codec import read_records
from laststand.emulator.storage.segment import LOG_SUFFIX
from laststand.emulator.user_files import read_bytes


class Committed(StrEnum):
    """The part of the quorum in a record."""

    YES = "yes"
    OVERWRITTEN = "no, another record is"
    TOO_FEW = "too few have it"
    UNKNOWN = "unknown"


class LoggedRecord(NamedTuple):
    """A record of one log: its epoch, and its text."""

    leader_epoch: LeaderEpoch
    text: str


class ControllerLog(msgspec.Struct, frozen=True, kw_only=True):
    """The log of one disk.

    Attributes:
        node_id: of the node.
        directory_id: of the disk, by ``meta.properties``.
        is_voter: whether the voters at the end of the longest log have it, this disk included.
        election: from ``quorum-state``; ``None`` if that is missing.
        start_offset: of its first record.
        end_offset: the log end offset, exclusive.
        records: the log's records, in order.
        problem: why reading ended early.
    """

    node_id: NodeId
    directory_id: str | None
    is_voter: bool
    election: Election | None
    start_offset: MetadataOffset
    end_offset: MetadataOffset
    records: tuple[LoggedRecord, ...]
    problem: str | None

    @property
    def last_epoch(self) -> LeaderEpoch | None:
        """The epoch of its last record."""
        return self.records[-1].leader_epoch if self.records else None

    def at(self, offset: int) -> LoggedRecord | None:
        """Returns the log's record at an offset; ``None`` if the log has none."""
        place = offset - self.start_offset
        return self.records[place] if 0 <= place < len(self.records) else None

    def covers(self, offset: int) -> bool:
        """Returns whether the log has a record at an offset, or had one before it deleted its oldest records."""
        return offset < self.end_offset


class ComparedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that some of the logs have at an offset."""

    offset: MetadataOffset
    leader_epoch: LeaderEpoch
    record: str
    nodes: tuple[NodeId, ...]
    committed: Committed


class ComparedLogs(msgspec.Struct, frozen=True, kw_only=True):
    """All logs of a cluster's controllers.

    Attributes:
        logs: by node.
        voters: the node ids of all voters, by the longest log.
        missing: voters of which no log was read.
        committed_end_offset: every record below it is certainly committed.
        records: of all logs, by offset; several per offset if logs differ.
    """

    logs: tuple[ControllerLog, ...]
    voters: tuple[NodeId, ...]
    missing: tuple[NodeId, ...]
    committed_end_offset: MetadataOffset
    records: tuple[ComparedRecord, ...]


class LeaderAnswer(NamedTuple):
    """The leader of a quorum, by itself, and its high watermark."""

    leader_id: NodeId
    high_watermark: MetadataOffset


def compare_metadata_logs(
    directories: Sequence[LogDirectoryFacts], *, answer: LeaderAnswer | None = None
) -> ComparedLogs:
    """Compares the metadata logs of controllers.

    Args:
        directories: log directories; directories of brokers are ignored.
        answer: a leader's answer, from before the files were read.

    Raises:
        ConfigError: no directory holds a metadata log.
        StorageError: a file cannot be read.
    """
    holding = [each for each in directories if each.metadata_log is not None]
    if not holding:
        found = ", ".join(str(each.path) for each in directories)
        raise ConfigError(
            key="DIR", value=found, expected="controllers' log directories: none has __cluster_metadata-0"
        )
    parsed = [_parse(each) for each in holding]
    voters = _voters(parsed)
    logs = tuple(
        sorted((_log(each, is_voter=_is_voter(each.facts, voters)) for each in parsed), key=lambda log: log.node_id)
    )
    missing = {voter.node_id for voter in voters} - {log.node_id for log in logs if log.is_voter}
    majority = len(voters) // 2 + 1
    end_offset, authority = _committed_end(logs, majority, answer)
    return ComparedLogs(
        logs=logs,
        voters=tuple(voter.node_id for voter in voters),
        missing=tuple(sorted(missing)),
        committed_end_offset=MetadataOffset(end_offset),
        records=tuple(
            _compared(logs, end_offset=end_offset, authority=authority, majority=majority, missing=len(missing))
        ),
    )


class _Parsed(NamedTuple):
    facts: LogDirectoryFacts
    election: Election | None
    start_offset: int
    records: list[LoggedRecord]
    control: list[ControlRecord]
    problem: str | None


def _parse(facts: LogDirectoryFacts) -> _Parsed:
    directory = facts.metadata_log
    assert directory is not None
    try:
        state = directory / QUORUM_STATE
        election = parse_quorum_state(read_bytes(state), path=str(state)) if state.is_file() else None
        segments = sorted(directory.glob(f"[0-9]*{LOG_SUFFIX}"))
        start = int(segments[0].stem) if segments else 0
        found: list[LoggedRecord] = []
        control: list[ControlRecord] = []
        texts = _Texts()
        problem = None
        for segment in segments:
            problem = problem or _read_segment(segment, found, control, texts)
    except OSError as error:
        raise StorageError(path=str(error.filename or directory), reason=error.strerror or str(error)) from error
    return _Parsed(facts, election, start, found, control, problem)


def _read_segment(path: Path, found: list[LoggedRecord], control: list[ControlRecord], texts: "_Texts") -> str | None:
    """Adds the records of a segment; returns why reading ended early."""
    content = read_bytes(path)
    scan = scan_batches(BytesFile(content), check=BatchValidation.CRC)
    for batch, position in zip(scan.batches, scan.positions, strict=True):
        try:
            for stored in read_records(content[position : position + batch.size]):
                key, value = stored.key or b"", stored.value or b""
                text = texts.of_control(key, value, control) if batch.is_control else texts.of_value(value)
                found.append(LoggedRecord(batch.leader_epoch, text))
        except (FieldError, CorruptRecordError) as error:
            raise StorageError(path=str(path), reason=f"batch at offset {batch.base_offset}: {error}") from error
    return f"{path}: at byte {scan.valid_bytes}: {scan.reason}" if scan.reason else None


class _Texts:
    """Records of one log as texts that name topics."""

    def __init__(self) -> None:
        self._decoder = MetadataRecordDecoder()
        self._names: dict[TopicId, str] = {}

    def of_value(self, value: bytes) -> str:
        record = self._decoder.decode(value)
        if isinstance(record, OtherRecord):
            return record.name
        if isinstance(record, records.TopicRecord):
            self._names[record.topic_id] = record.name
        return _text(record, self._names)

    def of_control(self, key: bytes, value: bytes, control: list[ControlRecord]) -> str:
        try:
            record = decode_control(key, value)
        except FieldError:
            return "ControlRecord"
        control.append(record)
        match record:
            case LeaderChange(leader_id=leader_id):
                return f"LeaderChange leader {leader_id}"
            case KRaftVoters(voters=voters):
                return f"KRaftVoters {' '.join(map(str, voters.keys))}"
            case _:
                return f"KRaftVersion {record.level}"


def _text(record: records.Record, names: Mapping[TopicId, str]) -> str:
    fields = msgspec.to_builtins(record)
    kind = fields.pop("type")
    topic_id = fields.get("topic_id")
    if topic_id in names and not isinstance(record, records.TopicRecord):
        fields["topic_id"] = names[topic_id]
    shown = (f"{name.removesuffix('_id')} {_shown(value)}" for name, value in fields.items())
    return " ".join((kind.removesuffix("Record"), ", ".join(shown)))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _voters(parsed: Sequence[_Parsed]) -> tuple[ReplicaKey, ...]:
    """Returns the voters at the end of the log that is the most up to date."""
    best = max(parsed, key=lambda each: (each.records[-1].leader_epoch if each.records else -1, len(each.records)))
    for record in reversed(best.control):
        if isinstance(record, KRaftVoters):
            return record.voters.keys
        if isinstance(record, LeaderChange) and not any(isinstance(each, KRaftVoters) for each in best.control):
            return tuple(map(ReplicaKey, record.voters))
    nodes = {each.facts.node_id for each in parsed}
    return VoterSet.of(Voter(key=ReplicaKey(node_id)) for node_id in nodes).keys


def _is_voter(facts: LogDirectoryFacts, voters: Iterable[ReplicaKey]) -> bool:
    directory_id = None if facts.directory_id is None else DirectoryId(facts.directory_id)
    key = ReplicaKey(facts.node_id, directory_id)
    return any(voter.is_matched_by(key) for voter in voters)


def _log(parsed: _Parsed, *, is_voter: bool) -> ControllerLog:
    return ControllerLog(
        node_id=parsed.facts.node_id,
        directory_id=parsed.facts.directory_id,
        is_voter=is_voter,
        election=parsed.election,
        start_offset=MetadataOffset(parsed.start_offset),
        end_offset=MetadataOffset(parsed.start_offset + len(parsed.records)),
        records=tuple(parsed.records),
        problem=parsed.problem,
    )


def _committed_end(
    logs: Sequence[ControllerLog], majority: int, answer: LeaderAnswer | None
) -> tuple[int, ControllerLog | None]:
    """Returns below which offset records are committed for certain, and a log that has them all."""
    latest = max((log.last_epoch for log in logs if log.last_epoch is not None), default=None)
    voting = [log for log in logs if log.is_voter]
    # Logs whose last records are of the latest epoch hold the same records up to the shortest of them.
    of_latest = sorted((log for log in voting if log.last_epoch == latest), key=lambda log: log.end_offset)
    end_offset, authority = 0, None
    if latest is not None and len(of_latest) >= majority:
        authority = of_latest[-majority]
        end_offset = authority.end_offset
    leaders = [log for log in logs if answer is not None and log.node_id == answer.leader_id]
    if answer is not None and answer.high_watermark > end_offset and leaders:
        end_offset, authority = answer.high_watermark, leaders[0]
    return end_offset, authority


def _compared(
    logs: Sequence[ControllerLog], *, end_offset: int, authority: ControllerLog | None, majority: int, missing: int
) -> Iterable[ComparedRecord]:
    first = min(log.start_offset for log in logs)
    last = max(log.end_offset for log in logs)
    for offset in range(first, last):
        held = [(log, record) for log in logs if (record := log.at(offset)) is not None]
        votes = Counter(record for log, record in held if log.is_voter)
        for record in dict.fromkeys(record for _, record in held):
            decided = None if authority is None or offset >= end_offset else authority.at(offset)
            if decided is not None:
                committed = Committed.YES if decided == record else Committed.OVERWRITTEN
            elif votes[record] + missing >= majority:
                committed = Committed.UNKNOWN
            else:
                committed = Committed.TOO_FEW
            yield ComparedRecord(
                offset=MetadataOffset(offset),
                leader_epoch=record.leader_epoch,
                record=record.text,
                nodes=tuple(log.node_id for log, each in held if each == record),
                committed=committed,
            )
