"""Decisions of one node that no vector of Kafka states: what is durable first, and Laststand's own rules."""

import pytest

from laststand.emulator.core import effects as node_effects
from laststand.emulator.core import inputs as node_inputs
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import effects, inputs, messages
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum.node import QuorumNode
from laststand.emulator.core.quorum.settings import QuorumSettings, formatted
from laststand.emulator.core.quorum.states import (
    Candidate,
    Follower,
    IllegalQuorumState,
    Leader,
    Prospective,
    Unattached,
)
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.switches import ERAS
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset, NodeId, RequestId

_CAUSE = CauseId("test")
_KEYS = tuple(ReplicaKey(NodeId(number), DirectoryId(f"d{number}")) for number in (1, 2, 3))
_EMPTY = inputs.LoadedQuorum()
_ALL_RULES = QuorumRules()
_FOLLOWING = effects.Election(leader_epoch=LeaderEpoch(5), leader_id=NodeId(2))


def _node(loaded: inputs.LoadedQuorum = _EMPTY, rules: QuorumRules = _ALL_RULES, voters: int = 3) -> QuorumNode:
    bootstrap, version = formatted(_KEYS[:voters], rules)
    settings = QuorumSettings(
        key=_KEYS[0],
        cluster_id="cluster",
        rules=rules,
        bootstrap_voters=bootstrap,
        kraft_version=version,
        append_linger_ms=0,
    )
    return QuorumNode(settings, loaded, now_ms=0)


def _batch() -> QuorumBatch:
    return QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(5), values=(b"x",))


def _started(node: QuorumNode) -> list[effects.QuorumEffect]:
    return list(node.step(node_inputs.Started(cause_id=_CAUSE), now_ms=0))


def _sent(taken: list[effects.QuorumEffect]) -> list[node_effects.SendRequest]:
    return [effect for effect in taken if isinstance(effect, node_effects.SendRequest)]


def test_a_vote_is_written_before_it_is_answered() -> None:
    node = _node()
    _started(node)
    request = messages.VoteRequest(
        cluster_id="cluster",
        voter=_KEYS[0],
        candidate=_KEYS[1],
        leader_epoch=LeaderEpoch(1),
        last_epoch=LeaderEpoch(0),
        last_offset=MetadataOffset(0),
        is_pre_vote=False,
    )

    taken = node.step(
        node_inputs.RequestReceived(cause_id=_CAUSE, request_id=RequestId(1), request=request),  # type: ignore[arg-type]
        now_ms=1,
    )

    kinds = [type(effect) for effect in taken]
    written = [effect for effect in taken if isinstance(effect, effects.WriteElection)]
    assert written[-1].election.voted == _KEYS[1]
    assert max(index for index, kind in enumerate(kinds) if kind is effects.WriteElection) < kinds.index(
        node_effects.SendResponse
    )


def test_a_follower_fetches_on_once_what_it_has_is_durable() -> None:
    node = _node(inputs.LoadedQuorum(election=_FOLLOWING))
    (fetch,) = _sent(_started(node))
    answer = messages.FetchMetadataResponse(
        error=ErrorCode.NONE, leader_id=NodeId(2), leader_epoch=LeaderEpoch(5), batches=(_batch(),)
    )

    appended = node.step(
        node_inputs.ResponseReceived(
            cause_id=_CAUSE,
            correlation_id=fetch.correlation_id,
            response=answer,  # type: ignore[arg-type]
        ),
        now_ms=1,
    )
    (sync,) = [effect for effect in appended if isinstance(effect, effects.SyncMetadata)]
    assert _sent(list(appended)) == []

    synced = node.step(
        inputs.LogSynced(cause_id=_CAUSE, end_offset=sync.end_offset, generation=sync.generation), now_ms=2
    )
    assert [effect.request.fetch_offset for effect in _sent(list(synced))] == [1]  # type: ignore[union-attr]


def test_a_node_asks_for_votes_once_what_it_has_is_durable() -> None:
    """Else it could lose records with the power, and be granted the vote again that it was granted for them."""
    node = _node(inputs.LoadedQuorum(election=effects.Election(leader_epoch=LeaderEpoch(5)), batches=(_batch(),)))
    (sync,) = [effect for effect in _started(node) if isinstance(effect, effects.SyncMetadata)]
    deadline_ms = node.next_deadline_ms()
    assert deadline_ms is not None

    standing = node.step(node_inputs.TimerFired(cause_id=_CAUSE), now_ms=deadline_ms)
    assert isinstance(node.replica.state, Prospective)
    assert not [each for each in _sent(list(standing)) if isinstance(each.request, messages.VoteRequest)]

    synced = node.step(
        inputs.LogSynced(cause_id=_CAUSE, end_offset=sync.end_offset, generation=sync.generation), now_ms=deadline_ms
    )
    asked = [each.request for each in _sent(list(synced)) if isinstance(each.request, messages.VoteRequest)]
    assert [each.last_offset for each in asked] == [1, 1]


