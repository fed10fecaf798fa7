"""L1 Converge: once every fault is over, each broker has applied all metadata that was committed by then."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.settled_state import lasting_processes, settled_at
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "L1",
    "Converge",
    source="KIP-631; Kafka's BrokerMetadataPublisher",
    needs={Evidence.EVENTS},
    premises={Premise.OWN_WORD, Premise.SETTLED},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    for at in settled_at(cluster):
        for node, incarnation in lasting_processes(cluster, at=at):
            applied = cluster.last_applied.get(node)
            end_offset = 0 if applied is None or applied.incarnation != incarnation else applied.end_offset
            if end_offset < at:
                yield Finding(
                    at,
                    f"broker {node} stopped with metadata up to {end_offset}, though the cluster had settled with {at}",
                )
