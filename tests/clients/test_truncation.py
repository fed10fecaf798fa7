"""Consumers whose position is past the end of a log after an unclean election (KIP-320): who notices?

A consumer has read 150 records. The 50 last ones are lost, and others are written in their place: 30, so that the log
ends before the consumer's position, or 80, so that it ends behind it again. The offset at which the consumer goes on is
what it noticed: 100 is where the logs part, 0 the beginning, by ``auto.offset.reset``, 150 nothing at all.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from laststand.standing_cluster import StandingCluster
from tests.clients.clients import CLIENTS, Running, start
from tests.clients.elections import COMMON, READ, elect_the_replica_that_missed_the_end, make_two_replicas

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]

RECORDS_SINCE: Final = {"shorter": 30, "regrown": 80}
PARTED, BEGINNING, UNNOTICED = COMMON, 0, READ
GOES_ON_AT: Final = {
    "kcat": (BEGINNING, UNNOTICED),  # librdkafka 2.0; since 2.1 it knows epochs
    "confluent-kafka": (PARTED, PARTED),
    "kafka-python": (PARTED, PARTED),
    "aiokafka": (BEGINNING, UNNOTICED),
    "Java 4.2": (PARTED, PARTED),
    "Java 3.9": (PARTED, PARTED),
    "franz-go": (PARTED, PARTED),
    "sarama": (None, UNNOTICED),  # it ends with an error where its position is out of range
}
"""By client: where it goes on if the log is shorter, and if it has regrown."""


@pytest.fixture(scope="module")
def consumers(cluster: StandingCluster) -> Iterator[dict[tuple[str, str], Running]]:
    """All consumers of both topics, after the election."""
    with ExitStack() as stack:
        running: dict[tuple[str, str], Running] = {}
        for topic, records_since in RECORDS_SINCE.items():
            make_two_replicas(cluster, topic)
            for client in GOES_ON_AT:
                running[client, topic] = stack.enter_context(start(client, "consume", cluster.bootstrap_servers, topic))
            for client in GOES_ON_AT:
                running[client, topic].wait_for("read", READ)
            # None shall ask the new leader before all its records are there.
            for client in GOES_ON_AT:
                running[client, topic].pause()
            elect_the_replica_that_missed_the_end(cluster, topic, records_since=records_since)
            for client in GOES_ON_AT:
                running[client, topic].resume()
        yield running


@pytest.mark.parametrize("topic", RECORDS_SINCE)
@pytest.mark.parametrize("client", GOES_ON_AT)
def test_a_consumer_goes_on_at(client: str, topic: str, consumers: dict[tuple[str, str], Running]) -> None:
    consumer = consumers[client, topic]
    expected = dict(zip(RECORDS_SINCE, GOES_ON_AT[client], strict=True))[topic]
    if expected is None:
        consumer.wait_for("error", 1)
        assert len(consumer.said("read")) == READ
    else:
        consumer.wait_for("read", READ + 1)
        assert int(consumer.said("read")[READ][1]) == expected


def test_every_client_is_asked() -> None:
    assert set(GOES_ON_AT) == set(CLIENTS)
