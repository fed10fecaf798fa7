"""The cluster as UpdateMetadata describes it to a broker (Kafka's ``ZkMetadataCache``).

No epoch is compared: the last request wins, so the cache relies on the order of the controller's queue. Each request
replaces the live brokers; its partitions are merged into the cache, and removed if their topic is being deleted. In a
KRaft cluster records are replayed into an image; here the image's mappings are set from requests, so that clients'
requests are answered from the same kind of image.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from laststand.emulator.core.image import BrokerRegistration, MetadataImage, PartitionState
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    MetadataOffset,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

_NAME_MARK: Final = "~"
"""A mark that no topic id contains."""


def id_by_name(topic: str) -> TopicId:
    """Returns a substitute id for a topic without an id; equal ids mean equal names."""
    return TopicId(f"{_NAME_MARK}{topic}")


def real_topic_id(topic_id: TopicId | None) -> TopicId | None:
    """Returns a topic's id; ``None`` if there is none, or only the name's substitute."""
    return topic_id if topic_id and not topic_id.startswith(_NAME_MARK) else None


class MetadataCache:
    """The metadata that UpdateMetadata requests have brought, for clients.

    Attributes:
        image: the cluster's metadata, from which clients are answered; for reading only.
        controller: sender of the last UpdateMetadata; ``None`` before any.

    """

    def __init__(self, rules: ZooKeeperRules) -> None:
        self.image = MetadataImage()
        self.controller: BrokerId | None = None
        self._eligible: Mapping[BrokerId, BrokerRegistration] = (
            self.image.brokers if rules.isr_eligibility_check else _EveryBroker(self.image.brokers)
        )

    @property
    def eligible(self) -> Mapping[BrokerId, BrokerRegistration]:
        """Brokers that may join an ISR by the leader's metadata: live brokers, or before KIP-841 all brokers."""
        return self._eligible

    def is_alive(self, broker_id: BrokerId | None) -> bool:
        """Returns whether the last request named a broker as alive; false for ``None``."""
        return broker_id in self.image.brokers

    def update(self, request: control_messages.UpdateMetadataRequest) -> tuple[TopicPartition, ...]:
        """Applies a request; returns the partitions that are being deleted."""
        self.controller = request.controller_id
        self.image.brokers.clear()
        for live in request.live_brokers:
            self.image.brokers[live.broker_id] = _registration(live.broker_id, rack=live.rack)
        deleted = []
        for partition in request.partitions:
            if partition.leader is control_messages.NoLeaderReason.BEING_DELETED:
                deleted.append(partition.name)
                self._forget(partition.name)
            else:
                self._apply(partition)
        return tuple(deleted)

    def _apply(self, partition: control_messages.MetadataPartition) -> None:
        known_id = self.image.topics.get(partition.name.topic)
        topic_id = partition.topic_id or known_id or id_by_name(partition.name.topic)
        if known_id is not None and known_id != topic_id:
            del self.image.topic_names[known_id]
        self.image.topics[partition.name.topic] = topic_id
        self.image.topic_names[topic_id] = partition.name.topic
        self.image.partitions[partition.name] = PartitionState(
            topic_id=topic_id,
            replicas=partition.replicas,
            isr=partition.isr,
            leader=None if isinstance(partition.leader, control_messages.NoLeaderReason) else partition.leader,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
        )
        self._count(partition.name.topic)

    def _forget(self, name: TopicPartition) -> None:
        self.image.partitions.pop(name, None)
        self._count(name.topic)
        if name.topic not in self.image.partition_counts:
            topic_id = self.image.topics.pop(name.topic, None)
            if topic_id is not None:
                del self.image.topic_names[topic_id]

    def _count(self, topic: str) -> None:
        known = [name.partition for name in self.image.partitions if name.topic == topic]
        if known:
            self.image.partition_counts[topic] = max(known) + 1
        else:
            self.image.partition_counts.pop(topic, None)


def _registration(broker_id: BrokerId, *, rack: str = "") -> BrokerRegistration:
    """Returns the registration of a broker in UpdateMetadata: alive, unfenced, of an unknown incarnation."""
    return BrokerRegistration(
        broker_id=broker_id,
        incarnation_id=IncarnationId(""),
        broker_epoch=BrokerEpoch(-1),
        log_dirs=(),
        fenced=False,
        in_controlled_shutdown=False,
        registration_offset=MetadataOffset(0),
        rack=rack,
    )


class _EveryBroker(Mapping[BrokerId, BrokerRegistration]):
    """A mapping in which every broker id counts as alive; known registrations are returned unchanged."""

    def __init__(self, known: Mapping[BrokerId, BrokerRegistration]) -> None:
        self._known = known

    def __getitem__(self, broker_id: BrokerId) -> BrokerRegistration:
        found = self._known.get(broker_id)
        return _registration(broker_id) if found is None else found

    def __iter__(self) -> Iterator[BrokerId]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
