"""A client's unanswered requests, the choice of their receivers, and their retries.

The ``NetworkClient`` of a transactional producer and of a group member. The receiver comes from metadata: a partition's
leader, or the coordinator of a transactional id or group, which is the leader of the id's partition of an internal
topic. If the leader is unknown, or an answer shows that it has changed, the client requests metadata, and repeats the
request after ``retry.backoff.ms``.
"""

from collections.abc import Callable
from typing import Final, Protocol

from laststand.emulator.core import effects, messages
from laststand.emulator.core.client.metadata import ClientMetadata, PartitionLeader
from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import BrokerId, CauseId, CorrelationId, NodeId, TopicPartition

_METADATA: Final = "metadata"
_RETRY: Final = "retry"

SEEK_COORDINATOR: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Answers of a broker that is not the coordinator."""

_AGAIN: Final = frozenset(
    {*SEEK_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS}
)
"""Answers of coordinators after which the same request is sent again."""


class NetworkSettings(Protocol):
    """Settings of a client's requests; see ``ProducerSettings``."""

    @property
    def request_timeout_ms(self) -> int:
        """Longest time until a request is answered."""

    @property
    def retry_backoff_ms(self) -> int:
        """Time until a request is repeated."""

    @property
    def metadata_max_age_ms(self) -> int:
        """Time until metadata is requested again without need."""


