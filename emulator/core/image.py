"""The metadata image: the state after replaying the metadata log, in controllers, brokers and observers.

Only ``replay`` changes the image. A broker acts on the difference of two images: ``pop_delta`` returns what
changed since it was last called, however many records that were (Kafka's ``PartitionRegistration.merge``).
"""

import msgspec
from msgspec import UNSET, UnsetType

from laststand.emulator.core import records
from laststand.emulator.core.acl_store import AclStore
from laststand.emulator.core.acls import AccessControlEntry
from laststand.emulator.core.client_quotas import ClientQuotaStore, QuotaEntity
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.messages import FeatureRange
from laststand.emulator.core.metadata_transactions import open_after
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)


class BrokerRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """A registered broker process (Kafka's ``BrokerRegistration``); ``features`` is as in its record."""

    broker_id: BrokerId
    incarnation_id: IncarnationId
    broker_epoch: BrokerEpoch
    log_dirs: tuple[str, ...]
    fenced: bool
    in_controlled_shutdown: bool
    registration_offset: MetadataOffset  # of the RegisterBrokerRecord; at or above broker_epoch
    rack: str = ""
    features: tuple[FeatureRange, ...] = ()

    @property
    def is_active(self) -> bool:
        """An active broker may lead and may be added to an ISR (KIP-841)."""
        return not self.fenced and not self.in_controlled_shutdown

    def supports(self, feature: str, level: int) -> bool:
        """Returns whether the broker's release has a level of a feature."""
        if not self.features or level == 0:
            return True
        ranges = (each for each in self.features if each.name == feature)
        return any(each.min_supported_version <= level <= each.max_supported_version for each in ranges)


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as the controller committed it (Kafka's ``PartitionRegistration``).

    ``isr`` and ``replicas`` keep their order; ``elr`` and ``last_known_elr`` are ascending. During a reassignment
    ``replicas`` is the targets followed by those being removed.
    """

    topic_id: TopicId
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    elr: tuple[BrokerId, ...] = ()
    last_known_elr: tuple[BrokerId, ...] = ()
    last_known_leader: BrokerId | None = None
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()

    def after(self, change: records.PartitionChangeRecord) -> "PartitionState":
        """Returns the state after a change: partition epoch + 1, leader epoch + 1 iff the change names a leader."""
        fields = {name: value for name in _CHANGEABLE if not isinstance(value := getattr(change, name), UnsetType)}
        bump = 0 if change.leader is UNSET else 1
        return msgspec.structs.replace(
            self,
            **fields,
            leader_epoch=LeaderEpoch(self.leader_epoch + bump),
            partition_epoch=PartitionEpoch(self.partition_epoch + 1),
        )


_CHANGEABLE = (
    "isr",
    "leader",
    "leader_recovery_state",
    "replicas",
    "elr",
    "last_known_elr",
    "last_known_leader",
    "adding_replicas",
    "removing_replicas",
)


class PartitionDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's state before and after; ``None`` if it did not or does not exist.

    Topic ids differ where the topic was deleted and created again between the two images.
    """

    before: PartitionState | None
    after: PartitionState | None


class ImageDelta(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between two images, and the end offset of the later one (exclusive)."""

    end_offset: MetadataOffset
    partitions: dict[TopicPartition, PartitionDelta]
    brokers: frozenset[BrokerId]
    configs: frozenset[tuple[ConfigResource, str]]

    @property
    def is_empty(self) -> bool:
        """Only the end offset changed."""
        return not (self.partitions or self.brokers or self.configs)

    @property
    def deleted(self) -> list[TopicPartition]:
        """Partitions that were deleted, or now belong to another topic of the same name."""
        return [
            name
            for name, change in self.partitions.items()
            if change.before is not None and (change.after is None or change.after.topic_id != change.before.topic_id)
        ]


class _Contents(msgspec.Struct, frozen=True, kw_only=True):
    """The image's contents from before a metadata transaction, to undo it."""

    brokers: dict[BrokerId, BrokerRegistration]
    topics: dict[str, TopicId]
    topic_names: dict[TopicId, str]
    partitions: dict[TopicPartition, PartitionState]
    partition_counts: dict[str, int]
    features: dict[str, int]
    next_producer_id: ProducerId
    acls: dict[int, AccessControlEntry]
    client_quotas: dict[QuotaEntity, dict[str, float]]
    configs: dict[tuple[ConfigResource, str], dict[str, str]]
    touched_partitions: dict[TopicPartition, PartitionState | None]
    touched_brokers: set[BrokerId]
    touched_configs: set[tuple[ConfigResource, str]]


class MetadataImage:
    """The state after replaying a prefix of the metadata log.

    Readers may use every mapping; only ``replay`` changes them. ``skip`` only advances ``next_offset``.

    Records of a metadata transaction are applied at once, and undone if the transaction is aborted. A difference
    returned while it is open includes them, and the next difference does not revert them: only the active controller,
    which writes the transactions, may read an image during one.

    Attributes:
        next_offset: end of the prefix; the offset that the next record must have.
        brokers: registered brokers by id.
        topics: topic ids by name.
        topic_names: names by topic id.
        partitions: committed state by partition.
        features: finalized feature levels by name; absent means 0.
        next_producer_id: first unallocated producer id.
        acls: access control entries.
        client_quotas: quotas of clients.
        controller_id: the active one of several controllers, by the last committed election.
        voters: the controllers that are voters, ascending; empty until a record names them.
        transaction_start: where the open metadata transaction began; ``None`` if none is open.
    """

    def __init__(self) -> None:
        self.next_offset = MetadataOffset(0)
        self.brokers: dict[BrokerId, BrokerRegistration] = {}
        self.topics: dict[str, TopicId] = {}
        self.topic_names: dict[TopicId, str] = {}
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.partition_counts: dict[str, int] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = ProducerId(0)
        self.acls = AclStore()
        self.client_quotas = ClientQuotaStore()
        self.controller_id: NodeId | None = None
        self.voters: tuple[NodeId, ...] = ()
        self.transaction_start: MetadataOffset | None = None
        self._before_transaction: _Contents | None = None
        self._configs: dict[tuple[ConfigResource, str], dict[str, str]] = {}
        self._touched_partitions: dict[TopicPartition, PartitionState | None] = {}
        self._touched_brokers: set[BrokerId] = set()
        self._touched_configs: set[tuple[ConfigResource, str]] = set()

    def config(self, resource: ConfigResource, resource_name: str, name: str) -> str | None:
        """Returns a configuration value as it was set, or ``None``. The cluster default is a broker named ``""``."""
        return self._configs.get((resource, resource_name), {}).get(name)

    def configs(self, resource: ConfigResource, resource_name: str) -> dict[str, str]:
        """Returns a copy of all configuration set on a resource."""
        return dict(self._configs.get((resource, resource_name), {}))

    def config_names(self, resource: ConfigResource) -> list[str]:
        """Returns the names of that resource's instances with any configuration, ascending."""
        return sorted(name for kind, name in self._configs if kind is resource)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Returns the topic's partitions in ascending order; none if there is no such topic.

        In a ZooKeeper cluster, these are the partitions received so far: UpdateMetadata may name only some.
        """
        names = (TopicPartition(topic, index) for index in range(self.partition_counts.get(topic, 0)))
        return [name for name in names if name in self.partitions]

    def feature_level(self, name: str) -> int:
        """Returns a feature's finalized level; 0 where it never was."""
        return self.features.get(name, 0)

    @property
    def has_changes(self) -> bool:
        """There are changes that ``pop_delta`` has not returned yet."""
        return bool(self._touched_partitions or self._touched_brokers or self._touched_configs)

    def has_change_of(self, partition: TopicPartition) -> bool:
        """Returns whether a partition has a change that ``pop_delta`` has not returned yet."""
        return partition in self._touched_partitions

    def pop_delta(self, *, partitions_max: int | None = None) -> ImageDelta:
        """Returns the changes since the last call, and starts the next difference.

        If more than ``partitions_max`` partitions changed, it has the first ones; the others, and changes of brokers,
        are left to the next call.
        """
        touched = sorted(self._touched_partitions.items())[:partitions_max]
        for partition, _ in touched:
            del self._touched_partitions[partition]
        brokers: frozenset[BrokerId] = frozenset()
        if not self._touched_partitions:
            brokers = frozenset(self._touched_brokers)
            self._touched_brokers.clear()
        delta = ImageDelta(
            end_offset=self.next_offset,
            partitions={
                partition: PartitionDelta(before=before, after=self.partitions.get(partition))
                for partition, before in touched
            },
            brokers=brokers,
            configs=frozenset(self._touched_configs),
        )
        self._touched_configs.clear()
        return delta

    def replay(self, record: records.Record, *, offset: MetadataOffset) -> None:
        """Applies one record.

        Raises:
            InvariantError: the offset is not the next one, or the record changes an object that does not exist.
        """
        if offset != self.next_offset:
            raise InvariantError(f"record at {offset} replayed on an image that ends at {self.next_offset}")
        match record:
            case records.PartitionChangeRecord():
                self._replay_partition_change(record)
            case records.BrokerRegistrationChangeRecord():
                self._replay_broker_change(record)
            case records.PartitionRecord():
                self._replay_partition(record)
            case records.RegisterBrokerRecord():
                self._replay_registration(record, offset)
            case records.UnregisterBrokerRecord(broker_id=broker_id):
                self._touched_brokers.add(broker_id)
                del self.brokers[broker_id]
            case records.TopicRecord(name=name, topic_id=topic_id):
                self.topics[name] = topic_id
                self.topic_names[topic_id] = name
                self.partition_counts[name] = 0
            case records.RemoveTopicRecord(topic_id=topic_id):
                self._remove_topic(topic_id)
            case records.ConfigRecord():
                self._replay_config(record)
            case records.ClearElrRecord(topic_id=topic_id):
                self._clear_elr(topic_id)
            case records.FeatureLevelRecord(name=name, feature_level=level):
                self.features[name] = level
            case records.ProducerIdsRecord(next_producer_id=next_producer_id):
                self.next_producer_id = next_producer_id
            case records.AccessControlEntryRecord(entry=entry):
                self.acls.add(offset, entry)
            case records.RemoveAccessControlEntryRecord(acl_id=acl_id):
                if acl_id not in self.acls:
                    raise InvariantError(f"removal of unknown access control entry {acl_id} at {offset}")
                self.acls.remove(acl_id)
            case records.ClientQuotaRecord(entity=entity, key=key, value=value):
                self.client_quotas.set(entity, key, value)
            case records.ControlRecord(leader_id=leader_id, voters=voters):
                self.controller_id = self.controller_id if leader_id is None else leader_id
                self.voters = voters or self.voters
            case records.BeginTransactionRecord() | records.EndTransactionRecord() | records.AbortTransactionRecord():
                self._replay_transaction(record, offset)
        self.next_offset = MetadataOffset(offset + 1)

    def skip(self, *, offset: MetadataOffset) -> None:
        """Skips a record about a feature of Kafka that is not emulated.

        Raises:
            InvariantError: the offset is not the next one.
        """
        if offset != self.next_offset:
            raise InvariantError(f"record at {offset} skipped on an image that ends at {self.next_offset}")
        self.next_offset = MetadataOffset(offset + 1)

    def _replay_transaction(
        self,
        record: records.BeginTransactionRecord | records.EndTransactionRecord | records.AbortTransactionRecord,
        offset: MetadataOffset,
    ) -> None:
        self.transaction_start = open_after(self.transaction_start, record, offset=offset)
        if isinstance(record, records.AbortTransactionRecord) and self._before_transaction is not None:
            self._restore(self._before_transaction)
        self._before_transaction = None if self.transaction_start is None else self._contents()

    def _contents(self) -> _Contents:
        return _Contents(
            brokers=dict(self.brokers),
            topics=dict(self.topics),
            topic_names=dict(self.topic_names),
            partitions=dict(self.partitions),
            partition_counts=dict(self.partition_counts),
            features=dict(self.features),
            next_producer_id=self.next_producer_id,
            acls=self.acls.entries(),
            client_quotas=self.client_quotas.quotas(),
            configs={resource: dict(values) for resource, values in self._configs.items()},
            touched_partitions=dict(self._touched_partitions),
            touched_brokers=set(self._touched_brokers),
            touched_configs=set(self._touched_configs),
        )

    def _restore(self, before: _Contents) -> None:
        self.brokers = before.brokers
        self.topics = before.topics
        self.topic_names = before.topic_names
        self.partitions = before.partitions
        self.partition_counts = before.partition_counts
        self.features = before.features
        self.next_producer_id = before.next_producer_id
        self.acls.restore(before.acls)  # the authorizer holds this very store
        self.client_quotas.restore(before.client_quotas)
        self._configs = before.configs
        # ``pop_delta`` has yet to return changes from before the transaction, unless it has done so meanwhile.
        touched = self._touched_partitions.keys() & before.touched_partitions.keys()
        self._touched_partitions = {partition: before.touched_partitions[partition] for partition in touched}
        self._touched_brokers &= before.touched_brokers
        self._touched_configs &= before.touched_configs

    def _set_partition(self, partition: TopicPartition, state: PartitionState | None) -> None:
        self._touched_partitions.setdefault(partition, self.partitions.get(partition))
        if state is None:
            del self.partitions[partition]
        else:
            self.partitions[partition] = state

    def _topic_name(self, topic_id: TopicId) -> str:
        if topic_id not in self.topic_names:
            raise InvariantError(f"record of unknown topic id {topic_id} at {self.next_offset}")
        return self.topic_names[topic_id]

    def _replay_partition(self, record: records.PartitionRecord) -> None:
        topic = self._topic_name(record.topic_id)
        self.partition_counts[topic] = max(self.partition_counts[topic], record.partition + 1)
        state = PartitionState(
            topic_id=record.topic_id,
            replicas=record.replicas,
            isr=record.isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            elr=record.elr,
            last_known_elr=record.last_known_elr,
            last_known_leader=record.last_known_leader,
            adding_replicas=record.adding_replicas,
            removing_replicas=record.removing_replicas,
        )
        self._set_partition(TopicPartition(topic, record.partition), state)

    def _replay_partition_change(self, record: records.PartitionChangeRecord) -> None:
        partition = TopicPartition(self._topic_name(record.topic_id), record.partition)
        if partition not in self.partitions:
            raise InvariantError(f"change of unknown partition {partition} at {self.next_offset}")
        self._set_partition(partition, self.partitions[partition].after(record))

    def _replay_registration(self, record: records.RegisterBrokerRecord, offset: MetadataOffset) -> None:
        self._touched_brokers.add(record.broker_id)
        self.brokers[record.broker_id] = BrokerRegistration(
            broker_id=record.broker_id,
            incarnation_id=record.incarnation_id,
            broker_epoch=record.broker_epoch,
            log_dirs=record.log_dirs,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            registration_offset=offset,
            rack=record.rack,
            features=record.features,
        )

    def _replay_broker_change(self, record: records.BrokerRegistrationChangeRecord) -> None:
        registration = self.brokers.get(record.broker_id)
        if registration is None or registration.broker_epoch != record.broker_epoch:
            raise InvariantError(f"change of broker {record.broker_id} epoch {record.broker_epoch}: {registration}")
        self._touched_brokers.add(record.broker_id)
        fields = {
            name: value
            for name in ("fenced", "in_controlled_shutdown", "log_dirs")
            if not isinstance(value := getattr(record, name), UnsetType)
        }
        self.brokers[record.broker_id] = msgspec.structs.replace(registration, **fields)

    def _remove_topic(self, topic_id: TopicId) -> None:
        topic = self._topic_name(topic_id)
        for partition in self.partitions_of(topic):
            self._set_partition(partition, None)
        del self.topic_names[topic_id], self.topics[topic], self.partition_counts[topic]
        if self._configs.pop((ConfigResource.TOPIC, topic), None) is not None:
            self._touched_configs.add((ConfigResource.TOPIC, topic))

    def _replay_config(self, record: records.ConfigRecord) -> None:
        resource = (record.resource, record.resource_name)
        self._touched_configs.add(resource)
        values = self._configs.setdefault(resource, {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _clear_elr(self, topic_id: TopicId | None) -> None:
        topics = sorted(self.topics) if topic_id is None else [self._topic_name(topic_id)]
        for topic in topics:
            for partition in self.partitions_of(topic):
                state = self.partitions[partition]
                if state.elr or state.last_known_elr or state.last_known_leader is not None:
                    cleared = msgspec.structs.replace(
                        state,
                        elr=(),
                        last_known_elr=(),
                        last_known_leader=None,
                        partition_epoch=PartitionEpoch(state.partition_epoch + 1),
                    )
                    self._set_partition(partition, cleared)
