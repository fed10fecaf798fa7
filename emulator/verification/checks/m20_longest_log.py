"""M20 LongestLog: an unclean recovery elects the longest log, and waits for whom it must.

"The one with the highest leader epoch plus the longest log end offset will be the new leader" (KIP-966), among the
replicas that answered. Strategy Balanced elects nobody before everybody answered who is remembered: the last known ELR
and the last known leader.
"""

from collections.abc import Iterator

from emulator.core.events import PartitionChanged, ReplicaAnswer, UncleanLeaderElected, UncleanMethod
from emulator.core.types import RecoveryStrategy
from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.sentences import broker, listed


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    before = {change.new.metadata_offset: change.old for change in facts.changes}
    for collected in facts.events.of(UncleanLeaderElected):
        elected = collected.event
        if elected.method is not UncleanMethod.LONGEST_LOG:
            continue
        problem = _problem(elected, before.get(elected.metadata_offset))
        if problem is not None:
            yield Finding(elected.metadata_offset, f"{facts} at metadata offset {elected.metadata_offset}: {problem}")


def _problem(elected: UncleanLeaderElected, before: PartitionChanged | None) -> str | None:
    answers = {answer.broker_id: answer for answer in elected.answers}
    winner = answers.get(elected.leader)
    if winner is None:
        return f"{broker(elected.leader)} was elected for its log, and said nothing of it that counted"
    better = [answer.broker_id for answer in answers.values() if _rank(answer) > _rank(winner)]
    if better:
        return f"{broker(elected.leader)} was elected, and {listed(better)} have more"
    unheard = sorted(_remembered(elected, before) - set(answers))
    if unheard:
        return f"{broker(elected.leader)} was elected before {listed(unheard)}, who must be waited for, had answered"
    return None


def _rank(answer: ReplicaAnswer) -> tuple[int, int]:
    written = answer.last_written_leader_epoch
    return -1 if written is None else written, answer.log_end_offset


def _remembered(elected: UncleanLeaderElected, before: PartitionChanged | None) -> set[int]:
    if elected.strategy is not RecoveryStrategy.BALANCED or before is None:
        return set()
    last = () if before.last_known_leader is None else (before.last_known_leader,)
    return {*before.last_known_elr, *last} & set(before.replicas)


CHECK = PartitionCheck(
    check_id="M20",
    name="LongestLog",
    source="KIP-966, Unclean recovery",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.LOGS_COMPARED}),
    find=_find,
)
