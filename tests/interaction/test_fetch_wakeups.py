"""No fetch sleeps on records: a parked fetch has nothing to read, or is about to be answered.

A missed wake-up loses nothing, so no other check sees it; it only delays everything that waits for that fetch by
``replica.fetch.wait.max.ms``. Here every step of every broker is looked at, with produce requests at random moments and
links, leaders and ISRs that change under them.
"""

import random
from typing import Final

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.broker.replicas.delayed_fetch import LINGER_MS, FetchHandler
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import DEFAULT_ERA, era_switches
from laststand.emulator.core.types import (
    Acks,
    BrokerId,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerEpoch,
    RequestId,
    TopicPartition,
)
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.network.network import LATENCY_MS
from laststand.emulator.simulator.nodes.observer import NullObserver

BROKERS: Final = 3
PARTITIONS: Final = tuple(TopicPartition("orders", number) for number in range(3))

COMMIT_MS_MAX: Final = 8 * LATENCY_MS + 2 * LINGER_MS
"""Request, two rounds of fetches (the first may just have left), linger, answer; far below the wait of a fetch."""


def check_parked_fetches(broker: Broker, *, now_ms: int) -> None:
    """Raises if a fetch waits although records are there that it may see."""
    handler = broker._replicas.fetches
    for parked in handler._parked.values():
        for asked in parked.request.partitions:
            partition = broker.partition(asked.topic_partition)
            if partition is None or not partition.is_leader or asked.current_leader_epoch != partition.leader_epoch:
                continue
            is_follower = parked.reader.replica_id is not None
            end_offset = partition.log.log_end_offset if is_follower else partition.log.high_watermark
            if end_offset > asked.fetch_offset:
                assert handler._lingering.is_set(parked.number), (
                    f"{asked} sleeps though the log goes up to {end_offset}"
                )
                deadline_ms = broker.next_deadline_ms()
                assert deadline_ms is not None
                assert deadline_ms <= now_ms + LINGER_MS


