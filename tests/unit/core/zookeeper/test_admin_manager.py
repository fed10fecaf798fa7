"""Requests of administrators to a broker beside ZooKeeper: who answers them, what is written, and what ends them."""

from contextlib import suppress
from typing import Any, cast

import pytest

from laststand.emulator.core import admin_messages, effects
from laststand.emulator.core.admin_messages import AlterableConfig, ConfigOperation, CreatableTopic
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, CauseId, ConfigResource, NodeId, RequestId, TopicId
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.admin_manager import (
    AdminAsked,
    AdminManager,
    AdminRequest,
    AdminResponse,
    AdminSettings,
)
from laststand.emulator.core.zookeeper.broker_registration import make_persistent_paths
from laststand.emulator.core.zookeeper.controller.exchange import TimeCame
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import RegisteredEndpoint, encode_broker
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules
from laststand.emulator.core.zookeeper.server import ZooKeeperServer

CAUSE = CauseId("test")
BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))
RULES = ZooKeeperRules()


class Broker:
    """An admin manager and the server that answers it, unless it is cut off."""

    def __init__(self, *, is_controller: bool = True) -> None:
        settings = AdminSettings(
            node_id=BROKERS[0],
            properties=NodeProperties(num_partitions=2, default_replication_factor=2),
            switches=Switches(),
            rules=RULES,
            ibp=InterBrokerProtocol(),
        )
        self.manager = AdminManager(settings, is_controller=lambda: is_controller)
        self.server = ZooKeeperServer()
        self.session_id = self.server.open_session(timeout_ms=1_000_000, now_ms=0)
        program = make_persistent_paths()
        with suppress(StopIteration):
            steps = next(program)
            while True:
                steps = program.send(self.server.execute(self.session_id, steps))
        self.now_ms = 0
        self.manager.step(exchange.SessionEstablished(cause_id=CAUSE, session_id=self.session_id), now_ms=0)
        for broker_id in BROKERS:
            self.create(paths.broker_node(broker_id), encode_broker(RegisteredEndpoint(), version=5, now_ms=0))

    def create(self, path: str, data: bytes) -> None:
        self.server.execute(self.session_id, (operations.Create(path=path, data=data),))

    def send(self, request: AdminRequest) -> list[exchange.ZooKeeperRequest | effects.SendResponse]:
        return self.manager.step(
            AdminAsked(cause_id=CAUSE, request_id=RequestId(7), request=request), now_ms=self.now_ms
        )

    def ask(self, request: AdminRequest) -> AdminResponse:
        """Returns the answer once ZooKeeper has given all of its own."""
        done = self.send(request)
        while True:
            (effect,) = done
            if isinstance(effect, effects.SendResponse):
                return cast(AdminResponse, effect.response)
            answers = self.server.execute(self.session_id, effect.steps)
            done = self.manager.step(
                exchange.ZooKeeperAnswered(cause_id=CAUSE, correlation_id=effect.correlation_id, answers=answers),
                now_ms=self.now_ms,
            )

    def assignments(self, topic: str) -> dict[int, ReplicaAssignment]:
        data = self.server.data(paths.topic_node(topic))
        assert data is not None
        return dict(decode_topic(data, topic_format=RULES.topic_format).partitions)


def creation(name: str = "orders", *, validate_only: bool = False, **fields: Any) -> admin_messages.CreateTopicsRequest:
    topic = CreatableTopic(**{"name": name, "topic_id": TopicId("id"), **fields})
    return admin_messages.CreateTopicsRequest(topics=(topic,), validate_only=validate_only)


def error_of(response: AdminResponse) -> ErrorCode:
    match response:
        case (
            admin_messages.CreateTopicsResponse(topics=(result,))
            | admin_messages.CreatePartitionsResponse(topics=(result,))
            | admin_messages.DeleteTopicsResponse(topics=(result,))
        ):
            return result.error
        case admin_messages.IncrementalAlterConfigsResponse(resources=(altered,)):
            return altered.error
        case admin_messages.DescribeConfigsResponse(resources=(described,)):
            return described.error
        case admin_messages.ListPartitionReassignmentsResponse(error=error):
            return error
        case _:
            raise AssertionError(response)


def config(value: str | None, operation: ConfigOperation = ConfigOperation.SET) -> tuple[AlterableConfig, ...]:
    return (AlterableConfig(name="min.insync.replicas", value=value, operation=operation),)


