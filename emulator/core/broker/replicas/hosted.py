"""The partitions that this broker hosts, and the metadata image that lists all partitions.

``find`` looks up a requested partition, and distinguishes a partition that does not exist from one hosted elsewhere. It
also implements the gate of KIP-704: FETCH, PRODUCE, LIST_OFFSETS, DELETE_RECORDS and OFFSET_FOR_LEADER_EPOCH use
``find``, which returns an error while the partition's leader recovers, on the leader and on followers.
"""

from collections.abc import Iterator

from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import TopicId, TopicPartition


class HostedPartitions:
    """Partitions by name, and the image that they came from.

    ``is_serving`` is false until the broker has been unfenced once: before that it answers as if it led no partition.
    ``out_of_reach`` has the assigned partitions, with topic ids, whose logs may lie in a failed directory.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.is_serving = False
        self.out_of_reach: set[tuple[TopicPartition, TopicId]] = set()
        self._partitions: dict[TopicPartition, Partition] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    def get(self, name: TopicPartition) -> Partition | None:
        """Returns a hosted partition."""
        return self._partitions.get(name)

    def add(self, partition: Partition) -> None:
        """Hosts a partition."""
        self._partitions[partition.name] = partition

    def remove(self, name: TopicPartition) -> Partition | None:
        """Removes a partition; returns it if it was hosted."""
        return self._partitions.pop(name, None)

    def find(self, name: TopicPartition) -> Partition | ErrorCode:
        """Returns the partition, or the error to answer with."""
        partition = self._partitions.get(name)
        if partition is not None:
            is_closed = not self.is_serving or partition.is_recovering
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_closed else partition
        state = self.image.partitions.get(name)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        is_lost = (name, state.topic_id) in self.out_of_reach
        return ErrorCode.KAFKA_STORAGE_ERROR if is_lost else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def topic_id_of(self, name: TopicPartition) -> TopicId | None:
        """Returns the topic id of a partition: its log's id if it is hosted here, else the id in the metadata."""
        partition = self._partitions.get(name)
        return self.image.topics.get(name.topic) if partition is None else partition.log.topic_id

    def find_leader(self, name: TopicPartition) -> Partition | ErrorCode:
        """Returns the partition if this broker leads it, or the error."""
        found = self.find(name)
        if isinstance(found, Partition) and not found.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return found


def check_leader_epoch(partition: Partition, current_leader_epoch: int | None) -> ErrorCode:
    """Compares a request's leader epoch with the local one, on leaders and followers (KIP-320)."""
    if current_leader_epoch is None or current_leader_epoch == partition.leader_epoch:
        return ErrorCode.NONE
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
