"""E1 LogAgreement: final logs match the replay of the nodes' own events.

Each node's events about one of its logs are replayed in the order of its own file: batches appended, truncated, lost
with the page cache, deleted. The remaining batches must be in the final log, field by field.

A killed process may have left a batch without an event: such a batch begins where the events of its incarnation end. It
may also have truncated or deleted a log without an event: then the log is as the next process found it, or missing. Any
other difference is a disagreement, and all other checks trust final logs.

From a batch on that the harness damaged on a disk, differences are no disagreement; D17 judges who accepted the batch.

A log begins where a log of its name was deleted, even if the topic changed in between: where stray logs are kept, a
topic that is created again continues the log of the deleted one.
"""

from collections.abc import Iterator, Set

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.replay import CONTENT, BatchFields, ReplayedLog, replay_logs
from laststand.emulator.verification.rules.sentences import span
from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.comparison import only_in_each
from laststand.emulator.verification.tables.final_logs import FinalBatch


@partition_check(
    "E1",
    "LogAgreement",
    source="Not of Kafka: event log and disk are two records of one run",
    needs={Evidence.EVENTS, Evidence.FINAL_LOGS},
    premises={Premise.OWN_WORD, Premise.STORED, Premise.FINAL_LOG},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    final = facts.final_batches
    replayed = replay_logs(facts)
    undone, unreported = _undone(facts), _unreported_starts(facts)
    for node in sorted({*replayed, *np.unique(final["node"]).tolist()}):
        log, found = replayed[node], final.only(final.has("node", node))
        if _is_gone(facts, node, log):
            continue
        only_by_events, only_in_log = _differences(facts, log, found)
        for batch in only_in_log:
            is_explained = batch.topic_id == log.topic_id and batch.base_offset >= log.seen_up_to
            if not is_explained and not _is_undone(batch, node, undone):
                yield _finding(facts, batch, f"final log of broker {node}", "that its event log does not have")
        for batch in only_by_events:
            if batch.base_offset >= facts.damaged_from.get(node, batch.base_offset + 1):
                continue
            if batch.last_offset >= max(log.deleted_below, unreported.get(node, 0)) and not _is_undone(
                batch, node, undone
            ):
                explained = "that its final log does not have, and nothing explains it"
                yield _finding(facts, batch, f"event log of broker {node}", explained)
    for final_log in facts.final_logs:
        if final_log.problem is not None and final_log.is_clean and final_log.node not in facts.damaged_from:
            yield Finding(
                final_log.log_end_offset,
                f"{facts}: the final log of broker {final_log.node}, which stopped in order, is unreadable from offset "
                f"{final_log.log_end_offset} on: {final_log.problem}",
            )


def _differences(
    facts: PartitionFacts, log: ReplayedLog, found: Table[FinalBatch]
) -> tuple[set[BatchFields], set[BatchFields]]:
    """Returns the batches that only the events record, and those that only the final log has."""
    expected, topic_id = log.expected, log.topic_id
    by_events, in_log = only_in_each(
        [np.full(len(expected), facts.topic_number(topic_id)), *(expected[name] for name in CONTENT)],
        [facts.topics(found), *(found[name] for name in CONTENT)],
    )
    return (
        {BatchFields.of(each.event, topic_id) for each in expected.rows(by_events)},
        {BatchFields.of(batch, batch.topic_id) for batch in found.rows(in_log)},
    )


def _finding(facts: PartitionFacts, batch: BatchFields, log: str, problem: str) -> Finding:
    return Finding(
        batch.base_offset,
        f"{facts} {span(batch.base_offset, batch.last_offset)}: the {log} has a batch of epoch {batch.leader_epoch} "
        f"with CRC {batch.crc} {problem}",
    )


def _is_undone(batch: BatchFields, node: int, undone: dict[tuple[str | None, int], int]) -> bool:
    return batch.last_offset >= undone.get((batch.topic_id, node), batch.last_offset + 1)


def _undone(facts: PartitionFacts) -> dict[tuple[str | None, int], int]:
    """Returns the offsets from which on a power loss may have undone an unsynced truncation."""
    power_lost = {
        (loss.event.topic_id, loss.event.lost_node, loss.event.lost_incarnation)
        for loss in facts.events.of(events.PowerLost)
    }
    undone: dict[tuple[str | None, int], int] = {}
    for truncation in facts.events.of(events.LogTruncated):
        topic_id, node, incarnation = truncation.event.topic_id, truncation.node, truncation.incarnation
        started = facts.cluster.started.get((node, incarnation))
        if started is None or started.event.switches.get("truncation_sync") == "on":
            continue
        if (topic_id, node, incarnation) in power_lost:
            end = truncation.event.new_end_offset
            undone[topic_id, node] = min(undone.get((topic_id, node), end), end)
    return undone


def _killed(facts: PartitionFacts) -> Set[tuple[int, int]]:
    return facts.cluster.killed if PROMISES["E1"].leaves_out(Exemption.KILLED_PROCESSES) else frozenset()


def _unreported_starts(facts: PartitionFacts) -> dict[int, int]:
    """Returns by node the offset up to which a killed process may have deleted records without an event."""
    starts: dict[int, int] = {}
    for opened in facts.events.of(events.LogOpened):
        if (opened.node, opened.incarnation - 1) in _killed(facts):
            starts[opened.node] = max(starts.get(opened.node, 0), opened.event.log_start_offset)
    for log in facts.final_logs:
        if (log.node, facts.cluster.last_incarnation.get(log.node)) in _killed(facts):
            starts[log.node] = max(starts.get(log.node, 0), log.log_start_offset)
    return starts


def _is_gone(facts: PartitionFacts, node: int, log: ReplayedLog) -> bool:
    """Returns whether a log is gone without an event: a process that was killed may have deleted it."""
    if log.last_incarnation is None or any(final.node == node for final in facts.final_logs):
        return False
    return any(killed == node and incarnation >= log.last_incarnation for killed, incarnation in _killed(facts))