def alteration(
    changes: tuple[AlterableConfig, ...], *, validate_only: bool = False
) -> admin_messages.IncrementalAlterConfigsRequest:
    resource = admin_messages.AlterConfigsResource(
        resource=ConfigResource.TOPIC, resource_name="orders", configs=changes
    )
    return admin_messages.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


DESCRIPTION = admin_messages.DescribeConfigsRequest(
    resources=(
        admin_messages.DescribeConfigsResource(
            resource=ConfigResource.TOPIC, resource_name="orders", configuration_keys=("min.insync.replicas",)
        ),
    )
)
GROWTH = admin_messages.CreatePartitionsRequest(
    topics=(admin_messages.CreatablePartitions(name="orders", count=4, assignments=()),)
)
LISTING = admin_messages.ListPartitionReassignmentsRequest(partitions=None)
DELETION = admin_messages.DeleteTopicsRequest(topics=("orders",))


def test_a_topic_gets_what_the_broker_has_as_defaults() -> None:
    broker = Broker()
    assert error_of(broker.ask(creation())) is ErrorCode.NONE
    assert [len(each.replicas) for each in broker.assignments("orders").values()] == [2, 2]
    assert error_of(broker.ask(creation())) is ErrorCode.TOPIC_ALREADY_EXISTS