@pytest.mark.parametrize(("era", "commits"), [("kip-966", [False, True]), ("kafka-4.2", [True, False])])
def test_a_single_voter_commits_once_its_log_is_durable(era: str, commits: list[bool]) -> None:
    """Q07: Kafka commits at the append."""
    node = _node(rules=ERAS[era], voters=1)
    appended = _started(node)
    (sync,) = [effect for effect in appended if isinstance(effect, effects.SyncMetadata)]

    synced = node.step(
        inputs.LogSynced(cause_id=_CAUSE, end_offset=sync.end_offset, generation=sync.generation), now_ms=1
    )

    assert isinstance(node.replica.state, Leader)
    assert [any(isinstance(each, effects.Commit) for each in turn) for turn in (appended, synced)] == commits


def test_a_sync_that_began_before_a_cut_does_not_count() -> None:
    node = _node(inputs.LoadedQuorum(election=_FOLLOWING, batches=(_batch(),)))
    node.replica.log_generation = 3
    node.replica.synced_end_offset = MetadataOffset(0)

    node.step(inputs.LogSynced(cause_id=_CAUSE, end_offset=MetadataOffset(1), generation=2), now_ms=1)

    assert node.replica.synced_end_offset == 0


def test_a_log_without_its_file_of_votes_does_not_start() -> None:
    """Q01: Kafka starts, and may vote a second time."""
    loaded = inputs.LoadedQuorum(batches=(_batch(),))

    with pytest.raises(IllegalQuorumState):
        _node(loaded)
    assert isinstance(_node(loaded, ERAS["kafka-4.2"]).replica.state, Unattached)


def test_a_node_that_is_taken_for_the_leader_keeps_out_of_that_epoch() -> None:
    """Q39: Kafka stops the process."""
    for era, survives in (("kip-966", True), ("kafka-4.2", False)):
        node = _node(rules=ERAS[era])
        (fetch,) = _sent(_started(node))
        answer = messages.FetchMetadataResponse(
            error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=NodeId(1), leader_epoch=LeaderEpoch(7)
        )
        heard = node_inputs.ResponseReceived(
            cause_id=_CAUSE,
            correlation_id=fetch.correlation_id,
            response=answer,  # type: ignore[arg-type]
        )
        if survives:
            node.step(heard, now_ms=1)
            assert isinstance(node.replica.state, Unattached)
            assert node.replica.leader_epoch == 7
        else:
            with pytest.raises(IllegalQuorumState):
                node.step(heard, now_ms=1)


@pytest.mark.parametrize(("era", "follows"), [("kip-966", True), ("kafka-4.2", False), ("kafka-3.9", True)])
def test_a_node_whose_rival_was_elected_follows_it_again_when_it_starts(era: str, follows: bool) -> None:  # noqa: FBT001
    """Kafka 4.2 stands for election in that epoch again, of which its log has a record: an invalid request."""
    rival = effects.Election(leader_epoch=LeaderEpoch(5), leader_id=NodeId(2), voted=_KEYS[0])
    node = _node(inputs.LoadedQuorum(election=rival, batches=(_batch(),)), ERAS[era])
    assert isinstance(node.replica.state, Follower if follows else Candidate)


def test_the_next_deadline_is_never_of_the_past() -> None:
    node = _node(inputs.LoadedQuorum(election=_FOLLOWING))
    _started(node)
    now_ms = 0
    for _ in range(50):
        deadline_ms = node.next_deadline_ms()
        assert deadline_ms is not None
        assert deadline_ms > now_ms
        now_ms = deadline_ms
        node.step(node_inputs.TimerFired(cause_id=_CAUSE), now_ms=now_ms)
    assert node.replica.leader_epoch == 5


def test_eras_are_a_chain() -> None:
    """Each release has every rule of the one before."""
    counts = [sum(getattr(era, rule) for rule in QuorumRules.__struct_fields__) for era in ERAS.values()]

    assert counts == sorted(counts)
    assert counts[-1] == len(QuorumRules.__struct_fields__)
