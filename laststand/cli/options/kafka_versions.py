"""Options for Apache Kafka, whose rules cannot be chosen."""

from collections.abc import Sequence
from typing import Final

from laststand.cli.program.user_error import UserError
from laststand.emulator.cluster.kafka_distribution import KafkaProgram
from laststand.emulator.core.switches import is_switch

_CHOICES: Final = ("elr", "directory_ids")
"""The switches that Kafka has, too: whether a feature is finalized at first, and whether voters are static."""


def era_on_kafka(kafka: KafkaProgram, eras: Sequence[str], settings: Sequence[str], *, is_alone: bool) -> str:
    """Returns the era by whose promises a version is judged.

    Args:
        kafka: the version.
        eras: the requested eras, if any.
        settings: values of ``--set``.
        is_alone: whether it is the only driver; with others, an era may be meant for those.

    Raises:
        UserError: other eras were requested, or a rule that Kafka does not offer as a choice.
    """
    from laststand.chaos.kafka.program import judged_as

    distribution = kafka.distribution
    era = judged_as(distribution)
    others = [each for each in eras if each != era]
    if others and (is_alone or era not in eras):
        raise UserError(f"--era {others[0]}: Kafka {distribution.version} is judged as {era}")
    for setting in settings:
        name = setting.partition("=")[0]
        if is_switch(name) and name not in _CHOICES:
            raise UserError(
                f"--set {setting}: Kafka's rules cannot be chosen; allowed: {', '.join(_CHOICES)}, and properties"
            )
    return era
