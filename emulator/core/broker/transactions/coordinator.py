"""A broker's part in transactions: it coordinates transactional ids, writes markers, and verifies appends.

Requests to the own broker take the same path as requests to others, without the network.
"""

from collections import deque
from typing import NamedTuple, TypeAlias

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.broker.coordination.caller import Answerable, Caller
from laststand.emulator.core.broker.coordination.coordinator_log import Done
from laststand.emulator.core.broker.coordination.hosted_shards import HostedShards, Loaded
from laststand.emulator.core.broker.groups.coordinator import GroupCoordinator
from laststand.emulator.core.broker.groups.shard import GroupShard
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions.inquiry import TransactionInquiry
from laststand.emulator.core.broker.transactions.marker_writer import MarkerWriter
from laststand.emulator.core.broker.transactions.markers import MarkerSender
from laststand.emulator.core.broker.transactions.scan import OpenTransactionScans
from laststand.emulator.core.broker.transactions.shard import (
    AllocateProducerId,
    OnOutcome,
    TransactionShard,
    refusal,
    refused_partitions,
)
from laststand.emulator.core.broker.transactions.verifier import Verifier
from laststand.emulator.core.coordinator_records import EncodeRecords
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    AddPartitionsOutcome,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionalIdRequest,
    TransactionMarkers,
    TransactionRequest,
    TransactionsOfProducersRequest,
    TransactionsOfProducersResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import BrokerId, RequestId, TopicPartition

_BetweenBrokers: TypeAlias = WriteTxnMarkersRequest | AddPartitionsToTxnRequest | TransactionsOfProducersRequest


class _Own(NamedTuple):
    """A request of this broker to itself; handles the answer."""

    sender: "TransactionCoordinator"
    request: messages.Request

    def answer(self, turn: Turn, response: messages.Response) -> None:
        self.sender.handle_response(turn, self.sender.broker_id, self.request, response)


class _Scan(NamedTuple):
    """A log in which this broker writes markers that no coordinator will write; handles their answer."""

    scans: "OpenTransactionScans"
    name: TopicPartition

    def answer(self, turn: Turn, response: messages.Response) -> None:
        is_written = isinstance(response, WriteTxnMarkersResponse) and not any(
            error for outcome in response.markers for error in outcome.errors
        )
        if not is_written:
            self.scans.retry(turn, self.name)


