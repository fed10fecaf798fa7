"""D7 LineageMatching: a leader epoch has one history, whichever log tells it."""

from collections.abc import Iterator

from emulator.core.events import BatchAppended
from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    first: dict[tuple[str, int, int], tuple[int, int]] = {}
    differing: dict[tuple[str, int, int], set[str]] = {}
    for appended in facts.events.of(BatchAppended):
        batch = appended.event
        key = (batch.topic_id, batch.leader_epoch, batch.base_offset)
        content = (batch.last_offset, batch.crc)
        if first.setdefault(key, content) != content:
            differing[key] = set()
    for appended in facts.events.of(BatchAppended) if differing else ():
        batch = appended.event
        told = differing.get((batch.topic_id, batch.leader_epoch, batch.base_offset))
        if told is not None:
            told.add(f"broker {appended.node} has one up to {batch.last_offset} with CRC {batch.crc}")
    for (_, leader_epoch, base_offset), told in differing.items():
        yield Finding(
            base_offset,
            f"{facts} offset {base_offset} of epoch {leader_epoch} is not one batch: {', '.join(sorted(told))}",
        )


CHECK = PartitionCheck(check_id="D7", name="LineageMatching", premises=frozenset({Premise.REPLICATED}), find=_find)
