"""The state machine of one node of the quorum: ``step`` takes an input and returns effects.

Timers are checked before the input of the same turn, so that a leader that is due to resign does not answer as leader.
"""

from collections.abc import Sequence
from typing import assert_never, cast

from laststand.emulator.core import inputs as node_inputs
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import effects, inputs, messages, states
from laststand.emulator.core.quorum.answers import Handled, handle_answer, leader_error
from laststand.emulator.core.quorum.following import (
    fetch_from_any,
    fetch_from_leader,
    handle_fetch_response,
    handle_fetch_snapshot_response,
    take_snapshot,
)
from laststand.emulator.core.quorum.leading import (
    append_collected,
    checks_quorum,
    count_own_log,
    counts_synced_log,
    describe,
    misses_majority,
    propose,
)
from laststand.emulator.core.quorum.replica import Replica
from laststand.emulator.core.quorum.serving import answer_fetch_snapshot, answer_parked, expire_parked, serve_fetch
from laststand.emulator.core.quorum.settings import QuorumSettings
from laststand.emulator.core.quorum.voter_changes import (
    add_voter,
    answer_update,
    handle_versions,
    own_change,
    remove_voter,
    settle_change,
)
from laststand.emulator.core.quorum.voting import (
    announce_end,
    announce_epoch,
    answer_begin,
    answer_end,
    answer_vote,
    ask_for_votes,
    handle_end_response,
    handle_vote_response,
)
from laststand.emulator.core.types import LeaderEpoch


