"""The log of a coordinator's partition: the coordinator's appends, and the callers that wait for their commit.

An append takes place in the step that asks for it, and its answer waits for the high watermark. Records of an append
that times out stay in the log, and may commit later. Group coordinators append with acks=1, without a check of min ISR
(``CoordinatorPartitionWriter``); transaction coordinators append with acks=all (``TransactionStateManager``).
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodeRecords, LoadedRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, Offset

Done: TypeAlias = Callable[[Turn, ErrorCode], None]
"""Hears once that records are committed (NONE), or the error that a member is given."""


class _Write(NamedTuple):
    end_offset: Offset
    deadline_ms: int
    cause_id: CauseId
    done: Done


class CoordinatorLog:
    """Appends to one partition for as long as this broker leads it in one epoch.

    Args:
        partition: led by this broker.
        encode: makes batches.
        commit_timeout_ms: longest time until an append is committed, for appends without a timeout of their own.
        on_committed: called with each record once the record is committed, in log order.
        needs_min_isr: whether an append is refused while the ISR is smaller than min ISR.

    Attributes:
        partition: led by this broker.
    """

    def __init__(
        self,
        partition: Partition,
        encode: EncodeRecords,
        *,
        commit_timeout_ms: int,
        on_committed: Callable[[LoadedRecord], None],
        needs_min_isr: bool = False,
    ) -> None:
        self.partition = partition
        self._encode = encode
        self._commit_timeout_ms = commit_timeout_ms
        self._on_committed = on_committed
        self._needs_min_isr = needs_min_isr
        self._uncommitted: deque[LoadedRecord] = deque()
        self._waiting: deque[_Write] = deque()

    @property
    def next_deadline_ms(self) -> int | None:
        """Earliest deadline of an append; ``None`` if none waits."""
        return min([write.deadline_ms for write in self._waiting], default=None)

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self.partition.log.log_end_offset

    def load(self, records: Sequence[LoadedRecord]) -> None:
        """Registers records that the log held when this broker loaded it."""
        self._uncommitted.extend(records)

    def append(
        self, turn: Turn, records: Sequence[CoordinatorRecord], done: Done, *, timeout_ms: int | None = None
    ) -> tuple[LoadedRecord, ...]:
        """Appends records as one batch; returns the records with their offsets, none if the batch was refused.

        A batch is refused if it is too large for the topic or, with ``needs_min_isr``, if the ISR is smaller than min
        ISR. ``done`` is called with the error at once.
        """
        if self._needs_min_isr and self.partition.is_under_min_isr:
            done(turn, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return ()
        encoded = self._encode(records)
        if encoded.header.size > self.partition.topic_properties.max_message_bytes:
            done(turn, ErrorCode.UNKNOWN_SERVER_ERROR)
            return ()
        base_offset = self.partition.append_own(turn, encoded)
        appended = tuple(
            [LoadedRecord(record, Offset(base_offset + number)) for number, record in enumerate(records, start=1)]
        )
        self._uncommitted.extend(appended)
        end_offset = Offset(base_offset + len(records))
        patience_ms = self._commit_timeout_ms if timeout_ms is None else timeout_ms
        self._waiting.append(_Write(end_offset, turn.now_ms + patience_ms, turn.cause_id, done))
        return appended

    def await_appends(self, turn: Turn, done: Done) -> None:
        """Calls ``done`` once all written records are committed; at once if none is uncommitted.

        Kafka does the same for every request that might have written something (``CoordinatorRuntime``). Records whose
        writers have given up count, and so do records that were loaded.
        """
        if not self._uncommitted:
            done(turn, ErrorCode.NONE)
            return
        end_offset = self._uncommitted[-1].next_offset
        self._waiting.append(_Write(end_offset, turn.now_ms + self._commit_timeout_ms, turn.cause_id, done))

    def settle(self, turn: Turn) -> None:
        """Acts on the current high watermark: hands on the records committed by now, and calls the waiting callers."""
        log = self.partition.log
        while self._uncommitted and self._uncommitted[0].next_offset <= log.high_watermark:
            self._on_committed(self._uncommitted.popleft())
        while self._waiting and self._waiting[0].end_offset <= log.high_watermark:
            self._finish(turn, self._waiting.popleft(), ErrorCode.NONE)

    def time_out(self, turn: Turn) -> None:
        """Ends appends that have waited for too long with an error; their records stay in the log."""
        late = [write for write in self._waiting if write.deadline_ms <= turn.now_ms]
        for write in late:
            self._waiting.remove(write)
            self._finish(turn, write, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def fail(self, turn: Turn, error: ErrorCode) -> None:
        """Ends all waiting appends with an error; their records may still commit."""
        for _ in range(len(self._waiting)):
            self._finish(turn, self._waiting.popleft(), error)

    @staticmethod
    def _finish(turn: Turn, write: _Write, error: ErrorCode) -> None:
        cause_id, turn.cause_id = turn.cause_id, write.cause_id
        write.done(turn, error)
        turn.cause_id = cause_id
