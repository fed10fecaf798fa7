"""AlterPartition: a leader proposes an ISR, the controller judges it (KIP-497, KIP-841, KIP-903).

The first check that fails answers, in the order of Kafka's ``ReplicationControlManager``. An epoch from the future
means that *this controller* is behind, hence NOT_CONTROLLER. There is no idempotency: a proposal that was applied and
is sent again carries an old partition epoch. So does one that was refused for a member that may not join *now*: the
leader goes back to the ISR before, and an earlier copy of the proposal may still be under way (S45). Kafka leaves the
partition epoch as it is.
"""

from typing import Final

import msgspec

from laststand.emulator.core import events, messages, records
from laststand.emulator.core.controller.decision import Decision, PartitionCause
from laststand.emulator.core.controller.partition_change import PartitionTarget
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.release import names_broker_epochs
from laststand.emulator.core.types import BrokerId, ChangeReason, LeaderRecoveryState, TopicPartition

_LEADER_RECOVERY_STATE_SINCE: Final = 1
_TOPIC_IDS_SINCE: Final = 2
_BROKER_EPOCHS_SINCE: Final = 3


class AlterOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Verdict on one partition, and what is written; ``partition`` is ``None`` beside an error."""

    error: ErrorCode
    partition: TopicPartition | None = None
    decisions: tuple[Decision, ...] = ()


def sender_error(view: ClusterView, request: messages.AlterPartitionRequest) -> ErrorCode:
    """Returns the top-level error: whether the sender is the broker process that it claims to be."""
    registration = view.image.brokers.get(request.broker_id)
    if registration is None or registration.broker_epoch != request.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def alter_partition(
    view: ClusterView, request: messages.AlterPartitionRequest, data: messages.AlterPartitionData
) -> AlterOutcome:
    """Decides on one partition of a request whose sender is genuine."""
    partition = _find_partition(view, request, data)
    if isinstance(partition, ErrorCode):
        return AlterOutcome(error=partition)
    state = view.image.partitions[partition]
    # A request without the field comes from a broker that knows no recovery: it has recovered (KIP-704).
    has_recovery_state = request.api_version >= _LEADER_RECOVERY_STATE_SINCE
    recovery_state = data.leader_recovery_state if has_recovery_state else LeaderRecoveryState.RECOVERED
    error = _epoch_error(view, request, data, state) or _isr_error(data, state, recovery_state)
    if error is ErrorCode.NONE and not all(_is_eligible(view, request, member) for member in data.new_isr):
        is_named = request.api_version >= _TOPIC_IDS_SINCE
        error = ErrorCode.INELIGIBLE_REPLICA if is_named else ErrorCode.OPERATION_NOT_ATTEMPTED
        return AlterOutcome(error=error, decisions=_outdate_copies(view, request, partition, state))
    if error is not ErrorCode.NONE:
        return AlterOutcome(error=error)
    target = PartitionTarget(
        acceptable=view.active_brokers(),
        election=view.election_type(partition.topic),
        isr=tuple(member.broker_id for member in data.new_isr),
        leader_recovery_state=recovery_state,
    )
    decisions = view.change_partition(
        partition, target, reason=ChangeReason.ALTER_PARTITION, broker_id=request.broker_id
    )
    return AlterOutcome(error=ErrorCode.NONE, partition=partition, decisions=tuple(decisions))


def _outdate_copies(
    view: ClusterView, request: messages.AlterPartitionRequest, partition: TopicPartition, state: PartitionState
) -> tuple[Decision, ...]:
    """Returns the change that leaves all as it is, but for the partition epoch."""
    if not view.switches.refusals_are_final:
        return ()
    cause = PartitionCause(
        reason=ChangeReason.ALTER_PARTITION,
        election=events.Election.NONE,
        broker_id=request.broker_id,
        effective_min_isr=view.effective_min_isr(partition),
    )
    record = records.PartitionChangeRecord(topic_id=state.topic_id, partition=partition.partition)
    return (Decision(record=record, cause=cause),)


def alter_partition_result(
    request: messages.AlterPartitionRequest,
    data: messages.AlterPartitionData,
    *,
    error: ErrorCode,
    after: PartitionState | None,
) -> messages.AlterPartitionResult:
    """Returns the answer for one partition, given its state after the change (``None`` beside an error).

    A change that moved leadership away from the sender is committed all the same; the answer says so and no more.
    """
    if error is ErrorCode.NONE and after is not None and after.leader != request.broker_id:
        is_named = request.api_version >= _TOPIC_IDS_SINCE
        error = ErrorCode.NEW_LEADER_ELECTED if is_named else ErrorCode.FENCED_LEADER_EPOCH
    if error is not ErrorCode.NONE or after is None:
        return messages.AlterPartitionResult(
            topic=data.topic, topic_id=data.topic_id, partition=data.partition, error=error
        )
    return messages.AlterPartitionResult(
        topic=data.topic,
        topic_id=data.topic_id,
        partition=data.partition,
        error=ErrorCode.NONE,
        leader=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        leader_recovery_state=after.leader_recovery_state,
        partition_epoch=after.partition_epoch,
    )


def _find_partition(
    view: ClusterView, request: messages.AlterPartitionRequest, data: messages.AlterPartitionData
) -> TopicPartition | ErrorCode:
    if request.api_version >= _TOPIC_IDS_SINCE:
        topic = None if data.topic_id is None else view.image.topic_names.get(data.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = data.topic
    partition = TopicPartition(topic, data.partition)
    return partition if partition in view.image.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _epoch_error(
    view: ClusterView, request: messages.AlterPartitionRequest, data: messages.AlterPartitionData, state: PartitionState
) -> ErrorCode:
    # Compare-and-set on the partition epoch (KIP-497), unless switched off: then any age will do.
    age = data.partition_epoch - state.partition_epoch if view.switches.ap_partition_epoch_check else 0
    if data.leader_epoch > state.leader_epoch or age > 0:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if request.broker_id != state.leader:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_UPDATE_VERSION if age < 0 else ErrorCode.NONE


def _isr_error(
    data: messages.AlterPartitionData, state: PartitionState, recovery_state: LeaderRecoveryState
) -> ErrorCode:
    isr = [member.broker_id for member in data.new_isr]
    is_subset = len(set(isr)) == len(isr) and set(isr) <= set(state.replicas)
    recovering = LeaderRecoveryState.RECOVERING
    is_recovery_legal = recovery_state is not recovering or (
        len(isr) <= 1 and state.leader_recovery_state is recovering
    )
    is_valid = is_subset and state.leader in isr and is_recovery_legal
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


def _is_eligible(view: ClusterView, request: messages.AlterPartitionRequest, member: messages.IsrMember) -> bool:
    registration = view.image.brokers.get(BrokerId(member.broker_id))
    if registration is None or not registration.is_active:
        return False
    # KIP-903: the epoch that the follower fetched with identifies its incarnation. None bypasses, as Kafka's -1 does.
    if not names_broker_epochs(view.switches) or request.api_version < _BROKER_EPOCHS_SINCE:
        return True
    return member.broker_epoch is None or member.broker_epoch == registration.broker_epoch
