"""M15 TopicId: a topic that is created again under its name has no records of the former topic (KIP-516)."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import ProcessName


@partition_check(
    "M15", "TopicId", source="KIP-516", needs={Evidence.EVENTS}, premises={Premise.OWN_WORD, Premise.LOG_OPENED}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for position, process, what, topic_id in (*_first_logs(facts), *_never_opened(facts), *_unknown_topics(facts)):
        yield Finding(position, f"{facts}: broker {process.node} {what} topic id {topic_id}", by=process)


_Misuse = tuple[int, ProcessName, str, str]
"""Offset, process, what it did, and the topic id."""


def _first_logs(facts: PartitionFacts) -> Iterator[_Misuse]:
    seen: set[tuple[int, str]] = set()
    for opened in facts.events.of(events.LogOpened):
        key, end = (opened.node, opened.event.topic_id), opened.event.log_end_offset
        if key not in seen and end > 0:
            process = ProcessName(opened.node, opened.incarnation)
            yield end, process, f"found {end} records where none can be, in its first log of", opened.event.topic_id
        seen.add(key)


def _never_opened(facts: PartitionFacts) -> Iterator[_Misuse]:
    opened: dict[tuple[int, int, str], int] = {}
    for log in facts.events.of(events.LogOpened):
        opened.setdefault((log.node, log.incarnation, log.event.topic_id), log.sequence)
    led = [(role, role.event.epoch_start_offset) for role in facts.events.of(events.BecameLeader)]
    followed = [(role, role.event.log_end_offset) for role in facts.events.of(events.BecameFollower)]
    for role, end in (*led, *followed):
        topic_id = role.event.topic_id
        if end > 0 and opened.get((role.node, role.incarnation, topic_id), role.sequence) >= role.sequence:
            process = ProcessName(role.node, role.incarnation)
            yield end, process, f"used a log of {end} records that it never opened as one of", topic_id


def _unknown_topics(facts: PartitionFacts) -> Iterator[_Misuse]:
    batches = facts.events.rows(events.BatchAppended)
    for places in groups_of(batches["node"], batches["topic_id"]):
        node, topic_id = int(batches["node"][places[0]]), batches.words("topic_id")[batches["topic_id"][places[0]]]
        if topic_id not in facts.states:
            process = ProcessName(node, int(batches["incarnation"][places].max()))
            yield int(batches["base_offset"][places].min()), process, "appended to a log of", topic_id
