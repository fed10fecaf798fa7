"""A whole broker of a ZooKeeper cluster, input by input: start, controlled shutdown, what waits, who is asked."""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import pytest

from laststand.emulator.core import events, inputs, messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.zookeeper.broker import SHUTDOWN_RETRIES_MAX, ZooKeeperBroker
from laststand.emulator.core.broker.zookeeper.exchange import (
    AnswerControl,
    AskController,
    BrokerRegisteredAs,
    ControllerReplied,
    ControllerUnreachable,
    ControlReceived,
    ZooKeeperBrokerEffect,
    ZooKeeperBrokerInput,
)
from laststand.emulator.core.broker.zookeeper.isr_notifier import LOOK_INTERVAL_MS
from laststand.emulator.core.effects import CloseLogs, RecordEvent, SendResponse, StopNode, WriteHighWatermarks
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerState,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    Offset,
    RequestId,
)
from laststand.emulator.core.zookeeper import control_messages, exchange, operations
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.inter_broker_protocol import ibp_level
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from laststand.emulator.core.zookeeper.server import ZooKeeperServer
from laststand.emulator.simulator.nodes.batch_registry import ENCODE_RECORDS
from tests.unit.core.broker.kraft.test_broker_steps import fetch, produce
from tests.unit.core.broker.zookeeper.test_control_requests import ORDERS, OTHER, OWN, TERM, role

CAUSE: Final = CauseId("unit")
EPOCH: Final = BrokerEpoch(8)
LAG_MS: Final = 30_000
BACKOFF_MS: Final = 5000
_AnswerT = TypeVar("_AnswerT", bound=messages.Response | control_messages.ControlAnswer)


