"""The controller's state machine: inputs in, effects out, records in between.

A command yields decisions; ``MetadataImage.replay`` applies each at once, so that the next command sees it. What leaves
the node waits: replies, the metadata stream and the events of committed records are held until ``MetadataCommitted``
covers the records that they depend on, also those of an answer that changed nothing but was read off state not yet
committed. A controller on its own commits by its fsync, one of several by a majority of the quorum.

::

    input -> decide -> replay -> AppendMetadata        (at once)
                              -> RecordEvent*, PublishMetadata, SendResponse   (once committed, in that order)

Beside the image there is only soft state, lost on restart: contact times, applied offsets, timers, held effects.
Kafka's ``BrokerHeartbeatManager``, ``QuorumController``.
"""

from collections import deque
from enum import Enum
from typing import assert_never

import msgspec

from laststand.emulator.core import (
    admin_messages,
    events,
    group_messages,
    inputs,
    messages,
    records,
    transaction_messages,
)
from laststand.emulator.core.authorizer.authorizer import authorizer_of
from laststand.emulator.core.authorizer.request_guard import Refused, RequestGuard
from laststand.emulator.core.controller.activation import activation
from laststand.emulator.core.controller.admin_handler import AdminHandler
from laststand.emulator.core.controller.broker_handler import BrokerHandler
from laststand.emulator.core.controller.elect_leaders import SWEEP_LIMIT, sweep_preferred, sweep_unclean
from laststand.emulator.core.controller.election_handler import ElectionHandler
from laststand.emulator.core.controller.health import ControllerHealth, controller_health
from laststand.emulator.core.controller.producer_ids import allocate_producer_ids
from laststand.emulator.core.controller.sessions import SessionKey, SessionTracker
from laststand.emulator.core.controller.turn import ControllerTurn
from laststand.emulator.core.controller.unclean_recovery import UncleanRecoveries
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.describe import describe_topic_partitions
from laststand.emulator.core.effects import (
    AppendMetadata,
    ControllerEffect,
    DrawNumber,
    PublishMetadata,
    RecordEvent,
    SendResponse,
    StopNode,
)
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.release import check_finalized
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import MetadataOffset, NodeId, RequestId


class _Sweep(Enum):
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """Effects that may leave once everything below ``end_offset`` is committed; events go before messages."""

    end_offset: MetadataOffset
    events: tuple[RecordEvent, ...] = ()
    messages: tuple[ControllerEffect, ...] = ()


