"""X1 NoAbortedRecord: a read_committed consumer receives no record of an aborted transaction."""

from collections.abc import Iterator

from laststand.emulator.core.history import CommittedReadOperation, GroupReadOperation
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "X1",
    "NoAbortedRecord",
    source="KIP-98, Transactional Guarantees; G1a of Adya, Liskov and O'Neil 2000",
    needs={Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.TRANSACTION, Premise.READ_COMMITTED},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    aborted: dict[int, str] = {}
    for transaction in facts.sent():
        ends = facts.ends_of(transaction)
        if transaction.is_aborted:
            why = "as its producer was told" if transaction.operation.error is None else "which was not committed"
        elif End.ABORT in ends:
            why = f"which is aborted in {ends[End.ABORT]}"
        else:
            continue
        name = transaction.operation.operation_id
        aborted.update({each.crc: f"{name}, {why}" for send in transaction.sends for each in send.crcs})
    reads: list[CommittedReadOperation | GroupReadOperation]
    reads = [*facts.reads, *facts.group_reads, *cluster.memberships.reads]
    for read in reads:
        for batch in read.batches:
            if batch.crc in aborted:
                where = f"{read.topic}-{read.partition} offset {batch.base_offset}"
                yield Finding(
                    batch.base_offset, f"{read.process} was given {where}, a record of aborted {aborted[batch.crc]}"
                )
