"""A broker of a ZooKeeper cluster: it hosts replicas like any broker, directed by control requests.

Fetching, producing, truncation, the high watermark and storage are the same objects as in a KRaft cluster. There are
two differences. A controller assigns roles by LeaderAndIsr, UpdateMetadata and StopReplica, instead of a metadata log.
The leader writes its ISR itself below IBP 2.7-IV2; from then on, the controller does so on its behalf. Life of a
broker::

    Started -> LoadLogs -> LogsLoaded -> LogsAreOpen (it may register) -> registered: takes roles, and serves at once
    ShutdownRequested -> ControlledShutdown, up to three times -> high watermarks, CloseSession, CloseLogs

There are no heartbeats, and no broker is fenced: a broker whose session has ended leads, fetches and answers as before.
Only the other replicas' new roles stop it, as they no longer fetch from it.

While a leader's own ISR write is under way, its partition is locked: requests to it wait, in order. A role in a topic
whose configuration is not known waits until the configuration is read, and so does every later control request: Kafka
reads it while it holds ``replicaStateChangeLock`` (``Partition.createLog``, ``LogManager.fetchLogConfig``). So no
leader acknowledges by another min ISR than the topic's.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final, assert_never

import msgspec

from laststand.emulator.core import events, group_messages, inputs, messages, transaction_messages
from laststand.emulator.core.broker.groups.coordinator import GroupCoordinator
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.producer_id_blocks import Allocated
from laststand.emulator.core.broker.replicas.replica_manager import ReplicaManager
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions.coordinator import TransactionCoordinator
from laststand.emulator.core.broker.transactions.inquiry import TransactionInquiry
from laststand.emulator.core.broker.transactions.recovery import LogMender
from laststand.emulator.core.broker.transactions.verifier import Verifier
from laststand.emulator.core.broker.zookeeper.control_fence import ControlFence
from laststand.emulator.core.broker.zookeeper.control_requests import ControlRequests
from laststand.emulator.core.broker.zookeeper.exchange import (
    AnswerControl,
    AskController,
    BrokerRegisteredAs,
    ControllerReplied,
    ControllerUnreachable,
    ControlReceived,
    LogsAreOpen,
    TopicConfigChanged,
    ZooKeeperBrokerEffect,
    ZooKeeperBrokerInput,
)
from laststand.emulator.core.broker.zookeeper.isr_changes import IsrOutcome, IsrWritten, Notified, ZooKeeperIsrChanges
from laststand.emulator.core.broker.zookeeper.late_topic_ids import by_known_ids
from laststand.emulator.core.broker.zookeeper.metadata_cache import MetadataCache
from laststand.emulator.core.broker.zookeeper.producer_ids import ZooKeeperProducerIds, allocate_block
from laststand.emulator.core.broker.zookeeper.topic_configs import TopicConfigs, read_topic_config
from laststand.emulator.core.coordinator_records import EncodeRecords
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.timers import TimerQueue, earliest_of
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    BrokerState,
    CorrelationId,
    Offset,
    RequestId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages, exchange, operations
from laststand.emulator.core.zookeeper.control_versions import as_carried
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.nodes.small_nodes import ProducerIdBlock
from laststand.emulator.core.zookeeper.program_queue import ProgramQueue
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

FIRST_CORRELATION_ID: Final = 1
CORRELATION_ID_STEP: Final = 2
"""A broker's requests to ZooKeeper have odd ids; even ones are the controller's of the same process."""

SHUTDOWN_RETRIES_MAX: Final = 3
CONTROLLER_TIMEOUT_MS: Final = 30_000
"""``controller.socket.timeout.ms``."""


class _ConfigRead(msgspec.Struct, frozen=True):
    """A topic's configuration was read."""

    topic: str
    config: dict[str, str]


class _IdsAllocated(msgspec.Struct, frozen=True):
    """A block of producer ids was taken."""

    block: ProducerIdBlock