class TransactionCoordinator:
    """Handles the requests of ``transaction_messages``, and sends those between brokers.

    Args:
        config: of the broker.
        hosted: the partitions that the broker hosts.
        groups: the group coordinator, for positions committed in transactions.
        verifier: of transactions.
        inquiry: about transactions that are open in its logs.
        in_flight: the broker's unanswered requests.
        encode: makes batches.
        allocate: of producer ids.

    Attributes:
        is_used: an internal topic exists, or a request came; before that, neither this nor the group coordinator has
            anything to do.
    """

    def __init__(
        self,
        config: BrokerConfig,
        hosted: HostedPartitions,
        groups: GroupCoordinator,
        verifier: Verifier,
        inquiry: TransactionInquiry,
        in_flight: InFlightRequests,
        encode: EncodeRecords,
        allocate: AllocateProducerId,
    ) -> None:
        self.broker_id = config.broker_id
        self._timeout_ms = config.properties.request_timeout_ms
        self._hosted = hosted
        self._groups = groups
        self._in_flight = in_flight
        self._own: deque[_BetweenBrokers] = deque()
        self.is_used = False
        self._verifier = verifier
        self._inquiry = inquiry
        self._scans = OpenTransactionScans(config, hosted, inquiry, self._write_own)
        self._sender = MarkerSender(hosted.image)
        self._writer = MarkerWriter(hosted, encode, self._end_in_groups, timeout_ms=self._timeout_ms)

        def make(turn: Turn, loaded: Loaded) -> TransactionShard:
            partition, records = loaded
            return TransactionShard(
                turn, partition, encode, config, records, allocate=allocate, send_markers=self._sender.send
            )

        self._shards = HostedShards(TRANSACTIONS_TOPIC, config, hosted, make, on_resigned=self._sender.forget)
        self._timed = (
            (self._writer.timers, self._writer.handle_timer),
            (self._sender.timers, self._sender.retry),
            (verifier.timers, verifier.handle_timer),
            (inquiry.timers, inquiry.handle_timer),
            (self._scans.timers, self._scans.handle_timer),
        )

    # --- Requests -------------------------------------------------------------------------------------------------

    def handle_request(self, turn: Turn, request_id: RequestId, request: TransactionRequest) -> None:
        """Answers a request, at once or later."""
        self.is_used = True
        self._handle(turn, Caller(request_id, turn.cause_id), request)

    def _handle(self, turn: Turn, caller: Answerable, request: TransactionRequest) -> None:
        match request:
            case WriteTxnMarkersRequest():
                self._writer.handle_request(turn, caller, request)
            case AddPartitionsToTxnRequest():
                self._add_partitions(turn, caller, request)
            case ListTransactionsRequest():
                caller.answer(turn, self._listed(turn))
            case TransactionsOfProducersRequest():
                caller.answer(turn, self._of_producers(request))
            case _:
                self._route(turn, caller, request)

    def _route(self, turn: Turn, caller: Answerable, request: TransactionalIdRequest) -> None:
        if not request.transactional_id:
            caller.answer(turn, refusal(request, ErrorCode.INVALID_REQUEST))
            return
        shard = self._shards.of_key(request.transactional_id)
        if isinstance(shard, TransactionShard):
            shard.handle_request(turn, caller, request)
        else:
            caller.answer(turn, refusal(request, shard))

    def _add_partitions(self, turn: Turn, caller: Answerable, request: AddPartitionsToTxnRequest) -> None:
        outcomes: dict[int, AddPartitionsOutcome] = {}

        def collector(place: int) -> OnOutcome:
            def done(turn: Turn, outcome: AddPartitionsOutcome) -> None:
                outcomes[place] = outcome
                if len(outcomes) == len(request.transactions):
                    in_order = tuple([outcomes[number] for number in range(len(outcomes))])
                    caller.answer(turn, AddPartitionsToTxnResponse(transactions=in_order))

            return done

        for place, asked in enumerate(request.transactions):
            done = collector(place)
            shard = self._shards.of_key(asked.transactional_id)
            if not asked.transactional_id:
                done(turn, refused_partitions(asked, ErrorCode.INVALID_REQUEST))
            elif isinstance(shard, TransactionShard):
                shard.add_partitions(turn, asked, done)
            else:
                done(turn, refused_partitions(asked, shard))

    def _of_producers(self, request: TransactionsOfProducersRequest) -> TransactionsOfProducersResponse:
        shard = self._shards.of_partition(TopicPartition(TRANSACTIONS_TOPIC, request.partition))
        if not isinstance(shard, TransactionShard):
            return TransactionsOfProducersResponse(error=shard)
        if shard.leader_epoch != request.leader_epoch:
            return TransactionsOfProducersResponse(error=ErrorCode.NOT_COORDINATOR)
        known = shard.of_producers(frozenset(request.producer_ids))
        return TransactionsOfProducersResponse(error=ErrorCode.NONE, transactions=known)

    def _write_own(self, turn: Turn, name: TopicPartition, markers: tuple[TransactionMarkers, ...]) -> None:
        self._handle(turn, _Scan(self._scans, name), WriteTxnMarkersRequest(markers=markers))

    def _listed(self, turn: Turn) -> ListTransactionsResponse:
        if self._shards.is_loading:
            return ListTransactionsResponse(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed = [each for shard in self._shards.active() for each in shard.listed(turn.now_ms)]
        by_id = sorted(listed, key=lambda each: each.transactional_id)
        return ListTransactionsResponse(error=ErrorCode.NONE, transactions=tuple(by_id))

    def _end_in_groups(
        self, turn: Turn, name: TopicPartition, ended: TransactionEnded, done: Done, *, raises_epoch: bool
    ) -> None:
        shard = self._groups.shards.of_partition(name)
        if isinstance(shard, GroupShard):
            shard.end_transaction(turn, ended, raises_epoch=raises_epoch, done=done)
        else:
            done(turn, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- Other brokers --------------------------------------------------------------------------------------------

    def _send_due(self, turn: Turn) -> bool:
        due: list[tuple[BrokerId, _BetweenBrokers]] = [
            *self._sender.pop_due(),
            *self._verifier.pop_due(),
            *self._inquiry.pop_due(),
        ]
        for broker_id, request in due:
            if broker_id == self.broker_id:
                self._own.append(request)
            else:
                self._in_flight.send(turn, broker_id, request, timeout_ms=self._timeout_ms)
        return bool(due)

    def handle_response(
        self, turn: Turn, broker_id: BrokerId, request: messages.Request, response: messages.Response
    ) -> bool:
        """Handles a broker's answer; returns whether this object had sent the request."""
        match request, response:
            case WriteTxnMarkersRequest(), WriteTxnMarkersResponse():
                self._sender.handle_response(turn, request, response)
            case AddPartitionsToTxnRequest(), AddPartitionsToTxnResponse():
                self._verifier.handle_response(turn, broker_id, response)
            case TransactionsOfProducersRequest(), TransactionsOfProducersResponse():
                self._inquiry.handle_response(turn, request, response)
            case _:
                return self._groups.positions.handle_response(turn, request, response)
        return True

    def handle_failure(self, turn: Turn, broker_id: BrokerId, request: messages.Request) -> bool:
        """Handles that a broker did not answer; returns whether this object had sent the request."""
        match request:
            case WriteTxnMarkersRequest():
                self._sender.handle_failure(turn, request)
            case AddPartitionsToTxnRequest():
                self._verifier.handle_failure(turn, broker_id)
            case TransactionsOfProducersRequest():
                self._inquiry.handle_failure(request)
            case _:
                return self._groups.positions.handle_failure(turn, request)
        return True

    # --- Time, logs, and the end of a step ------------------------------------------------------------------------

    def note_topics(self) -> None:
        """Checks new metadata for internal topics, and for newly elected coordinators."""
        topics = self._hosted.image.partition_counts
        self.is_used = self.is_used or TRANSACTIONS_TOPIC in topics or OFFSETS_TOPIC in topics
        if self.is_used:
            self._scans.note_coordinators()

    def handle_read(self, turn: Turn, read: inputs.RecordsRead) -> None:
        """Begins to coordinate a partition."""
        self._shards.handle_read(turn, read)

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` is due, here or for groups, or ``None`` if nothing waits for the time."""
        of_shards = (self._groups.shards.next_deadline_ms(), self._shards.next_deadline_ms())
        return earliest_of((*of_shards, *[timers.earliest_ms for timers, _ in self._timed]))

    def handle_timer(self, turn: Turn) -> None:
        """Handles each timer that is due: those of groups first."""
        self._groups.shards.handle_timer(turn)
        self._shards.handle_timer(turn)
        for timers, handle in self._timed:
            if timers.earliest_ms is not None and timers.earliest_ms <= turn.now_ms:
                handle(turn)

    def settle(self, turn: Turn) -> None:
        """Acts on what this step changed, and sends the due requests, until no more follow."""
        while True:
            self._shards.settle(turn)
            self._groups.settle(turn)
            self._writer.settle(turn)
            self._scans.settle(turn)
            if not self._send_due(turn) and not self._own:
                return
            while self._own:
                request = self._own.popleft()
                self._handle(turn, _Own(self, request), request)
