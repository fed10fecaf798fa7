"""Z4 MemberKeepsLog: no broker removes a log of a partition of which it is a replica in the ISR (KIP-570, KIP-550).

A replica without a log joins no ISR before it becomes leader or follower again. So if the last state before that has it
in the ISR, it was a member when it removed its log, or became one without a log. A member of the ISR that is no replica
is left out: a cancelled reassignment may leave one behind (Z27, Z29).
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.types import StrayCleanup
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.timeline import CollectedEvent


@partition_check(
    "Z4",
    "MemberKeepsLog",
    source="KIP-570; KIP-550",
    needs={Evidence.EVENTS, Evidence.TOPIC_IDS},
    premises={Premise.LOG_REMOVED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    strays = [each for each in facts.events.of(events.StrayDetected) if each.event.action is not StrayCleanup.OFF]
    removals = [
        *((each, each.event.log_end_offset) for each in facts.events.of(events.LogDeleted)),
        *((each, each.event.log_end_offset) for each in strays),
    ]
    for removal, log_end_offset in removals:
        if removal.event.topic_id in facts.cluster.deletions_begun:
            continue
        until = _next_role(facts, removal)
        states = [
            change.new
            for change in facts.changes
            if change.new.topic_id == removal.event.topic_id and (until is None or change.new.partition_epoch < until)
        ]
        if states and removal.node in states[-1].isr and removal.node in states[-1].replicas:
            yield Finding(
                log_end_offset,
                f"{facts}: broker {removal.node} removed its log, which ended at {log_end_offset}, and is in ISR "
                f"{list(states[-1].isr)}",
            )


def _next_role(facts: PartitionFacts, removal: CollectedEvent[events.PartitionEvent]) -> int | None:
    """Returns the partition epoch by which a broker next became leader or follower; ``None`` if it never did."""
    roles = [
        *((each, each.event.partition_epoch) for each in facts.events.of(events.BecameLeader)),
        *((each, each.event.partition_epoch) for each in facts.events.of(events.BecameFollower)),
    ]
    later = [
        (role.incarnation, role.sequence, partition_epoch)
        for role, partition_epoch in roles
        if (role.node, role.event.topic_id) == (removal.node, removal.event.topic_id)
        and (role.incarnation, role.sequence) > (removal.incarnation, removal.sequence)
    ]
    return min(later)[2] if later else None
