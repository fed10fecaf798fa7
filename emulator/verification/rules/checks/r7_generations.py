"""R7 Generations: the generations of a group do not fall."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "R7",
    "Generations",
    source="KIP-62, Kafka documentation of the group protocol: generations of a group are numbered upwards",
    needs={Evidence.HISTORY},
    premises={Premise.ASSIGNED_TWICE},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    memberships = cluster.memberships
    ownerships = list(memberships.ownerships())
    for ownership in ownerships:
        line = ownership.assigned
        before = [
            each
            for each in ownerships
            if each.assigned.group_id == line.group_id and each.assigned.index < ownership.asked_at
        ]
        highest = max(before, key=lambda each: each.assigned.generation_id, default=None)
        if highest is None or highest.assigned.generation_id <= line.generation_id:
            continue
        if memberships.has_position(line.group_id, ownership.asked_at):
            yield Finding(
                line.index,
                f"{line.process} asked to join {line.group_id} and is in its generation {line.generation_id}, though "
                f"{highest.assigned.process} had been in generation {highest.assigned.generation_id} before that",
            )
