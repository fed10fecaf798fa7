"""Stories of the quorum (docs/quorum.md), each with the rule that prevents it and without."""

import msgspec
import pytest

from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.channels import Link
from laststand.emulator.simulator.quorum.oracle import QuorumCheck, QuorumOracle
from tests.simulation.quorum.cluster import QuorumCluster

_ALL = QuorumRules()


def _cluster(rules: QuorumRules, *, spares: int = 0) -> tuple[QuorumCluster, QuorumOracle]:
    oracle = QuorumOracle()
    cluster = QuorumCluster(voters=3, spares=spares, rules=rules, seed=1, observer=oracle)
    oracle.members, oracle.formatted = cluster.members, cluster.formatted
    assert cluster.run_until(lambda: _has_committed(cluster), within_ms=20_000)
    return cluster, oracle


def _has_committed(cluster: QuorumCluster) -> bool:
    return bool(cluster.leaders) and cluster.leaders[-1].applied_end_offset > 0


def _leader(cluster: QuorumCluster) -> NodeId:
    return cluster.leaders[-1].node_id


def _others(cluster: QuorumCluster, *node_ids: NodeId) -> list[NodeId]:
    return [node_id for node_id in cluster.members if node_id not in node_ids]


def _isolate(cluster: QuorumCluster, node_id: NodeId) -> None:
    for other in _others(cluster, node_id):
        cluster.cut(node_id, other)
        cluster.cut(other, node_id)


@pytest.mark.parametrize("pre_vote", [True, False])
def test_a_voter_that_hears_nobody_leaves_the_leader_alone(*, pre_vote: bool) -> None:
    """Q20: a voter whose fetches get no answer raises the epoch again and again, unless it asks before."""
    cluster, _ = _cluster(msgspec.structs.replace(_ALL, pre_vote=pre_vote))
    leader = _leader(cluster)
    epoch = cluster.members[leader].leader_epoch
    lonely = _others(cluster, leader)[0]
    for other in _others(cluster, lonely):
        cluster.network.losing.add(Link(lonely, other))
        cluster.cut(other, lonely)

    cluster.run(30_000)

    is_undisturbed = cluster.members[leader].leads and cluster.members[leader].leader_epoch == epoch
    assert is_undisturbed is pre_vote


@pytest.mark.parametrize("check_quorum", [True, False])
def test_a_leader_that_is_cut_off_resigns(*, check_quorum: bool) -> None:
    """Q10: a leader from which nobody fetches answers without end before Kafka 3.7."""
    cluster, _ = _cluster(msgspec.structs.replace(_ALL, check_quorum=check_quorum))
    leader = _leader(cluster)
    _isolate(cluster, leader)

    cluster.run(3_001)
    assert cluster.members[leader].leads is not check_quorum

    cluster.run(10_000)
    assert _leader(cluster) != leader


@pytest.mark.parametrize("directory_ids", [True, False])
def test_a_voter_that_comes_back_with_an_empty_disk(*, directory_ids: bool) -> None:
    """Q03: with static voters an empty disk votes for a log that lacks what was committed."""
    cluster, oracle = _cluster(msgspec.structs.replace(_ALL, directory_ids=directory_ids))
    leader = _leader(cluster)
    follower, lagging = _others(cluster, leader)
    cluster.kill(lagging)
    cluster.propose(cluster.members[leader])
    cluster.run(2_000)
    committed = cluster.members[leader].applied_end_offset

    cluster.kill(leader)
    cluster.replace_disk(follower)
    cluster.start(follower)
    cluster.start(lagging)
    cluster.run(20_000)

    assert bool(cluster.leaders) is not directory_ids
    has_forgotten = QuorumCheck.LEADER_COMPLETENESS in {finding.check for finding in oracle.findings}
    assert has_forgotten is not directory_ids
    cluster.start(leader)
    cluster.run(20_000)
    assert (cluster.leaders[-1].applied_end_offset > committed) is directory_ids


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_follower_does_not_cut_what_is_committed(*, is_guarded: bool) -> None:
    """Q03 again: a follower that knows that its records are committed stops; without the rule it cuts them silently."""
    rules = msgspec.structs.replace(_ALL, directory_ids=False, committed_is_never_cut=is_guarded)
    cluster, oracle = _cluster(rules)
    leader = _leader(cluster)
    follower, lagging = _others(cluster, leader)
    cluster.kill(lagging)
    cluster.propose(cluster.members[leader])
    cluster.run(2_000)
    _isolate(cluster, leader)
    cluster.replace_disk(follower)
    cluster.start(follower)
    cluster.start(lagging)
    cluster.run(20_000)
    assert cluster.leaders

    cluster.heal()
    cluster.run(20_000)

    assert (leader in cluster.refused) is is_guarded
    has_cut = QuorumCheck.MONOTONIC_HIGH_WATERMARK in {finding.check for finding in oracle.findings}
    assert has_cut is not is_guarded


