"""The controller's state machine: inputs in, effects out, records in between.

A command yields decisions; ``MetadataImage.replay`` applies each at once, so that the next command sees it. What leaves
the node waits: replies, the metadata stream and the events of committed records are held until ``MetadataSynced``
covers the records that they depend on, also those of an answer that changed nothing but was read off state not yet
durable.

::

    input -> decide -> replay -> AppendMetadata        (at once)
                              -> RecordEvent*, PublishMetadata, SendResponse   (once synced, in that order)

Beside the image there is only soft state, lost on restart: contact times, applied offsets, timers, held effects.
Kafka's ``BrokerHeartbeatManager``, ``QuorumController``.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import assert_never

import msgspec

from emulator.core.admin_messages import AdminRequest, AdminResponse, ElectLeadersRequest, UnregisterBrokerRequest
from emulator.core.controller.admin_desk import AdminDesk
from emulator.core.controller.alter_partition import alter_partition, alter_partition_result, sender_error
from emulator.core.controller.committed_events import committed_events
from emulator.core.controller.decision import Decision, FenceReason, PartitionCause
from emulator.core.controller.elect_leaders import SWEEP_LIMIT, sweep_preferred, sweep_unclean
from emulator.core.controller.election_desk import ElectionDesk
from emulator.core.controller.features import bootstrap
from emulator.core.controller.fencing import begin_controlled_shutdown, fence_broker, unfence_broker
from emulator.core.controller.health import ControllerHealth, controller_health
from emulator.core.controller.heartbeat import BrokerProgress, BrokerState, next_state, wish
from emulator.core.controller.producer_ids import allocate_producer_ids
from emulator.core.controller.registration import Session, register_broker
from emulator.core.controller.sessions import SessionKey, SessionTracker
from emulator.core.controller.unclean_recovery import UncleanRecoveries
from emulator.core.controller.view import ClusterView
from emulator.core.describe import describe_topic_partitions
from emulator.core.effects import (
    AppendMetadata,
    ControllerEffect,
    DrawNumber,
    PublishMetadata,
    RecordEvent,
    SendRequest,
    SendResponse,
    StopNode,
)
from emulator.core.errors import ErrorCode, InvariantViolation
from emulator.core.events import AlterPartitionDecided, ControllerEvent, DrawReceived
from emulator.core.image import BrokerRegistration, MetadataImage
from emulator.core.inputs import (
    ControllerInput,
    MetadataSynced,
    NumberDrawn,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ShutdownRequested,
    Started,
    TimerFired,
)
from emulator.core.invariants import check_delta
from emulator.core.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    DeleteRecordsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    GetReplicaLogInfoRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    Response,
)
from emulator.core.properties import NodeProperties
from emulator.core.records import MetadataBatch, Record
from emulator.core.switches import Switches
from emulator.core.timers import TimerQueue
from emulator.core.types import CauseId, MetadataOffset, NodeId, RequestId


class _Sweep(Enum):
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """Effects that may leave once everything below ``end_offset`` is durable; events go before messages."""

    end_offset: MetadataOffset
    events: tuple[RecordEvent, ...] = ()
    messages: tuple[ControllerEffect, ...] = ()


class _Turn:
    """What one input has led to so far."""

    def __init__(self, *, cause_id: CauseId, base_offset: MetadataOffset, now_ms: int) -> None:
        self.cause_id = cause_id
        self.base_offset = base_offset
        self.now_ms = now_ms
        self.records: list[Record] = []
        self.events: list[ControllerEvent] = []
        self.responses: list[SendResponse] = []
        self.requests: list[SendRequest] = []
        self.wants_draw = False

    def respond(self, request_id: RequestId, response: Response) -> None:
        self.responses.append(SendResponse(request_id=request_id, response=response, cause_id=self.cause_id))


class Controller:
    """One controller. Feed it every durable batch with ``replay``, then ``Started``, then whatever happens.

    Attributes:
        image: the fold of all records, durable or not yet; readers only.
        sessions: who was heard of when; readers only.
        recoveries: which leaderless partitions are being recovered; readers only.
    """

    def __init__(self, properties: NodeProperties, switches: Switches, cluster_id: str, node_id: NodeId) -> None:
        self.image = MetadataImage()
        self._view = ClusterView(image=self.image, properties=properties, switches=switches, node_id=node_id)
        self._properties = properties
        self._switches = switches
        self._cluster_id = cluster_id
        self.recoveries = UncleanRecoveries(self._view)
        self._elections = ElectionDesk(self._view, self.recoveries)
        self._admin = AdminDesk(self._view, cluster_id=cluster_id)
        self.sessions = SessionTracker(timeout_ms=properties.broker_session_timeout_ms)
        self._timers: TimerQueue[SessionKey | _Sweep] = TimerQueue()
        self._held: deque[_Held] = deque()
        # Invariant: committed_end_offset <= image.next_offset.
        self._synced_end_offset = MetadataOffset(0)

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """End of the durable records: what a metadata stream may serve, and names when it opens."""
        return self._synced_end_offset

    def health(self) -> ControllerHealth:
        """Returns counts over the state as it is now, durable or not yet."""
        return controller_health(self._view)

    def replay(self, batch: MetadataBatch) -> None:
        """Applies a durable batch at start.

        Raises:
            InvariantViolation: the batch does not continue the ones before it.
        """
        for index, record in enumerate(batch.records):
            self.image.replay(record, offset=MetadataOffset(batch.base_offset + index))
        self._synced_end_offset = self.image.next_offset

    def next_deadline_ms(self) -> int | None:
        """Returns when the next ``TimerFired`` is wanted; it may be in the past: then at once."""
        deadlines = (self._timers.next_deadline_ms(), self.recoveries.next_deadline_ms())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def step(self, incoming: ControllerInput, *, now_ms: int) -> list[ControllerEffect]:
        """Returns what the input leads to now.

        Raises:
            InvariantViolation: a request that is not for a controller, or a sync of what was never appended.
            ConfigError: ``Started`` on an empty log, with properties and switches that exclude each other.
        """
        turn = _Turn(cause_id=incoming.cause_id, base_offset=self.image.next_offset, now_ms=now_ms)
        match incoming:
            case MetadataSynced(end_offset=end_offset):
                return self._release(end_offset)
            case ShutdownRequested():
                return self._hold(_Held(end_offset=self.image.next_offset, messages=(StopNode(),)))
            case Started():
                self._start(turn)
            case TimerFired():
                self._fire_timers(turn)
            case RequestReceived():
                self._answer(turn, incoming)
            case ResponseReceived(correlation_id=correlation_id, response=response):
                self.recoveries.handle_response(correlation_id, response, now_ms=now_ms)
            case RequestFailed(correlation_id=correlation_id):
                self.recoveries.handle_failure(correlation_id, now_ms=now_ms)
            case NumberDrawn(number=number):
                self._view.draw = number
                turn.events.append(DrawReceived(cause_id=turn.cause_id, number=number))
            case _:
                assert_never(incoming)
        self._recover(turn)
        return self._finish(turn)

    def _recover(self, turn: _Turn) -> None:
        progress = self.recoveries.advance(now_ms=turn.now_ms, cause_id=turn.cause_id)
        self._commit(turn, progress.decisions)
        turn.events += progress.events
        turn.requests += progress.requests
        for answered in self._elections.conclude(progress.ended):
            turn.responses.append(
                SendResponse(request_id=answered.request_id, response=answered.response, cause_id=answered.cause_id)
            )

    # --- Records and what waits for them --------------------------------------------------------------------------

    def _commit(self, turn: _Turn, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            offset, brokers = self.image.next_offset, dict(self.image.brokers)
            self.image.replay(decision.record, offset=offset)
            delta = self.image.take_delta()
            check_delta(delta, brokers_before=brokers, brokers_after=self.image.brokers)
            turn.records.append(decision.record)
            turn.wants_draw = turn.wants_draw or _used_draw(decision)
            turn.events += committed_events(
                decision,
                offset=offset,
                delta=delta,
                view=self._view,
                cause_id=turn.cause_id,
            )

    def _finish(self, turn: _Turn) -> list[ControllerEffect]:
        effects: list[ControllerEffect] = []
        messages: list[ControllerEffect] = []
        if turn.records:
            batch = MetadataBatch(base_offset=turn.base_offset, records=tuple(turn.records))
            effects.append(AppendMetadata(batch=batch, events=tuple(turn.events)))
            messages.append(PublishMetadata(batch=batch, cause_id=turn.cause_id))
        held = _Held(
            end_offset=self.image.next_offset,
            events=tuple(RecordEvent(event=event) for event in turn.events),
            messages=(*messages, *turn.responses, *turn.requests),
        )
        if turn.wants_draw:
            effects.append(DrawNumber())
        return effects + self._hold(held)

    def _hold(self, held: _Held) -> list[ControllerEffect]:
        if held.end_offset <= self._synced_end_offset:
            return [*held.events, *held.messages]
        self._held.append(held)
        return []

    def _release(self, end_offset: MetadataOffset) -> list[ControllerEffect]:
        if end_offset > self.image.next_offset:
            raise InvariantViolation(f"synced up to {end_offset}, appended up to {self.image.next_offset}")
        self._synced_end_offset = max(self._synced_end_offset, end_offset)
        events: list[ControllerEffect] = []
        messages: list[ControllerEffect] = []
        while self._held and self._held[0].end_offset <= self._synced_end_offset:
            held = self._held.popleft()
            events += held.events
            messages += held.messages
        return events + messages

    # --- Start and time -------------------------------------------------------------------------------------------

    def _start(self, turn: _Turn) -> None:
        turn.wants_draw = self._view.picks_at_random
        self.image.take_delta()
        if self.image.next_offset == 0:
            self._commit(turn, bootstrap(self._properties, self._switches))
        # Nobody knows how long ago these were heard of, so each gets a full session; a fenced broker has none.
        for broker in self.image.brokers.values():
            if not broker.fenced:
                self._touch(broker, now_ms=turn.now_ms)
        self._arm(_Sweep.PREFERRED, now_ms=turn.now_ms)
        self._arm(_Sweep.UNCLEAN, now_ms=turn.now_ms)

    def _touch(self, broker: BrokerRegistration, *, now_ms: int) -> None:
        key = SessionKey(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
        self._timers.set(key, at_ms=self.sessions.touch(key, now_ms=now_ms))

    def _arm(self, sweep: _Sweep, *, now_ms: int) -> None:
        match sweep:
            case _Sweep.PREFERRED:
                if not self._properties.auto_leader_rebalance_enable:
                    return
                interval_ms = self._properties.leader_imbalance_check_interval_seconds * 1000
            case _Sweep.UNCLEAN:
                interval_ms = self._properties.unclean_leader_election_interval_ms
        self._timers.set(sweep, at_ms=now_ms + interval_ms)

    def _fire_timers(self, turn: _Turn) -> None:
        due = self._timers.pop_due(now_ms=turn.now_ms)
        # One a turn, as in Kafka: two brokers that expire together cause two elections, not one.
        for later in due[1:]:
            self._timers.set(later, at_ms=turn.now_ms)
        match due[:1]:
            case [SessionKey() as key]:
                self._expire(turn, key)
            case [_Sweep() as sweep]:
                self._sweep(turn, sweep)

    def _expire(self, turn: _Turn, key: SessionKey) -> None:
        self.sessions.end(key)
        broker = self.image.brokers.get(key.broker_id)
        if broker is not None and broker.broker_epoch == key.broker_epoch and not broker.fenced:
            self._commit(turn, fence_broker(self._view, key.broker_id, reason=FenceReason.SESSION_EXPIRED))

    def _sweep(self, turn: _Turn, sweep: _Sweep) -> None:
        match sweep:
            case _Sweep.PREFERRED:
                decisions = sweep_preferred(self._view)
            case _Sweep.UNCLEAN:
                decisions = sweep_unclean(self._view)
        self._commit(turn, decisions)
        if len(decisions) == SWEEP_LIMIT:
            self._timers.set(sweep, at_ms=turn.now_ms)
        else:
            self._arm(sweep, now_ms=turn.now_ms)

    # --- Requests -------------------------------------------------------------------------------------------------

    def _answer(self, turn: _Turn, received: RequestReceived) -> None:
        if isinstance(received.request, ElectLeadersRequest):
            self._elect_leaders(turn, received.request_id, received.request)
            return
        if isinstance(received.request, AdminRequest):
            turn.respond(received.request_id, self._administer(turn, received.request))
            return
        match received.request:
            case BrokerRegistrationRequest() as request:
                response: Response = self._register(turn, request)
            case BrokerHeartbeatRequest() as request:
                response = self._heartbeat(turn, request)
            case AlterPartitionRequest() as request:
                response = self._alter_partitions(turn, request)
            case AllocateProducerIdsRequest() as request:
                allocated = allocate_producer_ids(self._view, request)
                self._commit(turn, allocated.decisions)
                response = allocated.response
            case DescribeTopicPartitionsRequest() as request:
                limit = self._properties.max_request_partition_size_limit
                response = describe_topic_partitions(self.image, request, partition_limit=limit)
            case (
                MetadataRequest()
                | InitProducerIdRequest()
                | ProduceRequest()
                | FetchRequest()
                | ListOffsetsRequest()
                | OffsetForLeaderEpochRequest()
                | DeleteRecordsRequest()
                | GetReplicaLogInfoRequest()
            ) as request:
                raise InvariantViolation(f"a controller received {request}")
            case _:
                assert_never(received.request)
        turn.respond(received.request_id, response)

    def _elect_leaders(self, turn: _Turn, request_id: RequestId, request: ElectLeadersRequest) -> None:
        response = self._elections.answer(
            request,
            lambda decisions: self._commit(turn, decisions),
            request_id=request_id,
            cause_id=turn.cause_id,
            now_ms=turn.now_ms,
        )
        if response is not None:
            turn.respond(request_id, response)

    def _administer(self, turn: _Turn, request: AdminRequest) -> AdminResponse:
        stored = self.image.brokers.get(request.broker_id) if isinstance(request, UnregisterBrokerRequest) else None
        response = self._admin.answer(request, lambda decisions: self._commit(turn, decisions))
        if stored is not None:
            self._end_session(stored)
        return response

    def _register(self, turn: _Turn, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        stored = self.image.brokers.get(request.broker_id)
        session = Session.NONE
        if stored is not None:
            key = SessionKey(broker_id=stored.broker_id, broker_epoch=stored.broker_epoch)
            if self.sessions.is_valid(key, now_ms=turn.now_ms):
                session = Session.VALID
        outcome = register_broker(self._view, request, cluster_id=self._cluster_id, session=session)
        self._commit(turn, outcome.decisions)
        if outcome.shutdown is not None:
            if stored is not None:
                self._end_session(stored)
            self._touch(self.image.brokers[request.broker_id], now_ms=turn.now_ms)
        return BrokerRegistrationResponse(error=outcome.error, broker_epoch=outcome.broker_epoch)

    def _end_session(self, broker: BrokerRegistration) -> None:
        key = SessionKey(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
        self.sessions.end(key)
        self._timers.cancel(key)

    def _heartbeat(self, turn: _Turn, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        broker = self.image.brokers.get(request.broker_id)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            return BrokerHeartbeatResponse(error=ErrorCode.STALE_BROKER_EPOCH)
        self._touch(broker, now_ms=turn.now_ms)
        self.sessions.note_applied(broker.broker_id, request.current_metadata_offset)
        progress = BrokerProgress(
            applied_offset=request.current_metadata_offset,
            registration_offset=broker.registration_offset,
            has_leaderships=self._view.leads_any(broker.broker_id),
            shutdown_offset=self.sessions.shutdown_offset(broker.broker_id),
            active_offsets=self.sessions.applied_offsets(sorted(self._view.active_brokers())),
        )
        current = self._state_of(broker)
        asked = wish(want_fence=request.want_fence, want_shut_down=request.want_shut_down)
        state = next_state(current, asked, progress)
        if state is not current:
            self._enter(turn, broker, state)
        return BrokerHeartbeatResponse(
            error=ErrorCode.NONE,
            is_caught_up=progress.is_caught_up,
            is_fenced=state.is_fenced,
            should_shut_down=state is BrokerState.SHUTDOWN_NOW,
        )

    def _state_of(self, broker: BrokerRegistration) -> BrokerState:
        if broker.fenced:
            return BrokerState.FENCED
        if self.sessions.shutdown_offset(broker.broker_id) is not None:
            return BrokerState.CONTROLLED_SHUTDOWN
        # After a restart of the controller this also holds for a broker whose shutdown began: it starts over.
        return BrokerState.UNFENCED

    def _enter(self, turn: _Turn, broker: BrokerRegistration, state: BrokerState) -> None:
        match state:
            case BrokerState.FENCED:
                self._commit(turn, fence_broker(self._view, broker.broker_id, reason=FenceReason.REQUESTED))
            case BrokerState.SHUTDOWN_NOW:
                self._commit(turn, fence_broker(self._view, broker.broker_id, reason=FenceReason.SHUTDOWN))
            case BrokerState.UNFENCED:
                self._commit(turn, unfence_broker(self._view, broker.broker_id))
            case BrokerState.CONTROLLED_SHUTDOWN:
                self._commit(turn, begin_controlled_shutdown(self._view, broker.broker_id))
                last_offset = MetadataOffset(self.image.next_offset - 1)
                self.sessions.begin_shutdown(broker.broker_id, offset=last_offset)

    def _alter_partitions(self, turn: _Turn, request: AlterPartitionRequest) -> AlterPartitionResponse:
        error = sender_error(self._view, request)
        if error is not ErrorCode.NONE:
            for data in request.partitions:
                self._note_verdict(turn, request, data, error=error)
            return AlterPartitionResponse(error=error)
        results = [self._alter_partition(turn, request, data) for data in request.partitions]
        return AlterPartitionResponse(error=ErrorCode.NONE, partitions=tuple(results))

    def _alter_partition(
        self, turn: _Turn, request: AlterPartitionRequest, data: AlterPartitionData
    ) -> AlterPartitionResult:
        outcome = alter_partition(self._view, request, data)
        self._commit(turn, outcome.decisions)
        after = None if outcome.partition is None else self.image.partitions[outcome.partition]
        result = alter_partition_result(request, data, error=outcome.error, after=after)
        self._note_verdict(turn, request, data, error=result.error)
        return result

    def _note_verdict(
        self, turn: _Turn, request: AlterPartitionRequest, data: AlterPartitionData, *, error: ErrorCode
    ) -> None:
        topic = data.topic if data.topic_id is None else self.image.topic_names.get(data.topic_id, data.topic)
        topic_id = self.image.topics.get(topic) if data.topic_id is None else data.topic_id
        if topic_id is None:
            return  # A partition event names a topic incarnation, and a name alone that nobody bears names none.
        turn.events.append(
            AlterPartitionDecided(
                cause_id=turn.cause_id,
                topic=topic,
                partition=data.partition,
                topic_id=topic_id,
                broker_id=request.broker_id,
                broker_epoch=request.broker_epoch,
                leader_epoch=data.leader_epoch,
                partition_epoch=data.partition_epoch,
                proposed_isr=tuple(member.broker_id for member in data.new_isr),
                broker_epochs=tuple(member.broker_epoch for member in data.new_isr),
                error=error.name,
            )
        )


def _used_draw(decision: Decision) -> bool:
    cause = decision.cause
    return isinstance(cause, PartitionCause) and cause.unclean is not None and cause.unclean.draw is not None
