"""H1 HWRule: a high watermark never passes the log end offset of a member of the maximal ISR (KIP-497).

A log end from before the leader's term does not count: the member may have truncated for another leader since.
"""

from collections.abc import Iterator

from laststand.emulator.core.events import BecameFollower, BecameLeader, HighWatermarkAdvanced, LogOpened
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.high_watermark import Terms, high_watermark_bounds
from laststand.emulator.verification.tables.events import place_of


@partition_check(
    "H1", "HWRule", source="KIP-497; Kafka's Partition.maybeIncrementLeaderHW", premises={Premise.HIGH_WATERMARK_MOVED}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    moves = facts.events.rows(HighWatermarkAdvanced)
    term_starts = _terms(facts).starts_of(moves)
    bounds = high_watermark_bounds(moves, term_starts)
    is_past = moves["new"] > bounds
    for advanced, bound, start in zip(
        moves.rows(is_past), bounds[is_past].tolist(), term_starts[is_past].tolist(), strict=True
    ):
        event = advanced.event
        problem = (
            f"past {bound}, the least log end in its maximal ISR"
            if bound >= 0
            else f"by a log end in its maximal ISR of an epoch before {start}, in which its term began"
        )
        yield Finding(
            event.new,
            f"{facts}: broker {advanced.node} in epoch {event.leader_epoch} moved its high watermark to {event.new}, "
            f"{problem}",
        )


def _terms(facts: PartitionFacts) -> Terms:
    events = facts.events
    roles = [*events.of(BecameFollower), *events.of(BecameLeader), *events.of(LogOpened)]
    ends_with_jumps = {
        process: started.event.switches.get("progress_of_this_term") == "on"
        for process, started in facts.cluster.started.items()
    }
    return Terms(sorted(roles, key=place_of), ends_with_jumps=ends_with_jumps)
