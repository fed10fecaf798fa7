"""The admin client against a real controller core: what it returns, raises, splits and pages."""

import asyncio

import pytest

from laststand.emulator.client.admin import AdminClient, Effort
from laststand.emulator.client.admin_connection import AdminConnection
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.controller.elect_leaders import ELECT_LIMIT
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    CauseId,
    ConfigResource,
    FeatureUpgradeType,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.run_token import RunToken
from tests.unit.core.controller.controller_driver import CONTROLLER, ORDERS, ControllerDriver, ids


class Office:
    """A controller of three brokers that an admin client asks; keeps what was asked."""

    def __init__(self, *, page: int = 2000) -> None:
        properties = NodeProperties(min_insync_replicas=2, max_request_partition_size_limit=page)
        self.driver = ControllerDriver(Switches(), properties)
        self.driver.boot(0, 1, 2)
        self.asked: list[messages.Request] = []
        self.client = AdminClient(self.ask, controller_id=CONTROLLER)

    async def ask(self, node_id: NodeId, request: messages.Request) -> messages.Response:
        assert node_id == CONTROLLER
        self.asked.append(request)
        return self.driver.responses[self.driver.send(request)]

    def create(self, name: str, *assignments: tuple[int, ...]) -> None:
        topic = admin_messages.CreatableTopic(
            name=name, topic_id=TopicId(f"{name}-id"), assignments=tuple(ids(*replicas) for replicas in assignments)
        )
        asyncio.run(self.client.create_topic(topic))


def test_topics_are_created_enlarged_and_deleted() -> None:
    office = Office()
    office.create("orders", (0, 1, 2))
    three = admin_messages.CreatablePartitions(name="orders", count=3)
    asyncio.run(office.client.create_partitions(three, effort=Effort.VALIDATE_ONLY))
    assert len(office.driver.image.partitions) == 1

    asyncio.run(office.client.create_partitions(three))
    [topic] = asyncio.run(office.client.describe_topics(["orders"]))
    assert [len(partition.replicas) for partition in topic.partitions] == [3, 3, 3]

    asyncio.run(office.client.delete_topic("orders"))
    assert asyncio.run(office.client.describe_topics()) == ()


def test_an_error_names_the_request_kafkas_error_and_the_subject() -> None:
    office = Office()
    office.create("orders", (0, 1, 2))

    with pytest.raises(AdminError, match=r"CreateTopics topic orders: TOPIC_ALREADY_EXISTS") as raised:
        office.create("orders", (0, 1, 2))
    assert raised.value.error is ErrorCode.TOPIC_ALREADY_EXISTS


def test_pages_are_followed_and_a_topic_on_two_pages_is_one() -> None:
    office = Office(page=2)
    office.create("a", (0, 1, 2), (1, 2, 0), (2, 0, 1))
    office.create("b", (0, 1, 2), (1, 2, 0))

    described = asyncio.run(office.client.describe_topics(["b", "a", "nowhere"]))

    assert [(topic.name, [p.partition for p in topic.partitions]) for topic in described] == [
        ("a", [0, 1, 2]),
        ("b", [0, 1]),
        ("nowhere", []),
    ]
    assert described[-1].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    pages = [request for request in office.asked if isinstance(request, messages.DescribeTopicPartitionsRequest)]
    assert len(pages) == 3


def test_more_topics_than_a_request_may_name_are_asked_for_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laststand.emulator.client.admin.DESCRIBED_TOPICS_MAX", 2)
    office = Office()
    for name in ("a", "b", "c"):
        office.create(name, (0, 1, 2))

    described = asyncio.run(office.client.describe_topics(["c", "a", "b"]))

    assert [topic.name for topic in described] == ["a", "b", "c"]
    named = [request.topics for request in office.asked if isinstance(request, messages.DescribeTopicPartitionsRequest)]
    assert named == [("a", "b"), ("c",)]


