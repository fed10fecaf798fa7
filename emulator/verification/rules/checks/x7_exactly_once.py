"""X7 ExactlyOnce: a record that a group reads in transactions is read in exactly one committed transaction."""

from collections import defaultdict
from collections.abc import Iterator

from laststand.emulator.core.history import GroupReadOperation
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.group_positions import GroupSource, group_source, outside_transactions
from laststand.emulator.verification.facts.transactions import End, SentTransaction, TransactionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "X7",
    "ExactlyOnce",
    source="KIP-98, consume-transform-produce; KIP-447",
    needs={Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.TRANSACTION, Premise.READ_IN_TRANSACTION},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    skips_deleted_topics = PROMISES["X7"].leaves_out(Exemption.DELETED_TOPICS)
    skips_deleted = PROMISES["X7"].leaves_out(Exemption.DELETED_RECORDS)
    reads: dict[GroupSource, list[GroupReadOperation]] = defaultdict(list)
    for transaction in facts.sent():
        if _is_committed(facts, transaction):
            for read in transaction.reads:
                reads[group_source(read)].append(read)
    outside: dict[GroupSource, list[GroupReadOperation]] = defaultdict(list)
    for read in outside_transactions(facts, cluster.memberships):
        outside[group_source(read)].append(read)
    for source, found in reads.items():
        group, topic, partition, topic_id = source
        if skips_deleted_topics and topic_id in cluster.deleted_topics:
            continue
        found.sort(key=lambda read: read.position)
        by_offset: dict[int, str] = {}
        for read in found:
            for batch in read.batches:
                for offset in range(batch.base_offset, batch.base_offset + batch.record_count):
                    first = by_offset.setdefault(offset, read.operation_id)
                    if first != read.operation_id:
                        yield Finding(
                            offset,
                            f"{topic}-{partition} offset {offset} was read for {group} in {first} and in "
                            f"{read.operation_id}, and both are committed",
                        )
        passed = max(found[0].position, facts.deleted_below(found[0]) if skips_deleted else 0)
        for read in found:
            for offset in facts.acked_offsets(read, passed, read.position):
                if any(each.position <= offset < each.next_position for each in outside[source]):
                    continue
                yield Finding(
                    offset,
                    f"{topic}-{partition} offset {offset} was read for {group} in no committed transaction, and "
                    f"{read.operation_id}, which is committed, began behind it",
                )
            passed = max(passed, read.next_position)


def _is_committed(facts: TransactionFacts, transaction: SentTransaction) -> bool:
    return transaction.is_committed or End.COMMIT in facts.ends_of(transaction)
