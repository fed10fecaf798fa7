"""Changes of the set of voters, one voter at a time (KIP-853): AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter."""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import messages
from laststand.emulator.core.quorum.answers import Handled, has_other_cluster, leader_error
from laststand.emulator.core.quorum.leading import append_voters, is_caught_up
from laststand.emulator.core.quorum.replica import Replica
from laststand.emulator.core.quorum.states import Follower, Leader, PendingChange
from laststand.emulator.core.quorum.voter_set import Voter
from laststand.emulator.core.types import CauseId, NodeId, RequestId


def _change_error(replica: Replica, state: Leader) -> ErrorCode | None:
    """Returns why no change of voters may begin: one of this leader, or of its predecessor, may be uncommitted."""
    if state.change is not None:
        return ErrorCode.REQUEST_TIMED_OUT
    follows_commit = replica.rules.change_follows_commit
    if state.high_watermark is None and follows_commit:
        return ErrorCode.REQUEST_TIMED_OUT
    if replica.log.kraft_version == 0:
        return ErrorCode.UNSUPPORTED_VERSION
    offset = replica.log.voters_offset
    is_committed = offset is not None and state.high_watermark is not None and offset < state.high_watermark
    return None if is_committed or not follows_commit else ErrorCode.REQUEST_TIMED_OUT


# --- Add --------------------------------------------------------------------------------------------------------------


def add_voter(
    replica: Replica, request: messages.AddRaftVoterRequest, *, request_id: RequestId, cause_id: CauseId
) -> None:
    """Begins to add a voter: asks it for its versions; or refuses."""
    error = _add_error(replica, request)
    if error is not None:
        replica.respond(request_id, messages.VoterChangeResponse(error=error), cause_id=cause_id)
        return
    state = replica.state
    assert isinstance(state, Leader)
    assert request.listener is not None
    replica.send(request.voter.node_id, messages.ApiVersionsRequest())
    state.change = PendingChange(
        request_id=request_id,
        cause_id=cause_id,
        deadline_ms=replica.now_ms + replica.settings.request_timeout_ms,
        adding=Voter(key=request.voter, listener=request.listener),
        ack_when_committed=request.ack_when_committed,
    )


