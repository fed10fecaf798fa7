"""The clients' history: lines that producers and consumers record about operations, and the oracle reads.

One struct per kind of line of a ``history.jsonl``; the field ``f`` names the kind. ``index`` is the line's position in
its file. A send has one line for its invocation and one for its completion; an operation of a consumer has one line.
Adding a field is compatible; renaming one is a breaking change with a changelog line.
"""

import re
from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from laststand.emulator.core.types import CauseId, LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId, TopicId

FOREIGN_CLIENT: Final = "kafka:"
"""Processes whose names begin so are clients that write no history: their broker wrote down what it was asked."""


UNKNOWN_PRODUCER: Final = "?"
"""Stands for the producer of a record that does not say its own; its record id is 0."""

COORDINATOR: Final = "coordinator"
"""Stands for the producer of a control batch; its record id is 0."""

_FOREIGN: Final = re.compile(r"(?P<link>\d+)->(?P<node>\d+)-(?P<incarnation>\d+)\.(?P<connection>\d+)")


class ForeignProcess(NamedTuple):
    """A Kafka client's connection, as a process of the history; prints as ``kafka:app@1001->0-2.7``.

    Attributes:
        client_id: the client id that the client sent; may be any text.
        link: the client's id as an end of links.
        node: the broker that recorded the connection.
        incarnation: of the broker's process.
        connection: number of the connection in that process.
    """

    client_id: str
    link: NodeId
    node: NodeId
    incarnation: int
    connection: int

    def __str__(self) -> str:
        place = f"{self.link}->{self.node}-{self.incarnation}.{self.connection}"
        return f"{FOREIGN_CLIENT}{self.client_id}@{place}"

    @classmethod
    def parse(cls, process: str) -> "ForeignProcess | None":
        """Returns the connection that a process name stands for; ``None`` for this project's own clients."""
        client_id, _, place = process.removeprefix(FOREIGN_CLIENT).rpartition("@")
        match = _FOREIGN.fullmatch(place) if process.startswith(FOREIGN_CLIENT) else None
        if match is None:
            return None
        link, node, incarnation, connection = map(int, match.groups())
        return cls(client_id, NodeId(link), NodeId(node), incarnation, connection)


class OperationType(Enum):
    """Jepsen's four: an operation is invoked, then succeeds, certainly fails, or has an unknown outcome."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a send: the node, the producer identity, and the outcome (an error's name)."""

    node: NodeId
    leader_epoch: LeaderEpoch | None
    producer_id: ProducerId | None
    producer_epoch: ProducerEpoch | None
    base_sequence: int | None
    crc: int
    outcome: str


class SendOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="send"):
    """A batch that a producer sent. A line of ``history.jsonl`` each for its invocation and its completion.

    Attributes:
        index: position in the history, from 0, without gaps.
        time_ns: the machine's monotonic clock.
        process: ``producer-0`` and so on.
        operation_id: same in invocation and completion; the cause id of all events that follow from it.
        first_record_id: records of a producer are numbered from 0; this batch has ``record_count`` from here on.
        acks: -1, 0 or 1.
        base_offset: the acknowledged base offset; only with ``ok`` and acks other than 0.
        attempts: all tries, in order; complete in the completion line.
        error: with ``fail`` or ``info``, the error's name.
    """

    index: int
    time_ns: int
    type: OperationType
    process: str
    operation_id: CauseId
    topic: str
    topic_id: TopicId | None
    partition: int
    acks: int
    first_record_id: int
    record_count: int
    base_offset: Offset | None = None
    attempts: tuple[Attempt, ...] = ()
    error: str | None = None


class AckedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of records that a broker acknowledged: a line of a ``history/kafka-BROKER-INCARNATION.keys``.

    Attributes:
        topic_id: of the topic, if it is known.
        base_offset: acknowledged offset of the first record.
        crc: of the records' batch.
        keys: keys of consecutive records, as text; ``None`` for a record without a key.
    """

    topic: str
    topic_id: TopicId | None
    partition: int
    base_offset: Offset
    crc: int
    keys: tuple[str | None, ...]


class PolledBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a consumer received. Offsets inclusive; record ids as read from the records themselves."""

    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch
    crc: int
    producer: str
    first_record_id: int
    record_count: int


class PollOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="poll"):
    """The records that one fetch returned to a consumer; one line, type ``ok``, or ``info`` with the error.

    ``phase`` is ``live`` during the run and ``final`` for the fresh consumer that reads all records at the end.
    ``position`` is the fetch offset; ``seek`` says that the consumer jumped there (start, or out of range).
    ``leader_epoch`` is the fetch's leader epoch, which the answering leader had too (KIP-320), if known.
    """

    index: int
    time_ns: int
    type: OperationType
    process: str
    operation_id: CauseId
    phase: str
    topic: str
    topic_id: TopicId | None
    partition: int
    node: NodeId
    position: Offset
    seek: bool
    high_watermark: Offset | None
    log_start_offset: Offset | None
    batches: tuple[PolledBatch, ...] = ()
    error: str | None = None
    leader_epoch: LeaderEpoch | None = None


class FinalReadOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="final_read"):
    """The fresh consumer finished a partition: it read ``start_offset`` up to ``end_offset``, the high watermark.

    Type ``info`` with the error if it failed. ``begun`` is given if the history also has later sends or other
    concurrent reads: the index from which on reads, which are of the whole log, show how the log ends.
    """

    index: int
    time_ns: int
    type: OperationType
    process: str
    operation_id: CauseId
    topic: str
    topic_id: TopicId | None
    partition: int
    start_offset: Offset | None
    end_offset: Offset | None
    error: str | None = None
    begun: int | None = None


class SessionOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="session"):
    """A coordinator gave a transactional producer an identity, which fences earlier producers of the same id."""

    index: int
    time_ns: int
    process: str
    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch


class TransactionOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="transaction"):
    """A transaction. A line each for its beginning and its end.

    ``ok``: a coordinator answered that the transaction is committed or aborted, as in ``result``. ``info``: it may be
    committed, as a request to commit it got no answer. ``fail``: this producer did not commit it.

    Attributes:
        process: the producer.
        operation_id: the same in both lines.
        result: ``commit`` or ``abort``, as requested last.
        sends: operations that sent its batches, in order; complete in the last line.
        error: the error because of which it did not end as first intended.
    """

    index: int
    time_ns: int
    type: OperationType
    process: str
    operation_id: CauseId
    transactional_id: str
    result: Literal["commit", "abort"]
    sends: tuple[CauseId, ...] = ()
    error: str | None = None


class GroupReadOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="group_read"):
    """Records that an operation read for a group, from the position on that the group had committed.

    Attributes:
        process: the reader.
        operation_id: the transaction, or the operation that commits the position after them outside a transaction.
        committed: the position as the group's coordinator answered; ``None`` if there was none.
        position: start position; differs from ``committed`` only by ``auto.offset.reset``.
        next_position: the position to be committed.
        batches: the batches that the reader got, without markers and without aborted ones.
        member_id: of the member that read them; empty if the group has no members.
        generation_id: the member's generation.
    """

    index: int
    time_ns: int
    process: str
    operation_id: CauseId
    group_id: str
    topic: str
    topic_id: TopicId | None
    partition: int
    node: NodeId
    committed: Offset | None
    position: Offset
    next_position: Offset
    batches: tuple[PolledBatch, ...] = ()
    member_id: str = ""
    generation_id: int = -1


class GroupCommitOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="group_commit"):
    """An attempt to commit a group's position, alone or with the transaction of the same operation.

    ``ok``: a coordinator accepted the position, finally or for when its transaction commits. ``info``: it may have
    accepted. There is a line for the outcome only; ``member_id`` and ``generation_id`` are as in
    ``GroupReadOperation``.
    """

    index: int
    time_ns: int
    type: OperationType
    process: str
    operation_id: CauseId
    group_id: str
    topic: str
    partition: int
    offset: Offset
    error: str | None = None
    member_id: str = ""
    generation_id: int = -1


