"""C5 GroupPosition: a position that a coordinator said is committed does not go back by itself."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.answered_positions import positions_after_commits
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "C5",
    "GroupPosition",
    source="Kafka documentation, Consumer Position: committed offsets are stored as records of __consumer_offsets",
    needs={Evidence.HISTORY},
    premises={Premise.POSITION_KEPT},
    is_of_clients=True,
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    for number, (commit, given, _) in enumerate(each for each in positions_after_commits(cluster) if each.is_behind):
        offset = "none" if given.offset is None else given.offset
        yield Finding(
            number,
            f"broker {commit.node} told {commit.process} that group {commit.group_id} has committed offset "
            f"{commit.offset} of {commit.topic}-{commit.partition}; later broker {given.node} gave {given.process} "
            f"{offset}",
        )
