"""M20 LongestLog: an unclean recovery elects the replica with the longest log, and waits for required answers.

"The one with the highest leader epoch plus the longest log end offset will be the new leader" (KIP-966), among the
replicas that answered. Strategy Balanced elects nobody before the last known ELR and the last known leader have
answered. The strategy is the configured one, or another one where an administrator asked for an election. An answer
must agree with the replica's own events about its log, as far as they are recorded.

"Plus the replicas replied within the timeout": until the timeout, Balanced waits for every replica
(``recovery_waits``). Aggressive, and Balanced without that rule, wait for every active replica. Times are those of the
controller's own events, give or take ``_LATE_NS``. They are not judged where a fault changed clocks or slowed a
controller's disk: an event waits for the sync of its turn, so the time from a slow start to a quick election looks too
short.
"""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import RecoveryStrategy
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.leaderless_logs import leaderless_log
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.guarantee import UncleanRequests
from laststand.emulator.verification.rules.sentences import broker, listed
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.timeline import CollectedEvent, Timeline

_LATE_NS: Final = 1_000_000_000
"""The greatest delay from a controller's request to its event. Events of older runs carry the time of writing, on a
machine under load; newer ones carry the time of their turn."""


@partition_check(
    "M20", "LongestLog", source="KIP-966, Unclean recovery", needs={Evidence.EVENTS}, premises={Premise.LOGS_COMPARED}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    elections = {
        each.event.metadata_offset: each.event
        for each in facts.events.of(events.UncleanLeaderElected)
        if each.event.method is events.UncleanMethod.LONGEST_LOG
    }
    if not elections:
        return
    before = {change.new.metadata_offset: change.old for change in facts.changes}
    hasty = _hasty(facts)
    requests = UncleanRequests(_harness(facts.cluster), str(facts))
    for offset, elected in sorted(elections.items()):
        problems = _problems(facts, elected, before.get(offset), requests, is_hasty=offset in hasty)
        for problem in problems:
            yield Finding(offset, f"{facts} at metadata offset {offset}: {problem}")


def _harness(cluster: ClusterFacts) -> Timeline:
    relevant = (
        each
        for kind in (
            events.StepReached,
            events.OrderRelayed,
            events.IncarnationEnded,
            events.FaultInjected,
            events.FaultHealed,
        )
        for each in cluster.events.of(kind)
    )
    return Timeline(events=tuple(sorted(relevant, key=place_of)))


def _problems(
    facts: PartitionFacts,
    elected: events.UncleanLeaderElected,
    before: events.PartitionChanged | None,
    requests: UncleanRequests,
    *,
    is_hasty: bool,
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
    missing = sorted(_awaited(facts, elected, before) - {answer.broker_id for answer in elected.answers})
    if is_hasty and missing:
        yield f"{broker(elected.leader)} was elected before the timeout, and {listed(missing)} had not answered"
    registered = facts.cluster.registered_before(elected.metadata_offset)
    for answer in elected.answers:
        if answer.broker_id in registered:
            yield from _answer_problems(facts, elected, answer, registered[answer.broker_id], before)


def _awaited(facts: PartitionFacts, elected: events.UncleanLeaderElected, before: events.PartitionChanged) -> set[int]:
    """Returns the replicas that the controller must wait for until the timeout."""
    waits = all(rules.get("recovery_waits") == "on" for rules in facts.cluster.controllers_rules)
    if waits and elected.strategy is RecoveryStrategy.BALANCED:
        return set(before.replicas)
    return {each for each in before.replicas if facts.cluster.is_active(each, elected.metadata_offset)}


def _hasty(facts: PartitionFacts) -> set[int]:
    """Returns the elections that were held well within the timeout of a recovery, by metadata offset."""
    timeout_ms = facts.cluster.configuration.recovery_timeout_ms
    if facts.cluster.has_changed_clocks or facts.cluster.has_slowed_controllers:
        return set()
    moments: list[CollectedEvent[events.PartitionEvent]] = [
        *facts.events.of(events.UncleanRecoveryStarted),
        *facts.events.of(events.UncleanRecoveryDropped),
        *facts.events.of(events.UncleanLeaderElected),
    ]
    hasty: set[int] = set()
    began: CollectedEvent[events.PartitionEvent] | None = None
    for each in sorted(moments, key=place_of):
        match each.event:
            case events.UncleanRecoveryStarted():
                is_another = began is None or not _is_one_process(began, each)
                began = each if is_another else began
            case events.UncleanRecoveryDropped():
                began = None
            case events.UncleanLeaderElected():
                if began is not None and _is_one_process(began, each):
                    passed_ns = each.time_ns - began.time_ns + _LATE_NS
                    hasty |= {each.event.metadata_offset} if passed_ns < timeout_ms * 1_000_000 else set()
                began = None
            case _:
                pass
    return hasty


def _is_one_process(one: CollectedEvent[events.Event], other: CollectedEvent[events.Event]) -> bool:
    return (one.node, one.incarnation) == (other.node, other.incarnation)


def _is_asked_for(
    elected: events.UncleanLeaderElected, configured: RecoveryStrategy, requests: UncleanRequests
) -> bool:
    """Returns whether an administrator's request explains a strategy other than the configured one."""
    if elected.strategy is RecoveryStrategy.NONE or elected.strategy is configured:
        return False
    return requests.account_for(elected.metadata_offset)


def _rank_problems(elected: events.UncleanLeaderElected) -> Iterator[str]:
    winner = next((answer for answer in elected.answers if answer.broker_id == elected.leader), None)
    if winner is None:
        yield f"{broker(elected.leader)} was elected for its log, and said nothing of it that counted"
        return
    better = [answer.broker_id for answer in elected.answers if _rank(answer) > _rank(winner)]
    if better:
        yield f"{broker(elected.leader)} was elected, and {listed(better)} have more"


def _answer_problems(
    facts: PartitionFacts,
    elected: events.UncleanLeaderElected,
    answer: events.ReplicaAnswer,
    registration: events.BrokerRegistered,
    before: events.PartitionChanged,
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


def _rank(answer: events.ReplicaAnswer) -> tuple[int, int]:
    written = answer.last_written_leader_epoch
    return -1 if written is None else written, answer.log_end_offset


def _remembered(before: events.PartitionChanged) -> set[int]:
    last = () if before.last_known_leader is None else (before.last_known_leader,)
    return {*before.last_known_elr, *last} & set(before.replicas)
