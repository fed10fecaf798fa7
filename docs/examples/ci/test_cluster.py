"""A test in Python with a cluster of its own: what is acknowledged is still there after the leader was killed."""

import pytest

from laststand.standing_cluster import StandingCluster


@pytest.mark.laststand_cluster(settings={"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"})
def test_a_killed_leader_takes_nothing_with_it(laststand_cluster: StandingCluster) -> None:
    """The fixture stops the cluster, and has it verified, when the test is over."""
    cluster = laststand_cluster
    cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    assert cluster.produce("orders", [b"first", b"second"]).acked == 2
    cluster.chaos("kill: {node: leader(orders-0)}")
    assert cluster.produce("orders", [b"third"]).acked == 1
    assert sorted(record.value or b"" for record in cluster.consume("orders", count=3)) == [
        b"first",
        b"second",
        b"third",
    ]
    cluster.chaos("start: {any: 1}")
