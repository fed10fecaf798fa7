r"""The fetching side of a follower: one fetch outstanding per leader (``ReplicaFetcherThread``).

A followed partition is in one of these states::

    FETCHING --out of range--> ASKING_END --leader is shorter--> FETCHING
        ^                          \--leader is longer--> ASKING_START --> FETCHING
        \--- LOOKING_UP_EPOCH (rule kip101 only)
    any --error that is not retriable--> FAILED, until the leader epoch rises

The fetch offset is always the log end offset. A partition's data in a response is used only if the log still ends at
the request's fetch offset, and the leader epoch is still the request's (KAFKA-18991).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.following import (
    append_as_follower,
    follow_high_watermark,
    follow_log_start,
)
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.log_writer import restart_log
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replication_quota import FOLLOWER_RATE, ReplicationQuota
from laststand.emulator.core.broker.replicas.truncation import FollowStart, truncation_rule, truncation_target
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.release import names_broker_epochs
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, NodeId, TopicPartition, TruncationReason

_BACKOFF_INITIAL_MS: Final = 20
_RESPONSE_SLACK_MS: Final = 2000
"""Time that a response may take beyond the wait of its request: two slow network legs and a busy machine."""


class FollowState(Enum):
    """The next step of a followed partition."""

    FETCHING = "fetching"
    LOOKING_UP_EPOCH = "looking_up_epoch"
    ASKING_END = "asking_end"
    ASKING_START = "asking_start"
    FAILED = "failed"


class FollowedPartition:
    """A partition that is fetched under one leader epoch."""

    __slots__ = (
        "failures",
        "is_asking",
        "lag",
        "leader",
        "leader_epoch",
        "partition",
        "request",
        "retry_at_ms",
        "state",
    )

    def __init__(self, partition: Partition, *, leader: BrokerId, state: FollowState) -> None:
        self.partition = partition
        self.leader = leader
        self.leader_epoch: LeaderEpoch = partition.leader_epoch
        self.state = state
        self.is_asking = False
        self.retry_at_ms = 0
        self.failures = 0
        self.lag = 0
        self.request: messages.FetchPartition | None = None


class LeaderLink:
    """The state of a follower's requests to one leader."""

    __slots__ = ("failures", "followed", "is_in_flight", "retry_at_ms")

    def __init__(self) -> None:
        self.followed: dict[TopicPartition, FollowedPartition] = {}
        self.is_in_flight = False
        self.retry_at_ms = 0
        self.failures = 0