class MemberStep(Enum):
    """A step of a group member, as the member itself records it."""

    JOINING = "joining"
    """It asks to join, and gives up its partitions."""

    ASSIGNED = "assigned"
    """It has its partitions."""

    EXPIRED = "expired"
    """Its session is over by its own clock or its coordinator's answer; it gives up its partitions."""

    LEFT = "left"
    """It asks to leave, or another process has its place."""

    DIED = "died"
    """Its process ended without leaving the group."""


class GroupMemberOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="group_member"):
    """A member of a group has reached a step: it owns the partitions of ``assigned`` until its next line.

    Attributes:
        process: the member.
        member_id: as its coordinator gave it; empty for one that has none yet.
        instance_id: of a static member.
        generation_id: its current or last generation; -1 before the first.
        partitions: its assigned partitions.
        overdue_ms: time since the step happened, if the member noticed it late.
    """

    index: int
    time_ns: int
    process: str
    group_id: str
    step: MemberStep
    member_id: str
    instance_id: str | None
    generation_id: int
    partitions: tuple[str, ...] = ()
    overdue_ms: int = 0


class CommittedReadOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="committed_read"):
    """The records that one fetch returned to a reader of committed records (``isolation.level=read_committed``).

    ``batches`` are those that the consumer got, without markers and without aborted ones; it continues at
    ``next_position``. ``last_stable_offset`` is given if it differs from the high watermark. Other fields are as in
    ``PollOperation``.
    """

    index: int
    time_ns: int
    process: str
    operation_id: CauseId
    topic: str
    topic_id: TopicId | None
    partition: int
    node: NodeId
    position: Offset
    next_position: Offset
    seek: bool
    batches: tuple[PolledBatch, ...] = ()
    high_watermark: Offset | None = None
    last_stable_offset: Offset | None = None
    log_start_offset: Offset | None = None


class GroupPositionOperation(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="group_position"):
    """A position of a group of Kafka clients: a client asked a coordinator to commit it, or fetched it.

    ``ok``: the answer had no error. ``fail``: the error shows that the position is not in effect. ``info``: it may be
    in effect: there was no answer or another error, or the position belongs to a transaction, which may be aborted. Our
    own brokers, which may crash before the answer, record ``invoke`` first.

    Attributes:
        process: the client.
        kind: ``commit``, or ``fetch`` of the committed position.
        topic: empty for all partitions of a deleted group.
        node: the coordinator.
        offset: offset of the next record to read; ``None`` if no position is committed, or it is deleted.
        begun_ns: when the client asked.
        error: the error's name.
    """

    index: int
    time_ns: int
    type: OperationType
    process: str
    operation_id: CauseId
    kind: Literal["commit", "fetch"]
    group_id: str
    topic: str
    topic_id: TopicId | None
    partition: int
    node: NodeId
    offset: Offset | None
    begun_ns: int
    error: str | None = None


Operation: TypeAlias = (
    SendOperation
    | PollOperation
    | FinalReadOperation
    | SessionOperation
    | TransactionOperation
    | CommittedReadOperation
    | GroupReadOperation
    | GroupCommitOperation
    | GroupMemberOperation
    | GroupPositionOperation
)
"""The operations of clients."""


class HistorySealed(msgspec.Struct, frozen=True, kw_only=True, tag_field="f", tag="sealed"):
    """Last line of a history that its writer closed: the number of lines before it, and their digest.

    ``digest`` as in ``laststand.emulator.core.events.FileSealed``.
    """

    index: int
    time_ns: int
    lines: int
    digest: str


HistoryLine: TypeAlias = Operation | HistorySealed
"""Every kind of line of a history."""
