"""One of several controllers: a node of the quorum, and the controller itself while that node leads.

::

    STANDBY --leads, and has all that is committed below its epoch--> ACTIVE --resigns, or is deposed--> STANDBY

The controller's log is the quorum's. A standby has no state but that log; a claim makes a new ``Controller`` of the
committed records, as a process that starts does, so that it begins with new sessions and new unclean recoveries
(KIP-966). What it appends is replayed at once, and leaves the node once a majority has it. A deposed controller is
discarded with what was not committed, and each waiting request is answered NOT_CONTROLLER, which leaves the outcome
open: its successor may commit those records. Kafka's ``QuorumController``.

A resignation takes effect at once. Kafka's controller learns of it with the next epoch and continues to answer until
then (``KafkaRaftClient``, ``LeaderState``). Here the quorum's timers are checked before each request, so that a leader
that has to resign does not answer as leader.
"""

from collections import deque
from collections.abc import Sequence
from typing import assert_never, get_args

import msgspec

from laststand.emulator.core import effects as node_effects
from laststand.emulator.core import inputs, messages, records
from laststand.emulator.core.authorizer.authorizer import authorizer_of
from laststand.emulator.core.authorizer.request_guard import refusal
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.errors import EmulatorError, ErrorCode, InvariantError
from laststand.emulator.core.events import ControllerActivated, ControllerDeposed, Event, OperationFailed
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum import effects as quorum_effects
from laststand.emulator.core.quorum import inputs as quorum_inputs
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum.messages import QuorumRequest
from laststand.emulator.core.quorum.node import QuorumNode
from laststand.emulator.core.quorum.settings import QuorumSettings
from laststand.emulator.core.quorum.states import Leader
from laststand.emulator.core.quorum_controller.effects import (
    QuorumControllerEffect,
    RecordFacts,
    ReportFault,
    ServeMetadata,
)
from laststand.emulator.core.quorum_controller.evidence import event_of
from laststand.emulator.core.quorum_controller.failures import OperationFailure, outcome_of
from laststand.emulator.core.quorum_controller.offsets import ControllerOffsets
from laststand.emulator.core.quorum_controller.quorum_guard import QuorumGuard
from laststand.emulator.core.quorum_controller.values import PLAIN_VALUES, CommittedBatch, ValueCodec, decode_batch
from laststand.emulator.core.quorum_controller.whole_batches import WholeBatches
from laststand.emulator.core.release import check_finalized
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.types import CauseId, CorrelationId, LeaderEpoch, MetadataOffset, RequestId

QuorumControllerInput = inputs.ControllerInput | quorum_inputs.LogSynced
_QUORUM_REQUESTS = get_args(QuorumRequest)
_CONTROL = CauseId("quorum")


def _offset_of(event: Event) -> int:
    """Returns the metadata offset of a committed change that an event describes; 0 for other events."""
    return getattr(event, "metadata_offset", 0)


class _Asked(msgspec.Struct, frozen=True):
    """A request under way: the id that its sender gave it; the sender is a controller of an epoch, or the quorum."""

    correlation_id: CorrelationId
    controller_epoch: LeaderEpoch | None


