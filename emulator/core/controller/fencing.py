"""The effects of fencing, unfencing, controlled shutdown and unregistering of brokers on partitions.

A broker that leaves is taken out of every ISR, and its leaderships move; a broker that returns is offered to leaderless
partitions only and joins no ISR. Kafka's ``BrokerHeartbeatManager``, ``ReplicationControlManager``.
"""

import msgspec

from laststand.emulator.core import records
from laststand.emulator.core.controller.decision import Decision, FencingCause
from laststand.emulator.core.controller.partition_change import PartitionTarget
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, ChangeReason, FenceReason


class UnregisterOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to UnregisterBroker, and what it writes."""

    error: ErrorCode
    message: str = ""
    decisions: tuple[Decision, ...] = ()


def leave_isrs(view: ClusterView, broker_id: BrokerId, *, reason: ChangeReason) -> list[Decision]:
    """Returns the changes that take a broker out of every ISR; it may thereby enter ELRs, and leads nothing after."""
    decisions: list[Decision] = []
    acceptable = view.active_brokers() - {broker_id}
    for partition, state in view.partitions_in_isr_of(broker_id):
        target = PartitionTarget(
            acceptable=acceptable,
            election=view.election_type(partition.topic),
            isr=tuple(member for member in state.isr if member != broker_id),
        )
        decisions += view.change_partition(partition, target, reason=reason, broker_id=broker_id)
    return decisions


def leave_isrs_and_elrs(view: ClusterView, broker_id: BrokerId) -> list[Decision]:
    """Returns the changes that an unclean restart causes while ELR is on: out of every ISR and out of every ELR."""
    decisions: list[Decision] = []
    acceptable = view.active_brokers() - {broker_id}
    for partition, state in [*view.partitions_in_isr_of(broker_id), *view.partitions_in_elr_of(broker_id)]:
        target = PartitionTarget(
            acceptable=acceptable,
            election=view.election_type(partition.topic),
            isr=tuple(member for member in state.isr if member != broker_id),
            unclean_replicas=frozenset({broker_id}),
        )
        decisions += view.change_partition(
            partition, target, reason=ChangeReason.BROKER_REGISTERED, broker_id=broker_id
        )
    return decisions


def fence_broker(view: ClusterView, broker_id: BrokerId, *, reason: FenceReason) -> list[Decision]:
    """Returns the partition changes of fencing a registered broker, then its fence record.

    A broker that is fenced already gets no second record, unlike in Kafka, where it would say nothing new.
    """
    decisions = leave_isrs(view, broker_id, reason=ChangeReason.BROKER_FENCED)
    registration = view.image.brokers[broker_id]
    if not registration.fenced:
        record = records.BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=registration.broker_epoch, fenced=True
        )
        decisions.append(Decision(record=record, cause=FencingCause(reason=reason)))
    return decisions


def unfence_broker(view: ClusterView, broker_id: BrokerId) -> list[Decision]:
    """Returns the unfence record, then the elections of leaderless partitions, for which the broker counts already.

    One that was shutting down stays inactive, as only a new incarnation ends that; Kafka would let it lead here.
    """
    registration = view.image.brokers[broker_id]
    record = records.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=registration.broker_epoch, fenced=False
    )
    decisions = [Decision(record=record)]
    acceptable = view.active_brokers()
    if not registration.in_controlled_shutdown:
        acceptable |= {broker_id}
    for partition, _ in view.leaderless_partitions():
        target = PartitionTarget(acceptable=acceptable, election=view.election_type(partition.topic))
        decisions += view.change_partition(partition, target, reason=ChangeReason.BROKER_UNFENCED, broker_id=broker_id)
    return decisions


def begin_controlled_shutdown(view: ClusterView, broker_id: BrokerId) -> list[Decision]:
    """Returns the flag record, unless it is set, and the changes that take the broker out of every ISR."""
    registration = view.image.brokers[broker_id]
    decisions: list[Decision] = []
    if not registration.in_controlled_shutdown:
        record = records.BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=registration.broker_epoch, in_controlled_shutdown=True
        )
        decisions.append(Decision(record=record))
    return decisions + leave_isrs(view, broker_id, reason=ChangeReason.CONTROLLED_SHUTDOWN)


def unregister_broker(view: ClusterView, broker_id: BrokerId) -> UnregisterOutcome:
    """Decides on UnregisterBroker.

    As in Kafka the broker stays in the ELR, or enters it, as a ghost (``ClusterControlManager``).
    """
    registration = view.image.brokers.get(broker_id)
    if registration is None:
        message = f"broker {broker_id} is not registered"
        return UnregisterOutcome(error=ErrorCode.BROKER_ID_NOT_REGISTERED, message=message)
    record = records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=registration.broker_epoch)
    decisions = leave_isrs(view, broker_id, reason=ChangeReason.UNREGISTERED)
    decisions.append(Decision(record=record, cause=FencingCause(reason=FenceReason.UNREGISTERED)))
    return UnregisterOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))
