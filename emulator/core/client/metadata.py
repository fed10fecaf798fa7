"""The client's view of the cluster, and its choice of the broker to ask.

A client sends metadata requests to one broker at a time: the least recently asked one, recently failed brokers last. An
answer with an older leader epoch than the one known is stale and is ignored (KIP-320); a new topic id resets that.
"""

from typing import Final

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, LeaderEpoch, TopicId, TopicPartition

FAILURE_MEMORY_MS: Final = 5_000
"""Time for which a broker that failed is asked only after the others."""


class PartitionLeader(msgspec.Struct, frozen=True, kw_only=True):
    """The leader of a partition, or ``None``, with its epoch and topic id."""

    topic_id: TopicId
    leader: BrokerId | None
    leader_epoch: LeaderEpoch


class ClientMetadata:
    """Leaders by partition, partition counts by topic, and the order in which brokers are asked."""

    def __init__(self, *, bootstrap: tuple[BrokerId, ...]) -> None:
        self.leaders: dict[TopicPartition, PartitionLeader] = {}
        self.partition_counts: dict[str, int] = {}
        self._asked_ms: dict[BrokerId, int] = dict.fromkeys(bootstrap, -1)
        self._failed_ms: dict[BrokerId, int] = {}

    def next_broker(self, *, now_ms: int) -> BrokerId:
        """Returns the broker to ask now, and remembers that it was asked."""
        horizon = now_ms - FAILURE_MEMORY_MS
        broker = min(
            self._asked_ms,
            key=lambda each: (self._failed_ms.get(each, horizon) > horizon, self._asked_ms[each], each),
        )
        self._asked_ms[broker] = now_ms
        return broker

    def broker_failed(self, broker: BrokerId, *, now_ms: int) -> None:
        """Remembers that a request to ``broker`` got no answer."""
        self._failed_ms[broker] = now_ms

    def leader_of(self, partition: TopicPartition) -> PartitionLeader | None:
        """Returns the partition's known leadership, or ``None`` where nothing is known."""
        return self.leaders.get(partition)

    def learn(self, response: messages.MetadataResponse) -> None:
        """Adopts the metadata whose leader epochs are not older than the known ones."""
        for topic in response.topics:
            if topic.error is not ErrorCode.NONE or topic.topic_id is None:
                continue
            self.partition_counts[topic.name] = max(len(topic.partitions), self.partition_counts.get(topic.name, 0))
            for state in topic.partitions:
                self._learn_leader(
                    TopicPartition(topic.name, state.partition),
                    PartitionLeader(topic_id=topic.topic_id, leader=state.leader, leader_epoch=state.leader_epoch),
                )

    def hint(self, partition: TopicPartition, learned: PartitionLeader) -> None:
        """Adopts a leader named beside an error (KIP-951), if its epoch is newer than the known one of the same topic.

        Epochs of different topic ids are not comparable: a recreated topic starts again at epoch 0.
        """
        known = self.leaders.get(partition)
        if known is not None and known.topic_id == learned.topic_id and learned.leader_epoch > known.leader_epoch:
            self.leaders[partition] = learned

    def _learn_leader(self, partition: TopicPartition, learned: PartitionLeader) -> None:
        known = self.leaders.get(partition)
        if known is None or known.topic_id != learned.topic_id or learned.leader_epoch >= known.leader_epoch:
            self.leaders[partition] = learned
