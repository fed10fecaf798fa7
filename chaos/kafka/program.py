"""Chooses the version of Apache Kafka for a run, and the era by whose promises it is judged."""

from typing import Final

import msgspec

from laststand.emulator.cluster.kafka_distribution import KafkaDistribution, KafkaProgram, find_kafka
from laststand.emulator.core.switches import Switches, era_switches
from laststand.emulator.verification.spark.java import find_java

_FIRST_WITH_KAFKA_19975: Final = (4, 3)
_ERA_WITH_ELR: Final = "kafka-4.2"
_ERA_BEFORE: Final = "kafka-3.9"


def kafka_program(version: str | None) -> KafkaProgram:
    """Returns an installed version, the newest one if none is asked for, and a Java.

    Raises:
        MissingToolError: that version is not installed, or there is no Java.
    """
    return KafkaProgram(distribution=find_kafka(version), java=find_java().executable)


def judged_as(distribution: KafkaDistribution) -> str:
    """Returns the era by whose promises a version is judged."""
    return _ERA_WITH_ELR if distribution.has_elr else _ERA_BEFORE


def rules_of_release(kafka: KafkaProgram) -> Switches:
    """Returns the rules of the release that a node runs."""
    return judged_by(era_switches(judged_as(kafka.distribution)), kafka)


def judged_by(switches: Switches, kafka: KafkaProgram | None) -> Switches:
    """Returns the rules of the version of Apache Kafka that plays; unchanged if no Apache Kafka plays."""
    if kafka is None:
        return switches
    needs_all = switches.reassignment_needs_all and kafka.distribution.numbers < _FIRST_WITH_KAFKA_19975
    return msgspec.structs.replace(switches, reassignment_needs_all=needs_all)
