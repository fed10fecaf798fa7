"""A test of an application: what a shop was told is stored outlives its leader's loss of power."""

import asyncio

import pytest
from shop import place_orders

from laststand.standing_cluster import StandingCluster


@pytest.mark.laststand_cluster(kafka=True)
def test_orders_outlive_their_leader(laststand_cluster: StandingCluster) -> None:
    """The verdict is about all that the shop was told."""
    cluster = laststand_cluster
    cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    asyncio.run(place_orders(cluster.bootstrap_servers, range(50)))
    cluster.chaos("power_loss: {node: leader(orders-0), keep: none}")
    asyncio.run(place_orders(cluster.bootstrap_servers, range(50, 100)))
    report = cluster.verify()
    assert (report.verdict.value, report.counts[0].acked, report.lost_records) == ("valid", 100, 0)
