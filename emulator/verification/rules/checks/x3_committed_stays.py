"""X3 CommittedStays: an acknowledged batch of a committed transaction can be read, exactly once."""

from collections.abc import Iterator

from laststand.emulator.core.history import OperationType
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End, StoredBatch
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "X3",
    "CommittedStays",
    source="KIP-98, Transactional Guarantees; Jepsen's Kafka workload, lost-write",
    needs={Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.TRANSACTION_COMMITTED, Premise.SETTLED_RECORDS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    skips_deleted_topics = PROMISES["X3"].leaves_out(Exemption.DELETED_TOPICS)
    skips_deleted = PROMISES["X3"].leaves_out(Exemption.DELETED_RECORDS)
    for transaction in facts.sent():
        for send in transaction.sends if transaction.is_committed else ():
            copies = facts.copies_of(send)
            if copies is None or send.type is not OperationType.OK or send.base_offset is None:
                continue
            is_of_deleted_topic = skips_deleted_topics and send.topic_id in cluster.deleted_topics
            if not copies and (is_of_deleted_topic or (skips_deleted and facts.are_deleted(send))):
                continue
            if [copy.copies for copy in copies if copy.end is End.COMMIT] != [1]:
                where = f"{send.topic}-{send.partition} offset {send.base_offset}"
                origin = (
                    f"acknowledged in {transaction.operation.operation_id}, which its producer was told is committed"
                )
                yield Finding(send.base_offset, f"{where}, {origin}, is {_fate(copies)}")


def _fate(copies: list[StoredBatch]) -> str:
    if not copies:
        return "not in the log"
    return " and ".join(f"in the log {_times(copy.copies)}, {copy.end.value}" for copy in copies)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
