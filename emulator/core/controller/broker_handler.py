"""Requests of brokers: registrations, heartbeats, ISR changes; and the sessions that those keep alive.

Decisions come from their own modules; here is what they need of the soft state, and what they do to it. Kafka's
``ClusterControlManager``, ``BrokerHeartbeatManager``, ``ReplicationControlManager.alterPartition``.
"""

from typing import Protocol

from laststand.emulator.core import events, messages
from laststand.emulator.core.controller.alter_partition import alter_partition, alter_partition_result, sender_error
from laststand.emulator.core.controller.fencing import begin_controlled_shutdown, fence_broker, unfence_broker
from laststand.emulator.core.controller.heartbeat import (
    BrokerControlState,
    BrokerProgress,
    heartbeat_intent,
    next_state,
)
from laststand.emulator.core.controller.registration import RegistrationOutcome, Session, register_broker
from laststand.emulator.core.controller.sessions import SessionKey, SessionTracker
from laststand.emulator.core.controller.turn import ControllerTurn
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import BrokerRegistration
from laststand.emulator.core.types import BrokerId, FenceReason, IncarnationId, MetadataOffset


class SessionTimers(Protocol):
    """The part of the controller's timers that sessions need."""

    def set(self, key: SessionKey, *, at_ms: int) -> None:
        """Arms a session's end."""

    def cancel(self, key: SessionKey) -> None:
        """Cancels the timer."""