class Controller:
    """One controller. Feed it every committed batch with ``replay``, then ``Started``, then whatever happens.

    Args:
        properties: of its node.
        switches: the rules in force.
        cluster_id: of the cluster.
        node_id: of its node.
        has_transactions: whether it writes the first records of a cluster in a metadata transaction.

    Attributes:
        image: the state after all records, committed or not yet; other code only reads it.
        recoveries: the leaderless partitions that are being recovered; other code only reads it.
        committed_end_offset: end of the committed records. A metadata stream serves none above it, and names it when it
            opens.
    """

    def __init__(
        self,
        properties: NodeProperties,
        switches: Switches,
        cluster_id: str,
        node_id: NodeId,
        *,
        has_transactions: bool = False,
    ) -> None:
        self.image = MetadataImage()
        self._view = ClusterView(image=self.image, properties=properties, switches=switches, node_id=node_id)
        self._properties = properties
        self._switches = switches
        self._has_transactions = has_transactions
        self.recoveries = UncleanRecoveries(self._view)
        self._elections = ElectionHandler(self._view, self.recoveries)
        self._timers: TimerQueue[SessionKey | _Sweep] = TimerQueue()
        self._brokers = BrokerHandler(self._view, cluster_id=cluster_id, timers=self._timers)
        self._admin = AdminHandler(self._view, self._brokers.sessions, cluster_id=cluster_id)
        authorizer = authorizer_of(properties, self.image.acls)
        self._guard = None if authorizer is None else RequestGuard(authorizer)
        self._held: deque[_Held] = deque()
        # Invariant: committed_end_offset <= image.next_offset.
        self.committed_end_offset = MetadataOffset(0)

    @property
    def sessions(self) -> SessionTracker:
        """The last contact of each broker; for reading only."""
        return self._brokers.sessions

    def health(self) -> ControllerHealth:
        """Returns counts over the state as it is now, committed or not yet."""
        return controller_health(self._view, under_way=self.recoveries.under_way)

    def may_read_metadata(self, requester: Requester | None) -> bool:
        """Returns whether somebody may open the metadata stream, or read on in it."""
        return self._guard is None or self._guard.may_read_metadata(requester)

    def replay(self, batch: records.MetadataBatch) -> None:
        """Applies a committed batch at start.

        Raises:
            InvariantError: the batch does not continue the ones before it.
        """
        self.fold(batch)
        self.committed_end_offset = self.image.next_offset

    def fold(self, batch: records.MetadataBatch) -> None:
        """Applies a batch that is not committed yet: records that the quorum itself has appended, which take offsets.

        Raises:
            InvariantError: the batch does not continue the ones before it.
        """
        for index, record in enumerate(batch.records):
            self.image.replay(record, offset=MetadataOffset(batch.base_offset + index))

    def check_finalized(self) -> None:
        """Checks, once the log is replayed, that this controller's release has every finalized feature level.

        Raises:
            UnsupportedFeatureError: it lacks one; the process has to end.
        """
        check_finalized(self.image.features, self._switches)

    def next_deadline_ms(self) -> int | None:
        """Returns when the next ``TimerFired`` is wanted; it may be in the past: then at once."""
        timer, recovery = self._timers.earliest_ms, self.recoveries.next_deadline_ms()
        if timer is None or recovery is None:
            return recovery if timer is None else timer
        return min(timer, recovery)

    def step(self, incoming: inputs.ControllerInput, *, now_ms: int) -> list[ControllerEffect]:
        """Returns the effects of an input.

        Raises:
            InvariantError: the request is not for a controller, or the commit is of a batch that was never appended.
            ConfigError: ``Started`` on a log without metadata version, and properties and switches exclude each other.
        """
        turn = ControllerTurn(self._view, cause_id=incoming.cause_id, now_ms=now_ms)
        match incoming:
            case inputs.MetadataCommitted(end_offset=end_offset):
                return self._release(end_offset)
            case inputs.ShutdownRequested():
                return self._hold(_Held(end_offset=self.image.next_offset, messages=(StopNode(),)))
            case inputs.Started():
                self._start(turn)
            case inputs.TimerFired():
                self._fire_timers(turn)
            case inputs.RequestReceived():
                self._answer(turn, incoming)
            case inputs.ResponseReceived(correlation_id=correlation_id, response=response):
                self.recoveries.handle_response(correlation_id, response, now_ms=now_ms)
            case inputs.RequestFailed(correlation_id=correlation_id):
                self.recoveries.handle_failure(correlation_id, now_ms=now_ms)
            case inputs.NumberDrawn(number=number):
                self._view.draw = number
                turn.events.append(events.DrawReceived(cause_id=turn.cause_id, number=number))
            case _:
                assert_never(incoming)
        self._recover(turn)
        return self._finish(turn)

    def _recover(self, turn: ControllerTurn) -> None:
        progress = self.recoveries.advance(now_ms=turn.now_ms, cause_id=turn.cause_id)
        turn.commit(progress.decisions)
        turn.events += progress.events
        turn.requests += progress.requests
        for answered in self._elections.conclude(progress.ended):
            turn.responses.append(
                SendResponse(request_id=answered.request_id, response=answered.response, cause_id=answered.cause_id)
            )

    # --- Records and what waits for them --------------------------------------------------------------------------

    def _finish(self, turn: ControllerTurn) -> list[ControllerEffect]:
        if self._guard is not None:
            turn.responses = [self._guard.complete(response) for response in turn.responses]
            turn.events += self._guard.pop_denials()
        effects: list[ControllerEffect] = []
        messages: list[ControllerEffect] = []
        if turn.records:
            batch = records.MetadataBatch(base_offset=turn.base_offset, records=tuple(turn.records))
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
        if held.end_offset <= self.committed_end_offset:
            return [*held.events, *held.messages]
        self._held.append(held)
        return []

    def _release(self, end_offset: MetadataOffset) -> list[ControllerEffect]:
        if end_offset > self.image.next_offset:
            raise InvariantError(f"committed up to {end_offset}, appended up to {self.image.next_offset}")
        self.committed_end_offset = max(self.committed_end_offset, end_offset)
        events: list[ControllerEffect] = []
        messages: list[ControllerEffect] = []
        while self._held and self._held[0].end_offset <= self.committed_end_offset:
            held = self._held.popleft()
            events += held.events
            messages += held.messages
        return events + messages

    # --- Start and time -------------------------------------------------------------------------------------------

    def _start(self, turn: ControllerTurn) -> None:
        turn.wants_draw = self._view.picks_at_random
        self.image.pop_delta()
        for decisions in activation(
            self.image, self._properties, self._switches, has_transactions=self._has_transactions
        ):
            turn.commit(decisions)
        # The last contact of these is unknown, so each gets a full session; a fenced broker has none.
        for broker in self.image.brokers.values():
            if not broker.fenced:
                self._brokers.touch(broker, now_ms=turn.now_ms)
        self._arm(_Sweep.PREFERRED, now_ms=turn.now_ms)
        self._arm(_Sweep.UNCLEAN, now_ms=turn.now_ms)

    def _arm(self, sweep: _Sweep, *, now_ms: int) -> None:
        match sweep:
            case _Sweep.PREFERRED:
                if not self._properties.auto_leader_rebalance_enable:
                    return
                interval_ms = self._properties.leader_imbalance_check_interval_seconds * 1000
            case _Sweep.UNCLEAN:
                interval_ms = self._properties.unclean_leader_election_interval_ms
        self._timers.set(sweep, at_ms=now_ms + interval_ms)

    def _fire_timers(self, turn: ControllerTurn) -> None:
        due = self._timers.pop_due(now_ms=turn.now_ms)
        # One a turn, as in Kafka: two brokers that expire together cause two elections, not one.
        for later in due[1:]:
            self._timers.set(later, at_ms=turn.now_ms)
        match due[:1]:
            case [SessionKey() as key]:
                self._brokers.expire(turn, key)
            case [_Sweep() as sweep]:
                self._sweep(turn, sweep)

    def _sweep(self, turn: ControllerTurn, sweep: _Sweep) -> None:
        match sweep:
            case _Sweep.PREFERRED:
                decisions = sweep_preferred(self._view)
            case _Sweep.UNCLEAN:
                decisions = sweep_unclean(self._view)
        turn.commit(decisions)
        if len(decisions) == SWEEP_LIMIT:
            self._timers.set(sweep, at_ms=turn.now_ms)
        else:
            self._arm(sweep, now_ms=turn.now_ms)

    # --- Requests -------------------------------------------------------------------------------------------------

    def _answer(self, turn: ControllerTurn, received: inputs.RequestReceived) -> None:
        if self._guard is not None:
            admitted = self._guard.admit(received)
            if isinstance(admitted, Refused):
                self._refuse(turn, received, admitted.response)
                return
            received = admitted
        match received.request:
            case messages.BrokerHeartbeatRequest() as request:
                response: messages.Response = self._brokers.heartbeat(turn, request)
            case messages.BrokerRegistrationRequest() as request:
                response = self._brokers.register(turn, request)
            case messages.AlterPartitionRequest() as request:
                response = self._brokers.alter_partitions(turn, request)
            case messages.AllocateProducerIdsRequest() as request:
                allocated = allocate_producer_ids(self._view, request)
                turn.commit(allocated.decisions)
                response = allocated.response
            case messages.DescribeTopicPartitionsRequest() as request:
                response = describe_topic_partitions(
                    self.image,
                    request,
                    partition_limit=self._properties.max_request_partition_size_limit,
                    unauthorized=self._unseen(received),
                )
            case admin_messages.ElectLeadersRequest() as request:
                self._elect_leaders(turn, received.request_id, request)
                return
            case (
                messages.MetadataRequest()
                | messages.InitProducerIdRequest()
                | messages.ProduceRequest()
                | messages.FetchRequest()
                | messages.ListOffsetsRequest()
                | messages.OffsetForLeaderEpochRequest()
                | messages.DeleteRecordsRequest()
                | messages.GetReplicaLogInfoRequest()
                | group_messages.CoordinatorMessage()
                | transaction_messages.TransactionMessage()
            ) as request:
                raise InvariantError(f"a controller received {request}")
            case administration:
                response = self._administer(turn, administration)
        turn.respond(received.request_id, response)

    def _refuse(self, turn: ControllerTurn, received: inputs.RequestReceived, response: messages.Response) -> None:
        if isinstance(received.request, messages.AlterPartitionRequest):
            self._brokers.refuse_alter_partitions(turn, received.request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        turn.respond(received.request_id, response)

    def _unseen(self, received: inputs.RequestReceived) -> frozenset[str]:
        return frozenset() if self._guard is None else self._guard.unseen(received, self.image.topics)

    def _elect_leaders(
        self, turn: ControllerTurn, request_id: RequestId, request: admin_messages.ElectLeadersRequest
    ) -> None:
        response = self._elections.answer(
            request,
            turn.commit,
            request_id=request_id,
            cause_id=turn.cause_id,
            now_ms=turn.now_ms,
        )
        if response is not None:
            turn.respond(request_id, response)

    def _administer(self, turn: ControllerTurn, request: admin_messages.AdminRequest) -> admin_messages.AdminResponse:
        stored = (
            self.image.brokers.get(request.broker_id)
            if isinstance(request, admin_messages.UnregisterBrokerRequest)
            else None
        )
        response = self._admin.answer(request, turn.commit)
        if stored is not None:
            self._brokers.forget(stored)
        return response
