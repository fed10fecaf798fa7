"""KIP-392: whom the leader names to a consumer, by Kafka's ``RackAwareReplicaSelectorTest`` and ``ReplicaManager``."""

import pytest

from laststand.emulator.core.broker.replicas.replica_selector import (
    ReadableReplica,
    preferred_read_replica,
    select_in_rack,
)
from laststand.emulator.core.types import BrokerId, NodeId, Offset
from tests.unit.core.broker.hosting import FIRST, OWN, SECOND, Hosting


def replica(number: int, rack: str, *, end: int = 10, caught_up_ms: int = 0) -> ReadableReplica:
    return ReadableReplica(
        broker_id=BrokerId(NodeId(number)), rack=rack, log_end_offset=Offset(end), last_caught_up_ms=caught_up_ms
    )


@pytest.mark.parametrize(
    ("client_rack", "followers", "chosen"),
    [
        ("", [replica(1, "")], 0),  # no rack matches nothing, least of all brokers that have none
        ("here", [], 0),
        ("here", [replica(1, "there")], 0),
        ("here", [replica(1, "there"), replica(2, "here")], 2),
        ("here", [replica(1, "here", end=9), replica(2, "here", end=10)], 2),
        ("here", [replica(1, "here", caught_up_ms=5), replica(2, "here", caught_up_ms=4)], 1),
        ("home", [replica(1, "home", end=99)], 0),  # the leader is in the rack itself
    ],
)
def test_selection(client_rack: str, followers: list[ReadableReplica], chosen: int) -> None:
    assert select_in_rack(client_rack, replica(0, "home"), followers) == chosen


def leading() -> Hosting:
    """Broker 0 leads with ISR 0 and 1; 1 and 2 have fetched up to offset 3 of 5; each is in a rack of its own."""
    hosting = Hosting(records=5)
    for broker_id in (OWN, FIRST, SECOND):
        hosting.register(broker_id, rack=f"rack-{broker_id}")
    hosting.lead(OWN, FIRST)
    hosting.fetch(FIRST, 3)
    hosting.fetch(SECOND, 3)
    return hosting


def preferred(hosting: Hosting, rack: str, offset: int) -> BrokerId | None:
    return preferred_read_replica(
        hosting.partition,
        hosting.image.brokers,
        client_rack=rack,
        fetch_offset=Offset(offset),
        now_ms=hosting.now_ms,
    )


def test_a_follower_is_named_for_offsets_that_it_has() -> None:
    hosting = leading()
    assert preferred(hosting, "rack-1", 3) == FIRST
    assert preferred(hosting, "rack-1", 4) is None


def test_no_consumer_is_sent_to_a_replica_outside_the_isr() -> None:
    assert preferred(leading(), "rack-2", 0) is None


def test_no_consumer_is_sent_to_a_fenced_replica() -> None:
    hosting = leading()
    hosting.register(FIRST, rack="rack-1", fenced=True)
    assert preferred(hosting, "rack-1", 0) is None


def test_only_a_leader_names_a_preferred_replica() -> None:
    hosting = leading()
    hosting.follow(FIRST, leader_epoch=2, partition_epoch=2)
    assert preferred(hosting, "rack-1", 0) is None
