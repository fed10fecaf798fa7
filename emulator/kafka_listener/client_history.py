"""The history of clients that write none: their requests to this broker, and its responses.

A batch is recorded as invoked before the core gets it, and as acknowledged once its response was written to the socket
of an open connection. So the client may have seen an acknowledgement in the history; if the connection was lost, or the
broker died, before that, the outcome is unknown. The lines have the form of Laststand's own clients, so that one oracle
judges both.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

from laststand.emulator.client.history import History
from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client.consumer import Phase
from laststand.emulator.core.client.steps import GroupPositionRecorded, PollRecorded, SendRecorded
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import (
    COORDINATOR,
    FOREIGN_CLIENT,
    UNKNOWN_PRODUCER,
    AckedKeys,
    Attempt,
    ForeignProcess,
    OperationType,
    PolledBatch,
)
from laststand.emulator.core.types import Acks, BrokerId, CauseId, NodeId, Offset, TopicId, TopicPartition
from laststand.emulator.kafka_listener.key_file import KeyFile, Keys
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.storage.record_batch import describe_batches


class ClientConnection(Protocol):
    """A connection of a client to the broker.

    Attributes:
        client_id: of the newest request.
        link: the client as an end of links.
        number: unique in the broker's process.
    """

    client_id: str
    link: NodeId
    number: int


class Sent(NamedTuple):
    """A batch that a client sent.

    Attributes:
        partition: the partition that it was sent to.
        topic_id: of the topic, by this broker's metadata.
        batch: header of the batch.
        acks: of the request.
        invoked: the line about its invocation.
        keys: of its records, if they are recorded.
    """

    partition: TopicPartition
    topic_id: TopicId | None
    batch: BatchDescriptor
    acks: Acks
    invoked: SendRecorded
    keys: "Future[Keys] | None" = None

    @property
    def operation_id(self) -> CauseId:
        """The cause id of everything that follows from the operation."""
        return self.invoked.operation_id


class Polled(NamedTuple):
    """The outcome of a fetch for one partition.

    Attributes:
        asked: the client's request.
        answer: the fetched batches.
        records: batches, the last of which may be incomplete.
    """

    asked: messages.FetchPartition
    answer: messages.FetchPartitionResponse
    records: Attachment


ALL_TOPICS: Final = TopicPartition("", 0)
"""Stands for all partitions of which a group has positions: those of a group that is deleted."""


class Position(NamedTuple):
    """A position of a group that a client asked a coordinator to commit or to delete, or asked for.

    Attributes:
        group: the group's name.
        partition: of the topic.
        topic_id: of the topic, if it is known.
        offset: of a commit, ``None`` for a deletion; of an answer, ``None`` if none is committed.
        error: of the answer; ``None`` if there was none, or if a transaction decides.
    """

    group: str
    partition: TopicPartition
    topic_id: TopicId | None
    offset: Offset | None
    error: ErrorCode | None


class ClientHistory:
    """Writes the history of the clients of one broker process.

    Args:
        path: of the file; it is made with the first line.
        broker_id: of the broker.
        incarnation: of its process.
        keys: gets keys of records that are acknowledged; without it they are not read.
        on_lines: called when lines were added, to have ``flush`` called; without it lines are written at once.
    """

    def __init__(
        self,
        path: Path,
        *,
        broker_id: BrokerId,
        incarnation: int,
        keys: KeyFile | None = None,
        on_lines: Callable[[], None] | None = None,
    ) -> None:
        self._path = path
        self._keys = keys
        self._broker_id = broker_id
        self._incarnation = incarnation
        self._on_lines = self.flush if on_lines is None else on_lines
        self._file: History | None = None
        self._records: dict[str, int] = {}
        self._read_up_to: dict[str, dict[TopicPartition, int]] = {}
        self._operations = 0

    def process_of(self, connection: ClientConnection) -> str:
        """Returns the name that a connection's client has in the history."""
        return str(
            ForeignProcess(
                connection.client_id or "?", connection.link, self._broker_id, self._incarnation, connection.number
            )
        )

    def invoke(
        self,
        connection: ClientConnection,
        batches: Sequence[tuple[TopicPartition, TopicId | None, BatchDescriptor]],
        acks: Acks,
        *,
        records: Mapping[TopicPartition, Attachment],
    ) -> dict[TopicPartition, Sent]:
        """Records that a client sends batches, whose bytes are ``records``."""
        process = self.process_of(connection)
        sent: dict[TopicPartition, Sent] = {}
        for partition, topic_id, batch in batches:
            first = self._records.get(process, 0)
            self._records[process] = first + batch.record_count
            line = SendRecorded(
                type=OperationType.INVOKE,
                operation_id=self._operation_id(),
                partition=partition,
                topic_id=topic_id,
                first_record_id=first,
                record_count=batch.record_count,
                attempts=(self._attempt(batch, ErrorCode.NETWORK_EXCEPTION),),
            )
            self._history().add(line, process=process, acks=acks)
            keys = None if self._keys is None else self._keys.read(records[partition])
            sent[partition] = Sent(partition, topic_id, batch, acks, line, keys)
        if sent:
            self._on_lines()
        return sent

    def complete(
        self,
        connection: ClientConnection,
        sent: Mapping[TopicPartition, Sent],
        outcomes: Mapping[TopicPartition, messages.ProducePartitionResponse],
        *,
        is_written: bool,
    ) -> None:
        """Records the outcome of batches.

        Args:
            connection: the connection on which the answer was sent.
            sent: batches, by partition.
            outcomes: their outcomes, if the core returned any.
            is_written: whether the response was written to the socket; if not, the client knows nothing.
        """
        for partition, each in sent.items():
            outcome = outcomes.get(partition)
            error = ErrorCode.NETWORK_EXCEPTION if outcome is None or not is_written else outcome.error
            base_offset = None if outcome is None or error is not ErrorCode.NONE else outcome.base_offset
            self._end(connection, each, error, base_offset)
            if self._keys is not None and each.keys is not None and base_offset is not None:
                self._keys.add(
                    AckedKeys(
                        topic=partition.topic,
                        topic_id=each.topic_id,
                        partition=partition.partition,
                        base_offset=base_offset,
                        crc=each.batch.crc,
                        keys=(),
                    ),
                    each.keys,
                )
        if sent:
            self._on_lines()

    def forget(self, connection: ClientConnection) -> None:
        """Forgets a client whose connection has ended."""
        process = self.process_of(connection)
        self._records.pop(process, None)
        self._read_up_to.pop(process, None)

    def complete_unanswered(self, connection: ClientConnection, sent: Iterable[Sent]) -> None:
        """Records that batches were sent with acks=0."""
        for each in sent:
            self._end(connection, each, ErrorCode.NONE, None)

    def _end(self, connection: ClientConnection, each: Sent, error: ErrorCode, base_offset: Offset | None) -> None:
        is_acked = error is ErrorCode.NONE
        line = SendRecorded(
            type=OperationType.OK if is_acked else _failure(error),
            operation_id=each.invoked.operation_id,
            partition=each.partition,
            topic_id=each.topic_id,
            first_record_id=each.invoked.first_record_id,
            record_count=each.batch.record_count,
            base_offset=base_offset,
            attempts=(self._attempt(each.batch, error),),
            error=None if is_acked else error.name,
        )
        self._history().add(line, process=self.process_of(connection), acks=each.acks)

    def _attempt(self, batch: BatchDescriptor, error: ErrorCode) -> Attempt:
        is_idempotent = batch.producer_id is not None
        return Attempt(
            node=self._broker_id,
            leader_epoch=None,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch if is_idempotent else None,
            base_sequence=batch.base_sequence if is_idempotent else None,
            crc=batch.crc,
            outcome=error.name,
        )

    def add_polls(self, connection: ClientConnection, polls: Sequence[Polled]) -> None:
        """Records the outcome of a fetch, before its response leaves.

        No broker moves a consumer. So a consumer that asks for another offset than the one after its last batch has
        sought: by a position of its group, by ``auto.offset.reset``, or by itself.
        """
        process = self.process_of(connection)
        read_up_to = self._read_up_to.setdefault(process, {})
        for asked, answer, records in polls:
            is_given = answer.error is ErrorCode.NONE
            batches = list(describe_batches(records))
            is_sought = read_up_to.get(asked.topic_partition) != asked.fetch_offset
            if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                read_up_to.pop(asked.topic_partition, None)
            elif batches:
                read_up_to[asked.topic_partition] = batches[-1].last_offset + 1
            line = PollRecorded(
                type=OperationType.OK if is_given else OperationType.INFO,
                operation_id=self._operation_id(),
                partition=asked.topic_partition,
                topic_id=asked.topic_id,
                node=self._broker_id,
                leader_epoch=asked.current_leader_epoch,
                position=asked.fetch_offset,
                seek=is_sought,
                high_watermark=answer.high_watermark,
                log_start_offset=answer.log_start_offset,
                batches=tuple(
                    PolledBatch(
                        base_offset=batch.base_offset,
                        last_offset=batch.last_offset,
                        leader_epoch=batch.leader_epoch,
                        crc=batch.crc,
                        producer=COORDINATOR if batch.is_control else UNKNOWN_PRODUCER,
                        first_record_id=0,
                        record_count=batch.record_count,
                    )
                    for batch in batches
                ),
                error=None if is_given else answer.error.name,
            )
            self._history().add(line, process=process, phase=Phase.LIVE.value)
        if polls:
            self._on_lines()

    def add_positions(
        self,
        connection: ClientConnection,
        kind: Literal["commit", "fetch"],
        positions: Sequence[Position],
        *,
        begun_ns: int,
        begun: Sequence[CauseId] = (),
    ) -> None:
        """Records positions of groups.

        Args:
            connection: the connection of the request.
            kind: the kind of request.
            positions: with their outcomes.
            begun_ns: when the client asked.
            begun: the result of ``begin_commits`` for them, if that was called.
        """
        ids = begun or [self._operation_id() for _ in positions]
        for operation_id, each in zip(ids, positions, strict=True):
            self._add_position(connection, kind, each, _position_type(kind, each.error), operation_id, begun_ns)
        if positions:
            self._on_lines()

    def begin_commits(
        self, connection: ClientConnection, positions: Sequence[Position], *, begun_ns: int
    ) -> Sequence[CauseId]:
        """Records that positions are to be committed, as the process may not live to record the outcome."""
        ids = [self._operation_id() for _ in positions]
        for operation_id, each in zip(ids, positions, strict=True):
            self._add_position(connection, "commit", each, OperationType.INVOKE, operation_id, begun_ns)
        if positions:
            self._on_lines()
        return ids

    def _add_position(
        self,
        connection: ClientConnection,
        kind: Literal["commit", "fetch"],
        position: Position,
        operation_type: OperationType,
        operation_id: CauseId,
        begun_ns: int,
    ) -> None:
        error = position.error
        line = GroupPositionRecorded(
            type=operation_type,
            operation_id=operation_id,
            kind=kind,
            group_id=position.group,
            partition=position.partition,
            topic_id=position.topic_id,
            node=self._broker_id,
            offset=position.offset,
            begun_ns=begun_ns,
            error=None if error in (None, ErrorCode.NONE) else error.name,
        )
        self._history().add(line, process=self.process_of(connection))

    def flush(self) -> None:
        """Writes the lines that were added since the last call."""
        if self._file is not None:
            self._file.flush()
        if self._keys is not None:
            self._keys.flush()

    def close(self) -> None:
        """Seals the history."""
        if self._file is not None:
            self._file.__exit__(None, None, None)
        if self._keys is not None:
            self._keys.close()

    def _operation_id(self) -> CauseId:
        self._operations += 1
        return CauseId(f"{FOREIGN_CLIENT}{self._broker_id}-{self._incarnation}-{self._operations}")

    def _history(self) -> History:
        if self._file is None:
            self._file = History(self._path)
        return self._file


def _failure(error: ErrorCode) -> OperationType:
    return OperationType.FAIL if error.is_definite else OperationType.INFO


def _position_type(kind: Literal["commit", "fetch"], error: ErrorCode | None) -> OperationType:
    if error is ErrorCode.NONE:
        return OperationType.OK
    if kind == "fetch":
        return OperationType.FAIL  # which says nothing of the position
    return OperationType.INFO if error is None or error in _MAY_BE_IN_FORCE else _failure(error)


_MAY_BE_IN_FORCE: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Answers of coordinators that could not replicate a commit in time, or that have lost their partition meanwhile."""