def _add_error(replica: Replica, request: messages.AddRaftVoterRequest) -> ErrorCode | None:
    if has_other_cluster(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if (error := leader_error(replica)) is not None:
        return error
    if request.voter.node_id < 0 or request.voter.directory_id is None or request.listener is None:
        return ErrorCode.INVALID_REQUEST
    state = replica.state
    assert isinstance(state, Leader)
    if (error := _change_error(replica, state)) is not None:
        return error
    if replica.log.voters.by_node(request.voter.node_id) is not None:
        return ErrorCode.DUPLICATE_VOTER
    is_ready = replica.outbox.is_ready(request.voter.node_id, now_ms=replica.now_ms)
    return None if is_ready else ErrorCode.REQUEST_TIMED_OUT


def handle_versions(replica: Replica, sender_id: NodeId, answer: messages.ApiVersionsResponse | None) -> Handled:
    """Goes on with an addition once the new voter has reported its versions; ``None`` if it did not answer."""
    state = replica.state
    if not isinstance(state, Leader) or state.change is None or state.change.adding is None:
        return Handled.DONE
    change, adding = state.change, state.change.adding
    if adding.key.node_id != sender_id or change.last_offset is not None:
        return Handled.DONE
    if answer is None or answer.error is not ErrorCode.NONE:
        finish_change(replica, state, ErrorCode.REQUEST_TIMED_OUT)
        return Handled.FAILED
    if answer.versions is None or not answer.versions.contains(replica.log.kraft_version):
        finish_change(replica, state, ErrorCode.INVALID_REQUEST)
        return Handled.DONE
    if not is_caught_up(replica, state, adding.key):
        finish_change(replica, state, ErrorCode.REQUEST_TIMED_OUT)
        return Handled.DONE
    voter = Voter(key=adding.key, listener=adding.listener, versions=answer.versions)
    voters = replica.log.voters.with_added(voter)
    if voters is None:
        finish_change(replica, state, ErrorCode.DUPLICATE_VOTER)
        return Handled.DONE
    change.last_offset = append_voters(replica, state, voters)
    if not change.ack_when_committed:
        finish_change(replica, state, ErrorCode.NONE)
    return Handled.DONE


# --- Remove -----------------------------------------------------------------------------------------------------------


def remove_voter(
    replica: Replica, request: messages.RemoveRaftVoterRequest, *, request_id: RequestId, cause_id: CauseId
) -> None:
    """Removes a voter, perhaps the leader itself, which then counts no more and resigns at the commit."""
    error = _remove_error(replica, request)
    state = replica.state
    if error is None:
        assert isinstance(state, Leader)
        voters = replica.log.voters.with_removed(request.voter)
        if voters is not None:
            state.change = PendingChange(
                request_id=request_id,
                cause_id=cause_id,
                deadline_ms=replica.now_ms + replica.settings.request_timeout_ms,
                last_offset=append_voters(replica, state, voters),
            )
            return
        error = ErrorCode.VOTER_NOT_FOUND
    replica.respond(request_id, messages.VoterChangeResponse(error=error), cause_id=cause_id)


def _remove_error(replica: Replica, request: messages.RemoveRaftVoterRequest) -> ErrorCode | None:
    if has_other_cluster(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if (error := leader_error(replica)) is not None:
        return error
    if request.voter.node_id < 0 or request.voter.directory_id is None:
        return ErrorCode.INVALID_REQUEST
    assert isinstance(replica.state, Leader)
    return _change_error(replica, replica.state)


# --- Update -----------------------------------------------------------------------------------------------------------


def answer_update(replica: Replica, request: messages.UpdateRaftVoterRequest) -> messages.UpdateRaftVoterResponse:
    """Appends another address and versions of a voter, even if nothing differs; answered before it is committed."""
    error = _update_error(replica, request)
    state = replica.state
    if error is None:
        assert isinstance(state, Leader)
        assert request.listener is not None
        voter = Voter(key=request.voter, listener=request.listener, versions=request.versions)
        voters = replica.log.voters.with_updated(voter)
        if voters is None:
            error = ErrorCode.VOTER_NOT_FOUND
        else:
            append_voters(replica, state, voters)
    return messages.UpdateRaftVoterResponse(
        error=error or ErrorCode.NONE,
        leader_id=replica.state.leader_id,
        leader_epoch=replica.leader_epoch,
        is_top_level=error is ErrorCode.INCONSISTENT_CLUSTER_ID,
    )


def _update_error(replica: Replica, request: messages.UpdateRaftVoterRequest) -> ErrorCode | None:
    if has_other_cluster(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if (error := leader_error(replica, leader_epoch=request.leader_epoch)) is not None:
        return error
    lowest, highest = request.versions
    if request.voter.directory_id is None or request.listener is None or not 0 <= lowest <= highest:
        return ErrorCode.INVALID_REQUEST
    assert isinstance(replica.state, Leader)
    if (error := _change_error(replica, replica.state)) is not None:
        return error
    return None if request.versions.contains(replica.log.kraft_version) else ErrorCode.INVALID_REQUEST


# --- The change that waits --------------------------------------------------------------------------------------------


def finish_change(replica: Replica, state: Leader, error: ErrorCode) -> None:
    """Answers the change that waits. Its record, if there is one, stays in the log whatever the answer."""
    assert state.change is not None
    change, state.change = state.change, None
    replica.respond(change.request_id, messages.VoterChangeResponse(error=error), cause_id=change.cause_id)


def settle_change(replica: Replica, state: Leader) -> None:
    """Answers the change that waits once it is committed, or its time is over."""
    change = state.change
    if change is not None and change.last_offset is not None and (state.high_watermark or 0) > change.last_offset:
        finish_change(replica, state, ErrorCode.NONE)
        state.is_resigning = state.is_resigning or not replica.is_voter
    if state.change is not None and replica.now_ms >= state.change.deadline_ms:
        finish_change(replica, state, ErrorCode.REQUEST_TIMED_OUT)


# --- Of this replica itself -------------------------------------------------------------------------------------------


def own_change(replica: Replica, state: Follower) -> messages.QuorumRequest | None:
    """Returns the request by which a follower corrects its entry in the set of voters; ``None`` if that is right."""
    settings, voters = replica.settings, replica.log.voters
    if replica.log.kraft_version == 0:
        return None
    named = voters.by_node(replica.key.node_id)
    if replica.is_voter:
        if named == settings.voter:
            return None
        return messages.UpdateRaftVoterRequest(
            cluster_id=settings.cluster_id,
            leader_epoch=state.leader_epoch,
            voter=replica.key,
            listener=settings.listener,
            versions=settings.versions,
        )
    if not (settings.auto_join and settings.can_become_voter):
        return None
    if named is not None:  # with another directory: the disk that this node had before
        return messages.RemoveRaftVoterRequest(cluster_id=settings.cluster_id, voter=named.key)
    return messages.AddRaftVoterRequest(
        cluster_id=settings.cluster_id, voter=replica.key, listener=settings.listener, ack_when_committed=False
    )
