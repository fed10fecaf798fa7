"""D5 ConsumedStable: what a consumer was given stays in the log."""

from collections.abc import Iterator

import numpy as np

from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.columns import NONE, Mask
from emulator.verification.matching import are_among
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.sentences import span


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    received, is_suspect = facts.received, ~_are_stable(facts)
    settled_batches = facts.settled_batches
    on_leader = {
        (batch.topic_id, batch.last_offset, batch.crc)
        for batch in settled_batches.rows(np.isin(settled_batches["last_offset"], received["last_offset"][is_suspect]))
    }
    for batch in facts.consumed(is_suspect):
        topic_id = batch.topic_id
        if topic_id is None or topic_id in facts.cluster.deleted_topics:
            continue
        if facts.is_deleted(topic_id, batch.last_offset, crc=batch.crc, leader_epoch=batch.leader_epoch):
            continue
        settled = facts.settled.get(topic_id)
        lacking = (
            None
            if batch.served_epoch is None
            else facts.first_lacking(
                topic_id, after_epoch=max(batch.served_epoch, batch.leader_epoch), last_offset=batch.last_offset
            )
        )
        if lacking is not None:
            problem = (
                f"broker {lacking.node} was elected in epoch {lacking.leader_epoch} with a log that ended at "
                f"{lacking.log_end_offset}"
            )
        elif settled is not None and (topic_id, batch.last_offset, batch.crc) not in on_leader:
            problem = f"not in the final log of leader {settled.leader}"
        else:
            continue
        yield Finding(
            batch.base_offset,
            f"{facts} {span(batch.base_offset, batch.last_offset)} of epoch {batch.leader_epoch}, given to "
            f"{batch.process}: {problem}",
        )


def _are_stable(facts: PartitionFacts) -> Mask:
    """Which batches are on their settled leader and were on every leader since: nearly all."""
    received, settled = facts.received, facts.settled_batches
    topics, last_offsets = facts.topics(received), received["last_offset"]
    unnamed = received.has("topic_id", None) | received.has("topic_id", "")
    topics = np.where(unnamed, facts.topic_number(max(facts.states, default=None)), topics)
    served = received["served_epoch"]
    after = np.where(served == NONE, NONE, np.maximum(served, received["leader_epoch"]))
    on_leader = are_among(
        [topics, last_offsets, received["crc"]], [facts.topics(settled), settled["last_offset"], settled["crc"]]
    )
    return on_leader & ~facts.are_lacking(topics=topics, after_epochs=after, last_offsets=last_offsets)


CHECK = PartitionCheck(
    check_id="D5",
    name="ConsumedStable",
    source="Kafka documentation, Replication: only committed messages are given out to the consumer",
    premises=frozenset({Premise.CONSUMED}),
    find=_find,
)
