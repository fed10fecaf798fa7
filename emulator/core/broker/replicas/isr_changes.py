"""The life of an ISR change: proposed by the leader, answered by the controller (Kafka's ``Partition``, KIP-497).

A change begins when a follower has caught up, members lag, or a recovery is over. The turn collects the proposal, and
``alter_partition_sender`` queues it; until the answer, the partition is in the pending state. The answer
commits it, reverts it, or leaves it pending until metadata settles it; then the identical change may go out again.
``isr`` holds the states and decisions, ``isr_answer`` what an answer means, ``Partition`` what a leader makes of both.
"""

from laststand.emulator.core import events, messages
from laststand.emulator.core.broker.replicas.isr import (
    Committed,
    IsrProposal,
    PendingExpand,
    PendingRecovery,
    PendingShrink,
    PendingState,
    proposed_isr,
)
from laststand.emulator.core.broker.replicas.isr_answer import is_sent_again, judge_answer
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.types import BrokerId, IsrAnswer


def maybe_expand_isr(turn: Turn, partition: Partition, replica_id: BrokerId) -> None:
    """Proposes a follower that just fetched as a member, if the rules allow it."""
    state = partition.isr_state
    if not isinstance(state, Committed) or replica_id in state.isr or partition.is_recovering:
        return
    if partition.may_join(replica_id):
        _propose(turn, partition, PendingExpand(state.isr, replica_id))


def maybe_shrink_isr(turn: Turn, partition: Partition) -> None:
    """Proposes to drop members that lag, all in one request."""
    state = partition.isr_state
    if not partition.is_leader or not isinstance(state, Committed):
        return
    leaving = partition.out_of_sync_members(now_ms=turn.now_ms)
    if leaving:
        _propose(turn, partition, PendingShrink(state.isr, leaving))


def propose_recovered(turn: Turn, partition: Partition) -> None:
    """Proposes RECOVERED to the controller, unless such a proposal is pending (KIP-704)."""
    state = partition.isr_state
    if partition.is_leader and partition.is_recovering and isinstance(state, Committed):
        _propose(turn, partition, PendingRecovery(state.isr))


def _propose(turn: Turn, partition: Partition, state: PendingState) -> None:
    isr = proposed_isr(state)
    members = tuple(partition.isr_member(member) for member in isr)
    partition.await_isr(state)
    turn.proposals.append(
        IsrProposal(
            partition=partition.name,
            topic_id=partition.log.topic_id,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            members=members,
            state=state,
        )
    )
    turn.record(
        events.AlterPartitionProposed(
            cause_id=turn.cause_id,
            topic=partition.name.topic,
            partition=partition.name.partition,
            topic_id=partition.log.topic_id,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            committed_isr=state.committed,
            proposed_isr=isr,
            maximal_isr=partition.maximal_isr,
            broker_epochs=tuple(member.broker_epoch for member in members),
        )
    )


def handle_answer(
    turn: Turn, partition: Partition, proposal: IsrProposal, result: messages.AlterPartitionResult
) -> None:
    """Commits or reverts a change, or leaves it pending until metadata settles it; may propose it again."""
    answer = IsrAnswer.IGNORED
    if partition.isr_state is proposal.state:
        answer = judge_answer(result, leader_epoch=partition.leader_epoch, partition_epoch=partition.partition_epoch)
        _settle(turn, partition, result, answer)
    turn.record(
        events.AlterPartitionAnswered(
            cause_id=turn.cause_id,
            topic=partition.name.topic,
            partition=partition.name.partition,
            topic_id=partition.log.topic_id,
            error=result.error.name,
            outcome=answer,
            committed_isr=partition.committed_isr,
            partition_epoch=partition.partition_epoch,
        )
    )
    if is_sent_again(answer, result.error):
        turn.proposals.append(proposal)


def _settle(turn: Turn, partition: Partition, result: messages.AlterPartitionResult, answer: IsrAnswer) -> None:
    if answer is IsrAnswer.COMMITTED:
        partition.commit_isr(turn, result)
        return
    if answer is IsrAnswer.REVERTED:
        partition.revert_isr(turn)