class Life:
    """Broker 0; the test plays its controller and its followers, and ZooKeeper answers at once unless it is silent."""

    def __init__(self, *, era_name: str = "kafka-3.9-zk", ibp: str | None = None) -> None:
        era = ZOOKEEPER_ERAS[era_name]
        config = BrokerConfig(
            broker_id=OWN,
            controller_ids=(NodeId(100),),
            cluster_id="unit",
            incarnation_id=IncarnationId("unit"),
            switches=era.switches,
        )
        self.broker = ZooKeeperBroker(
            config, ENCODE_RECORDS, era.rules, era.rules.protocol(era.ibp if ibp is None else ibp_level(ibp))
        )
        self.now_ms = 0
        self.server = ZooKeeperServer()
        self._session_id = self.server.open_session(timeout_ms=1000, now_ms=0)
        self.server.execute(self._session_id, (operations.Create(path=paths.PRODUCER_IDS),))
        self.is_zookeeper_silent = False
        self.asked_of_zookeeper: list[exchange.ZooKeeperRequest] = []
        self.asked_of_controller: list[AskController] = []
        self.states: list[tuple[BrokerState, BrokerEpoch | None]] = []
        self.answers: dict[RequestId, messages.Response | control_messages.ControlAnswer] = {}
        self._requests = 0

    def step(self, incoming: ZooKeeperBrokerInput) -> list[ZooKeeperBrokerEffect]:
        effects = self.broker.step(incoming, now_ms=self.now_ms)
        for effect in effects:
            match effect:
                case exchange.ZooKeeperRequest():
                    self.asked_of_zookeeper.append(effect)
                case AskController():
                    self.asked_of_controller.append(effect)
                case SendResponse() | AnswerControl():
                    self.answers[effect.request_id] = effect.response
                case RecordEvent(event=events.BrokerStateChanged(new=state, broker_epoch=broker_epoch)):
                    self.states.append((state, broker_epoch))
        if not self.is_zookeeper_silent:
            self.hear_zookeeper()
        return effects

    def hear_zookeeper(self) -> None:
        self.is_zookeeper_silent = False
        waiting, self.asked_of_zookeeper = self.asked_of_zookeeper, []
        for asked in waiting:
            answers = self.server.execute(self._session_id, asked.steps)
            self.step(exchange.ZooKeeperAnswered(cause_id=CAUSE, correlation_id=asked.correlation_id, answers=answers))

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (deadline_ms := self.broker.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.step(inputs.TimerFired(cause_id=CAUSE))
        self.now_ms = end_ms

    def register(self, broker_epoch: BrokerEpoch = EPOCH) -> None:
        self.step(BrokerRegisteredAs(cause_id=CAUSE, broker_epoch=broker_epoch))

    def start(self, *roles: control_messages.LeaderAndIsrPartition) -> None:
        """Comes up, hears who the controller is, and takes roles."""
        self.step(inputs.Started(cause_id=CAUSE))
        self.step(inputs.LogsLoaded(cause_id=CAUSE, logs=()))
        self.register()
        self.tell(metadata())
        self.tell(leader_and_isr(*roles))

    # --- Requests -------------------------------------------------------------------------------------------------

    def tell(self, request: control_messages.ControlMessage) -> RequestId:
        request_id = self._next_request_id()
        self.step(ControlReceived(cause_id=CAUSE, request_id=request_id, request=request))
        return request_id

    def ask(self, request: messages.Request) -> RequestId:
        request_id = self._next_request_id()
        self.step(inputs.RequestReceived(cause_id=CAUSE, request_id=request_id, request=request))
        return request_id

    def _next_request_id(self) -> RequestId:
        self._requests += 1
        return RequestId(self._requests)

    def answer_to(self, request: messages.Request, kind: type[_AnswerT]) -> _AnswerT:
        answer = self.answers[self.ask(request)]
        assert isinstance(answer, kind)
        return answer

    # --- Controlled shutdown --------------------------------------------------------------------------------------

    def take_shutdown(self) -> AskController:
        (asked,) = self.asked_of_controller
        self.asked_of_controller.clear()
        assert isinstance(asked.request, control_messages.ControlledShutdownRequest)
        return asked

    def let_go(self) -> list[ZooKeeperBrokerEffect]:
        return reply(self, self.take_shutdown(), control_messages.ControlledShutdownResponse(error=ErrorCode.NONE))


def metadata() -> control_messages.UpdateMetadataRequest:
    live = tuple(control_messages.LiveBroker(broker_id=broker_id) for broker_id in (OWN, OTHER))
    return control_messages.UpdateMetadataRequest(controller_id=OTHER, controller_epoch=TERM, live_brokers=live)


def leader_and_isr(*roles: control_messages.LeaderAndIsrPartition) -> control_messages.LeaderAndIsrRequest:
    return control_messages.LeaderAndIsrRequest(controller_id=OTHER, controller_epoch=TERM, partitions=roles)


def stop_replica() -> control_messages.StopReplicaRequest:
    replica = control_messages.StopReplicaPartition(name=ORDERS, leader_epoch=LeaderEpoch(1), is_deleted=True)
    return control_messages.StopReplicaRequest(controller_id=OTHER, controller_epoch=TERM, partitions=(replica,))


LEADS: Final = role(leader=OWN, leader_epoch=0)


# --- Controlled shutdown (KafkaServer.controlledShutdown) -----------------------------------------------------------


def reply(
    life: Life, asked: AskController, response: control_messages.ControlledShutdownResponse
) -> list[ZooKeeperBrokerEffect]:
    return life.step(ControllerReplied(cause_id=CAUSE, correlation_id=asked.correlation_id, response=response))


def refuse(life: Life, asked: AskController) -> None:
    reply(life, asked, control_messages.ControlledShutdownResponse(error=ErrorCode.STALE_BROKER_EPOCH))


def name_what_is_left(life: Life, asked: AskController) -> None:
    reply(life, asked, control_messages.ControlledShutdownResponse(error=ErrorCode.NONE, remaining=(ORDERS,)))


def be_silent(life: Life, asked: AskController) -> None:
    life.step(ControllerUnreachable(cause_id=CAUSE, correlation_id=asked.correlation_id))


def test_a_broker_that_leads_nothing_any_more_ends_its_session_and_last_closes_its_logs() -> None:
    life = Life()
    life.start(LEADS)
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    effects = life.let_go()
    kinds = [type(effect) for effect in effects if not isinstance(effect, RecordEvent)]
    assert kinds == [WriteHighWatermarks, exchange.CloseSession, CloseLogs]
    assert effects[-1] == CloseLogs(broker_epoch=EPOCH)


def test_a_broker_whose_logs_are_not_open_leaves_their_checkpoints_alone() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.tell(metadata())
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    assert life.let_go()[-2:] == [exchange.CloseSession(), StopNode()]


def test_a_broker_that_has_gone_does_nothing_any_more() -> None:
    life = Life()
    life.start(LEADS)
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    life.let_go()
    assert life.broker.next_deadline_ms() is None
    assert life.step(inputs.TimerFired(cause_id=CAUSE)) == []


@pytest.mark.parametrize("fail", [refuse, name_what_is_left, be_silent])
def test_the_controller_is_asked_again_after_a_backoff_and_after_three_times_the_broker_goes(
    fail: Callable[[Life, AskController], None],
) -> None:
    life = Life()
    life.start(LEADS)
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    for _ in range(SHUTDOWN_RETRIES_MAX):
        fail(life, life.take_shutdown())
        life.advance(BACKOFF_MS - 1)
        assert life.asked_of_controller == []
        life.advance(1)
    assert life.broker.state is BrokerState.SHUTTING_DOWN


def test_three_times_without_a_controller_count_as_well() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    life.advance(SHUTDOWN_RETRIES_MAX * BACKOFF_MS - 1)
    assert life.states[-1] == (BrokerState.PENDING_CONTROLLED_SHUTDOWN, None)
    life.advance(1)
    assert life.states[-1] == (BrokerState.SHUTTING_DOWN, None)


@pytest.mark.parametrize(("ibp", "broker_epoch"), [("2.1", None), ("2.2", EPOCH)])
def test_who_asks_to_be_let_go_names_its_incarnation_since_kip_380(ibp: str, broker_epoch: BrokerEpoch | None) -> None:
    life = Life(era_name="kafka-2.5-zk", ibp=ibp)
    life.start()
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    assert life.take_shutdown().request == control_messages.ControlledShutdownRequest(
        broker_id=OWN, broker_epoch=broker_epoch
    )


def test_a_broker_that_registers_anew_while_it_shuts_down_goes_on_with_that() -> None:
    life = Life()
    life.start()
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    life.register(BrokerEpoch(9))
    life.let_go()
    assert life.states == [
        (BrokerState.STARTING, None),
        (BrokerState.RUNNING, EPOCH),
        (BrokerState.PENDING_CONTROLLED_SHUTDOWN, EPOCH),
        (BrokerState.SHUTTING_DOWN, BrokerEpoch(9)),
    ]


# --- What waits -----------------------------------------------------------------------------------------------------


def test_a_role_waits_until_the_configuration_of_its_topic_is_read_and_so_does_what_comes_later() -> None:
    # Kafka reads it while it holds replicaStateChangeLock (LogManager.fetchLogConfig).
    life = Life()
    life.start()
    life.is_zookeeper_silent = True
    later = [life.tell(leader_and_isr(LEADS)), life.tell(metadata()), life.tell(leader_and_isr(LEADS))]
    assert [asked.steps for asked in life.asked_of_zookeeper] == [
        (operations.GetData(path=paths.topic_config_node(ORDERS.topic), is_watched=True),)
    ]
    assert life.broker.held_requests == set(later)
    life.hear_zookeeper()
    assert [request_id for request_id in life.answers if request_id in later] == later
    assert life.broker.held_requests == frozenset()


def test_a_role_of_a_controller_that_was_replaced_is_refused_before_anything_is_read() -> None:
    life = Life()
    life.start()
    life.is_zookeeper_silent = True
    old = msgspec.structs.replace(leader_and_isr(LEADS), controller_epoch=ControllerEpoch(TERM - 1))
    assert life.answers[life.tell(old)] == control_messages.LeaderAndIsrResponse(error=ErrorCode.STALE_CONTROLLER_EPOCH)
    assert life.asked_of_zookeeper == []


def test_no_configuration_is_read_for_a_replica_that_is_stopped() -> None:
    life = Life()
    life.start()
    life.is_zookeeper_silent = True
    assert life.tell(stop_replica()) in life.answers
    assert life.asked_of_zookeeper == []


@pytest.mark.parametrize(
    "send",
    [
        lambda life: life.ask(fetch(0, max_wait_ms=0)),
        lambda life: life.ask(produce(acks=1)),
        lambda life: life.tell(leader_and_isr(role(leader=OTHER, leader_epoch=1))),
        lambda life: life.tell(stop_replica()),
    ],
    ids=["fetch", "produce", "LeaderAndIsr", "StopReplica"],
)
def test_while_a_leader_writes_an_isr_what_is_asked_of_its_partition_waits(send: Callable[[Life], RequestId]) -> None:
    life = Life(era_name="kafka-2.6-zk")
    life.start(LEADS)
    life.ask(produce(acks=1))
    life.is_zookeeper_silent = True
    life.advance(2 * LAG_MS)
    ((write,),) = [asked.steps for asked in life.asked_of_zookeeper]
    assert isinstance(write, operations.SetData)
    waiting = send(life)
    assert waiting not in life.answers
    assert life.tell(metadata()) in life.answers
    life.hear_zookeeper()
    assert waiting in life.answers


def test_a_leader_that_does_not_know_its_controller_asks_for_its_isr_as_soon_as_it_does() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.LogsLoaded(cause_id=CAUSE, logs=()))
    life.register()
    life.tell(leader_and_isr(LEADS))
    life.ask(produce(acks=1))
    life.advance(2 * LAG_MS)
    assert life.asked_of_controller == []
    life.tell(metadata())
    (asked,) = life.asked_of_controller
    assert isinstance(asked.request, messages.AlterPartitionRequest)


