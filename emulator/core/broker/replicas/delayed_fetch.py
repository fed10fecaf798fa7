"""Fetch requests, and those that wait for bytes (Kafka's ``DelayedFetch``).

A request is answered at once if it has enough bytes, an error or a divergence; else it is parked until records arrive,
something about a partition changes, or its wait is over. A risen high watermark completes fetches of
consumers, never of followers, which learn it with the next fetch. The leader notes a follower's progress when the
request arrives, not when a parked request is completed.

Bytes that arrive while several acks=all appends wait on the partition are answered a millisecond later, so that one
round of fetches serves them all.
"""

from itertools import chain, count
from typing import Final

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.delayed_produce import ProduceHandler
from laststand.emulator.core.broker.replicas.fetch import (
    Read,
    Reader,
    ReadResult,
    Redirected,
    find_divergence,
    find_readable,
    partition_response,
    read_partition,
    visible_end_offset,
)
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.isr_changes import maybe_expand_isr
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_selector import RACK_AWARE, preferred_read_replica
from laststand.emulator.core.broker.replicas.replication_quota import LEADER_RATE, ReplicationQuota
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import BrokerId, CauseId, RequestId, TopicPartition

WAITING_MAX: Final = 2_000
"""Parked fetches per broker; past that the oldest is answered early, as if its wait were over."""

LINGER_MS: Final = 1
RELEASE_AGAIN_MS: Final = 20


class _Parked:
    """A fetch that waits."""

    __slots__ = ("cause_id", "number", "reader", "request", "request_id")

    def __init__(
        self, number: int, request_id: RequestId, request: messages.FetchRequest, reader: Reader, cause_id: CauseId
    ) -> None:
        self.number = number
        self.request_id = request_id
        self.request = request
        self.reader = reader
        self.cause_id = cause_id


