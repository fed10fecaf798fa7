"""D2 LeaderCompleteness: a new leader has everything that leaders before it called committed."""

from collections.abc import Iterator

from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for topic_id, terms in facts.terms.items():
        unclean = [c.new.leader_epoch for c in facts.changes if c.is_unclean and c.new.topic_id == topic_id]
        for term in terms:
            for epoch, high_watermark in facts.committed.get(topic_id, {}).items():
                if epoch >= term.leader_epoch or high_watermark <= term.log_end_offset:
                    continue
                if not any(epoch < unclean_epoch <= term.leader_epoch for unclean_epoch in unclean):
                    yield Finding(
                        term.leader_epoch,
                        f"{facts}: broker {term.node} began to lead in epoch {term.leader_epoch} with a log that ended "
                        f"at {term.log_end_offset}, though the high watermark had been at {high_watermark} in epoch "
                        f"{epoch}",
                    )


CHECK = PartitionCheck(
    check_id="D2",
    name="LeaderCompleteness",
    source="Raft (Ongaro and Ousterhout 2014), Leader Completeness; KIP-101",
    needs=frozenset({Evidence.TOPIC_IDS}),
    premises=frozenset({Premise.LED_AFTER_COMMIT}),
    find=_find,
)
