"""GetReplicaLogInfo: describes the end of a replica's log, for unclean recovery and monitoring (KIP-966).

The reported epoch is that of the last record, not of the newest cache entry: a leader without records has an entry too,
and would be preferred wrongly. No log is reported before the logs are loaded.
"""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, TopicId, TopicPartition

SERVED_MAX: Final = 1000
"""Partitions that one request is served (KIP-966 names 1000 and 2000; the smaller is safe for both readings)."""


def replica_log_info(
    hosted: HostedPartitions, request: messages.GetReplicaLogInfoRequest, broker_epoch: BrokerEpoch | None
) -> messages.GetReplicaLogInfoResponse:
    """Answers for the first ``SERVED_MAX`` partitions; the rest get REQUEST_LIMIT_REACHED."""
    answers: list[messages.ReplicaLogInfo] = []
    for index, (topic_id, partition) in enumerate(request.partitions):
        if index < SERVED_MAX:
            answers.append(_log_info(hosted, topic_id, partition))
        else:
            answers.append(_refusal(topic_id, partition, ErrorCode.REQUEST_LIMIT_REACHED))
    return messages.GetReplicaLogInfoResponse(broker_epoch=broker_epoch, partitions=tuple(answers))


def _log_info(hosted: HostedPartitions, topic_id: TopicId, partition: int) -> messages.ReplicaLogInfo:
    topic = hosted.image.topic_names.get(topic_id)
    if topic is None:
        return _refusal(topic_id, partition, ErrorCode.UNKNOWN_TOPIC_ID)
    found = hosted.get(TopicPartition(topic, partition))
    if found is None:
        return _refusal(topic_id, partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return messages.ReplicaLogInfo(
        topic_id=topic_id,
        partition=partition,
        error=ErrorCode.NONE,
        last_written_leader_epoch=found.log.last_written_leader_epoch,
        current_leader_epoch=found.leader_epoch,
        log_end_offset=found.log.log_end_offset,
        high_watermark=found.log.high_watermark,
    )


def _refusal(topic_id: TopicId, partition: int, error: ErrorCode) -> messages.ReplicaLogInfo:
    return messages.ReplicaLogInfo(topic_id=topic_id, partition=partition, error=error)
