"""Z3 LastIsr: no high watermark passes a member of the last ISR of its leader epoch.

This keeps a deposed leader from acknowledging records, because its successor is such a member. No event orders an
append of one node and a move of another node's high watermark, so a finding needs a member whose log never reached that
offset. A killed member may have appended records without an event, and a replica that a reassignment removes may stay
behind (Z28).
"""

from collections.abc import Iterator, Mapping

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.matching import groups_of


@partition_check(
    "Z3",
    "LastIsr",
    source="KIP-497; Kafka's Partition with ZooKeeper",
    needs={Evidence.EVENTS, Evidence.FINAL_LOGS, Evidence.TOPIC_IDS},
    premises={Premise.HIGH_WATERMARK_MOVED, Premise.COMMITTED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    last_states = {(change.new.topic_id, change.new.leader_epoch): change.new for change in facts.changes}
    ends = _furthest_ends(facts)
    exempts = PROMISES["Z3"].leaves_out(Exemption.KILLED_PROCESSES)
    killed = {node for node, _ in facts.cluster.killed if exempts}
    moves = facts.events.rows(events.HighWatermarkAdvanced)
    for places in groups_of(moves["topic_id"], moves["leader_epoch"]):
        [moved] = moves.rows(places[[moves["new"][places].argmax()]])
        event = moved.event
        state = last_states.get((event.topic_id, event.leader_epoch))
        exemptions = dict.fromkeys(killed, Exemption.KILLED_PROCESSES)
        if state is not None and PROMISES["Z3"].leaves_out(Exemption.LEAVING_REPLICAS):
            exemptions |= dict.fromkeys(state.removing_replicas, Exemption.LEAVING_REPLICAS)
        for member in () if state is None else (each for each in state.isr if each in state.replicas):
            end = ends.get((event.topic_id, member), 0)
            if end < event.new:
                yield Finding(
                    event.new,
                    f"{facts}: broker {moved.node} moved its high watermark to {event.new} in epoch "
                    f"{event.leader_epoch}, and the log of broker {member}, a member of the last ISR of that epoch, "
                    f"never reached beyond {end}",
                    exempted_by=exemptions.get(member),
                )


def _furthest_ends(facts: PartitionFacts) -> Mapping[tuple[str, int], int]:
    """Returns the highest log end offset of each replica at any time, by topic id and broker."""
    ends: dict[tuple[str, int], int] = {}

    def note(topic_id: str | None, node: int, end: int) -> None:
        key = (topic_id or "", node)
        ends[key] = max(ends.get(key, 0), end)

    batches = facts.events.rows(events.BatchAppended)
    for places in groups_of(batches["topic_id"], batches["node"]):
        [furthest] = batches.rows(places[[batches["last_offset"][places].argmax()]])
        note(furthest.event.topic_id, furthest.node, furthest.event.last_offset + 1)
    for opened in facts.events.of(events.LogOpened):
        note(opened.event.topic_id, opened.node, opened.event.log_end_offset)
    for truncated in facts.events.of(events.LogTruncated):
        note(truncated.event.topic_id, truncated.node, truncated.event.new_end_offset)
    for log in facts.final_logs:
        note(log.topic_id, log.node, log.log_end_offset)
    return ends
