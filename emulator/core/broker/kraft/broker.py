"""A KRaft broker: one state machine composed of smaller ones, and the order in which they handle an input.

``step`` hands an input to the part that it concerns, then settles what follows from it: ISR changes go to the
controller, waiting requests are looked at again, fetches go out. Life of a broker::

    Started -> metadata stream and registration, side by side
    image reaches the end named when the stream opened -> LoadLogs -> LogsLoaded -> first difference applied
    registered and first difference applied -> asks to be unfenced -> serves
    ShutdownRequested -> the controller moves its leaderships -> high watermarks, CloseLogs
"""

from collections.abc import Mapping
from typing import Final, assert_never

from laststand.emulator.core import effects, events, group_messages, inputs, messages, transaction_messages
from laststand.emulator.core.authorizer.authorizer import authorizer_of
from laststand.emulator.core.authorizer.request_guard import Refused, RequestGuard, is_unanswered
from laststand.emulator.core.broker.groups.coordinator import GroupCoordinator
from laststand.emulator.core.broker.kraft.alter_partition_sender import AlterPartitionSender, IsrChangeAnswer
from laststand.emulator.core.broker.kraft.assignment import Assignment
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.kraft.lifecycle import BrokerLifecycle
from laststand.emulator.core.broker.kraft.metadata_stream import MetadataStream
from laststand.emulator.core.broker.kraft.producer_ids import ProducerIds
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests, SentRequest
from laststand.emulator.core.broker.replicas.isr import IsrProposal
from laststand.emulator.core.broker.replicas.isr_changes import handle_answer
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.producer_id_blocks import Allocated
from laststand.emulator.core.broker.replicas.replica_manager import LogsState, ReplicaManager
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions.coordinator import TransactionCoordinator
from laststand.emulator.core.broker.transactions.inquiry import TransactionInquiry
from laststand.emulator.core.broker.transactions.recovery import LogMender
from laststand.emulator.core.broker.transactions.verifier import Verifier
from laststand.emulator.core.coordinator_records import EncodeRecords
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.types import BrokerEpoch, BrokerId, BrokerState, CauseId, Offset, TopicPartition

PARTITIONS_PER_STEP: Final = 16
"""Partitions whose roles one step applies: files are written for each, and no heartbeat leaves before they are."""


