"""D6 LogMatching: two replicas have the same batches below both of their high watermarks.

Each replica's final log is compared with one reference, the settled leader's log (without a settled leader, the log
with the highest high watermark), below the lower of both high watermarks and from the higher of both log starts.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import span
from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.comparison import only_in_each
from laststand.emulator.verification.tables.final_logs import FinalBatch

_Key = tuple[str, int]
"""Topic id and node."""

_CONTENT: Final = ("base_offset", "last_offset", "leader_epoch", "crc", "record_count")
"""The fields on which two replicas must agree."""


class _Replica(msgspec.Struct, frozen=True, kw_only=True):
    node: int
    log_start_offset: int
    high_watermark: int


@partition_check(
    "D6",
    "LogMatching",
    source="Raft (Ongaro and Ousterhout 2014), State Machine Safety",
    premises={Premise.FINAL_REPLICAS},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    replicas = _replicas(facts)
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
            held = [_within(facts, topic_id, each.node, above, below) for each in (replica, reference)]
            differing = only_in_each(*([each[name] for name in _CONTENT] for each in held))
            for batches, places, other in zip(held, differing, (reference, replica), strict=True):
                for batch in dict.fromkeys(batches.rows(places)):
                    yield Finding(
                        batch.base_offset,
                        f"{facts} {span(batch.base_offset, batch.last_offset)}: broker {batch.node} has a batch of "
                        f"epoch {batch.leader_epoch} with CRC {batch.crc} below the common high watermark that broker "
                        f"{other.node} does not have there",
                    )


def _within(facts: PartitionFacts, topic_id: str, node: int, above: int, below: int) -> Table[FinalBatch]:
    batches = facts.final_batches
    is_within = (batches["base_offset"] >= above) & (batches["last_offset"] < below)
    return batches.only(batches.has("topic_id", topic_id) & batches.has("node", node) & is_within)


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
