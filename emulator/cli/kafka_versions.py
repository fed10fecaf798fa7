"""Which version of Apache Kafka a verb is to run, and which era that is."""

from collections.abc import Sequence
from typing import Final

from emulator.cli.user_error import UserError
from emulator.cluster.kafka_distribution import KafkaProgram, find_kafka
from emulator.core.switches import is_switch

_ERA_WITH_ELR: Final = "kafka-4.2"
_ERA_BEFORE: Final = "kafka-3.9"
_OFF_OR_ON: Final = "elr"
"""The one switch that Kafka has, too: whether its feature is finalized at first."""


def require_kafka(version: str | None) -> KafkaProgram:
    """Returns an installed version, the newest one if none is asked for, and a Java.

    Raises:
        MissingToolError: it is not installed, or there is no Java.
    """
    from emulator.verification.java import find_java

    return KafkaProgram(distribution=find_kafka(version), java=find_java().executable)


def era_on_kafka(kafka: KafkaProgram, eras: Sequence[str], settings: Sequence[str]) -> str:
    """Returns the era by whose promises a version is judged.

    Raises:
        UserError: another era was asked for, or a rule that Kafka does not have as a choice.
    """
    distribution = kafka.distribution
    era = _ERA_WITH_ELR if distribution.has_elr else _ERA_BEFORE
    for wanted in eras:
        if wanted != era:
            raise UserError(f"--era {wanted}: Kafka {distribution.version} is judged as {era}")
    for setting in settings:
        name = setting.partition("=")[0]
        if is_switch(name) and name != _OFF_OR_ON:
            raise UserError(f"--set {setting}: Kafka's rules cannot be chosen; allowed: {_OFF_OR_ON}, and properties")
    return era
