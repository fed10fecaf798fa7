"""H1 HWRule: a high watermark never passes what every member of the maximal ISR has (KIP-497)."""

from collections.abc import Iterator

from emulator.core.events import HighWatermarkAdvanced
from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.high_watermark import high_watermark_bounds
from emulator.verification.partition_facts import PartitionFacts


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    moves = facts.events.rows(HighWatermarkAdvanced)
    bounds = high_watermark_bounds(moves)
    is_past = moves["new"] > bounds
    for advanced, bound in zip(moves.rows(is_past), bounds[is_past].tolist(), strict=True):
        event = advanced.event
        yield Finding(
            event.new,
            f"{facts}: broker {advanced.node} in epoch {event.leader_epoch} moved its high watermark to {event.new}, "
            f"past {bound}, the least log end in its maximal ISR",
        )


CHECK = PartitionCheck(check_id="H1", name="HWRule", premises=frozenset({Premise.HIGH_WATERMARK_MOVED}), find=_find)
