"""Finds the strays that a complete LeaderAndIsr reveals (KIP-550, and KIP-516 where there are topic ids).

A stray is a log that the controller does not know as a replica of this broker. KIP-550 compares names only, so a former
topic of the same name stays; where both sides have topic ids they are compared, too. Logs on their way to another
directory count. Kafka believes a complete list only of a KRaft controller, while it migrates from ZooKeeper
(``LogManager.findStrayReplicas``).
"""

from collections.abc import Iterable, Mapping

import msgspec

from laststand.emulator.core.types import TopicId, TopicPartition
from laststand.emulator.core.zookeeper import control_messages


class LocalLog(msgspec.Struct, frozen=True, kw_only=True):
    """A log on disk, with its topic's id if it has one."""

    name: TopicPartition
    topic_id: TopicId | None


def names_all_replicas(
    request: control_messages.LeaderAndIsrRequest, *, believes_kip_550: bool, is_migrating: bool
) -> bool:
    """Returns whether a broker treats a request as the list of all its replicas."""
    if believes_kip_550 and request.contains_all_replicas:
        return True
    return (
        is_migrating and request.is_kraft_controller and request.request_type is control_messages.LeaderAndIsrType.FULL
    )


def listed(request: control_messages.LeaderAndIsrRequest) -> dict[TopicPartition, TopicId | None]:
    """Returns the partitions in a request, with their topic ids if the request has them."""
    return {partition.name: partition.topic_id for partition in request.partitions}


def strays_of(logs: Iterable[LocalLog], wanted: Mapping[TopicPartition, TopicId | None]) -> tuple[TopicPartition, ...]:
    """Returns the partitions, once each, whose logs are not among ``wanted``."""
    return tuple(dict.fromkeys(log.name for log in logs if log.name not in wanted or _is_other(log, wanted[log.name])))


def _is_other(log: LocalLog, topic_id: TopicId | None) -> bool:
    return log.topic_id is not None and topic_id is not None and log.topic_id != topic_id
