"""M20 LongestLog: an unclean recovery elects the longest log, and waits for whom it must.

"The one with the highest leader epoch plus the longest log end offset will be the new leader" (KIP-966), among the
replicas that answered. Strategy Balanced elects nobody before everybody answered who is remembered: the last known ELR
and the last known leader. The strategy is the configured one, or another one where an administrator asked for leaders.
An answer must be what the replica's own events say that its log held, as far as they tell.
"""

from collections.abc import Iterator

from emulator.core.events import (
    BrokerRegistered,
    FaultHealed,
    FaultInjected,
    IncarnationEnded,
    PartitionChanged,
    ReplicaAnswer,
    StepReached,
    UncleanLeaderElected,
    UncleanMethod,
)
from emulator.core.types import RecoveryStrategy
from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.cluster_facts import ClusterFacts
from emulator.verification.event_table import place_of
from emulator.verification.guarantee import UncleanRequests
from emulator.verification.leaderless_logs import leaderless_log
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.sentences import broker, listed
from emulator.verification.timeline import Timeline


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    elections = {
        each.event.metadata_offset: each.event
        for each in facts.events.of(UncleanLeaderElected)
        if each.event.method is UncleanMethod.LONGEST_LOG
    }
    if not elections:
        return
    before = {change.new.metadata_offset: change.old for change in facts.changes}
    requests = UncleanRequests(_harness(facts.cluster), str(facts))
    for offset, elected in sorted(elections.items()):
        for problem in _problems(facts, elected, before.get(offset), requests):
            yield Finding(offset, f"{facts} at metadata offset {offset}: {problem}")


def _harness(cluster: ClusterFacts) -> Timeline:
    told = (
        each for kind in (StepReached, IncarnationEnded, FaultInjected, FaultHealed) for each in cluster.events.of(kind)
    )
    return Timeline(events=tuple(sorted(told, key=place_of)))


def _problems(
    facts: PartitionFacts, elected: UncleanLeaderElected, before: PartitionChanged | None, requests: UncleanRequests
) -> Iterator[str]:
    yield from _rank_problems(elected)
    strategy = facts.cluster.configuration.recovery_strategy(elected.topic, at=elected.metadata_offset)
    if _is_asked_for(elected, strategy, requests):
        strategy = elected.strategy
    elif elected.strategy is not strategy or strategy is RecoveryStrategy.NONE:
        yield f"it was held by strategy {elected.strategy}, with {strategy} configured, and nobody asked for it"
    if before is None:
        return
    if strategy is RecoveryStrategy.BALANCED:
        unheard = sorted(_remembered(before) - {answer.broker_id for answer in elected.answers})
        if unheard:
            yield f"{broker(elected.leader)} was elected before {listed(unheard)}, who must be waited for, had answered"
    registered = facts.cluster.registered_before(elected.metadata_offset)
    for answer in elected.answers:
        if answer.broker_id in registered:
            yield from _answer_problems(facts, elected, answer, registered[answer.broker_id], before)


def _is_asked_for(elected: UncleanLeaderElected, configured: RecoveryStrategy, requests: UncleanRequests) -> bool:
    """Whether an administrator's request accounts for another strategy than the configured one."""
    if elected.strategy is RecoveryStrategy.NONE or elected.strategy is configured:
        return False
    return requests.account_for(elected.metadata_offset)


def _rank_problems(elected: UncleanLeaderElected) -> Iterator[str]:
    winner = next((answer for answer in elected.answers if answer.broker_id == elected.leader), None)
    if winner is None:
        yield f"{broker(elected.leader)} was elected for its log, and said nothing of it that counted"
        return
    better = [answer.broker_id for answer in elected.answers if _rank(answer) > _rank(winner)]
    if better:
        yield f"{broker(elected.leader)} was elected, and {listed(better)} have more"


def _answer_problems(
    facts: PartitionFacts,
    elected: UncleanLeaderElected,
    answer: ReplicaAnswer,
    registration: BrokerRegistered,
    before: PartitionChanged,
) -> Iterator[str]:
    if registration.broker_epoch != answer.broker_epoch:
        yield f"{broker(answer.broker_id)} answered under broker epoch {answer.broker_epoch}, which was not its own"
        return
    process = facts.cluster.process_of(registration)
    if process is None:
        return
    held = leaderless_log(facts, process, topic_id=elected.topic_id, leader_epoch=before.leader_epoch)
    if held is None:
        return
    end, epoch = answer.log_end_offset, answer.last_written_leader_epoch
    if end not in held.ends:
        yield f"{broker(answer.broker_id)} is said to end at {end}, and ended at {listed(sorted(held.ends))}"
    elif epoch is not None and epoch not in held.epochs.get(end, {epoch}):
        known = listed(sorted(held.epochs[end]))
        yield f"{broker(answer.broker_id)} is said to hold leader epoch {epoch} last, and its last batch has {known}"


def _rank(answer: ReplicaAnswer) -> tuple[int, int]:
    written = answer.last_written_leader_epoch
    return -1 if written is None else written, answer.log_end_offset


def _remembered(before: PartitionChanged) -> set[int]:
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
