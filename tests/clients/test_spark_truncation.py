"""A stream of Spark across an unclean election: its checkpoint is past the end of the log, or in other records.

A checkpoint has no leader epochs (KIP-320). The source notices a log that ends before its position, and then
``failOnDataLoss`` decides; in a log that has grown again it notices nothing. Either way it never sees records that were
written in place of those that are lost.
"""

from pathlib import Path

import pytest

from laststand.standing_cluster import StandingCluster
from tests.clients.elections import COMMON, READ, elect_the_replica_that_missed_the_end, make_two_replicas, produce
from tests.clients.test_spark import spark

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]

SHORTER, REGROWN, LATER = 30, 80, 10


def test_a_stream_whose_position_is_past_the_end_fails_or_goes_on_at_the_end(
    cluster: StandingCluster, tmp_path: Path
) -> None:
    make_two_replicas(cluster, "shorter")
    with spark(cluster, "shorter", tmp_path) as application:
        application.send(["stream true"])
        application.wait_for("stream", 1)
        elect_the_replica_that_missed_the_end(cluster, "shorter", records_since=SHORTER)
        application.send(["stream true"])
        application.wait_for("error", 1)
        (problem,) = application.said("error")
        assert f"offset was changed from {READ} to {COMMON + SHORTER}" in " ".join(problem)
        application.send(["stream false", "write 0"])
        application.wait_for("written", 1)
        produce(cluster, "shorter", "later", LATER)
        application.send(["stream false"])
        application.finish()
        first, *rest = application.said("stream")
        assert len(first) == READ
        assert rest == [tuple(f"later-{number}" for number in range(LATER))]


def test_a_stream_whose_position_is_in_other_records_notices_nothing(cluster: StandingCluster, tmp_path: Path) -> None:
    make_two_replicas(cluster, "regrown")
    with spark(cluster, "regrown", tmp_path) as application:
        application.send(["stream true"])
        application.wait_for("stream", 1)
        elect_the_replica_that_missed_the_end(cluster, "regrown", records_since=REGROWN)
        application.send(["stream true"])
        application.finish()
        assert application.said("error") == []
        _, second = application.said("stream")
        assert second == tuple(f"other-{number}" for number in range(READ - COMMON, REGROWN))
