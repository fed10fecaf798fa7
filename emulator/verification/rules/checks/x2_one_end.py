"""X2 OneEnd: a transaction is committed in all of its partitions, or aborted in all of them."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "X2",
    "OneEnd",
    source="KIP-98, Transactional Guarantees: atomic writes to several partitions",
    needs={Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.TRANSACTION, Premise.SETTLED_RECORDS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    for position, transaction in enumerate(facts.sent()):
        ends = facts.ends_of(transaction)
        if len(ends) > 1:
            name = transaction.operation.operation_id
            yield Finding(position, f"{name} is committed in {ends[End.COMMIT]} and aborted in {ends[End.ABORT]}")
