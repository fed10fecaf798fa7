"""D16 VisibleBelowHW: a consumer is given only what the broker that serves it calls committed."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, PartitionCheck, Premise
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.matching import groups_of

_BEFORE_ALL = -1
"""Epoch of a high watermark that a log was opened with."""


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    served = facts.received.only(facts.received["served_epoch"] != NONE)
    high_watermarks = _high_watermarks(facts) if len(served) else {}
    for places in groups_of(served["node"], served["served_epoch"]):
        node, epoch = int(served["node"][places[0]]), int(served["served_epoch"][places[0]])
        by_epoch = high_watermarks.get(node, {})
        reached = max((hw for of_epoch, hw in by_epoch.items() if of_epoch <= epoch), default=0)
        early = served.rows(places[served["last_offset"][places] >= reached])
        for process, base_offset, _ in {(batch.process, batch.base_offset, batch.last_offset) for batch in early}:
            yield Finding(
                base_offset,
                f"{facts} offset {base_offset}: broker {node} gave it to {process} in epoch {epoch} and never had a "
                f"high watermark above {reached}",
            )


def _high_watermarks(facts: PartitionFacts) -> dict[int, dict[int, int]]:
    """Returns the highest high watermark by node and epoch."""
    found: dict[int, dict[int, int]] = {}

    def note(node: int, leader_epoch: int, high_watermark: int) -> None:
        epochs = found.setdefault(node, {})
        epochs[leader_epoch] = max(epochs.get(leader_epoch, 0), high_watermark)

    for moves in (
        facts.events.rows(events.HighWatermarkAdvanced),
        facts.events.rows(events.FollowerHighWatermarkUpdated),
    ):
        nodes, epochs = moves["node"], moves["leader_epoch"]
        for places in groups_of(nodes, epochs):
            note(int(nodes[places[0]]), int(epochs[places[0]]), int(moves["new"][places].max()))
    for led in facts.events.of(events.BecameLeader):
        note(led.node, led.event.leader_epoch, led.event.high_watermark)
    for opened in facts.events.of(events.LogOpened):
        note(opened.node, _BEFORE_ALL, opened.event.high_watermark)
    return found


CHECK = PartitionCheck(
    check_id="D16",
    name="VisibleBelowHW",
    source="Kafka documentation, Replication; KIP-392 for followers that serve",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.OWN_WORD, Premise.CONSUMED_BY_EPOCH}),
    find=_find,
)
