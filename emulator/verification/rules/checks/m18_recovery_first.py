"""M18 RecoveryFirst: an uncleanly elected leader recovers before it serves (KIP-704)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.timeline import ProcessName

_Term = tuple[int, int, str, int | None]
"""Node, incarnation, topic id and leader epoch."""


@partition_check("M18", "RecoveryFirst", source="KIP-704", premises={Premise.RECOVERY_STARTED})
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    started = facts.events.of(events.RecoveryStarted)
    if not started:
        return
    finished: dict[_Term, int] = {}
    for end in facts.events.of(events.RecoveryFinished):
        finished.setdefault((end.node, end.incarnation, end.event.topic_id, end.event.leader_epoch), end.sequence)
    for start in started:
        term = (start.node, start.incarnation, start.event.topic_id, start.event.leader_epoch)
        end_sequence = finished.get(term)
        for what, served in _served(facts, term):
            is_early = served["sequence"] > start.sequence
            if end_sequence is not None and start.sequence < end_sequence:
                is_early &= served["sequence"] <= end_sequence
            for base_offset in served["base_offset"][is_early].tolist():
                yield Finding(
                    base_offset,
                    f"{facts}: broker {start.node} {what} offset {base_offset} while it still recovered in epoch "
                    f"{start.event.leader_epoch}",
                    by=ProcessName(start.node, start.incarnation),
                )


def _served(facts: PartitionFacts, term: _Term) -> Iterator[tuple[str, Table[Any]]]:
    batches, answered = facts.events.rows(events.BatchAppended), facts.answered
    yield "appended at", _of_term(batches.only(batches.has("role", events.AppendRole.LEADER)), term)
    yield "acknowledged", _of_term(answered, term)


def _of_term(events: Table[Any], term: _Term) -> Table[Any]:
    names = ("node", "incarnation", "topic_id", "leader_epoch")
    return events.only(np.all([events.has(name, value) for name, value in zip(names, term, strict=True)], axis=0))
