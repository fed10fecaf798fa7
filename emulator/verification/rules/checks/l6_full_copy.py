"""L6 FullCopy: once every fault is over, replicas are full copies of each other.

Judged by the final logs of those that stopped in order, from the highest of their log starts on, up to where the final
consumer could read: a member of the ISR may stop before it has fetched the last records. A replica that has appended
nothing since its last truncation is left out: its leader stopped before it could fetch these records again. So is a
replica with a batch that the harness damaged on its disk and that was not repaired.
"""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.settled_state import lasting_processes, settled_at, settled_states
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.integers import Ints


@partition_check(
    "L6",
    "FullCopy",
    source="Kafka documentation, Replication",
    needs={Evidence.EVENTS, Evidence.FINAL_LOGS},
    premises={Premise.SETTLED, Premise.FINAL_REPLICAS},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    stopped = {node for at in settled_at(facts.cluster) for node, _ in lasting_processes(facts.cluster, at=at)}
    left_out = {*_cut_off(facts), *facts.damaged_from}
    for state in settled_states(facts):
        leader = facts.settled.get(state.topic_id)
        logs = {
            log.node: log
            for log in facts.final_logs
            if log.topic_id == state.topic_id and log.node in set(state.isr) & stopped - left_out
        }
        end = _read_up_to(facts, state.topic_id)
        if leader is None or leader.leader not in logs or end is None:
            continue
        start = max(log.log_start_offset for log in logs.values())
        copies = {node: _copy(facts, state.topic_id, node, (start, end)) for node in logs}
        for node, copy in copies.items():
            if not all(map(np.array_equal, copy, copies[leader.leader])):
                yield Finding(
                    logs[node].log_end_offset,
                    f"{facts}: the final log of broker {node}, which ends at {logs[node].log_end_offset}, is no copy "
                    f"of leader {leader.leader}'s, which ends at {logs[leader.leader].log_end_offset}",
                )


def _cut_off(facts: PartitionFacts) -> Iterator[int]:
    """Yields the brokers that appended nothing after they had truncated their logs; none if appends are not known."""
    if facts.cluster.is_seen_from_outside:
        return
    appended = facts.events.rows(events.BatchAppended)
    incarnations, sequences = appended["incarnation"], appended["sequence"]
    for truncated in facts.events.of(events.LogTruncated):
        is_later = (incarnations == truncated.incarnation) & (sequences > truncated.sequence)
        is_later |= incarnations > truncated.incarnation
        if not (is_later & appended.has("node", truncated.node)).any():
            yield truncated.node


def _read_up_to(facts: PartitionFacts, topic_id: str) -> int | None:
    """The high watermark that the last final consumer found."""
    ends = [read.end_offset for read in facts.final_reads if read.topic_id in (topic_id, None)]
    return next((end for end in reversed(ends) if end is not None), None)


def _copy(facts: PartitionFacts, topic_id: str, node: int, offsets: tuple[int, int]) -> tuple[Ints, ...]:
    batches, (start, end) = facts.final_batches, offsets
    is_own = batches.has("topic_id", topic_id) & batches.has("node", node)
    is_own &= (batches["last_offset"] >= start) & (batches["base_offset"] < end)
    return batches["base_offset"][is_own], batches["leader_epoch"][is_own], batches["crc"][is_own]
