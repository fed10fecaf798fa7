"""The state of somebody else's cluster: of brokers that contradict each other the right one is believed."""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import msgspec
import pytest

from laststand.chaos.external import state as state_module
from laststand.chaos.external.state import ExternalState
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicId, TopicPartition
from laststand.emulator.kafka.connection import KafkaConnection
from laststand.emulator.kafka.description_calls import BrokersWord

ORDERS = TopicPartition("orders", 0)
FIRST, SECOND = BrokerId(NodeId(0)), BrokerId(NodeId(1))
ADDRESSES = {FIRST: "first:9092", SECOND: "second:9092"}
DESCRIBE_QUORUM = 55


def partition(*, leader: int, epoch: int, isr: Sequence[int] = (0, 1)) -> PartitionState:
    return PartitionState(
        topic_id=TopicId("id-of-orders"),
        replicas=(FIRST, SECOND),
        isr=tuple(BrokerId(NodeId(each)) for each in isr),
        leader=BrokerId(NodeId(leader)),
        leader_epoch=LeaderEpoch(epoch),
        partition_epoch=PartitionEpoch(0),
    )


class Broker:
    """A broker, and the connection to it in one.

    Args:
        orders: the partition as it knows it.
        alive: brokers that it knows as alive.
        ends: of copies of the metadata log, by broker; ``None`` where it does not know DescribeQuorum.
    """

    def __init__(
        self, orders: PartitionState, *, alive: Sequence[BrokerId] = (FIRST, SECOND), ends: Mapping[int, int] | None
    ) -> None:
        self.orders = orders
        self.alive = alive
        self.ends = ends
        self.is_open = True
        self.features = {"metadata.version": 21}
        self.versions = {} if ends is None else {DESCRIBE_QUORUM: 2}

    @property
    def word(self) -> BrokersWord:
        return BrokersWord(
            cluster_id="theirs",
            addresses={each: ADDRESSES[each] for each in self.alive},
            racks={each: f"rack-{each}" for each in self.alive},
            partitions={ORDERS: self.orders},
        )

    async def ask(self, *_: object) -> SimpleNamespace:
        assert self.ends is not None
        observers = [SimpleNamespace(replica_id=node, log_end_offset=end) for node, end in self.ends.items()]
        quorum = SimpleNamespace(observers=observers, current_voters=())
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[quorum])])

    async def close(self) -> None:
        self.is_open = False


class Cluster:
    """Two brokers, those that do not answer left out, and the state that is told."""

    def __init__(self, brokers: dict[BrokerId, Broker], monkeypatch: pytest.MonkeyPatch) -> None:
        self.brokers = brokers
        self.changes = 0
        self.state = ExternalState(ADDRESSES, topics=lambda: ("orders",), on_change=self._change)
        monkeypatch.setattr(KafkaConnection, "dial", self._dial)
        monkeypatch.setattr(state_module, "describe_cluster", self._describe)

    def _change(self) -> None:
        self.changes += 1

    async def _dial(self, address: str, **_: object) -> Broker:
        for broker_id, broker in self.brokers.items():
            if ADDRESSES[broker_id] == address:
                broker.is_open = True
                return broker
        raise ConnectionRefusedError(address)

    async def _describe(self, connection: Broker, topics: Sequence[str]) -> BrokersWord:
        assert topics == ("orders",)
        if connection not in self.brokers.values():
            raise ConnectionError
        return connection.word

    def image(self) -> MetadataImage:
        """Returns the state after each broker has been asked once more."""
        asyncio.run(self.state.refresh())
        return self.state.image


def test_the_broker_is_believed_whose_copy_of_the_metadata_log_reaches_furthest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut_off = Broker(partition(leader=0, epoch=9), ends={0: 10, 1: 10})
    ahead = Broker(partition(leader=1, epoch=8, isr=(1,)), alive=(SECOND,), ends={0: 10, 1: 12})
    cluster = Cluster({FIRST: cut_off, SECOND: ahead}, monkeypatch)
    image = cluster.image()
    assert cluster.state.believed == SECOND
    assert image.partitions == {ORDERS: ahead.orders}
    assert {broker_id: each.fenced for broker_id, each in image.brokers.items()} == {FIRST: True, SECOND: False}
    assert {broker_id: each.rack for broker_id, each in image.brokers.items()} == {FIRST: "", SECOND: "rack-1"}
    assert image.topics == {"orders": "id-of-orders"}
    assert image.partition_counts == {"orders": 1}
    assert image.features == {"metadata.version": 21}
    assert cluster.changes == 2


def test_a_quorum_that_is_reported_late_takes_no_credit_back(monkeypatch: pytest.MonkeyPatch) -> None:
    behind, ahead = (Broker(partition(leader=leader, epoch=3), ends={0: 10, 1: 12}) for leader in (0, 1))
    cluster = Cluster({FIRST: behind, SECOND: ahead}, monkeypatch)
    cluster.image()
    behind.ends = ahead.ends = {0: 11, 1: 5}
    assert cluster.image().partitions == {ORDERS: ahead.orders}


def test_where_nothing_is_known_of_the_log_the_latest_epoch_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = Broker(partition(leader=0, epoch=3), ends=None), Broker(partition(leader=1, epoch=4), ends=None)
    assert Cluster({FIRST: old, SECOND: new}, monkeypatch).image().partitions == {ORDERS: new.orders}


def test_of_brokers_that_know_the_same_epoch_the_leader_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Broker(partition(leader=0, epoch=4, isr=(0,)), ends=None)
    follower = Broker(partition(leader=0, epoch=4), ends=None)
    assert Cluster({FIRST: leader, SECOND: follower}, monkeypatch).image().partitions == {ORDERS: leader.orders}


def test_the_next_one_is_believed_when_a_broker_stops_answering_and_the_first_again_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = (Broker(partition(leader=leader, epoch=3), ends={0: 12, 1: 10}) for leader in (0, 1))
    cluster = Cluster({FIRST: first, SECOND: second}, monkeypatch)
    assert cluster.image().partitions == {ORDERS: first.orders}
    del cluster.brokers[FIRST]
    assert cluster.image().partitions == {ORDERS: second.orders}
    assert not first.is_open
    cluster.brokers[FIRST] = first
    assert cluster.image().partitions == {ORDERS: first.orders}


def test_where_no_broker_answers_partitions_stay_and_have_no_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    only = Broker(partition(leader=0, epoch=3), ends={0: 12})
    cluster = Cluster({FIRST: only}, monkeypatch)
    cluster.image()
    cluster.brokers.clear()
    image = cluster.image()
    assert cluster.state.believed is None
    assert image.partitions == {ORDERS: msgspec.structs.replace(only.orders, leader=None)}
    assert all(each.fenced for each in image.brokers.values())