class NetworkClient:
    """Sends the requests of one client.

    Args:
        bootstrap: brokers to request metadata from.
        topics: the topics in metadata requests.
        settings: of the client.
        emit: called with each request to be sent.
        needed: topics; as long as one is unknown, metadata is requested again after the backoff.

    Attributes:
        metadata: the client's view of the cluster.
        timers: the client's deadlines.
    """

    def __init__(
        self,
        *,
        bootstrap: tuple[BrokerId, ...],
        topics: tuple[str, ...],
        settings: NetworkSettings,
        emit: Callable[[effects.SendRequest], None],
        needed: tuple[str, ...] = (),
    ) -> None:
        self.metadata = ClientMetadata(bootstrap=bootstrap)
        self.timers: TimerQueue[str] = TimerQueue()
        self._topics = topics
        self._settings = settings
        self._emit = emit
        self._needed = needed
        self._asked: dict[CorrelationId, tuple[messages.Request, BrokerId]] = {}
        self._next_correlation = 0
        self._retry_at_ms = 0
        self._metadata_not_before_ms = 0
        self._is_closed = False

    # --- What is out ----------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """A request other than a metadata request is in flight."""
        return any(not _is_about_metadata(request) for request, _ in self._asked.values())

    def has_asked(self, kind: type[messages.Request]) -> bool:
        """Returns whether a request of a kind is in flight."""
        return any(isinstance(request, kind) for request, _ in self._asked.values())

    def answered(self, correlation_id: CorrelationId) -> messages.Request:
        """Removes an answered request from those in flight, and returns it."""
        return self._asked.pop(correlation_id)[0]

    def unanswered(self, correlation_id: CorrelationId, now_ms: int) -> messages.Request:
        """Removes a failed request from those in flight, and returns it; a metadata request is repeated later."""
        request, broker = self._asked.pop(correlation_id)
        self.metadata.broker_failed(broker, now_ms=now_ms)
        if _is_about_metadata(request) and not self._is_closed:
            self._metadata_not_before_ms = now_ms + self._settings.retry_backoff_ms
            self.timers.set(_METADATA, at_ms=self._metadata_not_before_ms)
        return request

    # --- Whom to ask ----------------------------------------------------------------------------------------------

    def known_leader(self, partition: TopicPartition | None, now_ms: int) -> tuple[BrokerId, PartitionLeader] | None:
        """Returns a partition's leader; if it is unknown, requests metadata and makes the client wait."""
        leadership = None if partition is None else self.metadata.leader_of(partition)
        if leadership is None or leadership.leader is None:
            self.retry(now_ms, wants_metadata=True)
            return None
        return leadership.leader, leadership

    def coordinating(self, key: str, topic: str) -> TopicPartition | None:
        """Returns the partition of an internal topic that a key belongs to, if the topic is known."""
        count = self.metadata.partition_counts.get(topic, 0)
        return partition_of(key, topic, count) if count else None

    def ask_coordinator(
        self, partition: TopicPartition | None, request: messages.Request, cause_id: CauseId, now_ms: int
    ) -> None:
        """Sends a request to the coordinator: the leader of a partition of an internal topic, if known."""
        found = self.known_leader(partition, now_ms)
        if found is not None:
            self.send(found[0], request, cause_id)

    def send(
        self, destination: BrokerId, request: messages.Request, cause_id: CauseId, *, waits_ms: int = 0
    ) -> CorrelationId:
        """Sends a request, with the client's request timeout plus ``waits_ms``, the broker's waiting time."""
        self._next_correlation += 1
        correlation_id = CorrelationId(self._next_correlation)
        self._asked[correlation_id] = (request, destination)
        self._emit(
            effects.SendRequest(
                destination=NodeId(destination),
                correlation_id=correlation_id,
                request=request,
                timeout_ms=self._settings.request_timeout_ms + waits_ms,
                cause_id=cause_id,
            )
        )
        return correlation_id

    # --- Waiting --------------------------------------------------------------------------------------------------

    def backs_off(self, now_ms: int) -> bool:
        """Returns whether the client has to wait before it repeats something."""
        if now_ms < self._retry_at_ms:
            self.timers.set(_RETRY, at_ms=self._retry_at_ms)
            return True
        return False

    def asks_again(self, error: ErrorCode, now_ms: int) -> bool:
        """Returns whether a coordinator's error is retriable; if so, makes the client wait before the retry."""
        if error not in _AGAIN:
            return False
        self.retry(now_ms, wants_metadata=error in SEEK_COORDINATOR)
        return True

    def retry(self, now_ms: int, *, wants_metadata: bool = False) -> None:
        """Makes the client wait before its next request, whether a retry or another one."""
        self._retry_at_ms = now_ms + self._settings.retry_backoff_ms
        self.timers.set(_RETRY, at_ms=self._retry_at_ms)
        if wants_metadata:
            self.want_metadata(now_ms)

    def goes_on(self, now_ms: int) -> None:
        """Ends the wait before the next request."""
        self._retry_at_ms = now_ms

    def timer_fired(self, now_ms: int) -> None:
        """Requests metadata if that timer is due; other timers only wake the client."""
        for key in self.timers.pop_due(now_ms=now_ms):
            if key == _METADATA:
                self.want_metadata(now_ms)

    # --- Metadata -------------------------------------------------------------------------------------------------

    def want_metadata(self, now_ms: int) -> None:
        """Requests metadata, now or once the backoff for metadata requests is over."""
        if self.has_asked(messages.MetadataRequest):
            return
        if now_ms < self._metadata_not_before_ms:
            self.timers.set(_METADATA, at_ms=self._metadata_not_before_ms)
            return
        broker = self.metadata.next_broker(now_ms=now_ms)
        self.send(broker, messages.MetadataRequest(topics=self._topics), CauseId(_METADATA))

    def learn(self, response: messages.MetadataResponse, now_ms: int) -> None:
        """Adopts a metadata response, and schedules the next request."""
        self.metadata.learn(response)
        self._metadata_not_before_ms = now_ms + self._settings.retry_backoff_ms
        has_all = all(self.metadata.partition_counts.get(topic, 0) for topic in self._needed)
        age_ms = self._settings.metadata_max_age_ms if has_all else self._settings.retry_backoff_ms
        self.timers.set(_METADATA, at_ms=now_ms + age_ms)

    def close(self) -> None:
        """Cancels the timers: the client sends no further request."""
        self._is_closed = True
        for key in (_METADATA, _RETRY):
            self.timers.cancel(key)


def _is_about_metadata(request: messages.Request) -> bool:
    return isinstance(request, messages.MetadataRequest)
