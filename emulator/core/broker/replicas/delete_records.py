"""DeleteRecords: raises a log's start, and is done when every live replica has followed (``DelayedDeleteRecords``).

The leader raises its own log start at once. The low watermark, the smallest log start of the live replicas, follows as
they fetch; a request waits for it or times out, and what was deleted stays deleted either way.
"""

from itertools import count
from typing import Final

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.log_writer import raise_log_start
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import CauseId, Offset, RequestId, TopicPartition

WAITING_MAX: Final = 1000
"""Waiting requests per broker; past that the oldest times out early."""


def delete_records(turn: Turn, partition: Partition, offset: Offset | None) -> Offset | ErrorCode:
    """Raises the leader's log start to ``offset`` (``None``: the high watermark); returns the target or an error.

    A target below the log start changes nothing and is no error.
    """
    if "delete" not in partition.topic_properties.cleanup_policy.split(","):
        return ErrorCode.POLICY_VIOLATION
    target = partition.log.high_watermark if offset is None else offset
    if not 0 <= target <= partition.log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if target > partition.log.log_start_offset:
        raise_log_start(turn, partition.log, target)
        turn.advanced[partition.name] = None
    return target


class _Operation:
    """A request: its target per partition (``None`` once settled) and the results so far."""

    __slots__ = ("cause_id", "request", "request_id", "results", "targets")

    def __init__(self, request_id: RequestId, request: messages.DeleteRecordsRequest, cause_id: CauseId) -> None:
        self.request_id = request_id
        self.request = request
        self.cause_id = cause_id
        self.targets: list[Offset | None] = []
        self.results: list[messages.DeleteRecordsResult] = []


class DeleteRecordsHandler:
    """Receives DeleteRecords requests, keeps those that have to wait, and answers all of them.

    Attributes:
        timers: when each request times out.
    """

    def __init__(self, hosted: HostedPartitions) -> None:
        self._hosted = hosted
        self._numbers = count()
        self._waiting: dict[int, _Operation] = {}
        self.timers: TimerQueue[int] = TimerQueue()

    def handle_request(self, turn: Turn, request_id: RequestId, request: messages.DeleteRecordsRequest) -> None:
        """Deletes on the leader, and answers or waits."""
        operation = _Operation(request_id, request, turn.cause_id)
        for asked in request.partitions:
            partition = self._hosted.find_leader(TopicPartition(asked.topic, asked.partition))
            outcome = partition if isinstance(partition, ErrorCode) else delete_records(turn, partition, asked.offset)
            error = outcome if isinstance(outcome, ErrorCode) else ErrorCode.REQUEST_TIMED_OUT
            operation.targets.append(None if isinstance(outcome, ErrorCode) else outcome)
            operation.results.append(
                messages.DeleteRecordsResult(topic=asked.topic, partition=asked.partition, error=error)
            )
        if self._settle(operation):
            _answer(turn, operation)
            return
        if len(self._waiting) >= WAITING_MAX:
            self._finish(turn, next(iter(self._waiting)))
        number = next(self._numbers)
        self._waiting[number] = operation
        self.timers.set(number, at_ms=turn.now_ms + request.timeout_ms)

    def check(self, turn: Turn) -> None:
        """Checks all waiting requests, as a log start or a role changed."""
        for number in [number for number, operation in self._waiting.items() if self._settle(operation)]:
            self._finish(turn, number)

    def handle_timer(self, turn: Turn) -> None:
        """Answers the requests that have timed out."""
        for number in self.timers.pop_due(now_ms=turn.now_ms):
            self._finish(turn, number)

    def _settle(self, operation: _Operation) -> bool:
        """Marks the finished parts of an operation; returns whether all are."""
        for index, target in enumerate(operation.targets):
            if target is None:
                continue
            asked = operation.request.partitions[index]
            partition = self._hosted.find_leader(TopicPartition(asked.topic, asked.partition))
            error = partition if isinstance(partition, ErrorCode) else ErrorCode.NONE
            low_watermark = None if isinstance(partition, ErrorCode) else partition.low_watermark()
            if low_watermark is not None and low_watermark < target:
                continue
            operation.targets[index] = None
            operation.results[index] = messages.DeleteRecordsResult(
                topic=asked.topic, partition=asked.partition, error=error, low_watermark=low_watermark
            )
        return not any(target is not None for target in operation.targets)

    def _finish(self, turn: Turn, number: int) -> None:
        self.timers.cancel(number)
        _answer(turn, self._waiting.pop(number))


def _answer(turn: Turn, operation: _Operation) -> None:
    response = messages.DeleteRecordsResponse(partitions=tuple(operation.results))
    turn.send(effects.SendResponse(request_id=operation.request_id, response=response, cause_id=operation.cause_id))
