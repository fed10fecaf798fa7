"""L2 Unfence: once every fault is over, each broker is unfenced."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.settled_state import lasting_processes, settled_at
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "L2", "Unfence", source="KIP-631, fencing by heartbeats", needs={Evidence.EVENTS}, premises={Premise.SETTLED}
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    for at in settled_at(cluster):
        for node, _ in lasting_processes(cluster, at=at):
            if not cluster.is_active(node, at - 0.5):
                yield Finding(
                    at, f"broker {node} is not active by metadata up to {at}, with which the cluster had settled"
                )
