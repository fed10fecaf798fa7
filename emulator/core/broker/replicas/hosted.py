"""The partitions that this broker hosts, beside the metadata that says which exist.

Requests name partitions; ``find`` distinguishes one that does not exist from one hosted elsewhere. It is the gate of
KIP-704 too: FETCH, PRODUCE, LIST_OFFSETS, DELETE_RECORDS and OFFSET_FOR_LEADER_EPOCH all come through here, and find
no partition whose leader recovers, on the leader or on a follower.
"""

from collections.abc import Iterator

from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import TopicId, TopicPartition


class HostedPartitions:
    """Partitions by name, and the image that they came from.

    ``is_serving`` is false until the broker has been unfenced once: before that it answers as if it led nothing.
    ``out_of_reach`` are assigned partitions whose logs may lie in a directory that failed, with their topic ids.
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
        """Hosts it no more; returns it if it was."""
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
        """Returns the id of the topic that has this name here: of the log, if there is one, else by the metadata."""
        partition = self._partitions.get(name)
        return self.image.topics.get(name.topic) if partition is None else partition.log.topic_id

    def find_leader(self, name: TopicPartition) -> Partition | ErrorCode:
        """Returns the partition if this broker leads it, or the error."""
        found = self.find(name)
        if isinstance(found, Partition) and not found.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return found


def check_leader_epoch(partition: Partition, current_leader_epoch: int | None) -> ErrorCode:
    """Compares the epoch that a request was made under with the local one, on leaders and followers (KIP-320)."""
    if current_leader_epoch is None or current_leader_epoch == partition.leader_epoch:
        return ErrorCode.NONE
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
