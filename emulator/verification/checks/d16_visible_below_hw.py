"""D16 VisibleBelowHW: a consumer is given only what the broker that serves it calls committed."""

from collections.abc import Iterator

from emulator.core.events import BecameLeader, FollowerHighWatermarkUpdated, HighWatermarkAdvanced, LogOpened
from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts

_BEFORE_ALL = -1
"""Epoch of a high watermark that a log was opened with."""


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    served = {
        (batch.node, batch.served_epoch, batch.process, batch.base_offset, batch.last_offset)
        for batch in facts.received
        if batch.served_epoch is not None
    }
    high_watermarks = _high_watermarks(facts) if served else {}
    reached: dict[tuple[int, int], int] = {}
    for node, epoch, process, base_offset, last_offset in served:
        if (node, epoch) not in reached:
            told = high_watermarks.get(node, {})
            reached[node, epoch] = max((hw for of_epoch, hw in told.items() if of_epoch <= epoch), default=0)
        if last_offset >= reached[node, epoch]:
            yield Finding(
                base_offset,
                f"{facts} offset {base_offset}: broker {node} gave it to {process} in epoch {epoch} and never had a "
                f"high watermark above {reached[node, epoch]}",
            )


def _high_watermarks(facts: PartitionFacts) -> dict[int, dict[int, int]]:
    """By node and epoch, the highest that it ever had."""
    found: dict[int, dict[int, int]] = {}

    def note(node: int, leader_epoch: int, high_watermark: int) -> None:
        epochs = found.setdefault(node, {})
        epochs[leader_epoch] = max(epochs.get(leader_epoch, 0), high_watermark)

    for advanced in facts.events.of(HighWatermarkAdvanced):
        note(advanced.node, advanced.event.leader_epoch, advanced.event.new)
    for updated in facts.events.of(FollowerHighWatermarkUpdated):
        note(updated.node, updated.event.leader_epoch, updated.event.new)
    for led in facts.events.of(BecameLeader):
        note(led.node, led.event.leader_epoch, led.event.high_watermark)
    for opened in facts.events.of(LogOpened):
        note(opened.node, _BEFORE_ALL, opened.event.high_watermark)
    return found


CHECK = PartitionCheck(
    check_id="D16",
    name="VisibleBelowHW",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.CONSUMED_BY_EPOCH}),
    find=_find,
)
