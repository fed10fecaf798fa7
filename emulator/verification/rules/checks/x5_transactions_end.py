"""X5 TransactionsEnd: a transaction whose producer was told its end has one in every partition."""

from collections.abc import Iterator

from laststand.emulator.core.history import OperationType
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End
from laststand.emulator.verification.rules.check import ClusterCheck, Evidence, Finding, Premise


def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    for transaction in facts.sent():
        operation = transaction.operation
        for send in transaction.sends if operation.type is OperationType.OK else ():
            if any(copy.end is End.NONE for copy in facts.copies_of(send) or ()):
                where = f"{send.topic}-{send.partition} offset {send.base_offset}"
                yield Finding(
                    send.base_offset or 0,
                    f"{where}, of {operation.operation_id}, has no end, though its producer was told of a "
                    f"{operation.result}: readers of committed records stop there",
                )


CHECK = ClusterCheck(
    check_id="X5",
    name="TransactionsEnd",
    source="KIP-664: hanging transactions; KAFKA-20716",
    needs=frozenset({Evidence.HISTORY, Evidence.FINAL_LOGS}),
    premises=frozenset({Premise.TRANSACTION, Premise.SETTLED, Premise.SETTLED_RECORDS}),
    find=_find,
)
