"""Q4 StateMachineSafety: two controllers never know different committed records at one offset."""

from collections.abc import Iterator
from itertools import combinations

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "Q4",
    "StateMachineSafety",
    source="KIP-595; Raft, figure 3",
    needs={Evidence.FINAL_LOGS},
    premises={Premise.VOTERS_LOGS, Premise.QUORUM_DISKS, Premise.OWN_WORD},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    quorum = cluster.quorum
    for (node, log), (other, theirs) in combinations(sorted(quorum.logs.items()), 2):
        end = min(quorum.known_end(node), quorum.known_end(other))
        mine = {batch.base_offset: batch for batch in log.batches if batch.end_offset <= end}
        others = {batch.base_offset: batch for batch in theirs.batches if batch.end_offset <= end}
        differing = [offset for offset in mine.keys() | others.keys() if mine.get(offset) != others.get(offset)]
        if differing:
            yield Finding(
                min(differing),
                f"controllers {node} and {other} both know metadata up to {end} to be committed, and their logs differ "
                f"at offset {min(differing)}",
            )
