"""Reason why Kafka's controller wrote a record, as far as its metadata log says.

Records say what changed, not why. The reason follows from the other records of the batch, which come from one request
or one fencing (``ReplicationControlManager``); the kind of election follows from the state before the change.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from laststand.emulator.core import events, records
from laststand.emulator.core.controller.decision import (
    Cause,
    ElrCause,
    FencingCause,
    PartitionCause,
    RegistrationCause,
    UncleanElection,
)
from laststand.emulator.core.controller.min_isr import MinIsr, configured_min_isr
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerEpoch, BrokerId, ChangeReason, FenceReason, NodeId, TopicPartition
from laststand.emulator.kafka.metadata_records import OtherRecord

_NOT_KNOWN: Final = "the metadata log does not say why"


class Causes:
    """Finds the causes of one batch of records. Ask about each record before the image replays it.

    Args:
        batch: all of its records.
        view: the cluster before these records.
        previous_epochs: broker epochs in the log directories of brokers that stopped in order.
        stopping: brokers that were asked to stop. A broker that leads nothing is fenced at once, without a record of
            its shutdown (``BrokerHeartbeatManager.calculateNextBrokerState``).
    """

    def __init__(
        self,
        batch: Sequence[records.Record | OtherRecord],
        *,
        view: ClusterView,
        previous_epochs: Mapping[BrokerId, BrokerEpoch],
        stopping: Collection[NodeId] = (),
    ) -> None:
        self._view = view
        self._previous_epochs = previous_epochs
        self._stopping = stopping
        self._reason, self._broker_id = _reason_of(batch)
        registered = (record for record in batch if isinstance(record, records.RegisterBrokerRecord))
        self._unproven = frozenset(each.broker_id for each in registered if not self._registration(each).is_clean)

    def of(self, record: records.Record) -> Cause | None:
        """Returns the cause of a record; ``None`` if the record needs none."""
        match record:
            case records.PartitionRecord():
                return self._partition_cause(
                    record.topic_id, record.replicas, ChangeReason.CREATED, events.Election.ISR
                )
            case records.PartitionChangeRecord():
                return self._change(record)
            case records.RegisterBrokerRecord():
                return self._registration(record)
            case records.BrokerRegistrationChangeRecord(broker_id=broker_id):
                registration = self._view.image.brokers[broker_id]
                is_shutdown = registration.in_controlled_shutdown or broker_id in self._stopping
                return FencingCause(reason=FenceReason.SHUTDOWN if is_shutdown else FenceReason.SESSION_EXPIRED)
            case records.UnregisterBrokerRecord():
                return FencingCause(reason=FenceReason.UNREGISTERED)
            case records.ClearElrRecord():
                return ElrCause(reason=self._reason or ChangeReason.MIN_ISR_CHANGED)
            case _:
                return None

    def _registration(self, record: records.RegisterBrokerRecord) -> RegistrationCause:
        stored, previous = self._view.image.brokers.get(record.broker_id), self._previous_epochs.get(record.broker_id)
        stored_epoch = None if stored is None else stored.broker_epoch
        return RegistrationCause(
            previous_broker_epoch=previous,
            stored_broker_epoch=stored_epoch,
            is_clean=stored_epoch is None or stored_epoch == previous,
        )

    def _change(self, record: records.PartitionChangeRecord) -> PartitionCause:
        image = self._view.image
        partition = TopicPartition(image.topic_names[record.topic_id], record.partition)
        before = image.partitions[partition]
        after = before.after(record)
        election = _election(before, record, unproven=self._unproven)
        reason = self._reason or _reason_of_change(record, election)
        return self._partition_cause(record.topic_id, after.replicas, reason, election, leader=after.leader)

    def _partition_cause(
        self,
        topic_id: str,
        replicas: tuple[BrokerId, ...],
        reason: ChangeReason,
        election: events.Election,
        *,
        leader: BrokerId | None = None,
    ) -> PartitionCause:
        topic = next(name for name, each in self._view.image.topics.items() if each == topic_id)
        view = self._view
        if TopicPartition(topic, 0) in view.image.partitions:
            min_isr = view.min_isr(topic).effective(replicas)
        else:  # partition 0 itself, whose topic already has its configuration
            configured = configured_min_isr(view.image, topic=topic, node_id=view.node_id, static=view.properties)
            min_isr = MinIsr(configured=configured).effective(replicas)
        unclean = None
        if election in (events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER) and leader is not None:
            is_last_known = election is events.Election.LAST_KNOWN_LEADER
            unclean = UncleanElection(
                method=events.UncleanMethod.LAST_KNOWN_LEADER if is_last_known else events.UncleanMethod.FIRST,
                strategy=self._view.recovery_strategy(topic),
                candidates=(leader,),
                why=_NOT_KNOWN,
            )
        return PartitionCause(
            reason=reason,
            election=election,
            broker_id=self._broker_id,
            effective_min_isr=min_isr,
            unclean=unclean,
        )


def _reason_of(batch: Sequence[records.Record | OtherRecord]) -> tuple[ChangeReason | None, BrokerId | None]:
    """Returns the cause of a batch, if a record in it determines one, and the broker that the cause is about."""
    for record in batch:
        match record:
            case records.BrokerRegistrationChangeRecord(broker_id=broker_id, fenced=True):
                return ChangeReason.BROKER_FENCED, broker_id
            case records.BrokerRegistrationChangeRecord(broker_id=broker_id, fenced=False):
                return ChangeReason.BROKER_UNFENCED, broker_id
            case records.BrokerRegistrationChangeRecord(broker_id=broker_id, in_controlled_shutdown=True):
                return ChangeReason.CONTROLLED_SHUTDOWN, broker_id
            case records.RegisterBrokerRecord(broker_id=broker_id):
                return ChangeReason.BROKER_REGISTERED, broker_id
            case records.UnregisterBrokerRecord(broker_id=broker_id):
                return ChangeReason.UNREGISTERED, broker_id
            case records.ConfigRecord():
                return ChangeReason.MIN_ISR_CHANGED, None
            case records.FeatureLevelRecord():
                return ChangeReason.FEATURES_CHANGED, None
            case _:
                pass
    return None, None


def _reason_of_change(record: records.PartitionChangeRecord, election: events.Election) -> ChangeReason:
    """Returns the reason of a change that stands alone."""
    if record.isr is UNSET and (
        record.adding_replicas is not UNSET or record.removing_replicas is not UNSET or record.replicas is not UNSET
    ):
        return ChangeReason.REASSIGNMENT
    if record.leader is not UNSET and (
        record.isr is UNSET or election not in (events.Election.ISR, events.Election.NO_CANDIDATE)
    ):
        return ChangeReason.ELECT_LEADERS
    return ChangeReason.ALTER_PARTITION


def _election(
    before: PartitionState, record: records.PartitionChangeRecord, *, unproven: frozenset[BrokerId]
) -> events.Election:
    """Returns the kind of election, if a change is one.

    Args:
        before: the partition without the change.
        record: the change.
        unproven: brokers that the same batch registers without proof of a clean shutdown: the change takes them out of
            ISR and ELR before it elects a leader (``PartitionChangeBuilder.setUncleanShutdownReplicas``).
    """
    if record.leader is UNSET:
        return events.Election.NONE
    if record.leader is None:
        return events.Election.NO_CANDIDATE
    # The ISR that a leader proposes can complete a reassignment: it then lacks those that leave, who may have led.
    completes = record.replicas is not UNSET
    if record.leader in before.isr:
        return events.Election.ISR
    if record.leader in before.elr:
        return events.Election.ELR
    if record.isr is not UNSET and record.leader in record.isr and (len(record.isr) > 1 or completes):
        return events.Election.ISR
    has_candidates = bool({*before.isr, *before.elr} - unproven)
    is_last_known = not has_candidates and record.leader == before.last_known_leader
    return events.Election.LAST_KNOWN_LEADER if is_last_known else events.Election.UNCLEAN