class FetchObserver(NullObserver):
    """Checks the parked fetches after every step of a broker."""

    def attach(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def stepped(self, node_id: NodeId) -> None:
        node = self._cluster.nodes.get(BrokerId(node_id))
        if node is not None and isinstance(node.broker, Broker):
            check_parked_fetches(node.broker, now_ms=self._cluster.now_ms)


def started_cluster() -> SimulatedCluster:
    observer = FetchObserver()
    cluster = SimulatedCluster(
        brokers=BROKERS,
        switches=era_switches(DEFAULT_ERA),
        properties=NodeProperties(),
        observer=observer,
        attach=observer.attach,
    )
    for node in cluster.nodes.values():
        cluster.processes.start(node)
    cluster.run(2_000)
    assignments = tuple(tuple((first + index) % BROKERS for index in range(BROKERS)) for first in range(BROKERS))
    cluster.clients.create_topic("orders", assignments, {"min.insync.replicas": "2"})
    cluster.run(2_000)
    return cluster


class Load:
    """Produce requests, and how long each took to be acknowledged."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._asked_at_ms: dict[RequestId, int] = {}
        self._made = 0

    def produce(self, partition: TopicPartition, *, acks: Acks) -> None:
        """Sends one record to whoever leads by the controller's word; nobody is asked if nobody leads."""
        state = self._cluster.state(partition)
        if state is None or state.leader is None:
            return
        self._made += 1
        batch = BatchDescriptor(
            base_offset=Offset(0),
            last_offset=Offset(0),
            leader_epoch=LeaderEpoch(-1),
            crc=self._made,
            size=100,
            record_count=1,
            max_timestamp_ms=0,
            producer_id=None,
            producer_epoch=ProducerEpoch(-1),
            base_sequence=-1,
        )
        request = messages.ProduceRequest(
            acks=acks,
            timeout_ms=30_000,
            partitions=(messages.ProducePartition(topic=partition.topic, partition=partition.partition, batch=batch),),
        )
        request_id = self._cluster.clients.ask(NodeId(state.leader), request, cause=f"load:{self._made}")
        self._asked_at_ms[request_id] = self._cluster.now_ms

    def consume(self, partition: TopicPartition) -> None:
        """Sends a consumer's fetch that waits at the high watermark."""
        state = self._cluster.state(partition)
        broker = None if state is None or state.leader is None else self._cluster.nodes[state.leader].broker
        hosted = None if broker is None else broker.partition(partition)
        if state is None or state.leader is None or hosted is None:
            return
        asked = messages.FetchPartition(
            topic=partition.topic,
            topic_id=None,
            partition=partition.partition,
            fetch_offset=hosted.log.high_watermark,
            current_leader_epoch=state.leader_epoch,
            last_fetched_epoch=None,
            log_start_offset=None,
            partition_max_bytes=1 << 20,
        )
        request = messages.FetchRequest(
            partitions=(asked,), replica_id=None, replica_epoch=None, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20
        )
        self._cluster.clients.ask(NodeId(state.leader), request, cause="consume")

    def await_acks(self) -> int:
        """Lets time pass until all requests are answered without error; returns the longest time from now, in ms."""
        started_ms = self._cluster.now_ms
        assert self._cluster.run_until(lambda: self._asked_at_ms.keys() <= self._cluster.clients.answers.keys())
        for request_id in self._asked_at_ms:
            answer = self._cluster.clients.answers[request_id]
            assert isinstance(answer, messages.ProduceResponse)
            assert answer.partitions[0].error is ErrorCode.NONE
        self._asked_at_ms.clear()
        return self._cluster.now_ms - started_ms

    def forget(self) -> None:
        """Awaits nothing of what was sent until now."""
        self._asked_at_ms.clear()


@pytest.mark.parametrize("seed", range(10))
def test_no_append_waits_for_the_end_of_a_fetch(seed: int) -> None:
    randomness = random.Random(seed)
    cluster = started_cluster()
    load = Load(cluster)
    for _ in range(60):
        for _ in range(randomness.randrange(1, 40)):
            load.produce(randomness.choice(PARTITIONS), acks=randomness.choice((Acks.ALL, Acks.ALL, Acks.LEADER)))
            if randomness.random() < 0.1:
                load.consume(randomness.choice(PARTITIONS))
            cluster.run(randomness.choice((0, 0, 1, 2)))
        assert load.await_acks() <= COMMIT_MS_MAX
        cluster.run(randomness.choice((0, 3, 700)))


@pytest.mark.parametrize("seed", range(10))
def test_no_fetch_sleeps_on_records_while_leaders_and_isrs_change(seed: int) -> None:
    randomness = random.Random(seed)
    cluster = started_cluster()
    load = Load(cluster)
    for _ in range(12):
        broker_id = BrokerId(NodeId(randomness.randrange(BROKERS)))
        fault = randomness.choice(("isolate", "cut", "crash"))
        match fault:
            case "isolate":
                for other in (*cluster.nodes, *cluster.metadata_nodes):
                    if other != broker_id:
                        cluster.links.cut(broker_id, other)
                        cluster.links.cut(other, broker_id)
            case "cut":
                cluster.links.cut(broker_id, NodeId((broker_id + 1) % BROKERS))
            case _:
                cluster.processes.kill(cluster.nodes[broker_id])
        for _ in range(randomness.randrange(1, 60)):
            load.produce(randomness.choice(PARTITIONS), acks=randomness.choice((Acks.ALL, Acks.LEADER)))
            load.consume(randomness.choice(PARTITIONS))
            cluster.run(randomness.choice((0, 1, 5, 300)))
        cluster.links.heal()
        if fault == "crash":
            cluster.processes.start(cluster.nodes[broker_id])
        load.forget()
        cluster.run(randomness.choice((1_000, 15_000)))
    cluster.run(60_000)
    for partition in PARTITIONS:
        load.produce(partition, acks=Acks.ALL)
    assert load.await_acks() <= COMMIT_MS_MAX


def test_a_missed_wake_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = started_cluster()
    load = Load(cluster)
    monkeypatch.setattr(FetchHandler, "check_growth", lambda *_: None)
    load.produce(PARTITIONS[0], acks=Acks.ALL)
    with pytest.raises(AssertionError, match="sleeps"):
        load.await_acks()
