"""Elections: Vote, BeginQuorumEpoch and EndQuorumEpoch, at both ends (KIP-595, KIP-996)."""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import messages, states
from laststand.emulator.core.quorum.answers import (
    Handled,
    election_error,
    handle_answer,
    has_other_cluster,
    is_meant_for,
)
from laststand.emulator.core.quorum.batches import LogPosition
from laststand.emulator.core.quorum.replica import Replica
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import NodeId

# --- Vote -----------------------------------------------------------------------------------------------------------


def answer_vote(replica: Replica, request: messages.VoteRequest) -> messages.VoteResponse:
    """Decides on a vote, or on a pre-vote, which is not binding.

    The node adopts a higher epoch even if it refuses the vote. Neither node need be in the set of voters that the
    other knows: the sets may differ by an uncommitted record.
    """
    if has_other_cluster(replica, request.cluster_id):
        return _vote_answer(replica, ErrorCode.INCONSISTENT_CLUSTER_ID, is_top_level=True)
    last_possible_epoch = request.leader_epoch if request.is_pre_vote else request.leader_epoch - 1
    if request.last_offset < 0 or not 0 <= request.last_epoch <= last_possible_epoch:
        return _vote_answer(replica, ErrorCode.INVALID_REQUEST)
    sender_id = request.candidate.node_id
    if (error := election_error(replica, leader_epoch=request.leader_epoch, sender_id=sender_id)) is not None:
        return _vote_answer(replica, error)
    if request.leader_epoch > replica.leader_epoch:
        replica.become_unattached(request.leader_epoch)
    if not is_meant_for(replica, request.voter):
        return _vote_answer(replica, ErrorCode.INVALID_VOTER_KEY)
    is_granted = _would_grant(replica, request)
    if is_granted and not request.is_pre_vote:
        state = replica.state
        assert isinstance(state, (states.Unattached, states.Prospective))
        if state.voted is None or not replica.rules.one_vote_per_epoch:
            replica.grant_vote(request.candidate)
    return _vote_answer(replica, ErrorCode.NONE, is_granted=is_granted)


def _would_grant(replica: Replica, request: messages.VoteRequest) -> bool:
    position = LogPosition(request.last_epoch, request.last_offset)
    is_up_to_date = position >= replica.log.position or not replica.rules.vote_compares_logs
    state = replica.state
    if request.is_pre_vote:
        if isinstance(state, states.Leader) or (isinstance(state, states.Follower) and state.has_fetched):
            return False
        return is_up_to_date
    if not isinstance(state, (states.Unattached, states.Prospective)):
        return False
    if state.voted is not None and replica.rules.one_vote_per_epoch:
        # The log is not compared again: the vote is given, and its answer may have been lost.
        return state.voted.is_matched_by(request.candidate)
    return state.leader_id is None and is_up_to_date


def _vote_answer(
    replica: Replica, error: ErrorCode, *, is_granted: bool = False, is_top_level: bool = False
) -> messages.VoteResponse:
    return messages.VoteResponse(
        error=error,
        leader_id=replica.state.leader_id,
        leader_epoch=replica.leader_epoch,
        is_granted=is_granted,
        is_top_level=is_top_level,
    )


def ask_for_votes(replica: Replica) -> None:
    """Asks every voter whose answer is missing, as long as the election can be won.

    A vote is for the log that the request names, so its records have to be durable: a candidate that lost some with the
    power would be granted the same vote again, since a voter that has voted for it compares no logs.
    """
    state = replica.state
    assert isinstance(state, (states.Prospective, states.Candidate))
    if state.tally.is_lost or not replica.may_claim_log:
        return
    for voter_id in state.tally.unanswered:
        voter = replica.log.voters.by_node(voter_id)
        if voter is not None:
            request = messages.VoteRequest(
                cluster_id=replica.settings.cluster_id,
                voter=voter.key,
                candidate=replica.key,
                leader_epoch=state.leader_epoch,
                last_epoch=replica.log.last_epoch,
                last_offset=replica.log.end_offset,
                is_pre_vote=isinstance(state, states.Prospective),
            )
            replica.send_if_ready(voter_id, request)


def handle_vote_response(replica: Replica, request: messages.VoteRequest, answer: messages.VoteResponse) -> Handled:
    """Counts an answer to a vote request.

    Raises:
        IllegalQuorumState: a voter contradicts its earlier answer to a candidate.
    """
    if answer.error is ErrorCode.UNSUPPORTED_VERSION and isinstance(replica.state, states.Prospective):
        replica.become_candidate()  # an older release, without pre-votes
        return Handled.DONE
    handled = handle_answer(replica, answer)
    if handled is not Handled.OPEN:
        return handled
    if answer.error is not ErrorCode.NONE:
        return Handled.FAILED
    state = replica.state
    assert request.voter is not None
    voter_id = request.voter.node_id
    if isinstance(state, states.Candidate) and voter_id in (
        state.tally.rejected if answer.is_granted else state.tally.granted
    ):
        raise states.IllegalQuorumState(f"voter {voter_id} took its answer of epoch {state.leader_epoch} back")
    if isinstance(state, (states.Prospective, states.Candidate)):
        state.tally.record(voter_id, is_granted=answer.is_granted)
        replica.advance_election()
    return Handled.DONE