def test_records_are_deleted_once_the_log_of_each_follower_starts_there() -> None:
    life = Life()
    life.start(LEADS)
    life.ask(produce(acks=1))
    life.ask(fetch(1, max_wait_ms=0))
    target = messages.DeleteRecordsTarget(topic=ORDERS.topic, partition=ORDERS.partition, offset=Offset(1))
    deletion = life.ask(messages.DeleteRecordsRequest(partitions=(target,), timeout_ms=1000))
    assert deletion not in life.answers
    (asked,) = fetch(1).partitions
    behind = msgspec.structs.replace(fetch(1), partitions=(msgspec.structs.replace(asked, log_start_offset=Offset(1)),))
    life.ask(behind)
    assert deletion in life.answers


# --- What clients and the harness ask -------------------------------------------------------------------------------


def test_metadata_names_the_controller_that_update_metadata_named() -> None:
    life = Life()
    life.start()
    answer = life.answer_to(messages.MetadataRequest(), messages.MetadataResponse)
    assert (answer.brokers, answer.controller_id) == ((OWN, OTHER), OTHER)


def test_a_broker_describes_what_update_metadata_sent() -> None:
    life = Life()
    life.start()
    request = messages.DescribeTopicPartitionsRequest(topics=(ORDERS.topic,))
    (topic,) = life.answer_to(request, messages.DescribeTopicPartitionsResponse).topics
    assert topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_a_replica_holds_is_said_under_the_epoch_of_its_broker() -> None:
    life = Life()
    life.start()
    answer = life.answer_to(messages.GetReplicaLogInfoRequest(partitions=()), messages.GetReplicaLogInfoResponse)
    assert answer.broker_epoch == EPOCH


