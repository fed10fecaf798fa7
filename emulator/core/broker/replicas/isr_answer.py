"""The leader's reaction to an answer of AlterPartition (Kafka's ``AlterPartitionManager``, ``Partition``).

The leader returns to the old ISR only if the answer proves that the controller changed nothing. If the change may have
been committed, perhaps by another controller process or for an earlier try, it stays pending until metadata settles
it: the larger ISR is safe in both cases.
"""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import IsrAnswer, LeaderEpoch, PartitionEpoch

_REVERTS: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
_LEAVES_OPEN: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


def judge_answer(
    result: messages.AlterPartitionResult, *, leader_epoch: LeaderEpoch, partition_epoch: PartitionEpoch
) -> IsrAnswer:
    """Interprets the answer to a pending change, by the leader's own epochs.

    A successful answer with another leader epoch or an older partition epoch proves nothing.
    """
    if result.error in _REVERTS:
        return IsrAnswer.REVERTED
    is_success = result.error is ErrorCode.NONE and result.leader_epoch == leader_epoch
    return IsrAnswer.COMMITTED if is_success and result.partition_epoch >= partition_epoch else IsrAnswer.PENDING


def is_sent_again(answer: IsrAnswer, error: ErrorCode) -> bool:
    """Returns whether the identical change is sent again at once: the error says nothing about the change itself."""
    return answer is IsrAnswer.PENDING and error not in _LEAVES_OPEN
