"""A paused process says nothing: who waits for its answer gives it up, as the keepalive of real processes does."""

import pytest

from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import ProducerNode

ORDERS = TopicPartition("orders", 0)
SESSION_MS = 2000


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster(
        brokers=2, switches=Switches(), properties=NodeProperties(broker_session_timeout_ms=SESSION_MS)
    )
    for node in made.nodes.values():
        made.processes.start(node)
    made.run(1000)
    made.clients.create_topic("orders", ((0, 1),), {"min.insync.replicas": "1"})
    return made


def producer_of(cluster: SimulatedCluster) -> ProducerNode:
    producer = cluster.clients.add_producer("producer", ProducerSettings(), ("orders",))
    cluster.clients.produce(producer, ORDERS, 1)
    assert cluster.run_until(lambda: not producer.producer.unfinished_records)
    return producer


def leader_of(cluster: SimulatedCluster) -> BrokerId | None:
    state = cluster.state(ORDERS)
    return None if state is None else state.leader


def test_a_producer_finds_the_next_leader_although_the_paused_one_never_answers(cluster: SimulatedCluster) -> None:
    producer = producer_of(cluster)
    cluster.processes.pause(cluster.nodes[BrokerId(NodeId(0))])
    cluster.clients.produce(producer, ORDERS, 1)
    assert cluster.run_until(lambda: leader_of(cluster) == 1, within_ms=2 * SESSION_MS)
    assert cluster.run_until(lambda: not producer.producer.unfinished_records, within_ms=2 * SESSION_MS)


def test_a_short_pause_fails_no_request(cluster: SimulatedCluster) -> None:
    producer = producer_of(cluster)
    leader = cluster.nodes[BrokerId(NodeId(0))]
    cluster.processes.pause(leader)
    cluster.clients.produce(producer, ORDERS, 1)
    cluster.run(SESSION_MS // 2 - 10)
    cluster.processes.resume(leader)
    assert cluster.run_until(lambda: not producer.producer.unfinished_records, within_ms=100)
    assert leader_of(cluster) == 0