@pytest.mark.parametrize("known_leader_first", [True, False])
def test_a_node_whose_rival_was_elected_starts_again(*, known_leader_first: bool) -> None:
    """Its file has its own vote beside the leader of that epoch, and whom it asks for another knows of no leader."""
    cluster, oracle = _cluster(msgspec.structs.replace(_ALL, known_leader_first=known_leader_first))
    loser = cluster.members[_others(cluster, _leader(cluster))[0]]
    assert cluster.run_until(lambda: loser.applied_end_offset > 0, within_ms=20_000)
    cluster.kill(loser.node_id)
    assert loser.disk.election is not None
    own = ReplicaKey(loser.node_id, loser.disk.directory_id)
    loser.disk.election = msgspec.structs.replace(loser.disk.election, voted=own)

    leader = _leader(cluster)
    (third,) = _others(cluster, leader, loser.node_id)
    cluster.kill(leader)
    cluster.replace_disk(third)

    cluster.start(third)
    cluster.start(loser.node_id)
    cluster.run(5_000)

    stopped = [finding.check for finding in oracle.findings]
    assert stopped == ([] if known_leader_first else [QuorumCheck.NO_ILLEGAL_STATE])


def test_all_voters_lose_power_and_nothing_committed_is_lost() -> None:
    cluster, oracle = _cluster(_ALL)
    for _ in range(5):
        cluster.propose(cluster.members[_leader(cluster)])
        cluster.run(1_000)
    committed = oracle.committed_end_offset

    for node_id in cluster.members:
        cluster.lose_power(node_id)
    for node_id in cluster.members:
        cluster.start(node_id)
    assert cluster.run_until(lambda: oracle.committed_end_offset > committed, within_ms=20_000)

    assert oracle.findings == []


def test_a_leader_that_stops_in_order_is_succeeded_at_once() -> None:
    """A resignation does not wait for the fetch timeout."""
    cluster, _ = _cluster(_ALL)
    leader = _leader(cluster)
    before_ms = cluster.queue.now_ms

    cluster.stop(leader)
    assert cluster.run_until(lambda: bool(cluster.leaders) and _leader(cluster) != leader, within_ms=20_000)

    assert cluster.queue.now_ms - before_ms < 1_000
    assert cluster.run_until(lambda: cluster.members[leader].core is None, within_ms=5_000)


def test_a_voter_is_added_and_another_removed() -> None:
    cluster, oracle = _cluster(_ALL, spares=1)
    spare = NodeId(103)
    cluster.run(3_000)

    cluster.add_voter(cluster.key_of(spare))
    assert cluster.run_until(lambda: spare in _voters(cluster), within_ms=10_000)
    cluster.run(2_000)
    removed = _others(cluster, spare, _leader(cluster))[0]
    cluster.remove_voter(cluster.key_of(removed))
    assert cluster.run_until(lambda: removed not in _voters(cluster), within_ms=10_000)

    assert len(_voters(cluster)) == 3
    assert oracle.findings == []


def _voters(cluster: QuorumCluster) -> tuple[NodeId, ...]:
    quorum = cluster.leaders[-1].quorum
    assert quorum is not None
    return quorum.replica.log.voters.node_ids
