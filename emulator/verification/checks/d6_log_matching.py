"""D6 LogMatching: replicas agree on everything that both call committed.

Each replica's final log is compared with one reference, the settled leader's (or, where there is none, the one with the
highest high watermark), below the lower of both high watermarks and from the higher of both log starts.
"""

from collections.abc import Iterator

import msgspec

from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.comparison import only_in_each
from emulator.verification.log_reader import FinalBatch
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.sentences import span

_Key = tuple[str, int]
"""Topic id and node."""


class _Replica(msgspec.Struct, frozen=True, kw_only=True):
    node: int
    log_start_offset: int
    high_watermark: int


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    replicas = _replicas(facts)
    batches: dict[_Key, list[FinalBatch]] = {}
    for batch in facts.final_batches if len(replicas) > 1 else ():
        batches.setdefault((batch.topic_id or "", batch.node), []).append(batch)
    for topic_id in sorted({topic_id for topic_id, _ in replicas}):
        settled = facts.settled.get(topic_id)
        leader = None if settled is None else settled.leader
        own = [replica for (own_id, _), replica in replicas.items() if own_id == topic_id]
        reference = max(own, key=lambda r: (r.node == leader, r.high_watermark, r.node))
        for replica in own:
            if replica is reference:
                continue
            below = min(replica.high_watermark, reference.high_watermark)
            above = max(replica.log_start_offset, reference.log_start_offset)
            held = [_within(batches.get((topic_id, each.node), []), above, below) for each in (replica, reference)]
            only_in_replica, only_in_reference = only_in_each(*held)
            for node, other, only in (
                (replica.node, reference.node, only_in_replica),
                (reference.node, replica.node, only_in_reference),
            ):
                for base_offset, last_offset, leader_epoch, crc, _ in only:
                    yield Finding(
                        base_offset,
                        f"{facts} {span(base_offset, last_offset)}: broker {node} has a batch of epoch {leader_epoch} "
                        f"with CRC {crc} below the common high watermark that broker {other} does not have there",
                    )


def _within(batches: list[FinalBatch], above: int, below: int) -> list[tuple[int, int, int, int, int]]:
    return [
        (b.base_offset, b.last_offset, b.leader_epoch, b.crc, b.record_count)
        for b in batches
        if above <= b.base_offset and b.last_offset < below
    ]


def _replicas(facts: PartitionFacts) -> dict[_Key, _Replica]:
    found: dict[_Key, _Replica] = {}
    for log in facts.final_logs:
        state = facts.states.get(log.topic_id or "")
        if state is not None and log.node in state.replicas:
            high_watermark = facts.last_high_watermarks.get((state.topic_id, log.node), 0)
            found[state.topic_id, log.node] = _Replica(
                node=log.node,
                log_start_offset=log.log_start_offset,
                high_watermark=min(high_watermark, log.log_end_offset),
            )
    return found


CHECK = PartitionCheck(check_id="D6", name="LogMatching", premises=frozenset({Premise.FINAL_REPLICAS}), find=_find)
