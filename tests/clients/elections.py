"""An unclean election under clients: the end of a log is gone, and other records are in its place."""

from laststand.standing_cluster import StandingCluster

COMMON = 100
"""Records that both replicas have."""

READ = 150
"""Records that the first leader had: all were acknowledged, and all were read."""

WITHIN = "120 s"


def make_two_replicas(cluster: StandingCluster, topic: str) -> None:
    """Makes a topic whose leader, broker 0, has 50 records that broker 1 lacks."""
    cluster.chaos(f"create_topic: {{name: {topic}, replicas: [[0, 1]], min.insync.replicas: 1}}")
    cluster.until(f"partition: {topic}-0, isr: [0, 1]", within=WITHIN)
    produce(cluster, topic, "common", COMMON)
    cluster.chaos("kill: {node: 1}")
    cluster.until(f"partition: {topic}-0, isr: [0]", within=WITHIN)
    produce(cluster, topic, "lost", READ - COMMON)


def elect_the_replica_that_missed_the_end(cluster: StandingCluster, topic: str, *, records_since: int) -> None:
    """Kills the leader, has broker 1 elected, and writes records over those that are gone."""
    cluster.chaos("kill: {node: 0}")
    cluster.chaos("start: {node: 1}")
    cluster.until("node: 1, unfenced: true", within=WITHIN)
    cluster.until(f"partition: {topic}-0, leader: none", within=WITHIN)
    cluster.chaos(f"elect_leaders: {{type: unclean, partition: {topic}-0}}")
    cluster.until(f"partition: {topic}-0, leader: 1", within=WITHIN)
    produce(cluster, topic, "other", records_since)
    cluster.chaos("start: {node: 0}")
    cluster.until(f"partition: {topic}-0, isr: [0, 1]", within=WITHIN)


def produce(cluster: StandingCluster, topic: str, name: str, count: int) -> None:
    """Writes records with acks=all."""
    values = [f"{name}-{number}".encode() for number in range(count)]
    assert cluster.produce(topic, values).acked == count
