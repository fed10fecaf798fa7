"""X5 TransactionsEnd: a transaction whose end was acknowledged has a marker in every partition."""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core.history import OperationType
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check

_END: Final = {"commit": "committed", "abort": "aborted"}


@cluster_check(
    "X5",
    "TransactionsEnd",
    source="KIP-664: hanging transactions; KAFKA-20716",
    needs={Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.TRANSACTION, Premise.SETTLED, Premise.SETTLED_RECORDS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    for transaction in facts.sent():
        operation = transaction.operation
        for send in transaction.sends if operation.type is OperationType.OK else ():
            without_end = [copy for copy in facts.copies_of(send) or () if copy.end is End.NONE]
            if without_end:
                why = facts.markers.missing_end(f"{send.topic}-{send.partition}", without_end[0].producer)
                place = "" if send.base_offset is None else f" offset {send.base_offset}"
                where = f"{send.topic}-{send.partition}{place}"
                yield Finding(
                    send.base_offset or 0,
                    f"{where}, of {operation.operation_id}, has no end, though its producer was told that it is "
                    f"{_END[operation.result]}: readers of committed records stop there"
                    f"{'' if why is None else f' ({why})'}",
                )