def test_elections_over_the_limit_are_split_so_that_all_are_served() -> None:
    office = Office()
    asked = [admin_messages.ElectablePartition(topic="nowhere", partition=index) for index in range(ELECT_LIMIT + 1)]

    results = asyncio.run(office.client.elect_leaders(admin_messages.RequestedElection.PREFERRED, asked))

    assert [result.partition for result in results] == list(range(ELECT_LIMIT + 1))
    assert {result.error for result in results} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_elections_in_all_partitions_are_asked_for_again_beyond_the_limit() -> None:
    asked: list[admin_messages.ElectLeadersRequest] = []

    async def answer(_: NodeId, request: messages.Request) -> messages.Response:
        assert isinstance(request, admin_messages.ElectLeadersRequest)
        asked.append(request)
        numbers = range(4) if request.partitions is None else [each.partition for each in request.partitions]
        errors = {0: ErrorCode.NONE, 1: ErrorCode.NONE, 2: ErrorCode.NONE, 3: ErrorCode.ELECTION_NOT_NEEDED}
        if request.partitions is None:
            errors |= dict.fromkeys((2, 3), ErrorCode.REQUEST_LIMIT_REACHED)
        results = [
            admin_messages.PartitionResult(topic="orders", partition=number, error=errors[number]) for number in numbers
        ]
        return admin_messages.ElectLeadersResponse(error=ErrorCode.NONE, partitions=tuple(results))

    client = AdminClient(answer, controller_id=CONTROLLER)
    results = asyncio.run(client.elect_leaders(admin_messages.RequestedElection.PREFERRED, None))

    assert [(each.partition, each.error) for each in results] == [(number, ErrorCode.NONE) for number in range(3)]
    assert len(asked) == 2
    assert asked[1].partitions is not None
    assert [each.partition for each in asked[1].partitions] == [2, 3]


def test_a_page_is_as_small_as_the_administrator_wants() -> None:
    office = Office()
    office.create("a", (0, 1, 2), (1, 2, 0), (2, 0, 1))
    [topic] = asyncio.run(office.client.describe_topics(["a"], page_size=1))
    assert [each.partition for each in topic.partitions] == [0, 1, 2]
    pages = [request for request in office.asked if isinstance(request, messages.DescribeTopicPartitionsRequest)]
    assert [page.response_partition_limit for page in pages] == [1, 1, 1]


def test_each_leader_is_asked_to_delete_records_of_its_own() -> None:
    asked: dict[NodeId, list[tuple[int, int | None]]] = {}

    async def answer(node_id: NodeId, request: messages.Request) -> messages.Response:
        assert isinstance(request, messages.DeleteRecordsRequest)
        asked[node_id] = [(each.partition, each.offset) for each in request.partitions]
        results = [
            messages.DeleteRecordsResult(topic=each.topic, partition=each.partition, error=ErrorCode.NONE)
            for each in request.partitions
        ]
        return messages.DeleteRecordsResponse(partitions=tuple(results))

    first, second, third = (TopicPartition("orders", number) for number in range(3))
    leaders = dict(zip((first, second, third), ids(1, 0, 1), strict=True))
    offsets = {first: Offset(3), second: None, third: Offset(0)}
    results = asyncio.run(AdminClient(answer, controller_id=CONTROLLER).delete_records(offsets, leaders))
    assert asked == {NodeId(0): [(1, None)], NodeId(1): [(0, 3), (2, 0)]}
    assert len(results) == 3