class BrokerHandler:
    """Answers brokers.

    Args:
        view: the input of decisions.
        cluster_id: the cluster's.
        timers: call ``expire`` with the keys that are due.

    Attributes:
        sessions: when each broker was last heard from; for other parts to read.
    """

    def __init__(self, view: ClusterView, *, cluster_id: str, timers: SessionTimers) -> None:
        self.sessions = SessionTracker(timeout_ms=view.properties.broker_session_timeout_ms)
        self._view = view
        self._cluster_id = cluster_id
        self._timers = timers
        self._refused: dict[BrokerId, tuple[IncarnationId, str]] = {}

    # --- Sessions -------------------------------------------------------------------------------------------------

    def touch(self, broker: BrokerRegistration, *, now_ms: int) -> None:
        """Starts a broker's session, or prolongs it."""
        key = SessionKey(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
        self._timers.set(key, at_ms=self.sessions.touch(key, now_ms=now_ms))

    def expire(self, turn: ControllerTurn, key: SessionKey) -> None:
        """Ends a session whose time is over, and fences its broker if that is still the registered process."""
        self.sessions.end(key)
        broker = self._view.image.brokers.get(key.broker_id)
        if broker is not None and broker.broker_epoch == key.broker_epoch and not broker.fenced:
            turn.commit(fence_broker(self._view, key.broker_id, reason=FenceReason.SESSION_EXPIRED))

    def forget(self, broker: BrokerRegistration) -> None:
        """Ends a broker's session without fencing it."""
        key = SessionKey(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
        self.sessions.end(key)
        self._timers.cancel(key)

    # --- Requests -------------------------------------------------------------------------------------------------

    def register(
        self, turn: ControllerTurn, request: messages.BrokerRegistrationRequest
    ) -> messages.BrokerRegistrationResponse:
        """Registers a process, if it may: a new incarnation starts a session and ends that of the one before."""
        stored = self._view.image.brokers.get(request.broker_id)
        session = Session.NONE
        if stored is not None:
            key = SessionKey(broker_id=stored.broker_id, broker_epoch=stored.broker_epoch)
            if self.sessions.is_valid(key, now_ms=turn.now_ms):
                session = Session.VALID
        outcome = register_broker(self._view, request, cluster_id=self._cluster_id, session=session)
        turn.commit(outcome.decisions)
        self._note_refusal(turn, request, outcome)
        if outcome.shutdown is not None:
            if stored is not None:
                self.forget(stored)
            self.touch(self._view.image.brokers[request.broker_id], now_ms=turn.now_ms)
        return messages.BrokerRegistrationResponse(error=outcome.error, broker_epoch=outcome.broker_epoch)

    def _note_refusal(
        self, turn: ControllerTurn, request: messages.BrokerRegistrationRequest, outcome: RegistrationOutcome
    ) -> None:
        """Records why a process is refused, once for each reason: it asks again and again."""
        if outcome.error in (ErrorCode.NONE, ErrorCode.DUPLICATE_BROKER_REGISTRATION):
            return
        refusal = request.incarnation_id, outcome.reason
        if self._refused.get(request.broker_id) != refusal:
            self._refused[request.broker_id] = refusal
            turn.events.append(
                events.RegistrationRefused(
                    cause_id=turn.cause_id,
                    broker_id=request.broker_id,
                    error=outcome.error.name,
                    reason=outcome.reason,
                )
            )

    def heartbeat(
        self, turn: ControllerTurn, request: messages.BrokerHeartbeatRequest
    ) -> messages.BrokerHeartbeatResponse:
        """Prolongs a session and moves the broker to the state that it wants and may have."""
        broker = self._view.image.brokers.get(request.broker_id)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            return messages.BrokerHeartbeatResponse(error=ErrorCode.STALE_BROKER_EPOCH)
        self.touch(broker, now_ms=turn.now_ms)
        self.sessions.note_applied(broker.broker_id, request.current_metadata_offset)
        shutdown_offset = self.sessions.shutdown_offset(broker.broker_id)
        progress = BrokerProgress(
            applied_offset=request.current_metadata_offset,
            registration_offset=broker.registration_offset,
            has_leaderships=self._view.leads_any(broker.broker_id),
            shutdown_offset=shutdown_offset,
            active_offsets=() if shutdown_offset is None else self._active_offsets(),
        )
        current = self._state_of(broker)
        asked = heartbeat_intent(want_fence=request.want_fence, want_shut_down=request.want_shut_down)
        state = next_state(current, asked, progress)
        if state is not current:
            self._enter(turn, broker, state)
        return messages.BrokerHeartbeatResponse(
            error=ErrorCode.NONE,
            is_caught_up=progress.is_caught_up,
            is_fenced=state.is_fenced,
            should_shut_down=state is BrokerControlState.SHUTDOWN_NOW,
        )

    def _active_offsets(self) -> tuple[MetadataOffset | None, ...]:
        return self.sessions.applied_offsets(sorted(self._view.active_brokers()))

    def _state_of(self, broker: BrokerRegistration) -> BrokerControlState:
        if broker.fenced:
            return BrokerControlState.FENCED
        if self.sessions.shutdown_offset(broker.broker_id) is not None:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        # After a restart of the controller this also holds for a broker whose shutdown began: it starts over.
        return BrokerControlState.UNFENCED

    def _enter(self, turn: ControllerTurn, broker: BrokerRegistration, state: BrokerControlState) -> None:
        match state:
            case BrokerControlState.FENCED:
                turn.commit(fence_broker(self._view, broker.broker_id, reason=FenceReason.REQUESTED))
            case BrokerControlState.SHUTDOWN_NOW:
                turn.commit(fence_broker(self._view, broker.broker_id, reason=FenceReason.SHUTDOWN))
            case BrokerControlState.UNFENCED:
                turn.commit(unfence_broker(self._view, broker.broker_id))
            case BrokerControlState.CONTROLLED_SHUTDOWN:
                turn.commit(begin_controlled_shutdown(self._view, broker.broker_id))
                last_offset = MetadataOffset(self._view.image.next_offset - 1)
                self.sessions.begin_shutdown(broker.broker_id, offset=last_offset)

    def alter_partitions(
        self, turn: ControllerTurn, request: messages.AlterPartitionRequest
    ) -> messages.AlterPartitionResponse:
        """Judges each ISR change, if the sender is who it claims to be, and notes each verdict."""
        error = sender_error(self._view, request)
        if error is not ErrorCode.NONE:
            self.refuse_alter_partitions(turn, request, error)
            return messages.AlterPartitionResponse(error=error)
        results = [self._alter_partition(turn, request, data) for data in request.partitions]
        return messages.AlterPartitionResponse(
            error=ErrorCode.NONE,
            partitions=tuple(results),
            metadata_end_offset=self._view.image.next_offset,
        )

    def refuse_alter_partitions(
        self, turn: ControllerTurn, request: messages.AlterPartitionRequest, error: ErrorCode
    ) -> None:
        """Notes the verdict on changes that no partition was looked at for."""
        for data in request.partitions:
            self._note_verdict(turn, request, data, error=error)

    def _alter_partition(
        self, turn: ControllerTurn, request: messages.AlterPartitionRequest, data: messages.AlterPartitionData
    ) -> messages.AlterPartitionResult:
        outcome = alter_partition(self._view, request, data)
        turn.commit(outcome.decisions)
        after = None if outcome.partition is None else self._view.image.partitions[outcome.partition]
        result = alter_partition_result(request, data, error=outcome.error, after=after)
        self._note_verdict(turn, request, data, error=result.error)
        return result

    def _note_verdict(
        self,
        turn: ControllerTurn,
        request: messages.AlterPartitionRequest,
        data: messages.AlterPartitionData,
        *,
        error: ErrorCode,
    ) -> None:
        topic = data.topic if data.topic_id is None else self._view.image.topic_names.get(data.topic_id, data.topic)
        topic_id = self._view.image.topics.get(topic) if data.topic_id is None else data.topic_id
        if topic_id is None:
            return  # A partition event names a topic incarnation, and no topic has this name.
        turn.events.append(
            events.AlterPartitionDecided(
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