def test_replicas_may_be_named_on_brokers_that_are_down() -> None:
    broker = Broker()
    down = BrokerId(NodeId(9))
    assert error_of(broker.ask(creation(assignments=((BROKERS[0], down),)))) is ErrorCode.NONE
    assert broker.assignments("orders")[0].replicas == (BROKERS[0], down)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"replication_factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": (("min.insync.replicas", "none"),)}, ErrorCode.INVALID_CONFIG),
        ({"assignments": ((BROKERS[0], BROKERS[0]),)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_that_cannot_be_is_refused(fields: dict[str, Any], error: ErrorCode) -> None:
    broker = Broker()
    assert error_of(broker.ask(creation(**fields))) is error
    assert broker.server.data(paths.topic_node("orders")) is None


def test_a_trial_writes_nothing() -> None:
    broker = Broker()
    assert error_of(broker.ask(creation(validate_only=True))) is ErrorCode.NONE
    assert broker.server.data(paths.topic_node("orders")) is None
    broker.ask(creation())
    before = broker.server.last_zxid
    assert error_of(broker.ask(alteration(config("2"), validate_only=True))) is ErrorCode.NONE
    assert error_of(broker.ask(alteration(config("none"), validate_only=True))) is ErrorCode.INVALID_CONFIG
    assert broker.server.last_zxid == before


def test_a_topic_grows_is_configured_and_goes() -> None:
    broker = Broker()
    assert error_of(broker.ask(GROWTH)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.ask(creation())
    assert error_of(broker.ask(GROWTH)) is ErrorCode.NONE
    assert sorted(broker.assignments("orders")) == [0, 1, 2, 3]
    assert error_of(broker.ask(alteration(config("2")))) is ErrorCode.NONE
    described = broker.ask(DESCRIPTION)
    assert isinstance(described, admin_messages.DescribeConfigsResponse)
    (value,) = described.resources[0].configs
    assert (value.value, value.source) == ("2", admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert error_of(broker.ask(DELETION)) is ErrorCode.NONE
    assert broker.server.stat(paths.delete_topic_node("orders")) is not None


def test_what_moves_is_listed() -> None:
    broker = Broker()
    moving = ReplicaAssignment(replicas=(BROKERS[2], BROKERS[0]), adding=(BROKERS[2],), removing=(BROKERS[0],))
    content = TopicAssignment(topic_id=TopicId("id"), partitions={0: moving, 1: ReplicaAssignment(replicas=BROKERS)})
    broker.create(paths.topic_node("orders"), encode_topic(content, topic_format=RULES.topic_format))
    listed = broker.ask(LISTING)
    assert isinstance(listed, admin_messages.ListPartitionReassignmentsResponse)
    assert [(each.partition, each.adding_replicas, each.removing_replicas) for each in listed.partitions] == [
        (0, (BROKERS[2],), (BROKERS[0],))
    ]


def test_topics_are_the_controllers_and_configurations_everybodys() -> None:
    broker = Broker(is_controller=False)
    for request in (creation(), GROWTH, DELETION, LISTING):
        assert error_of(broker.ask(request)) is ErrorCode.NOT_CONTROLLER
    for asked in (alteration(config("2")), DESCRIPTION):
        assert error_of(broker.ask(asked)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "orders/partitions", "a b"])
def test_a_name_that_no_topic_can_have_is_never_part_of_a_path(name: str) -> None:
    broker = Broker()
    deletion = admin_messages.DeleteTopicsRequest(topics=(name,))
    growth = admin_messages.CreatePartitionsRequest(
        topics=(admin_messages.CreatablePartitions(name=name, count=4, assignments=()),)
    )
    for request in (deletion, growth):
        assert error_of(broker.ask(request)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(broker.ask(creation(name))) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_that_differ_by_a_dot_collide() -> None:
    broker = Broker()
    assert error_of(broker.ask(creation("a_b"))) is ErrorCode.NONE
    assert error_of(broker.ask(creation("a.b", topic_id=TopicId("other")))) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_node_that_makes_no_sense_is_an_answer() -> None:
    broker = Broker()
    broker.create(paths.topic_node("orders"), b'{"version":3}')
    assert error_of(broker.ask(GROWTH)) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_lost_connection_is_repeated_and_a_session_that_ends_refuses_what_waits() -> None:
    broker = Broker()
    (asked,) = broker.send(creation())
    assert isinstance(asked, exchange.ZooKeeperRequest)
    assert broker.manager.step(exchange.ZooKeeperConnectionLost(cause_id=CAUSE), now_ms=0) == []
    (again,) = broker.manager.step(exchange.ZooKeeperReconnected(cause_id=CAUSE), now_ms=0)
    assert isinstance(again, exchange.ZooKeeperRequest)
    assert (again.steps, again.correlation_id < asked.correlation_id < 0) == (asked.steps, True)
    (refused,) = broker.manager.step(exchange.SessionExpired(cause_id=CAUSE), now_ms=0)
    assert isinstance(refused, effects.SendResponse)
    assert error_of(cast(AdminResponse, refused.response)) is ErrorCode.NOT_CONTROLLER


def test_what_every_broker_answers_goes_on_in_the_next_session() -> None:
    broker = Broker(is_controller=False)
    assert len(broker.send(DESCRIPTION)) == 1
    assert broker.manager.step(exchange.SessionExpired(cause_id=CAUSE), now_ms=0) == []
    assert broker.send(alteration(config("2"))) == []
    established = exchange.SessionEstablished(cause_id=CAUSE, session_id=broker.session_id)
    waiting = broker.manager.step(established, now_ms=0)
    answered = 0
    while waiting:
        done = waiting.pop(0)
        if isinstance(done, effects.SendResponse):
            answered += 1
            continue
        answers = broker.server.execute(broker.session_id, done.steps)
        waiting += broker.manager.step(
            exchange.ZooKeeperAnswered(cause_id=CAUSE, correlation_id=done.correlation_id, answers=answers),
            now_ms=0,
        )
    assert answered == 2


def test_no_request_waits_longer_than_the_request_timeout() -> None:
    """Requests that come while ZooKeeper does not answer are answered in the end, and those not begun are not begun."""
    broker = Broker()
    under_way = broker.send(creation())
    broker.now_ms = 10_000
    assert [broker.send(creation(f"late-{number}")) for number in range(3)] == [[], [], []]
    assert broker.manager.next_deadline_ms() == 30_000
    (first,) = broker.manager.step(TimeCame(CAUSE), now_ms=30_000)
    assert isinstance(first, effects.SendResponse)
    assert error_of(cast(AdminResponse, first.response)) is ErrorCode.REQUEST_TIMED_OUT
    assert broker.manager.next_deadline_ms() == 40_000
    late = broker.manager.step(TimeCame(CAUSE), now_ms=40_000)
    assert {error_of(cast(AdminResponse, cast(effects.SendResponse, each).response)) for each in late} == {
        ErrorCode.REQUEST_TIMED_OUT
    }
    assert (len(late), broker.manager.next_deadline_ms()) == (3, None)
    while under_way:  # it goes on, as in Kafka, and nobody is told
        (asked,) = under_way
        assert isinstance(asked, exchange.ZooKeeperRequest)
        answers = broker.server.execute(broker.session_id, asked.steps)
        under_way = broker.manager.step(
            exchange.ZooKeeperAnswered(cause_id=CAUSE, correlation_id=asked.correlation_id, answers=answers),
            now_ms=50_000,
        )
    assert broker.server.data(paths.topic_node("orders")) is not None
    assert broker.server.data(paths.topic_node("late-0")) is None
    broker.now_ms = 60_000
    assert error_of(broker.ask(creation("next"))) is ErrorCode.NONE
