"""Q1 ElectionSafety: a quorum epoch has one leader, which all controllers follow, and each voter votes once in it."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import Finding, Premise, cluster_check


@cluster_check("Q1", "ElectionSafety", source="KIP-595; Raft, figure 3", premises={Premise.QUORUM})
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    leaders: dict[int, set[int]] = {}
    for elected in cluster.events.of(events.QuorumLeaderElected):
        leaders.setdefault(elected.event.quorum_epoch, set()).add(elected.node)
    for followed in cluster.events.of(events.QuorumLeaderFollowed):
        leaders.setdefault(followed.event.quorum_epoch, set()).add(followed.event.leader)
    for epoch, nodes in sorted(leaders.items()):
        if len(nodes) > 1:
            names = " and ".join(map(str, sorted(nodes)))
            yield Finding(epoch, f"controllers {names} both were leader of the quorum in epoch {epoch}")
    votes: dict[tuple[int, int, str | None], set[tuple[int, str | None]]] = {}
    for voted in cluster.events.of(events.QuorumVoteGranted):
        event = voted.event
        voter = (event.quorum_epoch, voted.node, event.directory_id)
        votes.setdefault(voter, set()).add((event.candidate, event.candidate_directory_id))
    for (epoch, node, _), candidates in sorted(votes.items(), key=lambda each: each[0][:2]):
        if len(candidates) > 1:
            names = " and for ".join(str(candidate) for candidate, _ in sorted(candidates, key=str))
            yield Finding(epoch, f"controller {node} voted for {names} in epoch {epoch} of the quorum")
