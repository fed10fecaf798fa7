"""X8 CommittedPosition: the position of a group is one that it committed."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "X8",
    "CommittedPosition",
    source="KIP-98, TxnOffsetCommit; KIP-447",
    needs={Evidence.HISTORY},
    premises={Premise.POSITION_COMMITTED},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    for read in cluster.committed_positions.reads():
        operation = read.operation
        known = read.earlier | read.possible
        went_back = operation.committed == operation.position < max(read.earlier, default=-1)  # judged by X9
        if operation.committed is not None and operation.committed not in known and not went_back:
            yield Finding(
                operation.committed,
                f"the position of {operation.group_id} in {operation.topic}-{operation.partition} was "
                f"{operation.committed} for {operation.operation_id}, which it never committed",
            )
