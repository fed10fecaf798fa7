"""The partition of a coordinator as its log: what it appends, and what waits until that is committed.

An append takes place in the step that asks for it, with acks=1 as Kafka's ``CoordinatorPartitionWriter`` does: min ISR
is not looked at, and the answer waits for the high watermark. What times out stays in the log, and may commit later.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_records import EncodeRecords, GroupRecord, LoadedRecord
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
        commit_timeout_ms: how long an append may take to commit (``offsets.commit.timeout.ms``).
        on_committed: is given each record once it is committed, in the order of the log.
    """

    def __init__(
        self,
        partition: Partition,
        encode: EncodeRecords,
        *,
        commit_timeout_ms: int,
        on_committed: Callable[[GroupRecord], None],
    ) -> None:
        self._partition = partition
        self._encode = encode
        self._commit_timeout_ms = commit_timeout_ms
        self._on_committed = on_committed
        self._uncommitted: deque[LoadedRecord] = deque()
        self._waiting: deque[_Write] = deque()

    @property
    def next_deadline_ms(self) -> int | None:
        """Deadline of the oldest append; ``None`` if none waits."""
        return self._waiting[0].deadline_ms if self._waiting else None

    def load(self, records: Sequence[LoadedRecord]) -> None:
        """Takes records that are in the log already."""
        self._uncommitted.extend(records)

    def append(self, turn: Turn, records: Sequence[GroupRecord], done: Done) -> bool:
        """Appends records as one batch; returns whether they are in the log now.

        A batch that is too large for the topic is not appended, and ``done`` hears of it at once.
        """
        encoded = self._encode(records)
        if encoded.header.size > self._partition.topic_properties.max_message_bytes:
            done(turn, ErrorCode.UNKNOWN_SERVER_ERROR)
            return False
        base_offset = self._partition.append_own(turn, encoded)
        self._uncommitted.extend(
            LoadedRecord(record, Offset(base_offset + number)) for number, record in enumerate(records, start=1)
        )
        end_offset = Offset(base_offset + len(records))
        self._waiting.append(_Write(end_offset, turn.now_ms + self._commit_timeout_ms, turn.cause_id, done))
        return True

    def await_appends(self, turn: Turn, done: Done) -> None:
        """Has ``done`` hear once the appends before are committed; at once if there are none.

        So does Kafka with every request that might have changed something (``CoordinatorRuntime``).
        """
        if not self._waiting:
            done(turn, ErrorCode.NONE)
            return
        end_offset = self._waiting[-1].end_offset
        self._waiting.append(_Write(end_offset, turn.now_ms + self._commit_timeout_ms, turn.cause_id, done))

    def settle(self, turn: Turn) -> None:
        """Takes note of the high watermark as it is now, and tells those who waited for it."""
        log = self._partition.log
        while self._uncommitted and self._uncommitted[0].next_offset <= log.high_watermark:
            self._on_committed(self._uncommitted.popleft().record)
        while self._waiting and self._waiting[0].end_offset <= log.high_watermark:
            self._finish(turn, ErrorCode.NONE)

    def time_out(self, turn: Turn) -> None:
        """Gives up appends that have waited for too long; their records stay."""
        while self._waiting and self._waiting[0].deadline_ms <= turn.now_ms:
            self._finish(turn, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def fail(self, turn: Turn, error: ErrorCode) -> None:
        """Gives up all appends; their records may commit all the same."""
        for _ in range(len(self._waiting)):
            self._finish(turn, error)

    def _finish(self, turn: Turn, error: ErrorCode) -> None:
        write = self._waiting.popleft()
        cause_id, turn.cause_id = turn.cause_id, write.cause_id
        write.done(turn, error)
        turn.cause_id = cause_id