class FetcherPool:
    """The partitions that this broker follows, and their fetches.

    Attributes:
        timers: when each leader's backoff is over.
        quota: throttle of this broker as a follower.
    """

    def __init__(self, config: BrokerConfig, in_flight: InFlightRequests) -> None:
        self._config = config
        self._in_flight = in_flight
        self.quota = ReplicationQuota(
            config, rate=FOLLOWER_RATE, replicas=lambda properties: properties.follower_replication_throttled_replicas
        )
        self._rule = truncation_rule(config.switches.truncation)
        self._followed: dict[TopicPartition, FollowedPartition] = {}
        self._links: dict[BrokerId, LeaderLink] = {}
        self.timers: TimerQueue[BrokerId] = TimerQueue()
        self._due: dict[BrokerId, None] = {}

    @property
    def followed(self) -> Mapping[TopicPartition, FollowedPartition]:
        """Followed partitions by name."""
        return self._followed

    # --- Who is followed ------------------------------------------------------------------------------------------

    def follow(self, turn: Turn, partition: Partition, leader: BrokerId) -> None:
        """Starts to follow under the partition's present leader epoch; under the same epoch nothing changes."""
        current = self._followed.get(partition.name)
        if current is not None and current.leader_epoch == partition.leader_epoch and current.leader == leader:
            return
        self.unfollow(partition.name)
        state = FollowState.FETCHING
        match self._rule.first_step(partition.log.epochs.latest_epoch):
            case FollowStart.LOOK_UP_EPOCH:
                state = FollowState.LOOKING_UP_EPOCH
            case FollowStart.CUT_AT_HIGH_WATERMARK:
                partition.truncate(
                    turn,
                    partition.log.high_watermark,
                    reason=TruncationReason.HIGH_WATERMARK,
                    leader=leader,
                    leader_epoch=partition.leader_epoch,
                )
        followed = FollowedPartition(partition, leader=leader, state=state)
        self._followed[partition.name] = followed
        self._links.setdefault(leader, LeaderLink()).followed[partition.name] = followed
        self._due[leader] = None

    def unfollow(self, name: TopicPartition) -> None:
        """Stops following; no effect where it is not followed."""
        followed = self._followed.pop(name, None)
        if followed is not None:
            del self._links[followed.leader].followed[name]

    def stop(self) -> None:
        """Stops following everything."""
        for name in list(self._followed):
            self.unfollow(name)

    # --- Asking ---------------------------------------------------------------------------------------------------

    def handle_timer(self, turn: Turn) -> None:
        """Goes on with leaders whose backoff is over."""
        for leader in self.timers.pop_due(now_ms=turn.now_ms):
            self._due[leader] = None

    def send_due(self, turn: Turn, broker_epoch: BrokerEpoch | None) -> None:
        """Sends the requests that may be sent now, to leaders whose partitions changed during this step."""
        if not self._due:
            return
        due, self._due = self._due, {}
        for leader in due:
            link = self._links.get(leader)
            if link is not None:
                self._send_to(turn, leader, link, broker_epoch)

    def _send_to(self, turn: Turn, leader: BrokerId, link: LeaderLink, broker_epoch: BrokerEpoch | None) -> None:
        if link.retry_at_ms > turn.now_ms:
            self.timers.set(leader, at_ms=link.retry_at_ms)
            return
        wanted: list[messages.FetchPartition] = []
        wake_at_ms: int | None = None
        for followed in link.followed.values():
            if followed.is_asking or followed.state is FollowState.FAILED:
                continue
            if followed.lag > 0 and self.quota.is_exceeded(followed.partition, now_ms=turn.now_ms):
                followed.retry_at_ms = turn.now_ms + self._config.properties.replica_fetch_backoff_ms
            if followed.retry_at_ms > turn.now_ms:
                wake_at_ms = followed.retry_at_ms if wake_at_ms is None else min(wake_at_ms, followed.retry_at_ms)
            elif followed.state is FollowState.FETCHING:
                wanted.append(self._fetch_partition(followed))
            else:
                self._ask(turn, leader, followed)
        if wake_at_ms is not None:
            self.timers.set(leader, at_ms=wake_at_ms)
        if wanted and not link.is_in_flight:
            link.is_in_flight = True
            properties = self._config.properties
            wait_ms = properties.replica_fetch_wait_max_ms
            request = messages.FetchRequest(
                partitions=tuple(wanted),
                replica_id=self._config.broker_id,
                replica_epoch=broker_epoch if names_broker_epochs(self._config.switches) else None,
                max_wait_ms=wait_ms,
                min_bytes=properties.replica_fetch_min_bytes,
                max_bytes=properties.replica_fetch_response_max_bytes,
            )
            timeout_ms = min(properties.replica_socket_timeout_ms, wait_ms + max(wait_ms, _RESPONSE_SLACK_MS))
            self._in_flight.send(turn, NodeId(leader), request, timeout_ms=timeout_ms)

    def _fetch_partition(self, followed: FollowedPartition) -> messages.FetchPartition:
        log = followed.partition.log
        last_fetched_epoch = log.epochs.latest_epoch if self._rule.fetch_names_epoch else None
        cached = followed.request
        if (
            cached is not None
            and cached.fetch_offset == log.log_end_offset
            and cached.last_fetched_epoch == last_fetched_epoch
            and cached.log_start_offset == log.log_start_offset
        ):
            return cached
        followed.request = messages.FetchPartition(
            topic=log.partition.topic,
            topic_id=log.topic_id,
            partition=log.partition.partition,
            fetch_offset=log.log_end_offset,
            current_leader_epoch=followed.leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self._config.properties.replica_fetch_max_bytes,
        )
        return followed.request

    def _ask(self, turn: Turn, leader: BrokerId, followed: FollowedPartition) -> None:
        name = followed.partition.name
        timeout_ms = _RESPONSE_SLACK_MS
        latest_epoch = followed.partition.log.epochs.latest_epoch
        request: messages.ListOffsetsRequest | messages.OffsetForLeaderEpochRequest
        if followed.state is FollowState.LOOKING_UP_EPOCH and latest_epoch is not None:
            position = messages.EpochPosition(
                topic=name.topic,
                partition=name.partition,
                leader_epoch=latest_epoch,
                current_leader_epoch=followed.leader_epoch,
            )
            request = messages.OffsetForLeaderEpochRequest(partitions=(position,), replica_id=self._config.broker_id)
        else:
            wants_end = followed.state is FollowState.ASKING_END
            target = messages.ListOffsetsPosition(
                topic=name.topic,
                partition=name.partition,
                timestamp=messages.LATEST_TIMESTAMP if wants_end else messages.EARLIEST_TIMESTAMP,
                current_leader_epoch=followed.leader_epoch,
            )
            request = messages.ListOffsetsRequest(partitions=(target,), replica_id=self._config.broker_id)
        followed.is_asking = True
        self._in_flight.send(turn, NodeId(leader), request, timeout_ms=timeout_ms)

    # --- Hearing --------------------------------------------------------------------------------------------------

    def handle_failure(
        self,
        turn: Turn,
        leader: BrokerId,
        request: messages.FetchRequest | messages.ListOffsetsRequest | messages.OffsetForLeaderEpochRequest,
    ) -> None:
        """Handles a request without an answer: the leader gets no request until a backoff is over."""
        link = self._links[leader]
        if isinstance(request, messages.FetchRequest):
            link.is_in_flight = False
        else:
            for position in request.partitions:
                followed = self._asking(leader, position)
                if followed is not None:
                    followed.is_asking = False
        link.retry_at_ms = turn.now_ms + self._backoff_ms(link.failures)
        link.failures += 1
        self._due[leader] = None

    def handle_fetch(
        self, turn: Turn, leader: BrokerId, request: messages.FetchRequest, response: messages.FetchResponse
    ) -> None:
        """Applies a leader's fetch response, partition by partition, and sends what follows."""
        link = self._links[leader]
        link.is_in_flight = False
        self._due[leader] = None
        if response.error is not ErrorCode.NONE:
            link.retry_at_ms = turn.now_ms + self._backoff_ms(link.failures)
            link.failures += 1
            return
        link.failures = 0
        for asked, answer in zip(request.partitions, response.partitions, strict=True):
            name = TopicPartition(asked.topic, asked.partition)
            followed = link.followed.get(name)
            if (
                followed is not None
                and followed.state is FollowState.FETCHING
                and asked.fetch_offset == followed.partition.log.log_end_offset
                and asked.current_leader_epoch == followed.leader_epoch
                and asked.topic_id == followed.partition.log.topic_id  # a new topic begins at the same offset and epoch
            ):
                self._handle_answer(turn, link, followed, answer)

    def _handle_answer(
        self, turn: Turn, link: LeaderLink, followed: FollowedPartition, answer: messages.FetchPartitionResponse
    ) -> None:
        match answer.error:
            case ErrorCode.NONE:
                followed.failures = 0
                if answer.diverging_epoch is not None or answer.diverging_end_offset is not None:
                    if not self._config.switches.truncate_before_hw and answer.high_watermark is not None:
                        follow_high_watermark(turn, followed.partition, answer.high_watermark)
                    self._cut_diverging(turn, followed, answer)
                else:
                    self._append(turn, link, followed, answer)
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                followed.state = FollowState.ASKING_END
            case _:
                self._handle_error(turn, followed, answer.error)

    def _handle_error(self, turn: Turn, followed: FollowedPartition, error: ErrorCode) -> None:
        """After FENCED_LEADER_EPOCH for the current epoch, waits for newer metadata; retries after other errors."""
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            followed.state = FollowState.FAILED
            return
        followed.retry_at_ms = turn.now_ms + self._backoff_ms(followed.failures)
        followed.failures += 1

    def _backoff_ms(self, failures: int) -> int:
        limit_ms = self._config.properties.replica_fetch_backoff_ms
        return min(limit_ms, _BACKOFF_INITIAL_MS << min(failures, 16))

    def _append(
        self, turn: Turn, link: LeaderLink, followed: FollowedPartition, answer: messages.FetchPartitionResponse
    ) -> None:
        partition = followed.partition
        if answer.batches:
            self.quota.record(partition, sum(batch.size for batch in answer.batches), now_ms=turn.now_ms)
            problem = append_as_follower(turn, partition, answer.batches, request_leader_epoch=followed.leader_epoch)
            if problem is not None:
                followed.state = FollowState.FAILED
                return
            # Last in line for the next request: a full response serves the others first.
            del link.followed[partition.name]
            link.followed[partition.name] = followed
        if answer.high_watermark is not None:
            follow_high_watermark(turn, partition, answer.high_watermark)
            followed.lag = max(0, answer.high_watermark - partition.log.log_end_offset)
        if answer.log_start_offset is not None and not follow_log_start(turn, partition, answer.log_start_offset):
            followed.state = FollowState.FAILED

    def _cut_diverging(self, turn: Turn, followed: FollowedPartition, answer: messages.FetchPartitionResponse) -> None:
        log = followed.partition.log
        floor = None
        if answer.diverging_epoch is not None:
            floor = log.epochs.floor_epoch_end(answer.diverging_epoch, log_end_offset=log.log_end_offset)
        target = truncation_target(
            leader_epoch=answer.diverging_epoch,
            end_offset=answer.diverging_end_offset,
            own_floor=floor,
            log_end_offset=log.log_end_offset,
            initial_offset=log.high_watermark,
        )
        followed.partition.truncate(
            turn,
            target.offset,
            reason=TruncationReason.DIVERGING_EPOCH,
            leader=followed.leader,
            leader_epoch=followed.leader_epoch,
        )

    def _asking(
        self, leader: BrokerId, position: messages.ListOffsetsPosition | messages.EpochPosition
    ) -> FollowedPartition | None:
        followed = self._links[leader].followed.get(TopicPartition(position.topic, position.partition))
        if followed is None or not followed.is_asking or position.current_leader_epoch != followed.leader_epoch:
            return None
        return followed

    def handle_offset(
        self, turn: Turn, leader: BrokerId, asked: messages.ListOffsetsPosition, result: messages.ListOffsetsResult
    ) -> None:
        """Resolves an offset out of range: cuts at a shorter leader's end, or jumps to a longer one's start."""
        self._due[leader] = None
        followed = self._asking(leader, asked)
        if followed is None:
            return
        followed.is_asking = False
        if result.error is not ErrorCode.NONE or result.offset is None:
            self._handle_error(turn, followed, result.error)
            return
        log = followed.partition.log
        if asked.timestamp == messages.LATEST_TIMESTAMP:
            if result.offset >= log.log_end_offset:
                followed.state = FollowState.ASKING_START
                return
            followed.partition.truncate(
                turn,
                result.offset,
                reason=TruncationReason.OFFSET_OUT_OF_RANGE,
                leader=leader,
                leader_epoch=followed.leader_epoch,
            )
        elif result.offset > log.log_end_offset:
            restart_log(turn, log, result.offset, leader=leader, leader_epoch=followed.leader_epoch)
        else:
            # No truncation: the leader lacks the epoch, and will have it with its next record.
            followed.retry_at_ms = turn.now_ms + self._backoff_ms(followed.failures)
            followed.failures += 1
        followed.state = FollowState.FETCHING

    def handle_epoch_end(
        self, turn: Turn, leader: BrokerId, asked: messages.EpochPosition, result: messages.EpochPositionResult
    ) -> None:
        """Cuts the log as KIP-101 did: at the end offset that the leader named, whatever epoch it belongs to."""
        self._due[leader] = None
        followed = self._asking(leader, asked)
        if followed is None:
            return
        followed.is_asking = False
        if result.error is not ErrorCode.NONE:
            self._handle_error(turn, followed, result.error)
            return
        log = followed.partition.log
        target = truncation_target(
            leader_epoch=None,
            end_offset=result.end_offset,
            own_floor=None,
            log_end_offset=log.log_end_offset,
            initial_offset=log.high_watermark,
        )
        followed.partition.truncate(
            turn,
            target.offset,
            reason=TruncationReason.HIGH_WATERMARK if result.end_offset is None else TruncationReason.DIVERGING_EPOCH,
            leader=leader,
            leader_epoch=followed.leader_epoch,
        )
        followed.state = FollowState.FETCHING
