"""Metadata requests: live brokers and partition leaders, by this broker's image, which may be stale."""

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.types import NodeId


def metadata(
    image: MetadataImage,
    request: messages.MetadataRequest,
    controller_id: NodeId | None,
    unauthorized: frozenset[str] = frozenset(),
) -> messages.MetadataResponse:
    """Answers with live brokers and the topics asked for, or all of them.

    Topics that the requester may not see get an error if requested by name, and are left out otherwise.
    """
    names = request.topics or tuple(sorted(image.topics.keys() - unauthorized))
    return messages.MetadataResponse(
        brokers=tuple(sorted(broker_id for broker_id, broker in image.brokers.items() if not broker.fenced)),
        controller_id=controller_id,
        topics=tuple(
            _failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) if name in unauthorized else _topic(image, name)
            for name in names
        ),
    )


def _topic(image: MetadataImage, name: str) -> messages.MetadataTopic:
    topic_id = image.topics.get(name)
    if topic_id is None:
        return _failed(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return messages.MetadataTopic(
        name=name,
        error=ErrorCode.NONE,
        topic_id=topic_id,
        partitions=tuple(
            _partition(image, partition.partition, image.partitions[partition])
            for partition in image.partitions_of(name)
        ),
    )


def _failed(name: str, error: ErrorCode) -> messages.MetadataTopic:
    return messages.MetadataTopic(name=name, error=error, topic_id=None, partitions=())


def _partition(image: MetadataImage, index: int, state: PartitionState) -> messages.MetadataPartition:
    leader = None if state.leader is None else image.brokers.get(state.leader)
    is_available = leader is not None and not leader.fenced
    return messages.MetadataPartition(
        partition=index,
        error=ErrorCode.NONE if is_available else ErrorCode.LEADER_NOT_AVAILABLE,
        leader=state.leader if is_available else None,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
    )
