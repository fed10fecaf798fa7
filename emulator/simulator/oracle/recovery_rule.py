"""M20: whom an unclean recovery elects, by KIP-966, whatever its own code makes of that.

"The one with the highest leader epoch plus the longest log end offset will be the new leader", among the replicas that
answered. Strategy Balanced elects nobody before everybody answered who is remembered: the last known ELR and leader.
"""

from typing import Final

from emulator.core.events import PartitionChanged, ReplicaAnswer, UncleanLeaderElected, UncleanMethod
from emulator.core.types import RecoveryStrategy

_NOTHING: Final = (-1, -1)


def recovery_problem(event: UncleanLeaderElected, before: PartitionChanged | None) -> str | None:
    """Returns what is wrong with an election by the longest log; ``before`` is the state that it was held in."""
    if event.method is not UncleanMethod.LONGEST_LOG:
        return None
    answers = {answer.broker_id: _rank(answer) for answer in event.answers}
    if event.leader not in answers:
        return f"{event.leader} did not say what it has"
    if answers[event.leader] < max(answers.values(), default=_NOTHING):
        return f"{event.leader} has not the longest log of {answers}"
    if event.strategy is not RecoveryStrategy.BALANCED or before is None:
        return None
    last = () if before.last_known_leader is None else (before.last_known_leader,)
    unheard = ({*before.last_known_elr, *last} & set(before.replicas)) - set(answers)
    return f"{sorted(unheard)} had not answered" if unheard else None


def _rank(answer: ReplicaAnswer) -> tuple[int, int]:
    written = answer.last_written_leader_epoch
    return (_NOTHING[0] if written is None else written, answer.log_end_offset)