class QuorumController:
    """One process.

    Args:
        settings: of the node of the quorum.
        loaded: from its disk.
        properties: of the node.
        switches: the rules in force.
        now_ms: at its start.
        values: the form of values in its log.

    Raises:
        IllegalQuorumState: the files on the disk contradict each other.

    Attributes:
        quorum: the node of the quorum; for reading only.
        active: the controller while this node leads; for reading only.
        controller_epoch: of the last claim; 0 before the first.
        offsets: the committed and the stable offset; for reading only.
    """

    def __init__(
        self,
        settings: QuorumSettings,
        loaded: quorum_inputs.LoadedQuorum,
        properties: NodeProperties,
        switches: Switches,
        *,
        now_ms: int,
        values: ValueCodec = PLAIN_VALUES,
    ) -> None:
        self.quorum = QuorumNode(settings, loaded, now_ms=now_ms)
        self.active: Controller | None = None
        self.controller_epoch = LeaderEpoch(0)
        self.offsets = ControllerOffsets()
        self._whole = WholeBatches()
        image = MetadataImage()
        authorizer = authorizer_of(properties, image.acls)
        self._guard = None if authorizer is None else QuorumGuard(image, authorizer)
        self._settings = settings
        self._properties = properties
        self._switches = switches
        self._values = values
        self._asked: dict[CorrelationId, _Asked] = {}
        self._last_correlation = 0
        self._waiting: dict[RequestId, inputs.RequestReceived] = {}
        self._effects: list[QuorumControllerEffect] = []
        self._now_ms = now_ms
        self._cause_id = _CONTROL

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due."""
        of_active = None if self.active is None else self.active.next_deadline_ms()
        return earliest_of((self.quorum.next_deadline_ms(), of_active))

    def step(self, incoming: QuorumControllerInput, *, now_ms: int) -> list[QuorumControllerEffect]:
        """Reacts to an input.

        Raises:
            IllegalQuorumState: a state that correct nodes never reach; the process has to stop.
            InvariantError: as in ``fold``.
        """
        self._now_ms = now_ms
        self._cause_id = incoming.cause_id
        match incoming:
            case inputs.RequestReceived(request=request) if isinstance(request, _QUORUM_REQUESTS):
                if self._guard is None or self._admits(incoming, self._guard):
                    self._step_quorum(incoming)
            case inputs.RequestReceived():
                self._step_quorum(inputs.TimerFired(cause_id=incoming.cause_id))
                self._serve(incoming)
            case inputs.ResponseReceived() | inputs.RequestFailed():
                self._conclude(incoming)
            case inputs.TimerFired():
                self._step_quorum(incoming)
                self._operate(incoming)
            case inputs.NumberDrawn():
                self._operate(incoming)
            case inputs.Started() | inputs.ShutdownRequested() | quorum_inputs.LogSynced():
                self._step_quorum(incoming)
            case inputs.MetadataCommitted():
                raise InvariantError("the quorum commits, not the driver")
            case _:
                assert_never(incoming)
        taken, self._effects = self._effects, []
        return taken

    # --- The quorum -------------------------------------------------------------------------------------------------

    def _step_quorum(self, incoming: quorum_inputs.QuorumInput) -> None:
        later: list[quorum_effects.AnnounceLeader | quorum_effects.Commit] = []
        led = isinstance(self.quorum.replica.state, Leader)
        for effect in self.quorum.step(incoming, now_ms=self._now_ms):
            match effect:
                case quorum_effects.AnnounceLeader() | quorum_effects.Commit():
                    # Their consequences may append, and so come after all other effects of this turn.
                    later.append(effect)
                case _:
                    self._take(effect)
        if not self._leads(self.controller_epoch):
            self._depose()
        for announced in later:
            match announced:
                case quorum_effects.Commit(end_offset=end_offset):
                    self._commit(end_offset, incoming.cause_id, led=led)
                case quorum_effects.AnnounceLeader(leader_epoch=leader_epoch):
                    if self._leads(leader_epoch):
                        self._claim(leader_epoch, incoming.cause_id)

    def _leads(self, leader_epoch: LeaderEpoch) -> bool:
        state = self.quorum.replica.state
        return isinstance(state, Leader) and state.leader_epoch == leader_epoch

    def _take(self, effect: quorum_effects.QuorumEffect) -> None:
        match effect:
            case node_effects.SendRequest():
                self._send(effect, controller_epoch=None)
            case quorum_effects.AppendBatches(batches=batches):
                self._effects.append(effect)
                if self.active is not None:
                    self._pass_control(self.active, batches)
            case (
                node_effects.SendResponse()
                | quorum_effects.WriteElection()
                | quorum_effects.SyncMetadata()
                | quorum_effects.TruncateMetadata()
            ):
                self._effects.append(effect)
            case quorum_effects.RecordQuorumEvent(event=evidence):
                self._effects.append(effect)
                if (recorded := event_of(evidence, self._cause_id)) is not None:
                    self._effects.append(node_effects.RecordEvent(event=recorded))
            case quorum_effects.EndProcess():
                self._effects.append(node_effects.StopNode())
            case quorum_effects.AcceptProposal(last_offset=last_offset):
                if self.active is not None and last_offset + 1 != self.active.image.next_offset:
                    raise InvariantError(
                        f"records up to {self.active.image.next_offset} were appended up to {last_offset + 1}"
                    )
            case quorum_effects.RefuseProposal():
                self._fail(OperationFailure.NOT_LEADER, None)
            case quorum_effects.LoadSnapshot() | quorum_effects.StoreSnapshot() | quorum_effects.RestartMetadata():
                raise InvariantError(f"no controller takes snapshots, and the quorum asks for {effect}")
            case quorum_effects.AnnounceLeader() | quorum_effects.Commit():
                raise InvariantError(f"{effect} out of turn")
            case _:
                assert_never(effect)

    def _pass_control(self, active: Controller, batches: Sequence[QuorumBatch]) -> None:
        for batch in batches:
            if batch.control:
                control = self._read(batch, _CONTROL).batch
                active.fold(control)
                self.offsets.append(control)

    def _commit(self, end_offset: MetadataOffset, cause_id: CauseId, *, led: bool) -> None:
        """Publishes committed batches, and releases the effects that waited for the commit.

        A metadata transaction is published once it is over, without the events of an aborted one. The leader writes
        the events in the order of offsets, also those of earlier epochs: their leader may have been killed before it
        did. A leader that commits its own removal resigns within the turn, so ``led`` is from the turn's begin.
        """
        writes_facts = led or isinstance(self.quorum.replica.state, Leader)
        log = self.quorum.replica.log
        unread = log.read(self.offsets.committed_end, batches_max=len(log.batches))
        batches = [self._read(each, cause_id) for each in unread if each.end_offset <= end_offset]
        for batch in batches:
            self.offsets.commit(batch.batch)
        self._check_levels(batches)
        released: list[node_effects.ControllerEffect] = []
        if self.active is not None:
            committed = inputs.MetadataCommitted(cause_id=cause_id, end_offset=self.offsets.stable_end)
            released = self.active.step(committed, now_ms=self._now_ms)
        # The quorum may have put several batches of the controller into one, which brokers read as one.
        causes = {
            effect.batch.base_offset: effect.cause_id
            for effect in released
            if isinstance(effect, node_effects.PublishMetadata)
        }
        recorded = deque(effect for effect in released if isinstance(effect, node_effects.RecordEvent))
        for each, stored in zip(unread, batches, strict=False):
            read = self._whole.add(stored)
            if read is None:
                continue
            if self._guard is not None:
                self._guard.fold(read.batch)
            is_own = self.active is not None and each.leader_epoch == self.controller_epoch
            while is_own and recorded and _offset_of(recorded[0].event) < each.end_offset:
                self._effects.append(recorded.popleft())
            if writes_facts:
                facts = read.events
                if is_own and each.values:  # written by the controller itself, but for what it has found open
                    facts = tuple(event for event in facts if 0 < _offset_of(event) < each.base_offset)
                if facts:
                    self._effects.append(RecordFacts(base_offset=read.batch.base_offset, events=facts))
            cause = causes.get(read.batch.base_offset, cause_id)
            self._effects.append(node_effects.PublishMetadata(batch=read.batch, cause_id=cause))
        self._effects += recorded
        for effect in released:
            if not isinstance(effect, node_effects.PublishMetadata | node_effects.RecordEvent):
                self._take_active(effect)

    def _check_levels(self, committed: Sequence[CommittedBatch]) -> None:
        """Checks that this release has the feature levels that committed batches set."""
        levels = {
            record.name: record.feature_level
            for each in committed
            for record in each.batch.records
            if isinstance(record, records.FeatureLevelRecord)
        }
        check_finalized(levels, self._switches)

    def _read(self, batch: QuorumBatch, cause_id: CauseId) -> CommittedBatch:
        return decode_batch(batch, values=self._values, cause_id=cause_id)

    # --- The active controller --------------------------------------------------------------------------------------

    def _claim(self, leader_epoch: LeaderEpoch, cause_id: CauseId) -> None:
        self.controller_epoch = leader_epoch
        self.active = Controller(
            self._properties,
            self._switches,
            self._settings.cluster_id,
            self._settings.key.node_id,
            has_transactions=True,
        )
        log, committed_end = self.quorum.replica.log, self.offsets.committed_end
        for batch in log.batches:
            if batch.end_offset <= committed_end:
                self.active.replay(self._read(batch, cause_id).batch)
        self.offsets.activate(self.active.image.next_offset)
        activated = ControllerActivated(
            cause_id=cause_id, controller_epoch=leader_epoch, metadata_end_offset=committed_end
        )
        self._effects += [node_effects.RecordEvent(event=activated), ServeMetadata(controller_epoch=leader_epoch)]
        started = inputs.Started(cause_id=cause_id)
        self._take_all(self.active, self.active.step(started, now_ms=self._now_ms))

    def _depose(self) -> None:
        """Discards the controller's state; the outcome of its uncommitted records stays open."""
        if self.active is None:
            return
        self.active = None
        self.offsets.deactivate()
        waiting, self._waiting = self._waiting, {}
        for received in waiting.values():
            self._refuse(received)
        deposed = ControllerDeposed(cause_id=_CONTROL, controller_epoch=self.controller_epoch)
        self._effects += [node_effects.RecordEvent(event=deposed), ServeMetadata(controller_epoch=None)]

    def _operate(self, incoming: inputs.ControllerInput) -> None:
        """Steps the active controller, if this node has it; an exception in it does not end the process.

        Records that cannot be applied do end it, and so does an exception in the quorum: its state may be half changed,
        too, and resigning does not restore that.
        """
        active = self.active
        if active is None:
            return
        try:
            effects = active.step(incoming, now_ms=self._now_ms)
        except (InvariantError, EmulatorError):
            raise
        except Exception as error:  # after any exception, the state in memory may be half changed
            asked = incoming if isinstance(incoming, inputs.RequestReceived) else None
            failure = OperationFailed(
                cause_id=incoming.cause_id,
                operation=type(incoming if asked is None else asked.request).__name__,
                error=repr(error),
            )
            self._effects.append(ReportFault(failure=failure, error=error))
            self._fail(OperationFailure.UNFORESEEN, asked)
        else:
            self._take_all(active, effects)

    def _take_all(self, active: Controller, effects: Sequence[node_effects.ControllerEffect]) -> None:
        for effect in effects:
            if self.active is active:  # an effect before this one may have cost the leadership
                self._take_active(effect)

    def _fail(self, failure: OperationFailure, received: inputs.RequestReceived | None) -> None:
        """Answers a failed operation, if a request started it, and resigns if the failure demands that."""
        outcome = outcome_of(failure)
        if received is not None and self._waiting.pop(received.request_id, None) is not None:
            self._refuse(received, outcome.error)
        if not outcome.resigns:
            return
        self._depose()
        if self._leads(self.controller_epoch):
            resigned = quorum_inputs.ResignRequested(cause_id=self._cause_id, leader_epoch=self.controller_epoch)
            self._step_quorum(resigned)

    def _take_active(self, effect: node_effects.ControllerEffect) -> None:
        match effect:
            case node_effects.AppendMetadata():
                self.offsets.append(effect.batch)
                proposed = quorum_inputs.Proposed(
                    cause_id=_CONTROL,
                    proposal_id=0,
                    leader_epoch=self.controller_epoch,
                    values=self._values.encode(effect.batch, effect.events),
                )
                self._step_quorum(proposed)
            case node_effects.SendResponse(request_id=request_id, response=response):
                self._waiting.pop(request_id, None)
                if isinstance(response, messages.ControllerResponse):
                    response = msgspec.structs.replace(response, controller_epoch=self.controller_epoch)
                self._effects.append(msgspec.structs.replace(effect, response=response))
            case node_effects.SendRequest():
                self._send(effect, controller_epoch=self.controller_epoch)
            case node_effects.RecordEvent() | node_effects.DrawNumber():
                self._effects.append(effect)
            case node_effects.PublishMetadata() | node_effects.StopNode():
                raise InvariantError(f"{effect} out of turn")
            case _:
                assert_never(effect)

    # --- Requests ---------------------------------------------------------------------------------------------------

    def _serve(self, received: inputs.RequestReceived) -> None:
        asked = received.request
        if self.active is None or (
            isinstance(asked, messages.ControllerRequest) and asked.controller_epoch > self.controller_epoch
        ):
            self._refuse(received)
        else:
            self._waiting[received.request_id] = received
            self._operate(received)

    def _admits(self, received: inputs.RequestReceived, guard: QuorumGuard) -> bool:
        """Returns whether a request of the quorum may be handled, and answers it if not."""
        refused = guard.refusal(received)
        self._effects += [node_effects.RecordEvent(event=denial) for denial in guard.pop_denials()]
        if refused is None:
            return True
        self._effects.append(
            node_effects.SendResponse(request_id=received.request_id, response=refused, cause_id=received.cause_id)
        )
        return False

    def _refuse(self, received: inputs.RequestReceived, error: ErrorCode = ErrorCode.NOT_CONTROLLER) -> None:
        self._effects.append(
            node_effects.SendResponse(
                request_id=received.request_id,
                response=refusal(received.request, error),
                cause_id=received.cause_id,
            )
        )

    def _send(self, effect: node_effects.SendRequest, *, controller_epoch: LeaderEpoch | None) -> None:
        self._last_correlation += 1
        correlation_id = CorrelationId(self._last_correlation)
        self._asked[correlation_id] = _Asked(effect.correlation_id, controller_epoch)
        self._effects.append(msgspec.structs.replace(effect, correlation_id=correlation_id))

    def _conclude(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> None:
        """Hands an outcome to the sender of the request; drops it if that was a controller of an earlier epoch."""
        asked = self._asked.pop(outcome.correlation_id)
        outcome = msgspec.structs.replace(outcome, correlation_id=asked.correlation_id)
        if asked.controller_epoch is None:
            self._step_quorum(outcome)
        elif asked.controller_epoch == self.controller_epoch:
            self._operate(outcome)
