"""Sends the markers of decided transactions to the partitions (Kafka's ``TransactionMarkerChannelManager``).

The markers decided in one step go out in one request per broker. After a retriable error, a partition's marker is sent
again, to the leader of that time. A partition that is not in this broker's metadata counts as deleted. After a fatal
error, the coordinator gives the transaction up: the other partitions get no markers, and the transactional id stays
pending, until another coordinator loads it.
"""

from typing import Final, NamedTuple

from msgspec.structs import replace

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions.metadata import PREPARED
from laststand.emulator.core.broker.transactions.shard import Transaction, TransactionShard
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.transaction_messages import (
    TransactionMarkers,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from laststand.emulator.core.transaction_records import TransactionState
from laststand.emulator.core.types import BrokerId, TopicPartition

RETRY_MS: Final = 50
"""Time until what could not be written is tried again; Kafka tries at once."""

_WRITTEN: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
_FINAL: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class _Queued(NamedTuple):
    """The marker of a transaction, for partitions that one broker leads."""

    shard: TransactionShard
    transaction: Transaction
    marker: TransactionMarkers


class _Incomplete(NamedTuple):
    """A transaction whose completing record has to be written again."""

    shard: TransactionShard
    transaction: Transaction


class MarkerSender:
    """Sends the markers of all transactions that this broker coordinates.

    Args:
        image: the broker's metadata, which has the partitions' leaders.

    Attributes:
        timers: when failed requests and writes are retried.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._unfinished: dict[str, Transaction] = {}
        self._queues: dict[BrokerId, list[_Queued]] = {}
        self._later: list[_Queued] = []
        self._in_flight: list[tuple[WriteTxnMarkersRequest, list[_Queued]]] = []
        self._incomplete: list[_Incomplete] = []
        self.timers: TimerQueue[None] = TimerQueue()

    def __len__(self) -> int:
        return len(self._unfinished)

    def send(self, turn: Turn, shard: TransactionShard, transaction: Transaction) -> None:
        """Sends the markers of a decided transaction, and completes the transaction afterwards."""
        self._unfinished[transaction.metadata.transactional_id] = transaction
        self._enqueue(turn, shard, transaction, transaction.metadata.partitions)
        self._complete_if_written(turn, shard, transaction)

    def _enqueue(
        self, turn: Turn, shard: TransactionShard, transaction: Transaction, partitions: frozenset[TopicPartition]
    ) -> None:
        metadata = transaction.metadata
        is_commit = metadata.state is TransactionState.PREPARE_COMMIT
        by_leader: dict[BrokerId | None, list[TopicPartition]] = {}
        for partition in sorted(partitions):
            state = self._image.partitions.get(partition)
            if state is None:
                shard.note_markers(transaction, frozenset({partition}))
            else:
                by_leader.setdefault(state.leader, []).append(partition)
        for leader, led in by_leader.items():
            marker = TransactionMarkers(
                producer_id=metadata.producer_id,
                producer_epoch=metadata.producer_epoch,
                result=TransactionResult.COMMIT if is_commit else TransactionResult.ABORT,
                coordinator_epoch=shard.leader_epoch,
                raises_epoch=metadata.client_version == 2,
                partitions=tuple(led),
            )
            queued = _Queued(shard, transaction, marker)
            if leader is None:
                self._postpone(turn, queued)
            else:
                self._queues.setdefault(leader, []).append(queued)

    def _complete_if_written(self, turn: Turn, shard: TransactionShard, transaction: Transaction) -> None:
        if transaction.metadata.partitions or not self._is_unfinished(transaction):
            return
        self._finish(transaction)

        def done(turn: Turn, error: ErrorCode) -> None:
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._incomplete.append(_Incomplete(shard, transaction))
                self._await_retry(turn)

        shard.complete(turn, transaction, done)

    def _is_unfinished(self, transaction: Transaction) -> bool:
        return self._unfinished.get(transaction.metadata.transactional_id) is transaction

    def _finish(self, transaction: Transaction) -> None:
        if self._is_unfinished(transaction):
            del self._unfinished[transaction.metadata.transactional_id]

    def forget(self, shard: TransactionShard) -> None:
        """Drops the markers to be sent for a partition that this broker no longer coordinates."""
        for queue in (*self._queues.values(), self._later):
            for queued in queue[:]:
                if queued.shard is shard:
                    queue.remove(queued)
                    self._finish(queued.transaction)
        self._incomplete = [each for each in self._incomplete if each.shard is not shard]

    # --- Sending --------------------------------------------------------------------------------------------------

    def pop_due(self) -> list[tuple[BrokerId, WriteTxnMarkersRequest]]:
        """Removes and returns the requests that can be sent now, with their destinations."""
        due: list[tuple[BrokerId, WriteTxnMarkersRequest]] = []
        queues, self._queues = self._queues, {}
        for broker_id, queue in queues.items():
            if queue:
                request = WriteTxnMarkersRequest(markers=tuple([queued.marker for queued in queue]))
                self._in_flight.append((request, queue))
                due.append((broker_id, request))
        return due

    def _pop_in_flight(self, request: WriteTxnMarkersRequest) -> list[_Queued]:
        place = next(place for place, (sent, _) in enumerate(self._in_flight) if sent is request)
        return self._in_flight.pop(place)[1]

    def retry(self, turn: Turn) -> None:
        """Retries markers that could not be sent or written, and transactions that could not be completed."""
        self.timers.pop_due(now_ms=turn.now_ms)
        again, self._later = self._later, []
        for shard, transaction, marker in again:
            self._enqueue(turn, shard, transaction, frozenset(marker.partitions))
            self._complete_if_written(turn, shard, transaction)
        incomplete, self._incomplete = self._incomplete, []
        for shard, transaction in incomplete:
            self._unfinished[transaction.metadata.transactional_id] = transaction
            self._complete_if_written(turn, shard, transaction)

    def handle_response(self, turn: Turn, request: WriteTxnMarkersRequest, response: WriteTxnMarkersResponse) -> None:
        """Handles a broker's answer about the markers that it wrote."""
        for queued, outcome in zip(self._pop_in_flight(request), response.markers, strict=True):
            self._take_outcome(turn, queued, outcome.errors)

    def _take_outcome(self, turn: Turn, queued: _Queued, errors: tuple[ErrorCode, ...]) -> None:
        shard, transaction, marker = queued
        if shard.has_resigned:
            self._finish(transaction)
            return
        if transaction.metadata.state not in PREPARED:
            return
        outcomes = dict(zip(marker.partitions, errors, strict=True))
        shard.note_markers(transaction, frozenset(name for name, error in outcomes.items() if error in _WRITTEN))
        if _FINAL.intersection(errors):
            self._finish(transaction)
        if not self._is_unfinished(transaction):
            return
        again = tuple(name for name, error in outcomes.items() if error not in _WRITTEN)
        if again:
            self._postpone(turn, queued._replace(marker=replace(marker, partitions=again)))
        self._complete_if_written(turn, shard, transaction)

    def handle_failure(self, turn: Turn, request: WriteTxnMarkersRequest) -> None:
        """Schedules another request to a broker that did not answer."""
        for queued in self._pop_in_flight(request):
            if queued.shard.has_resigned:
                self._finish(queued.transaction)
            elif self._is_unfinished(queued.transaction):
                self._postpone(turn, queued)

    def _postpone(self, turn: Turn, queued: _Queued) -> None:
        self._later.append(queued)
        self._await_retry(turn)

    def _await_retry(self, turn: Turn) -> None:
        if self.timers.earliest_ms is None:
            self.timers.set(None, at_ms=turn.now_ms + RETRY_MS)
