"""By which rules a version of Apache Kafka is judged."""

from pathlib import Path

import pytest

from chaos.kafka.program import judged_as, judged_by
from emulator.cluster.kafka_distribution import KafkaDistribution
from emulator.core.switches import era_switches


@pytest.mark.parametrize(
    ("version", "era", "needs_all"),
    [("3.9.1", "kafka-3.9", True), ("4.2.0", "kafka-4.2", True), ("4.3.0", "kafka-4.2", False)],
)
def test_a_version_is_judged_by_the_era_nearest_to_it(version: str, era: str, *, needs_all: bool) -> None:
    distribution = KafkaDistribution(version=version, folder=Path(version))
    assert judged_as(distribution) == era
    assert judged_by(distribution, era_switches(era)).reassignment_needs_all is needs_all