class Broker:
    """One incarnation of a broker.

    Args:
        config: the broker's configuration.
        encode_records: encodes the records that it writes as a coordinator as batches.
    """

    def __init__(self, config: BrokerConfig, encode_records: EncodeRecords) -> None:
        self._config = config
        self._image = MetadataImage()
        authorizer = authorizer_of(config.properties, self._image.acls)
        self._guard = None if authorizer is None else RequestGuard(authorizer)
        self._in_flight = InFlightRequests()
        self._controllers = ControllerChannel(config, self._in_flight)
        self._stream = MetadataStream(self._image, self._controllers)
        verifier = Verifier(self._image)
        guard = verifier.guard(config.switches)
        inquiry = TransactionInquiry(config, self._image)
        mender = LogMender(config, inquiry, encode_records)
        self._replicas = ReplicaManager(config, self._image, self._in_flight, guard, mender)
        self._hosted = self._replicas.hosted
        self._groups = GroupCoordinator(config, self._hosted, self._in_flight, encode_records, guard)
        self._lifecycle = BrokerLifecycle(config, self._controllers)
        self._alter_partitions = AlterPartitionSender(config, self._controllers)
        self._producer_ids = ProducerIds(config, self._controllers)
        self._transactions = TransactionCoordinator(
            config,
            self._hosted,
            self._groups,
            verifier,
            inquiry,
            self._in_flight,
            encode_records,
            self._allocate_producer_id,
        )
        self._assignment = Assignment(
            config, self._hosted, self._replicas.fetchers, self._replicas.fetches, self._replicas.strays
        )
        self._unapplied_since: tuple[int, CauseId] | None = None
        self._has_exited = False

    def _allocate_producer_id(self, turn: Turn, allocated: Allocated) -> None:
        self._producer_ids.allocate(turn, allocated, self._lifecycle.broker_epoch)

    @property
    def broker_epoch(self) -> BrokerEpoch | None:
        """The broker epoch granted by the controller; ``None`` before the broker is registered."""
        return self._lifecycle.broker_epoch

    @property
    def state(self) -> BrokerState:
        """The state of the broker's life cycle."""
        return self._lifecycle.state

    @property
    def image(self) -> MetadataImage:
        """The metadata that it has received; for reading only."""
        return self._image

    @property
    def controller(self) -> None:
        """``None``: in a KRaft cluster no broker is the controller."""
        return None

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """All hosted partitions; for reading only."""
        return tuple(self._hosted)

    def partition(self, name: TopicPartition) -> Partition | None:
        """Returns a hosted partition; for reading only."""
        return self._hosted.get(name)

    def committed_positions(self, name: TopicPartition) -> Mapping[tuple[str, TopicPartition], Offset] | None:
        """Returns the committed offsets of a partition's groups (read only); ``None`` if not their coordinator."""
        return self._groups.committed_positions(name)

    @property
    def max_fetch_lag(self) -> int:
        """Records of the followed partition that is furthest behind its leader's high watermark."""
        return self._replicas.max_fetch_lag

    def topic_properties(self, topic: str) -> TopicProperties:
        """Returns a topic's effective properties by the metadata received so far; the node's where nothing is set."""
        return self._assignment.topic_properties_of(topic)

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None`` if nothing waits for the time."""
        if self._has_exited:
            return None
        return earliest_of(
            (
                self._lifecycle.next_deadline_ms(),
                None if self._unapplied_since is None else self._unapplied_since[0],
                self._stream.next_deadline_ms(),
                self._alter_partitions.next_deadline_ms(),
                self._replicas.next_deadline_ms(),
                self._transactions.next_deadline_ms() if self._transactions.is_used else None,
            )
        )

    def step(self, incoming: inputs.BrokerInput, *, now_ms: int) -> list[effects.BrokerEffect]:
        """Reacts to an input; returns what is to be done, in order.

        Raises:
            InvariantError: the input cannot happen in this state; a bug of the driver or of the core.
        """
        if self._has_exited:
            return []
        turn = Turn(now_ms=now_ms, cause_id=incoming.cause_id)
        match incoming:
            case inputs.RequestReceived():
                self._handle_request(turn, incoming)
            case inputs.ResponseReceived(correlation_id=correlation_id, response=response):
                sent = self._in_flight.answered(turn, correlation_id)
                if isinstance(response, messages.ControllerResponse) and not self._controllers.believes(
                    sent.destination, response
                ):
                    self._handle_failure(turn, sent)
                else:
                    self._handle_response(turn, BrokerId(sent.destination), sent.request, response)
            case inputs.TimerFired():
                self._handle_timers(turn)
            case inputs.MetadataReceived():
                self._receive_metadata(turn, incoming)
            case inputs.RequestFailed():
                sent = self._in_flight.failed(turn, incoming.correlation_id, incoming.failure)
                self._controllers.pass_over(sent.destination)
                self._handle_failure(turn, sent)
            case inputs.Started():
                self._stream.open(turn)
                self._lifecycle.start(turn)
            case inputs.MetadataStreamOpened(end_offset=end_offset, controller_epoch=controller_epoch):
                self._stream.handle_opened(end_offset, controller_epoch)
                self._maybe_load_logs(turn)
            case inputs.MetadataStreamLost():
                self._stream.handle_lost(turn)
            case inputs.LogsLoaded():
                self._open_logs(turn, incoming)
            case inputs.LogRecovered():
                self._replicas.handle_recovered(turn, incoming)
            case inputs.RecordsRead():
                self._replicas.handle_read(turn, incoming)
                self._groups.shards.handle_read(turn, incoming)
                self._transactions.handle_read(turn, incoming)
            case inputs.SegmentsDeleted():
                self._replicas.handle_segments_deleted(turn, incoming)
            case inputs.ShutdownRequested():
                self._lifecycle.begin_shutdown(turn)
            case _:
                assert_never(incoming)
        self._settle(turn)
        if self._guard is not None and self._guard.has_denials:
            return self._guarded(turn, self._guard)
        return turn.effects()

    # --- Permissions ----------------------------------------------------------------------------------------------

    def _admit(
        self, turn: Turn, incoming: inputs.RequestReceived, guard: RequestGuard
    ) -> inputs.RequestReceived | None:
        """Returns the part of a request that its sender is authorized for; ``None`` if the request was refused."""
        admitted = guard.admit(incoming)
        if not isinstance(admitted, Refused):
            return admitted
        if is_unanswered(incoming.request):
            turn.send(effects.CloseConnection(request_id=incoming.request_id))
        else:
            turn.send(
                effects.SendResponse(request_id=incoming.request_id, response=admitted.response, cause_id=turn.cause_id)
            )
        return None

    def _guarded(self, turn: Turn, guard: RequestGuard) -> list[effects.BrokerEffect]:
        for denial in guard.pop_denials():
            turn.record(denial)
        return [
            guard.complete(effect) if isinstance(effect, effects.SendResponse) else effect for effect in turn.effects()
        ]

    # --- Requests and responses -----------------------------------------------------------------------------------

    def _handle_request(self, turn: Turn, incoming: inputs.RequestReceived) -> None:
        if self._guard is not None:
            admitted = self._admit(turn, incoming, self._guard)
            if admitted is None:
                return
            incoming = admitted
        request, request_id = incoming.request, incoming.request_id
        broker_epoch = self._lifecycle.broker_epoch
        if isinstance(request, messages.InitProducerIdRequest):
            self._producer_ids.handle_request(turn, request_id, request, broker_epoch)
        elif isinstance(request, group_messages.CoordinatorMessage):
            self._groups.handle_request(turn, request_id, request)
        elif isinstance(request, transaction_messages.TransactionMessage):
            self._transactions.handle_request(turn, request_id, request)
        else:
            self._replicas.handle_request(
                turn,
                request_id,
                request,
                broker_epoch=broker_epoch,
                controller=self._controllers.target,
                unauthorized=self._unseen(incoming),
            )

    def _unseen(self, incoming: inputs.RequestReceived) -> frozenset[str]:
        """Returns the topics of a request that have to be hidden from its sender."""
        return frozenset() if self._guard is None else self._guard.unseen(incoming, self._image.topics)

    def _handle_response(
        self, turn: Turn, peer: BrokerId, request: messages.Request, response: messages.Response
    ) -> None:
        match request, response:
            case messages.BrokerHeartbeatRequest(), messages.BrokerHeartbeatResponse():
                self._lifecycle.handle_heartbeat(turn, response)
            case messages.AlterPartitionRequest(), messages.AlterPartitionResponse():
                known_end_offset = self._image.next_offset
                self._handle_isr_answers(
                    turn,
                    self._alter_partitions.handle_response(turn, request, response, known_end_offset=known_end_offset),
                )
            case messages.BrokerRegistrationRequest(), messages.BrokerRegistrationResponse():
                self._lifecycle.handle_registration(turn, response)
            case messages.AllocateProducerIdsRequest(), messages.AllocateProducerIdsResponse():
                self._producer_ids.handle_block(turn, response, self._lifecycle.broker_epoch)
            case _:
                if not self._transactions.handle_response(turn, peer, request, response):
                    self._replicas.handle_response(turn, peer, request, response)

    def _handle_isr_answers(self, turn: Turn, answers: list[IsrChangeAnswer]) -> None:
        for answer in answers:
            partition = self._hosted.get(answer.proposal.partition)
            if partition is not None:
                handle_answer(turn, partition, answer.proposal, answer.result)

    def _handle_failure(self, turn: Turn, sent: SentRequest) -> None:
        match sent.request:
            case messages.AlterPartitionRequest():
                self._alter_partitions.handle_failure(turn)
            case messages.BrokerHeartbeatRequest() | messages.BrokerRegistrationRequest():
                self._lifecycle.handle_failure(turn)
            case messages.AllocateProducerIdsRequest():
                self._producer_ids.handle_failure(turn)
            case _:
                peer = BrokerId(sent.destination)
                if not self._transactions.handle_failure(turn, peer, sent.request):
                    self._replicas.handle_failure(turn, peer, sent.request)

    # --- Metadata and logs ----------------------------------------------------------------------------------------

    def _receive_metadata(self, turn: Turn, incoming: inputs.MetadataReceived) -> None:
        self._stream.replay(incoming.batches)
        self._transactions.note_topics()
        if self._replicas.logs_state is LogsState.OPEN:
            self._apply_metadata(turn)
        else:
            self._maybe_load_logs(turn)

    def _maybe_load_logs(self, turn: Turn) -> None:
        if self._replicas.logs_state is not LogsState.UNTOUCHED or not self._stream.has_reached_end:
            return
        if self._config.switches.roles_after_registration and not self._is_known():
            return
        self._replicas.load_logs(turn)

    def _open_logs(self, turn: Turn, loaded: inputs.LogsLoaded) -> None:
        for log_dir in loaded.failed_log_dirs:
            self._lifecycle.fail_log_dir(turn, log_dir)
        self._replicas.open_logs(turn, loaded)
        self._assignment.adopt(turn, loaded.logs)
        if loaded.failed_log_dirs:
            self._assignment.give_up_missing()
        self._apply_metadata(turn)

    def _is_known(self) -> bool:
        """Returns whether the metadata contains this process's registration, so that its roles are current."""
        registration = self._image.brokers.get(self._config.broker_id)
        return registration is not None and registration.incarnation_id == self._config.incarnation_id

    def _apply_metadata(self, turn: Turn) -> None:
        """Applies changed metadata; of many changed partitions, some now and the others in the next steps."""
        delta = self._image.pop_delta(partitions_max=PARTITIONS_PER_STEP)
        is_last = not self._image.has_changes
        if is_last:
            start_offset = self._lifecycle.applied_end_offset
            turn.record(
                events.MetadataApplied(cause_id=turn.cause_id, start_offset=start_offset, end_offset=delta.end_offset)
            )
        self._assignment.apply(turn, delta, is_last=is_last)
        self._groups.forget_partitions(delta.deleted)
        if not is_last:
            self._unapplied_since = (turn.now_ms, turn.cause_id)
            return
        self._unapplied_since = None
        self._handle_isr_answers(turn, self._alter_partitions.pop_understood(known_end_offset=delta.end_offset))
        self._lifecycle.applied_end_offset = delta.end_offset
        if any(self._is_leaving(broker_id) for broker_id in delta.brokers):
            # Its controlled shutdown waits until every active broker has reported this metadata as applied.
            self._lifecycle.heartbeat_now(turn)

    def _apply_rest(self, turn: Turn, cause_id: CauseId) -> None:
        own_cause, turn.cause_id = turn.cause_id, cause_id
        self._apply_metadata(turn)
        turn.cause_id = own_cause

    def _is_leaving(self, broker_id: BrokerId) -> bool:
        registration = self._image.brokers.get(broker_id)
        return registration is not None and registration.in_controlled_shutdown and not registration.fenced

    # --- Time -----------------------------------------------------------------------------------------------------

    def _handle_timers(self, turn: Turn) -> None:
        self._lifecycle.handle_timer(turn)
        if self._unapplied_since is not None:
            self._apply_rest(turn, self._unapplied_since[1])
        if self._lifecycle.broker_epoch is not None:
            self._alter_partitions.handle_timer(turn, self._lifecycle.broker_epoch)
        self._replicas.handle_timers(turn)
        if self._transactions.is_used:
            self._transactions.handle_timer(turn)
        self._stream.handle_timer(turn)

    # --- The end of a step ----------------------------------------------------------------------------------------

    def _settle(self, turn: Turn) -> None:
        if not self._hosted.is_serving or self._lifecycle.state in (BrokerState.STARTING, BrokerState.RECOVERY):
            self._check_readiness(turn)
        self._stream.follow_controller(turn)
        self._replicas.check_recoveries(turn)
        for proposal in turn.proposals:
            self._submit(turn, proposal)
        if self._lifecycle.broker_epoch is not None:
            self._alter_partitions.send_queued(turn, self._lifecycle.broker_epoch)
        if self._transactions.is_used:
            self._transactions.settle(turn)
        self._replicas.settle(turn, self._lifecycle.broker_epoch)
        if self._lifecycle.is_exiting:
            self._exit(turn)

    def _submit(self, turn: Turn, proposal: IsrProposal) -> None:
        error = self._alter_partitions.submit(proposal)
        partition = self._hosted.get(proposal.partition)
        if error is not ErrorCode.NONE and partition is not None:
            refusal = messages.AlterPartitionResult(
                topic=proposal.partition.topic,
                topic_id=proposal.topic_id,
                partition=proposal.partition.partition,
                error=error,
            )
            handle_answer(turn, partition, proposal, refusal)

    def _check_readiness(self, turn: Turn) -> None:
        """Asks to be unfenced once logs are open and the image has the own registration; serves once unfenced."""
        own = self._image.brokers.get(self._config.broker_id)
        if (
            self._replicas.logs_state is not LogsState.OPEN
            or self._unapplied_since is not None
            or own is None
            or own.broker_epoch != self._lifecycle.broker_epoch
        ):
            return
        self._lifecycle.become_ready(turn)
        if not own.fenced:
            self._hosted.is_serving = True

    def _exit(self, turn: Turn) -> None:
        self._has_exited = True
        self._replicas.exit(turn, broker_epoch=self._lifecycle.broker_epoch, proven_epoch=self._proven_epoch())

    def _proven_epoch(self) -> BrokerEpoch | None:
        """Returns the epoch for the clean-shutdown files if logs are still as the previous process closed them.

        With KIP-966 a process writes its epoch when it stops in order. Kafka also writes the epoch if loading began on
        a clean shutdown and is not over, but not if loading never began (``LogManager.shutdown``,
        ``hadCleanShutdownFlags``).
        """
        was_proven = self._config.previous_broker_epoch is not None
        has_begun = self._replicas.logs_state is not LogsState.UNTOUCHED
        is_renewed = was_proven and (has_begun or self._config.switches.untouched_logs_stay_proven)
        return self._lifecycle.broker_epoch if is_renewed else None
