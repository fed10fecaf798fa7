"""R8 SingleOwner: two members of one generation never own one partition."""

from collections.abc import Iterator
from itertools import combinations

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "R8",
    "SingleOwner",
    source="KIP-62, Kafka documentation of the group protocol: a partition is assigned to one member of a group",
    needs={Evidence.HISTORY},
    premises={Premise.ASSIGNED_TWICE},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    for one, other in combinations(cluster.memberships.ownerships(), 2):
        first, second = one.assigned, other.assigned
        generation = (first.group_id, first.generation_id)
        if generation != (second.group_id, second.generation_id) or one.owner == other.owner or not one.meets(other):
            continue
        for name in first.partitions:
            if name in second.partitions:
                yield Finding(
                    second.index,
                    f"{first.process} and {second.process} own {name} at the same time, both in generation "
                    f"{first.generation_id} of {first.group_id}",
                )
