r"""The records that one operation of an application reads, from its group's committed position on.

::

    POSITION --OffsetFetch--> READING --Fetch--> OVER
        \\--nothing committed--> RESET --ListOffsets--> READING
                                   ^--out of range--------/

While a transaction may change the position, OffsetFetch is repeated (UNSTABLE_OFFSET_COMMIT, KIP-447).
"""

from enum import Enum
from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.client.consumer import LIST_OFFSETS_TIMESTAMP
from laststand.emulator.core.client.metadata import PartitionLeader
from laststand.emulator.core.client.steps import GroupReadRecorded, RecordsReceived, Source
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import CommittedOffset, OffsetFetchRequest, OffsetFetchResponse
from laststand.emulator.core.history import PolledBatch
from laststand.emulator.core.types import BrokerId, CauseId, IsolationLevel, LeaderEpoch, NodeId, Offset, TopicId

_FETCH_BYTES: Final = 1 << 20
_FETCH_WAIT_MS: Final = 100


class _State(Enum):
    POSITION = "position"
    RESET = "reset"
    READING = "reading"
    OVER = "over"


class GroupReading:
    """The records that one operation reads.

    Args:
        source: the group, the partition, and the number of records wanted.
        position: the start position, if the member that reads has committed it and knows it.
        is_one_answer: the reading ends after the first fetch that returns records.

    Attributes:
        source: the given source.
        next_position: the position after all records read, and after markers and aborted records behind them.
        batches: the batches read, with committed records only.
    """

    def __init__(self, source: Source, position: Offset | None = None, *, is_one_answer: bool = False) -> None:
        self.source = source
        self.next_position = Offset(0)
        self.batches: list[PolledBatch] = []
        self._state = _State.POSITION
        self._next_leader_epoch: LeaderEpoch | None = None
        self._committed: Offset | None = None
        self._position = Offset(0)
        self._topic_id: TopicId | None = None
        self._node: BrokerId | None = None
        self._is_one_answer = is_one_answer
        if position is not None:
            self._committed = position
            self._begin(position)

    @property
    def is_over(self) -> bool:
        """All wanted records are read, or there are none."""
        return self._state is _State.OVER

    @property
    def wants_position(self) -> bool:
        """The next request is an OffsetFetch to the group's coordinator."""
        return self._state is _State.POSITION

    def position_request(self) -> OffsetFetchRequest:
        """Returns the OffsetFetch for the group's position."""
        return OffsetFetchRequest(
            group_id=self.source.group_id, partitions=(self.source.partition,), require_stable=True
        )

    def request(self, leader: BrokerId, leadership: PartitionLeader) -> messages.Request:
        """Returns the next request to the partition's leader."""
        topic, partition = self.source.partition
        if self._state is _State.RESET:
            wanted = messages.ListOffsetsPosition(
                topic=topic,
                partition=partition,
                timestamp=LIST_OFFSETS_TIMESTAMP[self.source.reset],
                current_leader_epoch=leadership.leader_epoch,
            )
            return messages.ListOffsetsRequest(partitions=(wanted,))
        self._topic_id, self._node = leadership.topic_id, leader
        target = messages.FetchPartition(
            topic=topic,
            topic_id=leadership.topic_id,
            partition=partition,
            fetch_offset=self.next_position,
            current_leader_epoch=leadership.leader_epoch,
            partition_max_bytes=_FETCH_BYTES,
        )
        return messages.FetchRequest(
            partitions=(target,), max_wait_ms=_FETCH_WAIT_MS, isolation_level=IsolationLevel.READ_COMMITTED
        )

    # --- Answers: each returns NONE, or the error after which the request is sent again -----------------------------

    def positioned(self, response: OffsetFetchResponse) -> ErrorCode:
        """Handles the answer to OffsetFetch."""
        if response.error is not ErrorCode.NONE:
            return response.error
        if response.unstable:
            return ErrorCode.UNSTABLE_OFFSET_COMMIT
        if response.offsets:
            self._committed = Offset(response.offsets[0].offset)
            self._begin(self._committed)
        else:
            self._state = _State.RESET
        return ErrorCode.NONE

    def listed(self, result: messages.ListOffsetsResult) -> ErrorCode:
        """Handles the answer to ListOffsets, with the log's start or end."""
        if result.error is ErrorCode.NONE and result.offset is not None:
            self._begin(result.offset)
        return result.error

    def _begin(self, position: Offset) -> None:
        self._position = self.next_position = position
        self.batches.clear()
        self._state = _State.READING

    def fetched(self, received: RecordsReceived) -> ErrorCode:
        """Adds fetched records: whole batches, until as many as wanted are read, or none is left."""
        error = received.response.error
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._state = _State.RESET
        if error is not ErrorCode.NONE or received.response.preferred_read_replica is not None:
            return error
        if received.next_position is None:
            self._state = _State.OVER
            return error
        self.next_position, self._next_leader_epoch = received.next_position, received.next_leader_epoch
        for batch in received.polled:
            self.batches.append(batch)
            if sum(each.record_count for each in self.batches) >= self.source.records:
                self.next_position, self._next_leader_epoch = Offset(batch.last_offset + 1), batch.leader_epoch
                self._state = _State.OVER
                break
        if self._is_one_answer and self.batches:
            self._state = _State.OVER
        return error

    def to_commit(self) -> CommittedOffset:
        """Returns the position after what was read, with the leader epoch of the batch before it (KIP-320)."""
        return CommittedOffset(
            partition=self.source.partition, offset=self.next_position, leader_epoch=self._next_leader_epoch
        )

    # --- History --------------------------------------------------------------------------------------------------

    def recorded(self, operation_id: CauseId, *, member_id: str = "", generation_id: int = -1) -> GroupReadRecorded:
        """Returns the history record of the batches read; with the member, if the group has members."""
        assert self._node is not None, "a fetch was answered"
        return GroupReadRecorded(
            operation_id=operation_id,
            group_id=self.source.group_id,
            partition=self.source.partition,
            topic_id=self._topic_id,
            node=NodeId(self._node),
            committed=self._committed,
            position=self._position,
            next_position=self.next_position,
            batches=tuple(self.batches),
            member_id=member_id,
            generation_id=generation_id,
        )
