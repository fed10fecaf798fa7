"""Q3 ControllerCompleteness: an elected leader of the quorum has all metadata that was committed before."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Finding, Premise, cluster_check


@cluster_check(
    "Q3",
    "ControllerCompleteness",
    source="KIP-595; Raft, figure 3: leader completeness",
    premises={Premise.QUORUM, Premise.QUORUM_DISKS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    for forgotten in cluster.quorum.forgotten:
        elected, committed_in = forgotten.elected, forgotten.committed_in
        yield Finding(
            forgotten.begin,
            f"controller {elected.node} was elected in epoch {elected.event.quorum_epoch} with a metadata log that "
            f"ended at {forgotten.begin}, and metadata up to {forgotten.end} was committed in epoch {committed_in}",
        )
