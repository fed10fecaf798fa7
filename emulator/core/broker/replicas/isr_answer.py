"""The leader's reaction to an answer of AlterPartition (Kafka's ``AlterPartitionManager``, ``Partition``).

Only where the controller asserts that it did nothing does the old ISR hold again. Where it may have acted, perhaps by
another process or for an earlier try, the change stays pending until metadata settles it: the larger ISR is
safe either way.
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
    """Judges the answer to a change that is under way, by the leader's own epochs.

    A success of another leader epoch, or of an older partition epoch, proves nothing.
    """
    if result.error in _REVERTS:
        return IsrAnswer.REVERTED
    is_success = result.error is ErrorCode.NONE and result.leader_epoch == leader_epoch
    return IsrAnswer.COMMITTED if is_success and result.partition_epoch >= partition_epoch else IsrAnswer.PENDING


def is_sent_again(answer: IsrAnswer, error: ErrorCode) -> bool:
    """Returns whether the identical change is sent again at once: the error says nothing about the change itself."""
    return answer is IsrAnswer.PENDING and error not in _LEAVES_OPEN