class QuorumNode:
    """One process: a voter, or an observer.

    Args:
        settings: of the node.
        loaded: from its disk.
        now_ms: at its start.

    Raises:
        IllegalQuorumState: the files on the disk contradict each other.
    """

    def __init__(self, settings: QuorumSettings, loaded: inputs.LoadedQuorum, *, now_ms: int) -> None:
        self.replica = Replica(settings, loaded, now_ms=now_ms)

    def step(self, incoming: inputs.QuorumInput, *, now_ms: int) -> Sequence[effects.QuorumEffect]:
        """Reacts to an input.

        Raises:
            IllegalQuorumState: a state that correct nodes never reach; the process has to stop.
            IllegalCall: the state machine on top made a request that no rule allows.
        """
        replica = self.replica
        replica.now_ms, replica.cause_id = now_ms, incoming.cause_id
        self._poll()
        self._handle(incoming)
        self._poll()
        return replica.take_effects()

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due."""
        replica, state = self.replica, self.replica.state
        deadlines = [fetch.deadline_ms for fetch in replica.parked] + replica.outbox.deadlines_ms()
        match state:
            case states.Leader():
                deadlines += [collected.deadline_ms for collected in state.collected]
                deadlines.append(state.begin_quorum_deadline_ms)
                if checks_quorum(replica, state):
                    deadlines.append(state.check_quorum_deadline_ms)
                if state.change is not None:
                    deadlines.append(state.change.deadline_ms)
            case states.Follower():
                if replica.is_voter:
                    deadlines.append(state.fetch_deadline_ms)
                deadlines.append(state.update_voter_deadline_ms)
            case states.Resigned():
                deadlines.append(state.election_deadline_ms)
            case states.Unattached() | states.Prospective() | states.Candidate() if replica.is_voter:
                deadlines.append(state.election_deadline_ms)
            case _:
                pass
        if replica.stop_deadline_ms is not None:
            deadlines.append(replica.stop_deadline_ms)
        # Actions that were due by the last turn were performed in it, or wait for something other than time.
        return min((deadline for deadline in deadlines if deadline > replica.now_ms), default=None)

    # --- Inputs -----------------------------------------------------------------------------------------------------

    def _handle(self, incoming: inputs.QuorumInput) -> None:
        replica = self.replica
        match incoming:
            case node_inputs.Started() | node_inputs.TimerFired():
                pass
            case node_inputs.RequestReceived():
                self._serve(incoming)
            case node_inputs.ResponseReceived():
                self._handle_response(incoming)
            case node_inputs.RequestFailed():
                self._note_failure(incoming)
            case inputs.LogSynced():
                self._note_synced(incoming)
            case inputs.Proposed():
                propose(replica, incoming.leader_epoch, incoming.values, proposal_id=incoming.proposal_id)
            case inputs.ResignRequested():
                self._request_resignation(incoming.leader_epoch)
            case inputs.SnapshotTaken():
                take_snapshot(replica, incoming.position, incoming.content)
            case node_inputs.ShutdownRequested():
                replica.stop_deadline_ms = replica.now_ms + replica.settings.stop_timeout_ms
            case _:
                assert_never(incoming)

    def _note_synced(self, synced: inputs.LogSynced) -> None:
        replica, state = self.replica, self.replica.state
        if synced.generation != replica.log_generation:
            return
        replica.synced_end_offset = max(replica.synced_end_offset, synced.end_offset)
        if not isinstance(state, states.Leader) or not counts_synced_log(replica):
            return
        if count_own_log(replica, state, replica.synced_end_offset):
            answer_parked(replica)

    def _request_resignation(self, leader_epoch: LeaderEpoch) -> None:
        state = self.replica.state
        if leader_epoch < state.leader_epoch:
            return
        if leader_epoch > state.leader_epoch or not isinstance(state, (states.Leader, states.Resigned)):
            raise states.IllegalCall(f"resignation from epoch {leader_epoch}, which this node does not lead")
        if isinstance(state, states.Leader):
            state.is_resigning = True

    def _serve(self, received: node_inputs.RequestReceived) -> None:
        replica, request_id, cause_id = self.replica, received.request_id, received.cause_id
        request = cast(messages.QuorumRequest, received.request)
        answer: messages.QuorumAnswer
        match request:
            case messages.FetchMetadataRequest():
                serve_fetch(replica, request, request_id=request_id, cause_id=cause_id)
                return
            case messages.AddRaftVoterRequest():
                add_voter(replica, request, request_id=request_id, cause_id=cause_id)
                return
            case messages.RemoveRaftVoterRequest():
                remove_voter(replica, request, request_id=request_id, cause_id=cause_id)
                return
            case messages.VoteRequest():
                answer = answer_vote(replica, request)
            case messages.BeginQuorumEpochRequest():
                answer = answer_begin(replica, request)
            case messages.EndQuorumEpochRequest():
                answer = answer_end(replica, request)
            case messages.FetchSnapshotRequest():
                answer = answer_fetch_snapshot(replica, request)
            case messages.UpdateRaftVoterRequest():
                answer = answer_update(replica, request)
            case messages.ApiVersionsRequest():
                answer = messages.ApiVersionsResponse(error=ErrorCode.NONE, versions=replica.settings.versions)
            case messages.DescribeQuorumRequest():
                answer = self._describe()
            case _:
                assert_never(request)
        replica.respond(request_id, answer, cause_id=cause_id)

    def _describe(self) -> messages.DescribeQuorumResponse:
        error = leader_error(self.replica)
        if error is not None:
            return messages.DescribeQuorumResponse(error=error)
        assert isinstance(self.replica.state, states.Leader)
        return describe(self.replica, self.replica.state)

    def _handle_response(self, received: node_inputs.ResponseReceived) -> None:
        replica = self.replica
        awaited = replica.outbox.awaited(received.correlation_id)
        if awaited is None:
            return
        sender_id, request = awaited
        answer = cast(messages.QuorumAnswer, received.response)
        match answer:
            case messages.VoteResponse():
                handled = handle_vote_response(replica, cast(messages.VoteRequest, request), answer)
            case messages.BeginQuorumEpochResponse():
                handled = handle_answer(replica, answer)
            case messages.EndQuorumEpochResponse():
                handled = handle_end_response(replica, sender_id, answer)
            case messages.FetchMetadataResponse():
                handled = handle_fetch_response(replica, answer)
            case messages.FetchSnapshotResponse():
                handled = handle_fetch_snapshot_response(replica, cast(messages.FetchSnapshotRequest, request), answer)
            case messages.ApiVersionsResponse():
                handled = handle_versions(replica, sender_id, answer)
            case messages.UpdateRaftVoterResponse():
                handled = handle_answer(replica, answer)
            case messages.VoterChangeResponse() | messages.DescribeQuorumResponse():
                handled = Handled.DONE
            case _:
                assert_never(answer)
        if handled is Handled.FAILED:
            replica.outbox.fail(received.correlation_id, now_ms=replica.now_ms)
        else:
            replica.outbox.close(received.correlation_id)

    def _note_failure(self, failed: node_inputs.RequestFailed) -> None:
        replica = self.replica
        awaited = replica.outbox.awaited(failed.correlation_id)
        if awaited is None:
            return
        sender_id, request = awaited
        replica.outbox.fail(failed.correlation_id, now_ms=replica.now_ms)
        if isinstance(request, messages.ApiVersionsRequest):
            handle_versions(replica, sender_id, None)

    # --- What is due ------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Performs the actions that are due in the current state, until the state no longer changes."""
        replica = self.replica
        if replica.stop_deadline_ms is not None and replica.now_ms >= replica.stop_deadline_ms:
            replica.emit(effects.EndProcess())
        expire_parked(replica)
        before = None
        while replica.state is not before:
            before = replica.state
            self._poll_state()
        replica.announce()

    def _poll_state(self) -> None:
        state = self.replica.state
        match state:
            case states.Unattached():
                self._poll_unattached(state)
            case states.Prospective() | states.Candidate():
                self._poll_nominee(state)
            case states.Leader():
                self._poll_leader(state)
            case states.Follower():
                self._poll_follower(state)
            case states.Resigned():
                self._poll_resigned(state)
            case _:
                assert_never(state)

    def _poll_unattached(self, state: states.Unattached) -> None:
        replica = self.replica
        if replica.is_voter and replica.is_stopping:
            return
        if replica.is_voter and replica.now_ms >= state.election_deadline_ms:
            replica.begin_election()
        else:
            fetch_from_any(replica)

    def _poll_nominee(self, state: states.Prospective | states.Candidate) -> None:
        replica = self.replica
        if replica.now_ms < state.election_deadline_ms or replica.is_stopping:
            ask_for_votes(replica)
        elif isinstance(state, states.Prospective):
            replica.lose_election()
        else:
            replica.begin_election()

    def _poll_leader(self, state: states.Leader) -> None:
        replica = self.replica
        replica.announce_claim()
        settle_change(replica, state)
        if replica.is_stopping or state.is_resigning or misses_majority(replica, state):
            replica.resign()
            return
        if append_collected(replica):
            answer_parked(replica)
        announce_epoch(replica)

    def _poll_follower(self, state: states.Follower) -> None:
        replica = self.replica
        if replica.is_stopping:
            replica.emit(effects.EndProcess())
        elif replica.is_voter and replica.now_ms >= state.fetch_deadline_ms:
            replica.begin_election()
        elif replica.now_ms >= state.update_voter_deadline_ms:
            state.update_voter_deadline_ms = replica.now_ms + replica.settings.fetch_timeout_ms
            request = own_change(replica, state)
            if request is None or not replica.outbox.is_ready(state.leader_id, now_ms=replica.now_ms):
                fetch_from_leader(replica, state)
            else:
                replica.send(state.leader_id, request)
        elif replica.now_ms >= state.fetch_deadline_ms:
            fetch_from_any(replica)
        else:
            fetch_from_leader(replica, state)

    def _poll_resigned(self, state: states.Resigned) -> None:
        replica = self.replica
        announce_end(replica)
        if not replica.is_stopping and replica.now_ms >= state.election_deadline_ms:
            replica.become_unattached(LeaderEpoch(state.leader_epoch + 1))
