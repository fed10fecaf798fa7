"""Markers that coordinators send to the leaders of partitions (WriteTxnMarkers).

A marker is appended with acks=all: the answer waits until every partition has committed its marker, or cannot commit
it. The group coordinator writes those of ``__consumer_offsets``, because they put positions into effect.
"""

from typing import Protocol

from laststand.emulator.core.batch import Marker
from laststand.emulator.core.broker.coordination.caller import Answerable
from laststand.emulator.core.broker.coordination.coordinator_log import Done
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.produce import commit_result
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import EncodeRecords
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.transaction_messages import MarkerOutcome, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import Offset, TopicPartition


class EndInGroups(Protocol):
    """Ends a transaction in a partition of ``__consumer_offsets``."""

    def __call__(
        self, turn: Turn, name: TopicPartition, ended: TransactionEnded, done: Done, *, raises_epoch: bool
    ) -> None:
        """Writes the marker."""


class _Waiting:
    """A marker that is appended, but not committed yet."""

    __slots__ = ("cause_id", "done", "partition", "required_offset")

    def __init__(self, turn: Turn, partition: Partition, required_offset: Offset, done: Done) -> None:
        self.cause_id = turn.cause_id
        self.partition = partition
        self.required_offset = required_offset
        self.done = done


class MarkerWriter:
    """Appends markers, and answers once they are committed.

    Args:
        hosted: the broker's partitions.
        encode: makes batches.
        end_in_groups: writes markers in ``__consumer_offsets``.
        timeout_ms: longest time until a marker is committed (``request.timeout.ms``).

    Attributes:
        timers: when waiting markers time out.
    """

    def __init__(
        self, hosted: HostedPartitions, encode: EncodeRecords, end_in_groups: EndInGroups, *, timeout_ms: int
    ) -> None:
        self._hosted = hosted
        self._encode = encode
        self._end_in_groups = end_in_groups
        self._timeout_ms = timeout_ms
        self._waiting: dict[TopicPartition, list[_Waiting]] = {}
        self.timers: TimerQueue[_Waiting] = TimerQueue()

    def handle_request(self, turn: Turn, caller: Answerable, request: WriteTxnMarkersRequest) -> None:
        """Writes all markers of a request."""
        errors = [[ErrorCode.NONE] * len(marker.partitions) for marker in request.markers]
        open_count = 1 + sum(map(len, errors))

        def finish(turn: Turn) -> None:
            nonlocal open_count
            open_count -= 1
            if not open_count:
                outcomes = tuple([MarkerOutcome(errors=tuple(each)) for each in errors])
                caller.answer(turn, WriteTxnMarkersResponse(markers=outcomes))

        def noting(row: list[ErrorCode], place: int) -> Done:
            def done(turn: Turn, error: ErrorCode) -> None:
                row[place] = error
                finish(turn)

            return done

        for marker, row in zip(request.markers, errors, strict=True):
            ended = TransactionEnded(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                marker=Marker(result=marker.result, coordinator_epoch=marker.coordinator_epoch),
            )
            for place, name in enumerate(marker.partitions):
                self._write(turn, name, ended, raises_epoch=marker.raises_epoch, done=noting(row, place))
        finish(turn)

    def _write(
        self, turn: Turn, name: TopicPartition, ended: TransactionEnded, *, raises_epoch: bool, done: Done
    ) -> None:
        if name.topic == OFFSETS_TOPIC:
            self._end_in_groups(turn, name, ended, done, raises_epoch=raises_epoch)
            return
        partition = self._hosted.find_leader(name)
        if self._hosted.get(name) is None or isinstance(partition, ErrorCode):
            is_hosted = self._hosted.get(name) is not None and isinstance(partition, ErrorCode)
            done(turn, ErrorCode.NOT_LEADER_OR_FOLLOWER if is_hosted else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        error = ErrorCode.NOT_ENOUGH_REPLICAS if partition.is_under_min_isr else ErrorCode.NONE
        error = error or partition.log.producers.check_marker(ended, raises_epoch=raises_epoch)
        if error is not ErrorCode.NONE:
            done(turn, error)
            return
        base_offset = partition.append_own(turn, self._encode((ended,)))
        waiting = _Waiting(turn, partition, Offset(base_offset + 1), done)
        self._waiting.setdefault(name, []).append(waiting)
        self.timers.set(waiting, at_ms=turn.now_ms + self._timeout_ms)
        self._check(turn, name)

    def settle(self, turn: Turn) -> None:
        """Checks the waiting markers of partitions that this step changed."""
        if self._waiting:
            for name in (*turn.advanced, *turn.turned):
                self._check(turn, name)

    def _check(self, turn: Turn, name: TopicPartition) -> None:
        for waiting in self._waiting.get(name, [])[:]:
            hosted = self._hosted.get(name)
            error = commit_result(hosted if hosted is waiting.partition else None, waiting.required_offset)
            if error is not None:
                self._finish(turn, waiting, error)

    def handle_timer(self, turn: Turn) -> None:
        """Times out markers that have waited for too long; they stay in the log."""
        for waiting in self.timers.pop_due(now_ms=turn.now_ms):
            self._finish(turn, waiting, ErrorCode.REQUEST_TIMED_OUT)

    def _finish(self, turn: Turn, waiting: _Waiting, error: ErrorCode) -> None:
        name = waiting.partition.name
        self.timers.cancel(waiting)
        self._waiting[name].remove(waiting)
        if not self._waiting[name]:
            del self._waiting[name]
        cause_id, turn.cause_id = turn.cause_id, waiting.cause_id
        waiting.done(turn, error)
        turn.cause_id = cause_id
