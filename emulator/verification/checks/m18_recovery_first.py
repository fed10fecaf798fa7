"""M18 RecoveryFirst: an uncleanly elected leader recovers before it serves (KIP-704)."""

from collections.abc import Iterator

from emulator.core.events import AppendRole, BatchAppended, ProduceAnswered, RecoveryFinished, RecoveryStarted
from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import NO_ERROR, PartitionFacts

_Term = tuple[int, int, str, int | None]
"""Node, incarnation, topic id and leader epoch."""


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    started = facts.events.of(RecoveryStarted)
    if not started:
        return
    finished: dict[_Term, int] = {}
    for end in facts.events.of(RecoveryFinished):
        finished.setdefault((end.node, end.incarnation, end.event.topic_id, end.event.leader_epoch), end.sequence)
    served = _served(facts)
    for start in started:
        term = (start.node, start.incarnation, start.event.topic_id, start.event.leader_epoch)
        end_sequence = finished.get(term)
        for sequence, what, base_offset in served.get(term, ()):
            is_through = end_sequence is not None and start.sequence < end_sequence < sequence
            if sequence > start.sequence and not is_through:
                yield Finding(
                    base_offset,
                    f"{facts}: broker {start.node} {what} offset {base_offset} while it still recovered in epoch "
                    f"{start.event.leader_epoch}",
                )


def _served(facts: PartitionFacts) -> dict[_Term, list[tuple[int, str, int]]]:
    served: dict[_Term, list[tuple[int, str, int]]] = {}
    for appended in facts.events.of(BatchAppended):
        batch = appended.event
        if batch.role is AppendRole.LEADER:
            term = (appended.node, appended.incarnation, batch.topic_id, batch.leader_epoch)
            served.setdefault(term, []).append((appended.sequence, "appended at", batch.base_offset))
    for answered in facts.events.of(ProduceAnswered):
        answer = answered.event
        if answer.error == NO_ERROR and answer.base_offset is not None:
            answer_term = (answered.node, answered.incarnation, answer.topic_id, answer.leader_epoch)
            served.setdefault(answer_term, []).append((answered.sequence, "acknowledged", answer.base_offset))
    return served


CHECK = PartitionCheck(check_id="M18", name="RecoveryFirst", premises=frozenset({Premise.RECOVERY_STARTED}), find=_find)
