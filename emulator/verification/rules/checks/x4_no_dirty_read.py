"""X4 NoDirtyRead: a read_committed consumer receives no record of a transaction that is still being written."""

from collections.abc import Iterator

from laststand.emulator.core.history import CommittedReadOperation, GroupReadOperation
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import SentTransaction
from laststand.emulator.verification.rules.check import ClusterCheck, Evidence, Finding, Premise
from laststand.emulator.verification.tables.client_history import SentBatch


def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    written: dict[int, tuple[SentTransaction, SentBatch]] = {}
    for transaction in facts.sent():
        if transaction.sends:
            last = max(transaction.sends, key=lambda send: send.ended_ns)
            written.update({each.crc: (transaction, last) for send in transaction.sends for each in send.crcs})
    reads: list[CommittedReadOperation | GroupReadOperation]
    reads = [*facts.reads, *facts.group_reads, *cluster.memberships.reads]
    for read in reads:
        for batch in read.batches:
            if batch.crc not in written:
                continue
            transaction, last = written[batch.crc]
            if read.time_ns < last.ended_ns:
                where = f"{read.topic}-{read.partition} offset {batch.base_offset}"
                yield Finding(
                    batch.base_offset,
                    f"{read.process} was given {where}, of {transaction.operation.operation_id}, before "
                    f"{last.operation_id} of that transaction had an outcome",
                )


CHECK = ClusterCheck(
    check_id="X4",
    name="NoDirtyRead",
    source="KIP-98, Transactional Guarantees; G1b of Adya, Liskov and O'Neil 2000",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.TRANSACTION, Premise.READ_COMMITTED}),
    find=_find,
)
