"""D5 ConsumedStable: what a consumer was given stays in the log."""

from collections.abc import Iterator

from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.sentences import span


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    on_leader = {(batch.topic_id, batch.last_offset, batch.crc) for batch in facts.settled_batches}
    for batch in facts.consumed:
        topic_id = batch.topic_id
        if topic_id is None or topic_id in facts.cluster.deleted_topics:
            continue
        if batch.last_offset < facts.deleted_below.get(topic_id, 0):
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


CHECK = PartitionCheck(check_id="D5", name="ConsumedStable", premises=frozenset({Premise.CONSUMED}), find=_find)
