"""Q2 MetadataLogMatching: two metadata logs with a record of one offset and epoch are equal up to that record."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.quorum import LoggedBatch
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "Q2",
    "MetadataLogMatching",
    source="KIP-595; Raft, figure 3",
    needs={Evidence.FINAL_LOGS},
    premises={Premise.VOTERS_LOGS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    logs = sorted(cluster.quorum.logs.items())
    for node, log in logs:
        for before, after in pairwise(log.batches):
            if after.leader_epoch < before.leader_epoch:
                yield Finding(
                    after.base_offset,
                    f"the metadata log of controller {node} falls from epoch {before.leader_epoch} to "
                    f"{after.leader_epoch} at offset {after.base_offset}",
                )
    for (node, log), (other, theirs) in combinations(logs, 2):
        differing = _differing(log.batches, theirs.batches)
        if differing is not None:
            yield Finding(
                differing,
                f"the metadata logs of controllers {node} and {other} differ at offset {differing}, and agree in "
                "offset and epoch of a record after it",
            )


def _differing(first: Sequence[LoggedBatch], second: Sequence[LoggedBatch]) -> int | None:
    others = {batch.base_offset: batch for batch in second}
    must_agree = False
    for batch in reversed(first):
        other = others.get(batch.base_offset)
        if other is None:
            if must_agree:
                return batch.base_offset
            continue
        must_agree = must_agree or other.leader_epoch == batch.leader_epoch
        if must_agree and other != batch:
            return batch.base_offset
    return None
