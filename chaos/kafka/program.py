"""Which version of Apache Kafka plays, and by which era's promises it is judged."""

from typing import Final

from emulator.cluster.kafka_distribution import KafkaDistribution, KafkaProgram, find_kafka
from emulator.verification.java import find_java

_ERA_WITH_ELR: Final = "kafka-4.2"
_ERA_BEFORE: Final = "kafka-3.9"


def kafka_program(version: str | None) -> KafkaProgram:
    """Returns an installed version, the newest one if none is asked for, and a Java.

    Raises:
        MissingToolError: it is not installed, or there is no Java.
    """
    return KafkaProgram(distribution=find_kafka(version), java=find_java().executable)


def judged_as(distribution: KafkaDistribution) -> str:
    """Returns the era by whose promises a version is judged."""
    return _ERA_WITH_ELR if distribution.has_elr else _ERA_BEFORE
