"""D2 LeaderCompleteness: a new leader has all records that leaders before it committed.

A broker that is restarted and leads again in its own epoch is a new leader, too: its former process led before it.
"""

from collections.abc import Iterator

from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, LostCommit, Premise, partition_check


@partition_check(
    "D2",
    "LeaderCompleteness",
    source="Raft (Ongaro and Ousterhout 2014), Leader Completeness; KIP-101",
    needs={Evidence.TOPIC_IDS},
    premises={Premise.LED_AFTER_COMMIT},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    exempts = PROMISES["D2"].leaves_out(Exemption.UNCLEAN_ELECTIONS)
    for topic_id, terms in facts.terms.items():
        unclean = [c.new.leader_epoch for c in facts.changes if exempts and c.is_unclean and c.new.topic_id == topic_id]
        for term in terms:
            before: dict[int, int] = {}
            for place, high_watermark in facts.committed.get(topic_id, {}).items():
                if place < term.place:
                    before[place.leader_epoch] = max(high_watermark, before.get(place.leader_epoch, 0))
            for epoch, high_watermark in before.items():
                if high_watermark <= term.log_end_offset:
                    continue
                is_exempt = any(epoch < unclean_epoch <= term.leader_epoch for unclean_epoch in unclean)
                yield Finding(
                    term.leader_epoch,
                    f"{facts}: broker {term.node} {'led again' if epoch == term.leader_epoch else 'began to lead'} "
                    f"in epoch {term.leader_epoch} with a log that ended at {term.log_end_offset}, though the high "
                    f"watermark had been at {high_watermark} in epoch {epoch}",
                    LostCommit(
                        topic_id,
                        facts.committed_at(topic_id, term.log_end_offset, since_epoch=epoch),
                        term.leader_epoch,
                        term.unelected_at,
                    ),
                    exempted_by=Exemption.UNCLEAN_ELECTIONS if is_exempt else None,
                )