class FetchHandler:
    """Receives fetch requests, parks those that have to wait, and answers all of them.

    Attributes:
        timers: when parked fetches are to be answered at the latest.
        quota: throttle of the followers.
    """

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, produces: ProduceHandler) -> None:
        self._is_rack_aware = config.properties.replica_selector_class == RACK_AWARE
        self._hosted = hosted
        self._produces = produces
        self.quota = ReplicationQuota(
            config, rate=LEADER_RATE, replicas=lambda properties: properties.leader_replication_throttled_replicas
        )
        self._numbers = count()
        self._parked: dict[int, _Parked] = {}
        self._by_partition: dict[TopicPartition, dict[int, tuple[_Parked, messages.FetchPartition]]] = {}
        self._turn: Turn | None = None
        self._still_waiting: set[int] = set()
        self._deadlines: TimerQueue[int] = TimerQueue()
        self._lingering: TimerQueue[int] = TimerQueue()
        self._releases: TimerQueue[BrokerId] = TimerQueue()
        self.timers = (self._deadlines, self._lingering, self._releases)

    def __len__(self) -> int:
        return len(self._parked)

    def handle_request(self, turn: Turn, request_id: RequestId, request: messages.FetchRequest) -> None:
        """Reads the available records, notes the follower's progress, and answers or parks."""
        reader = Reader(
            replica_id=request.replica_id,
            replica_epoch=request.replica_epoch,
            client_rack=request.client_rack,
            is_cut_allowed=request.is_cut_allowed,
            isolation_level=request.isolation_level,
        )
        results = self._read_all(turn, request, reader)
        answers: list[messages.FetchPartitionResponse] = []
        is_final = request.max_wait_ms <= 0 or not request.partitions
        size = 0
        for asked, result in zip(request.partitions, results, strict=True):
            answer = partition_response(self._hosted, asked, result, reader)
            if isinstance(result, Read):
                size += 0 if result.span is None else result.span.size
                if reader.replica_id is not None:
                    error = self._note_progress(turn, result.partition, asked, reader, reader.replica_id)
                    if error is not ErrorCode.NONE:
                        answer = messages.FetchPartitionResponse(
                            topic=asked.topic, partition=asked.partition, error=error
                        )
                        is_final = True
            else:
                is_final = True
            answers.append(answer)
        if is_final or size >= request.min_bytes:
            self._send(turn, request_id, answers, reader)
        else:
            self._park(turn, _Parked(next(self._numbers), request_id, request, reader, turn.cause_id))

    def _read_all(self, turn: Turn, request: messages.FetchRequest, reader: Reader) -> list[ReadResult]:
        results: list[ReadResult] = []
        bytes_read = 0
        for asked in request.partitions:
            result = self._redirection(turn, asked, reader) or read_partition(
                self._hosted, asked, reader, bytes_left=request.max_bytes - bytes_read, bytes_read=bytes_read
            )
            if isinstance(result, Read) and result.span is not None:
                if self._is_throttled(turn, result.partition, reader):
                    results.append(Read(result.partition, None))
                    continue
                bytes_read += result.span.size
            results.append(result)
        return results

    def _is_throttled(self, turn: Turn, partition: Partition, reader: Reader) -> bool:
        """Returns whether a follower gets no records now, being out of sync and throttled (KIP-73)."""
        return (
            reader.replica_id is not None
            and reader.replica_id not in partition.committed_isr
            and self.quota.is_exceeded(partition, now_ms=turn.now_ms)
        )

    def _redirection(self, turn: Turn, asked: messages.FetchPartition, reader: Reader) -> Redirected | None:
        if not self._is_rack_aware or not reader.may_read_follower or not reader.client_rack:
            return None
        partition = find_readable(self._hosted, asked, reader)
        if not isinstance(partition, Partition):
            return None
        replica = preferred_read_replica(
            partition,
            self._hosted.image.brokers,
            client_rack=reader.client_rack,
            fetch_offset=asked.fetch_offset,
            now_ms=turn.now_ms,
        )
        return None if replica is None else Redirected(partition, replica)

    def _note_progress(
        self, turn: Turn, partition: Partition, asked: messages.FetchPartition, reader: Reader, replica_id: BrokerId
    ) -> ErrorCode:
        error = partition.note_fetch(
            turn,
            replica_id,
            fetch_offset=asked.fetch_offset,
            log_start_offset=asked.log_start_offset,
            broker_epoch=reader.replica_epoch,
        )
        if error is ErrorCode.NONE:
            maybe_expand_isr(turn, partition, replica_id)
        return error

    def _park(self, turn: Turn, parked: _Parked) -> None:
        if len(self._parked) >= WAITING_MAX:
            self._complete(turn, self._parked[next(iter(self._parked))])
        self._parked[parked.number] = parked
        self._deadlines.set(parked.number, at_ms=turn.now_ms + parked.request.max_wait_ms)
        for asked in parked.request.partitions:
            self._by_partition.setdefault(asked.topic_partition, {})[parked.number] = (parked, asked)

    def _complete(self, turn: Turn, parked: _Parked) -> None:
        """Reads again and answers, without an update of the follower's state."""
        del self._parked[parked.number]
        self._deadlines.cancel(parked.number)
        self._lingering.cancel(parked.number)
        for asked in parked.request.partitions:
            waiting = self._by_partition.get(asked.topic_partition)
            if waiting is not None:
                waiting.pop(parked.number, None)
                if not waiting:
                    del self._by_partition[asked.topic_partition]
        results = self._read_all(turn, parked.request, parked.reader)
        self._send(
            turn,
            parked.request_id,
            [
                partition_response(self._hosted, asked, result, parked.reader)
                for asked, result in zip(parked.request.partitions, results, strict=True)
            ],
            parked.reader,
        )

    def _send(
        self, turn: Turn, request_id: RequestId, answers: list[messages.FetchPartitionResponse], reader: Reader
    ) -> None:
        for answer in answers if reader.replica_id is not None and self.quota.is_limited else ():
            partition = self._hosted.get(TopicPartition(answer.topic, answer.partition))
            if partition is not None and answer.span is not None:
                self.quota.record(partition, answer.span.size, now_ms=turn.now_ms)
        response = messages.FetchResponse(partitions=tuple(answers))
        turn.send(effects.SendResponse(request_id=request_id, response=response, cause_id=turn.cause_id))

    # --- What wakes a parked fetch --------------------------------------------------------------------------------

    def check_growth(self, turn: Turn, name: TopicPartition) -> None:
        """Records arrived: answers followers that now have enough bytes, at once or after the linger."""
        for parked, asked in self._waiting_on(name):
            if parked.reader.replica_id is None or not self._is_answerable(turn, parked, asked):
                continue
            if self._produces.waiting_on(name) > 1:
                if not self._lingering.is_set(parked.number):
                    parked.cause_id = turn.cause_id
                    self._lingering.set(parked.number, at_ms=turn.now_ms + LINGER_MS)
            else:
                self._complete(turn, parked)

    def check_high_watermark(self, turn: Turn, name: TopicPartition) -> None:
        """The high watermark rose: answers consumers that now have enough bytes."""
        for parked, asked in self._waiting_on(name):
            if parked.reader.replica_id is None and self._is_answerable(turn, parked, asked):
                self._complete(turn, parked)

    def check_role(self, turn: Turn, name: TopicPartition) -> None:
        """The partition's role or epoch changed: answers parked requests that can no longer be served."""
        for parked, asked in self._waiting_on(name):
            if self._is_answerable(turn, parked, asked):
                self._complete(turn, parked)

    def release_followers(self, turn: Turn, partition: Partition) -> None:
        """Answers the parked fetches of a partition's followers when this broker starts to lead it.

        These fetches wait on other partitions. Answered now, the follower can add this partition to its next fetch,
        instead of up to half a second later. The release is repeated shortly after, for followers that get the
        metadata later than the leader.
        """
        for broker_id in partition.followers:
            self._releases.set(broker_id, at_ms=turn.now_ms + RELEASE_AGAIN_MS)
            self._release(turn, broker_id)

    def _release(self, turn: Turn, broker_id: BrokerId) -> None:
        for parked in [parked for parked in self._parked.values() if parked.reader.replica_id == broker_id]:
            self._complete(turn, parked)

    def handle_timer(self, turn: Turn) -> None:
        """Answers fetches whose linger or wait is over."""
        own_cause = turn.cause_id
        for number in self._lingering.pop_due(now_ms=turn.now_ms):
            parked = self._parked[number]
            turn.cause_id = parked.cause_id
            self._complete(turn, parked)
        turn.cause_id = own_cause
        for number in self._deadlines.pop_due(now_ms=turn.now_ms):
            self._complete(turn, self._parked[number])
        for broker_id in self._releases.pop_due(now_ms=turn.now_ms):
            self._release(turn, broker_id)

    def _waiting_on(self, name: TopicPartition) -> list[tuple[_Parked, messages.FetchPartition]]:
        waiting = self._by_partition.get(name)
        return list(waiting.values()) if waiting else []

    def _is_answerable(self, turn: Turn, parked: _Parked, changed: messages.FetchPartition) -> bool:
        """Returns whether a parked fetch can be answered; the changed partition is checked first."""
        if self._turn is not turn:  # a turn's changes precede its first call of this method
            self._turn = turn
            self._still_waiting.clear()
        if parked.number in self._still_waiting:
            return False
        others = (asked for asked in parked.request.partitions if asked is not changed)
        size, enough = 0, max(parked.request.min_bytes, 1)
        for asked in chain((changed,), others):
            partition = find_readable(self._hosted, asked, parked.reader)
            if not isinstance(partition, Partition) or find_divergence(partition, asked) is not ErrorCode.NONE:
                return True
            end_offset = visible_end_offset(partition, parked.reader)
            if asked.fetch_offset > partition.log.log_end_offset or asked.fetch_offset < partition.log.log_start_offset:
                return True
            if end_offset > asked.fetch_offset and not self._is_throttled(turn, partition, parked.reader):
                available = partition.log.size_between(asked.fetch_offset, end_offset)
                size += min(available, asked.partition_max_bytes)
                if size >= enough:
                    return True
        self._still_waiting.add(parked.number)
        return False