class ZooKeeperBroker:
    """The broker of one process in a ZooKeeper cluster."""

    def __init__(
        self, config: BrokerConfig, encode_records: EncodeRecords, rules: ZooKeeperRules, ibp: InterBrokerProtocol
    ) -> None:
        self._config = config
        self._rules = rules
        self._ibp = ibp
        self.fence = ControlFence(rules)
        self.cache = MetadataCache(rules)
        self._in_flight = InFlightRequests()
        verifier = Verifier(self.cache.image)
        guard = verifier.guard(config.switches)
        inquiry = TransactionInquiry(config, self.cache.image)
        mender = LogMender(config, inquiry, encode_records)
        self._replicas = ReplicaManager(config, self.cache.image, self._in_flight, guard, mender)
        self._hosted = self._replicas.hosted
        self._groups = GroupCoordinator(config, self._hosted, self._in_flight, encode_records, guard)
        self._configs = TopicConfigs()
        self.control = ControlRequests(
            config,
            rules,
            fence=self.fence,
            cache=self.cache,
            hosted=self._hosted,
            fetchers=self._replicas.fetchers,
            strays=self._replicas.strays,
            configs=self._configs,
        )
        self._isr_changes = ZooKeeperIsrChanges(
            config, rules, ibp, hosted=self._hosted, control=self.control, fence=self.fence
        )
        self._producer_ids = ZooKeeperProducerIds()
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
        self._zookeeper: ProgramQueue[IsrOutcome | _ConfigRead | _IdsAllocated] = ProgramQueue(
            first_correlation_id=FIRST_CORRELATION_ID, correlation_id_step=CORRELATION_ID_STEP
        )
        self._departure: TimerQueue[str] = TimerQueue()
        self._asked: dict[
            CorrelationId, messages.AlterPartitionRequest | control_messages.ControlledShutdownRequest
        ] = {}
        self._next_correlation_id = CorrelationId(0)
        self._held: deque[inputs.RequestReceived | ControlReceived] = deque()
        self._unread_topics: set[str] = set()
        self._answers: list[ZooKeeperBrokerEffect] = []
        self._shutdown_tries = 0
        self._shutdown_backoff_ms = config.properties.controlled_shutdown_retry_backoff_ms
        self._is_exiting = False
        self._has_exited = False
        self.state = BrokerState.NOT_RUNNING

    @property
    def broker_epoch(self) -> BrokerEpoch | None:
        """The zxid of its last registration; ``None`` before the first."""
        return self.fence.broker_epoch

    @property
    def image(self) -> MetadataImage:
        """The cluster as UpdateMetadata described it; for reading only."""
        return self.cache.image

    @property
    def controller(self) -> BrokerId | None:
        """The broker that sent the last UpdateMetadata; ``None`` before any."""
        return self.cache.controller

    def topic_properties(self, topic: str) -> TopicProperties:
        """Returns a topic's effective properties, by the configuration read last."""
        return self.control.topic_properties_of(topic)

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

    @property
    def held_requests(self) -> frozenset[RequestId]:
        """Requests that wait for a locked partition; the driver has to keep the bytes that came with them."""
        return frozenset(held.request_id for held in self._held)

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None`` if nothing waits for the time."""
        if self._has_exited:
            return None
        return earliest_of(
            (
                self._replicas.next_deadline_ms(),
                self._transactions.next_deadline_ms(),
                self._isr_changes.next_deadline_ms(),
                self._departure.earliest_ms,
            )
        )

    def step(self, incoming: ZooKeeperBrokerInput, *, now_ms: int) -> list[ZooKeeperBrokerEffect]:
        """Reacts to an input; returns what is to be done, in order.

        Raises:
            InvariantError: the input cannot happen in this state; a bug of the driver or of the core.
        """
        if self._has_exited:
            return []
        self._answers = []
        turn = Turn(now_ms=now_ms, cause_id=incoming.cause_id)
        self._handle(turn, incoming)
        self._settle(turn)
        return self._effects(turn)

    def _handle(self, turn: Turn, incoming: ZooKeeperBrokerInput) -> None:
        match incoming:
            case inputs.RequestReceived() | ControlReceived():
                self._handle_or_hold(turn, incoming)
            case inputs.ResponseReceived(correlation_id=correlation_id, response=response):
                sent = self._in_flight.answered(turn, correlation_id)
                peer = BrokerId(sent.destination)
                if not self._transactions.handle_response(turn, peer, sent.request, response):
                    self._replicas.handle_response(turn, peer, sent.request, response)
            case inputs.RequestFailed(correlation_id=correlation_id, failure=failure):
                failed = self._in_flight.failed(turn, correlation_id, failure)
                peer = BrokerId(failed.destination)
                if not self._transactions.handle_failure(turn, peer, failed.request):
                    self._replicas.handle_failure(turn, peer, failed.request)
            case inputs.TimerFired():
                self._handle_timers(turn)
            case inputs.Started():
                self._enter(turn, BrokerState.STARTING)
                self._replicas.load_logs(turn)
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
                self._enter(turn, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
                self._ask_to_be_let_go(turn)
            case BrokerRegisteredAs(broker_epoch=broker_epoch):
                self.fence.broker_epoch = broker_epoch
                self._hosted.is_serving = True
                if self.state is BrokerState.STARTING:
                    self._enter(turn, BrokerState.RUNNING)
            case ControllerReplied(correlation_id=correlation_id, response=reply):
                self._controller_replied(turn, self._asked.pop(correlation_id), reply)
            case ControllerUnreachable(correlation_id=correlation_id):
                self._controller_unreachable(turn, self._asked.pop(correlation_id))
            case exchange.ZooKeeperAnswered(correlation_id=correlation_id, answers=answers):
                self._zookeeper.answered(correlation_id, answers)
            case exchange.ZooKeeperConnectionLost():
                self._zookeeper.connection_lost()
            case exchange.ZooKeeperReconnected():
                self._zookeeper.reconnected()
            case TopicConfigChanged(topic=topic):
                self._read_config(topic)
            case exchange.SessionExpired():
                self._session_expired(turn)
            case _:
                assert_never(incoming)

    def _enter(self, turn: Turn, state: BrokerState) -> None:
        turn.record(
            events.BrokerStateChanged(cause_id=turn.cause_id, old=self.state, new=state, broker_epoch=self.broker_epoch)
        )
        self.state = state

    # --- Requests -------------------------------------------------------------------------------------------------

    def _handle_or_hold(self, turn: Turn, incoming: inputs.RequestReceived | ControlReceived) -> None:
        """Handles a request, or holds it while one of its partitions is locked or a topic's configuration is unread."""
        is_locked = any(self._isr_changes.is_locked(name) for name in named_partitions(incoming.request))
        if is_locked or (isinstance(incoming, ControlReceived) and self._waits_for_config(incoming.request)):
            self._held.append(incoming)
        elif isinstance(incoming, ControlReceived):
            self._handle_control(turn, incoming)
        else:
            self._handle_request(turn, incoming)

    def _waits_for_config(self, request: control_messages.ControlMessage) -> bool:
        if isinstance(request, control_messages.LeaderAndIsrRequest) and self.fence.error_of(request) is ErrorCode.NONE:
            for topic in dict.fromkeys(role.name.topic for role in request.partitions):
                if not self._configs.is_known(topic) and topic not in self._unread_topics:
                    self._unread_topics.add(topic)
                    self._read_config(topic)
        return bool(self._unread_topics)

    def _handle_held(self, turn: Turn) -> None:
        waiting, self._held = self._held, deque()
        cause_id = turn.cause_id
        for incoming in waiting:
            turn.cause_id = incoming.cause_id
            self._handle_or_hold(turn, incoming)
        turn.cause_id = cause_id

    def _handle_control(self, turn: Turn, incoming: ControlReceived) -> None:
        match as_carried(incoming.request):
            case control_messages.LeaderAndIsrRequest() as request:
                taken = self.control.handle_leader_and_isr(turn, request)
                self._answers.append(AnswerControl(request_id=incoming.request_id, response=taken.response))
                for partition in taken.new_leaderships:
                    self._replicas.fetches.release_followers(turn, partition)
                for partition in taken.repeated_leaderships:
                    self._isr_changes.ask_successor(turn, partition)
            case control_messages.UpdateMetadataRequest() as request:
                updated, _ = self.control.handle_update_metadata(turn, request)
                self._answers.append(AnswerControl(request_id=incoming.request_id, response=updated))
            case control_messages.StopReplicaRequest() as request:
                stopped = self.control.handle_stop_replica(turn, request)
                self._configs.retain({partition.name.topic for partition in self._hosted})
                self._answers.append(AnswerControl(request_id=incoming.request_id, response=stopped))

    def _handle_request(self, turn: Turn, incoming: inputs.RequestReceived) -> None:
        request, request_id = incoming.request, incoming.request_id
        if isinstance(request, messages.InitProducerIdRequest):
            self._producer_ids.handle_request(turn, request_id, request)
            self._request_producer_ids()
        elif isinstance(request, group_messages.CoordinatorMessage):
            self._groups.handle_request(turn, request_id, request)
        elif isinstance(request, transaction_messages.TransactionMessage):
            self._transactions.handle_request(turn, request_id, request)
        else:
            self._replicas.handle_request(
                turn,
                request_id,
                by_known_ids(request, self._hosted),
                broker_epoch=self.broker_epoch,
                controller=self.cache.controller,
            )

    def _allocate_producer_id(self, turn: Turn, allocated: Allocated) -> None:
        self._producer_ids.allocate(turn, allocated)
        self._request_producer_ids()

    def _request_producer_ids(self) -> None:
        if self._producer_ids.wants_block:
            self._producer_ids.wants_block = False
            self._zookeeper.enqueue(_allocate_block(self._config.broker_id))

    # --- Logs and configuration -----------------------------------------------------------------------------------

    def _open_logs(self, turn: Turn, loaded: inputs.LogsLoaded) -> None:
        self.control.has_failed_directory = bool(loaded.failed_log_dirs)
        self.control.add_logs(loaded.logs)
        self._replicas.open_logs(turn, loaded)
        self._isr_changes.start(turn)
        self._answers.append(LogsAreOpen())

    def _read_config(self, topic: str) -> None:
        """Reads a topic's configuration, the first time or because its node changed."""
        self._zookeeper.enqueue(_config_read(topic))

    def _apply_config(self, turn: Turn, read: _ConfigRead) -> None:
        is_awaited = read.topic in self._unread_topics
        if not is_awaited and not any(partition.name.topic == read.topic for partition in self._hosted):
            return  # read for a topic deleted since; it is read again if a new topic of that name is hosted
        self._configs.store(read.topic, read.config)
        if is_awaited:
            self._unread_topics.remove(read.topic)
            self._handle_held(turn)
        for partition in self._hosted:
            if partition.name.topic == read.topic:
                partition.topic_properties = self.control.topic_properties_of(read.topic)
                if partition.is_leader:
                    # A lowered min ISR may let waiting records commit; no other event would check that.
                    partition.advance_high_watermark(turn)

    # --- The controller -------------------------------------------------------------------------------------------

    def _ask(
        self, request: messages.AlterPartitionRequest | control_messages.ControlledShutdownRequest, controller: BrokerId
    ) -> None:
        correlation_id = self._next_correlation_id
        self._next_correlation_id = CorrelationId(correlation_id + 1)
        self._asked[correlation_id] = request
        self._answers.append(
            AskController(
                destination=controller,
                correlation_id=correlation_id,
                request=request,
                timeout_ms=CONTROLLER_TIMEOUT_MS,
            )
        )

    def _controller_replied(
        self,
        turn: Turn,
        request: messages.AlterPartitionRequest | control_messages.ControlledShutdownRequest,
        reply: messages.AlterPartitionResponse | control_messages.ControlledShutdownResponse,
    ) -> None:
        match request, reply:
            case messages.AlterPartitionRequest(), messages.AlterPartitionResponse():
                self._isr_changes.handle_reply(turn, request, reply)
            case control_messages.ControlledShutdownRequest(), control_messages.ControlledShutdownResponse(
                error=error, remaining=remaining
            ):
                if error is ErrorCode.NONE and not remaining:
                    self._is_exiting = True
                else:
                    self._ask_to_be_let_go_later(turn)
            case _:
                raise InvariantError(f"{type(reply).__name__} answers {type(request).__name__}")

    def _controller_unreachable(
        self, turn: Turn, request: messages.AlterPartitionRequest | control_messages.ControlledShutdownRequest
    ) -> None:
        if isinstance(request, messages.AlterPartitionRequest):
            self._isr_changes.handle_unreachable(turn)
        else:
            self._ask_to_be_let_go_later(turn)

    def _ask_to_be_let_go(self, turn: Turn) -> None:
        """Asks the controller to move this broker's leaderships; exits anyway after three attempts."""
        controller = self.cache.controller
        if self._shutdown_tries >= SHUTDOWN_RETRIES_MAX:
            self._is_exiting = True
            return
        self._shutdown_tries += 1
        if controller is None:
            self._ask_to_be_let_go_later(turn)
            return
        epoch = self.fence.broker_epoch if self._ibp.sends_broker_epochs else None
        self._ask(
            control_messages.ControlledShutdownRequest(broker_id=self._config.broker_id, broker_epoch=epoch), controller
        )

    def _ask_to_be_let_go_later(self, turn: Turn) -> None:
        self._departure.set("ask", at_ms=turn.now_ms + self._shutdown_backoff_ms)

    def _session_expired(self, turn: Turn) -> None:
        """Abandons all operations that wait for ZooKeeper; partitions that were locked try their ISR changes again."""
        self._zookeeper.abandon()
        self._unread_topics.clear()
        self._isr_changes.give_up(turn)
        self._producer_ids.give_up(turn)
        self._handle_held(turn)

    # --- Time -----------------------------------------------------------------------------------------------------

    def _handle_timers(self, turn: Turn) -> None:
        self._replicas.handle_timers(turn)
        self._transactions.handle_timer(turn)
        self._isr_changes.handle_timer(turn)
        if self._departure.pop_due(now_ms=turn.now_ms):
            self._ask_to_be_let_go(turn)

    # --- The end of a step ----------------------------------------------------------------------------------------

    def _settle(self, turn: Turn) -> None:
        self._handle_results(turn)
        self._replicas.check_recoveries(turn)
        for proposal in turn.proposals:
            self._isr_changes.submit(turn, proposal)
        self._ask_for_isrs(turn)
        self._start_programs()
        self._transactions.note_topics()
        if self._transactions.is_used:
            self._transactions.settle(turn)
        # Fetches name no incarnation: member broker epochs (KIP-903) never came to ZooKeeper clusters.
        self._replicas.settle(turn, None)
        if self._is_exiting:
            self._exit(turn)

    def _handle_results(self, turn: Turn) -> None:
        results, self._zookeeper.results = self._zookeeper.results, []
        for result in results:
            match result:
                case IsrWritten():
                    self._isr_changes.handle_written(turn, result)
                    self._handle_held(turn)
                case _ConfigRead():
                    self._apply_config(turn, result)
                case _IdsAllocated(block):
                    self._producer_ids.handle_block(turn, block)
                    self._request_producer_ids()
                case Notified():
                    pass

    def _ask_for_isrs(self, turn: Turn) -> None:
        controller = self._isr_changes.controller_to_ask(self.cache.controller)
        request = None if controller is None else self._isr_changes.next_request(turn)
        if controller is not None and request is not None:
            self._ask(request, controller)

    def _start_programs(self) -> None:
        for program in self._isr_changes.programs:
            self._zookeeper.enqueue(program)
        self._isr_changes.programs.clear()

    def _exit(self, turn: Turn) -> None:
        self._has_exited = True
        self._enter(turn, BrokerState.SHUTTING_DOWN)
        self._answers.append(exchange.CloseSession())
        self._replicas.exit(turn, broker_epoch=self.fence.broker_epoch, proven_epoch=None)

    def _effects(self, turn: Turn) -> list[ZooKeeperBrokerEffect]:
        """Returns the effects in order: files, events, messages, ZooKeeper requests, control answers, process end."""
        done: list[ZooKeeperBrokerEffect] = list(turn.effects())
        end = [done.pop()] if self._has_exited else []
        requests, self._zookeeper.requests = self._zookeeper.requests, []
        return [*done, *requests, *self._answers, *end]


def named_partitions(request: messages.Request | control_messages.ControlMessage) -> tuple[TopicPartition, ...]:
    """Returns the partitions that a request needs unlocked."""
    match request:
        case messages.FetchRequest(partitions=partitions):
            return tuple(TopicPartition(one.topic, one.partition) for one in partitions)
        case messages.ProduceRequest(partitions=produced):
            return tuple(TopicPartition(one.topic, one.partition) for one in produced)
        case control_messages.LeaderAndIsrRequest(partitions=roles):
            return tuple(role.name for role in roles)
        case control_messages.StopReplicaRequest(partitions=replicas):
            return tuple(replica.name for replica in replicas)
        case _:
            return ()


def _config_read(topic: str) -> operations.Program[_ConfigRead]:
    return _ConfigRead(topic, (yield from read_topic_config(topic)))


def _allocate_block(broker_id: BrokerId) -> operations.Program[_IdsAllocated]:
    return _IdsAllocated((yield from allocate_block(broker_id)))
