"""The clients' histories, operation by operation, in the form that checks use.

A send has two lines in a history and one ``SentBatch`` here; a fetch has one ``Poll`` and a ``ReceivedBatch`` for each
batch that it returned.
"""

from array import array
from typing import NamedTuple

import msgspec
import numpy as np

from laststand.emulator.core.history import OperationType, PolledBatch, PollOperation, SendOperation
from laststand.emulator.core.types import CauseId
from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.integers import Ints


class TriedCrc(msgspec.Struct, frozen=True):
    """The CRC of a batch as it was sent."""

    crc: int


class SentBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A completed send: its acknowledged offset, the broker that acknowledged it, and the CRC of each attempt.

    Attributes:
        history: the file that records it.
        invoked: line number of its invocation in that file; ``completed``: that of its outcome.
        begun_ns: when it was begun, by the clock of its client; ``ended_ns`` when its outcome was known.
        attempts: number of attempts.

    """

    process: str
    operation_id: CauseId
    type: OperationType
    topic: str
    topic_id: str | None
    partition: int
    acks: int
    first_record_id: int
    record_count: int
    base_offset: int | None
    node: int | None
    leader_epoch: int | None
    crc: int | None
    crcs: tuple[TriedCrc, ...]
    history: str
    invoked: int | None
    completed: int
    begun_ns: int | None
    ended_ns: int
    attempts: int


class BegunSend(msgspec.Struct, frozen=True, kw_only=True):
    """A send that was begun, at a position in its history; its outcome may be in another slice."""

    operation_id: CauseId
    process: str
    topic: str
    partition: int
    index: int
    time_ns: int
    acks: int
    record_count: int


class EndedSend(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a send, with the fields by which records are counted."""

    operation_id: CauseId
    type: OperationType
    process: str
    topic: str
    partition: int
    acks: int
    record_count: int


class Tried(NamedTuple):
    """The CRCs of all attempts of sends, one row for each send and CRC.

    Attributes:
        places: the row of the send in its table.
    """

    places: Ints
    crcs: Ints
    first_record_ids: Ints
    record_counts: Ints


def tried(sent: Table[SentBatch]) -> Tried:
    """Returns the CRCs with which sends were tried: one row for each send and CRC."""
    counts, crcs = sent.elements("crcs")
    places = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Tried(
        places=places,
        crcs=crcs["crc"][sent["crcs"][places] + within],
        first_record_ids=sent["first_record_id"][places],
        record_counts=sent["record_count"][places],
    )


class ReceivedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a consumer received; ``served_epoch`` is the epoch of the leader that served it, if known."""

    process: str
    phase: str
    topic: str
    topic_id: str | None
    partition: int
    node: int
    served_epoch: int | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer: str
    first_record_id: int
    record_count: int


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """One fetch of a consumer: its position, and first offset, last offset and CRC of each returned batch.

    These are arrays, because a consumer may receive a million batches.
    """

    index: int
    time_ns: int
    process: str
    topic: str
    topic_id: str | None
    partition: int
    position: int
    seek: bool
    phase: str
    error: str | None
    firsts: "array[int]"
    lasts: "array[int]"
    crcs: "array[int]"

    @property
    def read_up_to(self) -> int | None:
        """The offset after the last batch that it received; ``None`` if it received none."""
        return self.lasts[-1] + 1 if self.lasts else None


class Begin(NamedTuple):
    """The start of a send: the position in its history, and the time."""

    position: int
    time_ns: int


def sent_batch(send: SendOperation, *, history: str, begin: Begin | None) -> SentBatch:
    """Returns the completed send, made of its begin and its completion."""
    last = send.attempts[-1] if send.attempts else None
    return SentBatch(
        process=send.process,
        operation_id=send.operation_id,
        type=send.type,
        topic=send.topic,
        topic_id=send.topic_id,
        partition=send.partition,
        acks=send.acks,
        first_record_id=send.first_record_id,
        record_count=send.record_count,
        base_offset=send.base_offset,
        node=None if last is None else last.node,
        leader_epoch=None if last is None else last.leader_epoch,
        crc=None if last is None else last.crc,
        crcs=tuple(map(TriedCrc, dict.fromkeys(attempt.crc for attempt in send.attempts))),
        history=history,
        invoked=None if begin is None else begin.position,
        completed=send.index,
        begun_ns=None if begin is None else begin.time_ns,
        ended_ns=send.time_ns,
        attempts=len(send.attempts),
    )


def poll(operation: PollOperation) -> Poll:
    """Returns the position and the returned offsets of a fetch."""
    return Poll(
        index=operation.index,
        time_ns=operation.time_ns,
        process=operation.process,
        topic=operation.topic,
        topic_id=operation.topic_id,
        partition=operation.partition,
        position=operation.position,
        seek=operation.seek,
        phase=operation.phase,
        error=operation.error,
        firsts=array("q", [batch.base_offset for batch in operation.batches]),
        lasts=array("q", [batch.last_offset for batch in operation.batches]),
        crcs=array("q", [batch.crc for batch in operation.batches]),
    )


def received_batch(operation: PollOperation, batch: PolledBatch) -> ReceivedBatch:
    """Returns one of the batches of a fetch."""
    return ReceivedBatch(
        process=operation.process,
        phase=operation.phase,
        topic=operation.topic,
        topic_id=operation.topic_id,
        partition=operation.partition,
        node=operation.node,
        served_epoch=operation.leader_epoch,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        crc=batch.crc,
        producer=batch.producer,
        first_record_id=batch.first_record_id,
        record_count=batch.record_count,
    )
