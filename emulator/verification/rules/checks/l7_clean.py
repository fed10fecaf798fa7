"""L7 Clean: brokers remove logs that are not assigned to them, and no others (KIP-550)."""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import StrayCleanup
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import words
from laststand.emulator.verification.tables.timeline import ProcessName

_DEFAULT_DELAY_MS: Final = NodeProperties().stray_delete_delay_ms
_LEAST_PART: Final = 2
"""A grace period must have lasted for at least one part in so many: events of older runs carry the time at which they
were written, on a busy machine long after the decision. The simulator judges grace periods to the ms."""
_NS_PER_MS: Final = 1_000_000


@partition_check(
    "L7",
    "Clean",
    source="KIP-550; Kafka's LogManager",
    needs={Evidence.EVENTS},
    premises={Premise.OWN_WORD, Premise.FINAL_LOG, Premise.SETTLED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    yield from _removed_own(facts)
    yield from _kept_others(facts)
    yield from _deleted_early(facts)


def _removed_own(facts: PartitionFacts) -> Iterator[Finding]:
    removed = [(d, d.event.log_end_offset, str(d.event.reason)) for d in facts.events.of(events.LogDeleted)]
    strays = [
        (d, d.event.log_end_offset, words(d.event.reason))
        for d in facts.events.of(events.StrayDetected)
        if d.event.action is not StrayCleanup.OFF
    ]
    for removal, log_end_offset, why in (*removed, *strays):
        topic_id = removal.event.topic_id
        is_replica = all(removal.node in c.new.replicas for c in facts.changes if c.new.topic_id == topic_id)
        if topic_id in facts.states and topic_id not in facts.cluster.deleted_topics and is_replica:
            yield Finding(
                log_end_offset,
                f"{facts}: broker {removal.node} removed its log, which ended at {log_end_offset} ({why}), though it "
                "was a replica all the time",
                by=ProcessName(removal.node, removal.incarnation),
            )


def _kept_others(facts: PartitionFacts) -> Iterator[Finding]:
    reassigned = {
        change.new.topic_id: change.new.metadata_offset
        for change in facts.changes
        if change.old is None or change.old.replicas != change.new.replicas
    }
    noticed = {(s.node, s.incarnation, s.event.topic_id) for s in facts.events.of(events.StrayDetected)}
    for log in facts.final_logs:
        state, applied = facts.states.get(log.topic_id or ""), facts.cluster.last_applied.get(log.node)
        if state is None or applied is None:
            continue
        deleted_at = facts.cluster.deleted_topics.get(state.topic_id)
        if deleted_at is None and log.node in state.replicas:
            continue
        since = reassigned[state.topic_id] if deleted_at is None else deleted_at
        if since < applied.end_offset and (log.node, applied.incarnation, state.topic_id) not in noticed:
            yield Finding(
                log.log_end_offset,
                f"{facts}: broker {log.node} kept a log of topic id {log.topic_id} that is not its own, and did not "
                "notice",
            )


def _deleted_early(facts: PartitionFacts) -> Iterator[Finding]:
    known = {(s.node, s.incarnation, s.event.topic_id): s.time_ns for s in facts.events.of(events.StrayDetected)}
    for deleted in facts.events.of(events.StrayDeleted):
        started = facts.cluster.started.get((deleted.node, deleted.incarnation))
        if started is None:
            continue
        topic_id = deleted.event.topic_id
        known_ns = known.get((deleted.node, deleted.incarnation, topic_id), started.time_ns)
        waited_ms = int((deleted.time_ns - known_ns) / _NS_PER_MS)
        delay_ms = int(started.event.properties.get("stray.delete.delay.ms", _DEFAULT_DELAY_MS))
        if waited_ms < delay_ms // _LEAST_PART:
            yield Finding(
                deleted.sequence,
                f"{facts}: broker {deleted.node} deleted a stray of topic id {topic_id} {waited_ms} ms after it knew "
                f"of it, before stray.delete.delay.ms, which is {delay_ms}",
                by=ProcessName(deleted.node, deleted.incarnation),
            )
