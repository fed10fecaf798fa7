"""Elections that nobody died for: an administrator's, and the return of leaderships to preferred replicas."""

from typing import Final

import pytest

from laststand.emulator.core import admin_messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.controller import FIRST_BALANCE_MS
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import encode_config
from tests.unit.core.zookeeper.controller.controllers import (
    ORDERS,
    Cluster,
    alter,
    broker,
    isr_change,
    reassign,
)

FIRST, SECOND = ORDERS, TopicPartition("orders", 1)
CHECK_INTERVAL_MS: Final = ControllerConfig(broker_id=broker(1)).leader_imbalance_check_interval_ms


def elect(
    cluster: Cluster, election: admin_messages.RequestedElection, *names: TopicPartition
) -> list[tuple[TopicPartition, ErrorCode]]:
    """Asks for elections, of all partitions where none is named."""
    asked = tuple(admin_messages.ElectablePartition(topic=name.topic, partition=name.partition) for name in names)
    request = admin_messages.ElectLeadersRequest(election_type=election.value, partitions=asked or None)
    response = cluster.ask(1, request)
    assert isinstance(response, admin_messages.ElectLeadersResponse)
    return [(TopicPartition(result.topic, result.partition), result.error) for result in response.partitions]


def leaders(cluster: Cluster, *names: TopicPartition) -> list[int | None]:
    return [cluster.state(name).leader_and_isr.leader for name in names]


def led_elsewhere(*, imbalance_percentage: int = 10) -> Cluster:
    """Two partitions prefer broker 2, which was away for a moment: 3 leads them, and 2 is in sync again."""
    cluster = Cluster(1, 2, 3, imbalance_percentage=imbalance_percentage)
    cluster.create_topic(2, 3, others=[(2, 3)])
    cluster.expire(2)
    cluster.settle()
    for name in (FIRST, SECOND):
        alter(cluster, isr_change(cluster, 3, 2, sender=3, name=name))
    assert leaders(cluster, FIRST, SECOND) == [3, 3]
    return cluster


# --- An administrator's elections (KIP-460) -------------------------------------------------------------------------


def test_of_the_partitions_that_need_an_election_only_those_named_are_elected() -> None:
    cluster = led_elsewhere()
    assert elect(cluster, admin_messages.RequestedElection.PREFERRED, SECOND) == [(SECOND, ErrorCode.NONE)]
    assert leaders(cluster, FIRST, SECOND) == [3, 2]
    assert elect(cluster, admin_messages.RequestedElection.PREFERRED, SECOND) == [
        (SECOND, ErrorCode.ELECTION_NOT_NEEDED)
    ]
    assert elect(cluster, admin_messages.RequestedElection.PREFERRED) == [(FIRST, ErrorCode.NONE)]


def test_a_preferred_replica_that_is_not_in_sync_is_not_available() -> None:
    cluster = led_elsewhere()
    alter(cluster, isr_change(cluster, 3, sender=3))
    before = cluster.shown()
    assert elect(cluster, admin_messages.RequestedElection.PREFERRED, FIRST) == [
        (FIRST, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    ]
    assert cluster.shown() == before


def test_without_a_replica_that_is_online_no_leader_is_eligible() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(2)
    cluster.lose(2)
    assert elect(cluster, admin_messages.RequestedElection.UNCLEAN, FIRST) == [
        (FIRST, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    ]


# --- The return to preferred replicas (KafkaController.checkAndTriggerAutoLeaderRebalance) --------------------------


def test_leaderships_return_again_and_again() -> None:
    cluster = led_elsewhere()
    cluster.advance(FIRST_BALANCE_MS - 1)
    assert leaders(cluster, FIRST, SECOND) == [3, 3]
    cluster.advance(1)
    assert leaders(cluster, FIRST, SECOND) == [2, 2]
    cluster.expire(2)
    cluster.settle()
    alter(cluster, isr_change(cluster, 3, 2, sender=3))
    cluster.advance(CHECK_INTERVAL_MS - 1)
    assert leaders(cluster, FIRST) == [3]
    cluster.advance(1)
    assert leaders(cluster, FIRST) == [2]


def test_they_return_only_where_more_than_the_percentage_of_a_brokers_are_elsewhere() -> None:
    cluster = led_elsewhere(imbalance_percentage=50)
    elect(cluster, admin_messages.RequestedElection.PREFERRED, SECOND)
    cluster.advance(FIRST_BALANCE_MS)
    assert leaders(cluster, FIRST, SECOND) == [3, 2]
    cluster = led_elsewhere(imbalance_percentage=99)
    cluster.advance(FIRST_BALANCE_MS)
    assert leaders(cluster, FIRST, SECOND) == [2, 2]


def test_a_partition_that_is_being_reassigned_stays_where_it_is() -> None:
    cluster = led_elsewhere()
    reassign(cluster, 2, 1)
    cluster.advance(FIRST_BALANCE_MS)
    assert leaders(cluster, FIRST, SECOND) == [3, 2]


def test_a_topic_that_is_being_deleted_stays_where_it_is() -> None:
    cluster = led_elsewhere()
    cluster[1].term.context.topics_to_delete["orders"] = None
    cluster.advance(FIRST_BALANCE_MS)
    assert leaders(cluster, FIRST, SECOND) == [3, 3]


def test_a_partition_without_a_state_node_is_led_nowhere_else() -> None:
    cluster = led_elsewhere()
    cluster.create_topic(4, topic="payments")
    cluster.advance(FIRST_BALANCE_MS)
    assert leaders(cluster, FIRST, SECOND) == [2, 2]


# --- A topic made unclean (KafkaController.processTopicUncleanLeaderElectionEnable) ---------------------------------


def configure(cluster: Cluster, topic: str, **config: str) -> None:
    """Sets a topic's configuration; dots are underscores."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    cluster.write(operations.SetData(path=paths.topic_config_node(topic), data=encode_config(named), version=None))


@pytest.fixture
def leaderless() -> Cluster:
    """Nobody leads a partition of ``orders``, as its only member is dead; all others are led."""
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3, others=[(3, 2)])
    cluster.create_topic(3, topic="payments")
    alter(cluster, isr_change(cluster, 2, sender=2))
    cluster.lose(2)
    assert leaders(cluster, FIRST, SECOND) == [None, 3]
    return cluster


def test_only_partitions_without_a_leader_are_elected_and_of_that_topic(leaderless: Cluster) -> None:
    others = SECOND, TopicPartition("payments", 0)
    before = [leaderless.shown(name) for name in others]
    configure(leaderless, "orders", unclean_leader_election_enable="true")
    assert leaders(leaderless, FIRST) == [3]
    assert [leaderless.shown(name) for name in others] == before


def test_a_change_of_configuration_elects_a_leader_only_if_it_allows_one(leaderless: Cluster) -> None:
    data = leaderless.server.data(paths.state_node(FIRST))
    assert data is not None
    leaderless.write_state(data.replace(b'"isr":[2]', b'"isr":[2,3]'))
    configure(leaderless, "orders", min_insync_replicas="1")
    assert leaders(leaderless, FIRST) == [None]
    configure(leaderless, "orders", unclean_leader_election_enable="true")
    assert leaders(leaderless, FIRST) == [3]


def test_a_topic_that_says_nothing_is_led_uncleanly_where_its_cluster_allows_that() -> None:
    cluster = Cluster(1, 2, 3, unclean=True)
    cluster.create_topic(2, 3)
    alter(cluster, isr_change(cluster, 2, sender=2))
    cluster.lose(2)
    assert leaders(cluster, FIRST) == [3]