def test_producers_get_ids_of_one_block() -> None:
    life = Life()
    life.start()
    life.is_zookeeper_silent = True
    waiting = [life.ask(messages.InitProducerIdRequest()), life.ask(messages.InitProducerIdRequest())]
    life.hear_zookeeper()
    answers = [life.answers[request_id] for request_id in waiting]
    assert [answer.producer_id for answer in answers if isinstance(answer, messages.InitProducerIdResponse)] == [0, 1]
    assert life.answer_to(messages.InitProducerIdRequest(), messages.InitProducerIdResponse).producer_id == 2
    stat = life.server.stat(paths.PRODUCER_IDS)
    assert stat is not None
    assert stat.version == 1


# --- Logs -----------------------------------------------------------------------------------------------------------


def test_a_missing_log_may_lie_in_a_directory_that_was_not_loaded() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.LogsLoaded(cause_id=CAUSE, logs=(), failed_log_dirs=("a",)))
    life.register()
    answer = life.answers[life.tell(leader_and_isr(LEADS))]
    assert isinstance(answer, control_messages.LeaderAndIsrResponse)
    assert [partition.error for partition in answer.partitions] == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_log_starts_where_the_segments_that_storage_dropped_end() -> None:
    life = Life()
    life.start(LEADS)
    life.ask(produce(acks=1))
    life.step(inputs.SegmentsDeleted(cause_id=CAUSE, partition=ORDERS, log_start_offset=Offset(1)))
    partition = life.broker.partition(ORDERS)
    assert partition is not None
    assert partition.log.log_start_offset == 1


def test_segments_that_end_where_the_log_starts_change_nothing() -> None:
    life = Life()
    life.start(LEADS)
    life.ask(produce(acks=1))
    assert life.step(inputs.SegmentsDeleted(cause_id=CAUSE, partition=ORDERS, log_start_offset=Offset(0))) == []


# --- Notifications of a leader's own ISR writes ---------------------------------------------------------------------


def test_a_leader_that_writes_isrs_itself_wakes_to_look_for_what_to_notify() -> None:
    life = Life(era_name="kafka-2.6-zk")
    life.start(LEADS)
    life.advance(LOOK_INTERVAL_MS - 1)
    assert life.broker.next_deadline_ms() == LOOK_INTERVAL_MS
    life.advance(1)
    assert life.broker.next_deadline_ms() == 2 * LOOK_INTERVAL_MS