@pytest.mark.parametrize(
    ("name", "value", "strategy", "source"),
    [
        (None, "", "Balanced", admin_messages.ConfigSource.DEFAULT_CONFIG),
        ("unclean.leader.election.enable", "true", "Aggressive", admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ("unclean.leader.election.enable", "false", "Balanced", admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ("unclean.recovery.strategy", "None", "None", admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG),
    ],
)
def test_the_strategy_in_effect_is_shown(
    name: str | None, value: str, strategy: str, source: admin_messages.ConfigSource
) -> None:
    office = Office()
    office.create("orders", (0, 1, 2))
    if name is not None:
        change = admin_messages.AlterableConfig(name=name, operation=admin_messages.ConfigOperation.SET, value=value)
        asyncio.run(office.client.alter_configs(ConfigResource.TOPIC, "orders", (change,)))
    for resource, subject in ((ConfigResource.TOPIC, "orders"), (ConfigResource.BROKER, "0")):
        found = asyncio.run(office.client.describe_configs(resource, subject))
        shown = next(each for each in found if each.name == "unclean.recovery.strategy")
        expected = (
            (strategy, source) if subject == "orders" else ("Balanced", admin_messages.ConfigSource.DEFAULT_CONFIG)
        )
        assert (shown.value, shown.source) == expected


def test_reassignments_start_show_and_are_cancelled() -> None:
    office = Office()
    office.create("orders", (0, 1))

    [started] = asyncio.run(office.client.reassign({ORDERS: ids(1, 2)}))
    [ongoing] = asyncio.run(office.client.list_reassignments())
    [cancelled] = asyncio.run(office.client.reassign({ORDERS: None}))

    assert (started.error, cancelled.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert (ongoing.adding_replicas, ongoing.removing_replicas) == (ids(2), ids(0))
    assert asyncio.run(office.client.list_reassignments([ORDERS, TopicPartition("nowhere", 0)])) == ()


def test_configuration_is_set_and_shown_with_its_source() -> None:
    office = Office()
    office.create("orders", (0, 1, 2))
    change = admin_messages.AlterableConfig(
        name="min.insync.replicas", operation=admin_messages.ConfigOperation.SET, value="3"
    )

    asyncio.run(office.client.alter_configs(ConfigResource.TOPIC, "orders", [change], effort=Effort.VALIDATE_ONLY))
    [before] = asyncio.run(
        office.client.describe_configs(ConfigResource.TOPIC, "orders", names=["min.insync.replicas"])
    )
    asyncio.run(office.client.alter_configs(ConfigResource.TOPIC, "orders", [change]))
    [after] = asyncio.run(office.client.describe_configs(ConfigResource.TOPIC, "orders", names=["min.insync.replicas"]))

    assert (before.value, before.source) == ("2", admin_messages.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert (after.value, after.source) == ("3", admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG)
    with pytest.raises(AdminError, match=r"topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"):
        asyncio.run(office.client.alter_configs(ConfigResource.TOPIC, "nowhere", [change]))


def test_features_are_updated_or_refused_as_one() -> None:
    office = Office()
    down = admin_messages.FeatureUpdate(
        feature=ELR_VERSION, max_version_level=0, upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE
    )

    with pytest.raises(AdminError, match="INVALID_UPDATE_VERSION"):
        asyncio.run(
            office.client.update_features([admin_messages.FeatureUpdate(feature="unknown", max_version_level=1), down])
        )
    asyncio.run(office.client.update_features([down], effort=Effort.VALIDATE_ONLY))
    levels = {feature.name: feature.finalized_version for feature in asyncio.run(office.client.describe_features())}
    assert levels[ELR_VERSION] == 1

    asyncio.run(office.client.update_features([down]))
    levels = {feature.name: feature.finalized_version for feature in asyncio.run(office.client.describe_features())}
    assert levels[ELR_VERSION] == 0


def test_brokers_are_listed_and_forgotten() -> None:
    office = Office()
    asyncio.run(office.client.unregister_broker(ids(2)[0]))

    cluster = asyncio.run(office.client.describe_cluster())

    assert [broker.broker_id for broker in cluster.brokers] == [0, 1]
    assert not any(broker.is_fenced or broker.in_controlled_shutdown for broker in cluster.brokers)
    with pytest.raises(AdminError, match="broker 2: BROKER_ID_NOT_REGISTERED"):
        asyncio.run(office.client.unregister_broker(ids(2)[0]))


def test_a_node_that_cannot_be_reached_is_an_admin_error() -> None:
    async def ask() -> None:
        addresses = {CONTROLLER: "127.0.0.1:1"}
        keepalive = keepalive_for(session_timeout_ms=1000)
        async with AdminConnection(
            addresses, keepalive=keepalive, token=RunToken.draw(), cause_id=CauseId("test"), timeout_s=0.05
        ) as connection:
            await AdminClient(connection.ask, controller_id=CONTROLLER).describe_cluster()

    with pytest.raises(AdminError) as raised:
        asyncio.run(ask())
    assert raised.value.error in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