# --- Messages of leaders ----------------------------------------------------------------------------------------------


def _hear_leader(
    replica: Replica, request: messages.BeginQuorumEpochRequest | messages.EndQuorumEpochRequest
) -> ErrorCode | None:
    """Adopts the leader that sends a request; returns the error if the request is refused."""
    if has_other_cluster(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = election_error(replica, leader_epoch=request.leader_epoch, sender_id=request.leader_id)
    if error is None:
        replica.hear_of(request.leader_epoch, request.leader_id)
    return error


# --- BeginQuorumEpoch -------------------------------------------------------------------------------------------------


def answer_begin(replica: Replica, request: messages.BeginQuorumEpochRequest) -> messages.BeginQuorumEpochResponse:
    """Follows the leader that announces itself, even if the request was addressed to another voter."""
    error = _hear_leader(replica, request)
    if error is None and not is_meant_for(replica, request.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    return messages.BeginQuorumEpochResponse(
        error=error or ErrorCode.NONE,
        leader_id=replica.state.leader_id,
        leader_epoch=replica.leader_epoch,
        is_top_level=error is ErrorCode.INCONSISTENT_CLUSTER_ID,
    )


def announce_epoch(replica: Replica) -> None:
    """Sends BeginQuorumEpoch to voters that have not fetched for a while."""
    state = replica.state
    assert isinstance(state, states.Leader)
    if replica.now_ms < state.begin_quorum_deadline_ms:
        return
    interval_ms = replica.settings.begin_quorum_interval_ms
    state.begin_quorum_deadline_ms = replica.now_ms + interval_ms
    for key in replica.other_voters:
        last_fetch_ms = state.progress[key].last_fetch_ms
        if last_fetch_ms is None or replica.now_ms - last_fetch_ms >= interval_ms:
            request = messages.BeginQuorumEpochRequest(
                cluster_id=replica.settings.cluster_id,
                voter=key,
                leader_id=state.leader_id,
                leader_epoch=state.leader_epoch,
            )
            replica.send_if_ready(key.node_id, request)


# --- EndQuorumEpoch ---------------------------------------------------------------------------------------------------


def answer_end(replica: Replica, request: messages.EndQuorumEpochRequest) -> messages.EndQuorumEpochResponse:
    """Answers a leader that resigns; the earlier it lists this replica, the sooner the replica stands for election."""
    error = _hear_leader(replica, request)
    if error is None:
        state = replica.state
        if isinstance(state, states.Follower) and state.leader_id == request.leader_id:
            state.fetch_deadline_ms = replica.now_ms + _succession_wait_ms(replica, request.preferred_successors)
    return messages.EndQuorumEpochResponse(
        error=error or ErrorCode.NONE,
        leader_id=replica.state.leader_id,
        leader_epoch=replica.leader_epoch,
        is_top_level=error is ErrorCode.INCONSISTENT_CLUSTER_ID,
    )


def _succession_wait_ms(replica: Replica, successors: tuple[ReplicaKey, ...]) -> int:
    """Returns how long to wait for this replica's place among the successors; with an empty list, all are first."""
    places = (place for place, key in enumerate(successors) if is_meant_for(replica, key))
    place = next(places, len(successors))
    longest_ms = replica.settings.election_backoff_max_ms
    if place == 0:
        return 0
    if place == len(successors):
        return longest_ms
    return min(longest_ms, longest_ms >> (len(successors) - 1) << (place - 1))


def announce_end(replica: Replica) -> None:
    """Sends EndQuorumEpoch to every voter that has not confirmed it."""
    state = replica.state
    assert isinstance(state, states.Resigned)
    request = messages.EndQuorumEpochRequest(
        cluster_id=replica.settings.cluster_id,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        preferred_successors=state.preferred_successors,
    )
    for key in replica.other_voters:
        if key.node_id in state.unacknowledged:
            replica.send_if_ready(key.node_id, request)


def handle_end_response(replica: Replica, sender_id: NodeId, answer: messages.EndQuorumEpochResponse) -> Handled:
    """Notes that a voter has received the resignation."""
    handled = handle_answer(replica, answer)
    if handled is Handled.OPEN and answer.error is ErrorCode.NONE:
        if isinstance(replica.state, states.Resigned):
            replica.state.unacknowledged.discard(sender_id)
        return Handled.DONE
    return Handled.FAILED if handled is Handled.OPEN else handled
