"""Q6 EpochsRise: neither the epoch of a controller's disk nor the high watermark of its process ever falls.

Nor is a log truncated below what its process knew to be committed.
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Finding, Premise, cluster_check
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.timeline import CollectedEvent

_Evidence = (
    events.QuorumVoteGranted
    | events.QuorumLeaderElected
    | events.QuorumLeaderFollowed
    | events.MetadataCommittedUpTo
    | events.MetadataTruncated
)


@cluster_check("Q6", "EpochsRise", source='KIP-595, "Leader Progress"', premises={Premise.QUORUM})
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    epochs: dict[tuple[int, str | None], int] = {}
    said: list[CollectedEvent[_Evidence]] = [
        *cluster.events.of(events.QuorumVoteGranted),
        *cluster.events.of(events.QuorumLeaderElected),
        *cluster.events.of(events.QuorumLeaderFollowed),
        *cluster.events.of(events.MetadataCommittedUpTo),
        *cluster.events.of(events.MetadataTruncated),
    ]
    for each in sorted(said, key=place_of):
        disk, epoch = (each.node, each.event.directory_id), each.event.quorum_epoch
        if epoch < epochs.get(disk, 0):
            yield Finding(epoch, f"controller {each.node} fell from epoch {epochs[disk]} of the quorum to {epoch}")
        epochs[disk] = max(epochs.get(disk, 0), epoch)
    exposed: dict[tuple[int, int], int] = {}
    moves: list[CollectedEvent[events.MetadataCommittedUpTo | events.MetadataTruncated]] = [
        *cluster.events.of(events.MetadataCommittedUpTo),
        *cluster.events.of(events.MetadataTruncated),
    ]
    for moved in sorted(moves, key=place_of):
        process = (moved.node, moved.incarnation)
        if isinstance(moved.event, events.MetadataTruncated):
            if moved.event.new_end_offset < exposed.get(process, 0):
                yield Finding(
                    moved.event.new_end_offset,
                    f"controller {moved.node} cut its log at {moved.event.new_end_offset}, and knew it to be committed "
                    f"up to {exposed[process]}",
                )
            continue
        end = moved.event.high_watermark
        if end < exposed.get(process, 0):
            yield Finding(
                end, f"what controller {moved.node} knows to be committed fell from {exposed[process]} to {end}"
            )
        exposed[process] = end
