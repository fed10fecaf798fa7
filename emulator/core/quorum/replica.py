"""A node of the quorum: its state, its log, its requests under way, and the transitions between states.

What a transition makes durable is written before any later effect (``WriteElection``). Handlers of messages are
in ``voting``, ``serving``, ``following`` and ``voter_changes``; ``node`` calls them.
"""

from typing import cast

from laststand.emulator.core import effects as node_effects
from laststand.emulator.core import messages as node_messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import effects, events, messages, states
from laststand.emulator.core.quorum.batches import KRaftVersion, KRaftVoters, LeaderChange
from laststand.emulator.core.quorum.draws import Draws
from laststand.emulator.core.quorum.inputs import LoadedQuorum
from laststand.emulator.core.quorum.metadata_log import MetadataLog
from laststand.emulator.core.quorum.outbox import Outbox
from laststand.emulator.core.quorum.settings import QuorumSettings
from laststand.emulator.core.quorum.tally import VoteTally
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import CauseId, CorrelationId, LeaderEpoch, MetadataOffset, NodeId, RequestId


class ParkedFetch:
    """A fetch that waits for records or a new high watermark; ``response`` answers it if neither comes."""

    __slots__ = ("cause_id", "deadline_ms", "request", "request_id", "response")

    def __init__(
        self,
        request: messages.FetchMetadataRequest,
        response: messages.FetchMetadataResponse,
        *,
        request_id: RequestId,
        cause_id: CauseId,
        deadline_ms: int,
    ) -> None:
        self.request = request
        self.response = response
        self.request_id = request_id
        self.cause_id = cause_id
        self.deadline_ms = deadline_ms


class Replica:
    """One process of the quorum.

    Args:
        settings: of the node.
        loaded: from its disk.

    Attributes:
        log: the metadata log, in memory.
        synced_end_offset: offset below which the log is known to be durable.
        log_generation: raised whenever records are removed, so that the completion of an earlier sync does not count.
        state: one of the six states of ``states.py``.
        outbox: requests under way.
        parked: fetches that wait, in order.
        announced: the epoch and leader that the state machine was given last.
        committed_end_offset: end of the committed records that the state machine was given.
        stop_deadline_ms: time until which a requested clean stop waits for another leader; ``None`` without one.
        now_ms: of the turn.
        cause_id: of the turn.
    """

    def __init__(self, settings: QuorumSettings, loaded: LoadedQuorum, *, now_ms: int) -> None:
        self.settings = settings
        self.rules = settings.rules
        self.key = settings.key
        self.log = MetadataLog(
            bootstrap_voters=settings.bootstrap_voters,
            bootstrap_version=settings.kraft_version,
            snapshots=loaded.snapshots,
            batches=loaded.batches,
        )
        self.synced_end_offset = MetadataOffset(0) if self.rules.start_syncs_log else self.log.end_offset
        self.log_generation = 0
        self.outbox = Outbox(request_timeout_ms=settings.request_timeout_ms, retry_backoff_ms=settings.retry_backoff_ms)
        self.parked: list[ParkedFetch] = []
        self.announced = (LeaderEpoch(0), cast(NodeId | None, None))
        self.committed_end_offset = MetadataOffset(0)
        self.stop_deadline_ms: int | None = None
        self.now_ms = now_ms
        self.cause_id = CauseId("start")
        self.draws = Draws(loaded.seed)
        self._effects: list[effects.QuorumEffect] = []
        self.state: states.QuorumState = states.Unattached(
            leader_epoch=LeaderEpoch(0), leader_id=None, voted=None, high_watermark=None, election_deadline_ms=now_ms
        )
        self._start(loaded)

    def _start(self, loaded: LoadedQuorum) -> None:
        """Chooses the first state (spec of ``QuorumState.initialize``)."""
        if loaded.batches and not self.log.batches and self.log.latest_snapshot is not None:
            self.emit(effects.RestartMetadata(position=self.log.latest_snapshot.position))
        if loaded.election is None and self.log.end_offset and self.rules.missing_state_stops:
            raise states.IllegalQuorumState(
                "a log without the file of its epoch and vote: who was voted for is unknown"
            )
        if self.synced_end_offset < self.log.end_offset:
            self.sync_log()
        election = loaded.election or effects.Election()
        own_epoch = self.log.last_epoch
        if election.leader_epoch < own_epoch:
            self._become(self._unattached_at(own_epoch))
        elif election.leader_id == self.key.node_id and self.rules.former_leader_resigns:
            self._become(self._resigned_at(election.leader_epoch, successors=()))
        elif election.leader_id == self.key.node_id:
            self.state = self._candidate_at(election.leader_epoch)
            self.become_leader()
        elif self._is_candidate(election):
            self._become(self._candidate_at(election.leader_epoch))
            self.advance_election()
        elif election.leader_id is not None and self.log.voters.by_node(election.leader_id) is not None:
            self.state = self._unattached_at(election.leader_epoch, voted=election.voted)
            self._become(self._follower_of(election.leader_id, election.leader_epoch))
        else:
            self._become(self._unattached_at(election.leader_epoch, leader_id=election.leader_id, voted=election.voted))
        has_begun = bool(self.leader_epoch or self.log.end_offset)
        is_fresh = self.settings.is_first and self.is_voter and not has_begun
        if (self.log.voters.has_only(self.key) or is_fresh) and not isinstance(self.state, states.Leader):
            self.begin_election()

    def _is_candidate(self, election: effects.Election) -> bool:
        """Returns whether the node was a candidate in the epoch of ``quorum-state``, and may still be one."""
        if not self.is_voter or election.voted is None or not election.voted.is_matched_by(self.key):
            return False
        return election.leader_id is None or not self.rules.known_leader_first

    # --- What it knows ----------------------------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """An orderly stop was asked for."""
        return self.stop_deadline_ms is not None

    @property
    def is_voter(self) -> bool:
        """This replica is in the set in force."""
        return self.log.voters.has_voter(self.key)

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch of the node."""
        return self.state.leader_epoch

    @property
    def other_voters(self) -> tuple[ReplicaKey, ...]:
        """Voters on other nodes."""
        return tuple(key for key in self.log.voters.keys if key.node_id != self.key.node_id)

    @property
    def has_to_sync(self) -> bool:
        """True if fetched records have to be durable before the next fetch: this is a voter, or may become one."""
        return self.rules.follower_syncs_first and (self.is_voter or self.settings.can_become_voter)

    @property
    def may_claim_log(self) -> bool:
        """False while a fetch or a vote request would claim records that a power loss can take."""
        return not self.has_to_sync or self.synced_end_offset >= self.log.end_offset

    # --- Effects ----------------------------------------------------------------------------------------------------

    def take_effects(self) -> list[effects.QuorumEffect]:
        """Returns the effects of the turn so far, and forgets them."""
        taken, self._effects = self._effects, []
        return taken

    def emit(self, effect: effects.QuorumEffect) -> None:
        """Adds an effect to the turn."""
        self._effects.append(effect)

    def sync_log(self) -> None:
        """Starts to sync the whole log; ``LogSynced`` reports when it is durable."""
        self.emit(effects.SyncMetadata(end_offset=self.log.end_offset, generation=self.log_generation))

    def note_cut(self) -> None:
        """Notes that the log was truncated, which is durable at once, or replaced."""
        self.log_generation += 1
        self.synced_end_offset = min(self.synced_end_offset, self.log.end_offset)

    def send(self, node_id: NodeId, request: messages.QuorumRequest) -> CorrelationId:
        """Sends a request to another node, which must be ready."""
        correlation_id = self.outbox.open(node_id, request, now_ms=self.now_ms)
        self.emit(
            node_effects.SendRequest(
                destination=node_id,
                correlation_id=correlation_id,
                request=cast(node_messages.Request, request),
                timeout_ms=self.settings.request_timeout_ms,
                cause_id=self.cause_id,
            )
        )
        return correlation_id

    def send_if_ready(self, node_id: NodeId, request: messages.QuorumRequest) -> None:
        """Sends a request to another node, unless one is under way to it, or the node is in a pause after a failure."""
        if self.outbox.is_ready(node_id, now_ms=self.now_ms):
            self.send(node_id, request)

    def respond(self, request_id: RequestId, response: messages.QuorumAnswer, *, cause_id: CauseId) -> None:
        """Answers a request."""
        self.emit(
            node_effects.SendResponse(
                request_id=request_id, response=cast(node_messages.Response, response), cause_id=cause_id
            )
        )

    def record(self, event: events.QuorumEvent) -> None:
        """Writes evidence."""
        self.emit(effects.RecordQuorumEvent(event=event))

    def announce(self) -> None:
        """Reports a new epoch or leader to the state machine; ``announce_claim`` reports this node's own leadership."""
        state = self.state
        if isinstance(state, (states.Leader, states.Resigned)):
            return
        epoch, leader_id = self.announced
        if state.leader_epoch > epoch or (leader_id is None and state.leader_id is not None):
            self._announce(state.leader_epoch, state.leader_id)

    def announce_claim(self) -> None:
        """Reports its leadership to the state machine, once that has all records below the epoch (KAFKA-15345)."""
        state = self.state
        assert isinstance(state, states.Leader)
        is_ready = self.committed_end_offset > state.epoch_start_offset or not self.rules.claim_follows_commit
        if is_ready and self.announced != (state.leader_epoch, state.leader_id):
            self._announce(state.leader_epoch, state.leader_id)
            self.record(
                events.LeaderClaimed(
                    replica=self.key, leader_epoch=state.leader_epoch, applied_end_offset=self.committed_end_offset
                )
            )

    def _announce(self, leader_epoch: LeaderEpoch, leader_id: NodeId | None) -> None:
        self.announced = (leader_epoch, leader_id)
        self.emit(effects.AnnounceLeader(leader_epoch=leader_epoch, leader_id=leader_id))

    def expose(self, high_watermark: MetadataOffset) -> None:
        """Sets the high watermark of the state, and hands newly committed records to the state machine."""
        assert isinstance(self.state, (states.Leader, states.Follower))
        self.state.high_watermark = high_watermark
        self.record(
            events.HighWatermarkAdvanced(
                replica=self.key,
                leader_epoch=self.leader_epoch,
                high_watermark=high_watermark,
                is_leader=isinstance(self.state, states.Leader),
            )
        )
        if high_watermark > self.committed_end_offset:
            self.committed_end_offset = high_watermark
            self.emit(effects.Commit(end_offset=high_watermark))

    # --- Transitions ------------------------------------------------------------------------------------------------

    def hear_of(self, leader_epoch: LeaderEpoch, leader_id: NodeId | None) -> None:
        """Adopts the epoch and leader that a message names; they must not be older than the known ones.

        Raises:
            IllegalQuorumState: the message names another leader of the known epoch.
        """
        state = self.state
        if leader_id == self.key.node_id and not (
            isinstance(state, (states.Leader, states.Resigned)) and state.leader_epoch == leader_epoch
        ):
            if not self.rules.stray_claims_are_unknown:
                raise states.IllegalQuorumState(f"{self.key} is said to lead epoch {leader_epoch}, and does not")
            leader_id = None
        are_known = leader_epoch == state.leader_epoch and None not in (leader_id, state.leader_id)
        if are_known and leader_id != state.leader_id:
            raise states.IllegalQuorumState(f"{leader_id} and {state.leader_id} both lead epoch {leader_epoch}")
        is_newer = leader_epoch > state.leader_epoch
        if is_newer and leader_id is None:
            self.become_unattached(leader_epoch)
        elif leader_id is not None and (is_newer or state.leader_id is None or self._lacks_address_of(leader_id)):
            self.become_follower(leader_id, leader_epoch)

    def _lacks_address_of(self, leader_id: NodeId) -> bool:
        """Returns whether the node cannot follow a leader whose id it knows, as no voter with that id is known."""
        return (
            isinstance(self.state, (states.Unattached, states.Prospective))
            and self.log.voters.by_node(leader_id) is None
        )

    def become_unattached(self, leader_epoch: LeaderEpoch) -> None:
        """Becomes Unattached: in a higher epoch whose leader is unknown, or in this epoch after a lost election."""
        state = self.state
        if leader_epoch == state.leader_epoch:
            assert isinstance(state, states.Prospective)
            leader_id, voted = state.leader_id, state.voted
        else:
            leader_id, voted = None, None
        is_carried = isinstance(state, (states.Unattached, states.Candidate, states.Resigned)) or (
            isinstance(state, states.Prospective) and not state.tally.is_lost
        )
        unattached = self._unattached_at(leader_epoch, leader_id=leader_id, voted=voted)
        if is_carried:
            assert not isinstance(state, (states.Leader, states.Follower))
            unattached.election_deadline_ms = state.election_deadline_ms
        self._become(unattached)

    def become_follower(self, leader_id: NodeId, leader_epoch: LeaderEpoch) -> None:
        """Becomes a Follower."""
        if leader_id == self.key.node_id:
            raise states.IllegalQuorumState(f"{self.key} would follow itself")
        self._become(self._follower_of(leader_id, leader_epoch))
        self.record(events.LeaderLearned(replica=self.key, leader_epoch=leader_epoch, leader_id=leader_id))

    def begin_election(self) -> None:
        """Becomes Prospective, to ask for pre-votes (KIP-996); without pre-votes it becomes a Candidate at once."""
        if not self.rules.pre_vote:
            self.become_candidate()
            return
        state = self.state
        self.state = states.Prospective(
            leader_epoch=state.leader_epoch,
            leader_id=None if state.leader_id == self.key.node_id else state.leader_id,
            voted=state.voted,
            high_watermark=state.high_watermark,
            election_deadline_ms=self._next_election_ms(),
            tally=self._tally(),
        )
        self._forget_requests()
        self.advance_election()

    def become_candidate(self) -> None:
        """Becomes a Candidate: votes for itself in the next epoch."""
        self._become(self._candidate_at(LeaderEpoch(self.leader_epoch + 1)))
        self.record(events.VoteGranted(replica=self.key, leader_epoch=self.leader_epoch, candidate=self.key))
        self.advance_election()

    def advance_election(self) -> None:
        """Ends an election, or a round of pre-votes, that the votes so far have decided."""
        state = self.state
        if isinstance(state, states.Prospective):
            if state.tally.is_won:
                self.become_candidate()
            elif state.tally.is_lost:
                self.lose_election()
        elif isinstance(state, states.Candidate) and state.tally.is_won:
            self.become_leader()

    def lose_election(self) -> None:
        """A Prospective goes back to its leader if it knows one."""
        state = self.state
        assert isinstance(state, states.Prospective)
        if state.leader_id is not None and self.log.voters.by_node(state.leader_id) is not None:
            self.become_follower(state.leader_id, state.leader_epoch)
        else:
            self.become_unattached(state.leader_epoch)

    def grant_vote(self, candidate: ReplicaKey) -> None:
        """Votes for another in the present epoch, which starts the election timer again."""
        state = self.state
        assert isinstance(state, (states.Unattached, states.Prospective))
        if isinstance(state, states.Unattached):
            state.voted = candidate
            state.election_deadline_ms = self._next_election_ms()
        else:
            state.voted, state.tally = candidate, self._tally()
            state.election_deadline_ms = self._next_election_ms()
        self._write_election()
        self.record(events.VoteGranted(replica=self.key, leader_epoch=state.leader_epoch, candidate=candidate))

    def become_leader(self) -> None:
        """Leads its epoch; the record that begins it is the first to be appended."""
        state = self.state
        assert isinstance(state, states.Candidate)
        leader = states.Leader(
            leader_epoch=state.leader_epoch,
            leader_id=self.key.node_id,
            epoch_start_offset=self.log.end_offset,
            progress={key: states.Progress() for key in self.log.voters.keys},
            check_quorum_deadline_ms=self.now_ms + self.settings.check_quorum_timeout_ms,
            begin_quorum_deadline_ms=self.now_ms,
            granted=tuple(sorted(state.tally.granted)),
        )
        self._become(leader)
        self.log.begin_epoch(leader.leader_epoch)
        control = [
            LeaderChange(leader_id=leader.leader_id, voters=self.log.voters.node_ids, granting_voters=leader.granted),
            *self._first_voters(),
        ]
        leader.collected.append(states.Collected(control=tuple(control), deadline_ms=self.now_ms))
        self.record(
            events.LeaderElected(
                replica=self.key, leader_epoch=leader.leader_epoch, start_offset=leader.epoch_start_offset
            )
        )

    def _first_voters(self) -> tuple[KRaftVersion | KRaftVoters, ...]:
        """Returns the voters for the log that has none, or that names this node by an old address."""
        voters, own = self.log.voters, self.settings.voter
        is_named = voters.by_node(own.key.node_id) == own
        if self.log.kraft_version == 0 or (self.log.voters_offset is not None and is_named):
            return ()
        updated = voters.with_updated(own) or voters
        return (KRaftVersion(level=self.log.kraft_version), KRaftVoters(voters=updated))

    def resign(self) -> None:
        """Gives leadership up in its own epoch; nothing is written, because ``quorum-state`` stays the same."""
        state = self.state
        assert isinstance(state, states.Leader)
        ends = {key: each.end_offset for key, each in state.progress.items() if key.node_id != self.key.node_id}
        successors = sorted(ends, key=lambda key: -1 if (end := ends[key]) is None else end, reverse=True)
        resigned = self._resigned_at(state.leader_epoch, successors=tuple(successors))
        self.state = resigned
        self._forget_requests()
        self.record(events.LeaderResigned(replica=self.key, leader_epoch=state.leader_epoch))
        self.fail_waiting(state)

    def _become(self, state: states.QuorumState) -> None:
        before, self.state = self.state, state
        if isinstance(before, states.Leader):
            self.record(events.LeaderDeposed(replica=self.key, leader_epoch=state.leader_epoch))
        self._write_election()
        self._forget_requests()
        if isinstance(before, states.Leader):
            self.fail_waiting(before)

    def _forget_requests(self) -> None:
        """Forgets the requests of the previous state; their responses are ignored."""
        self.outbox.forget_all()

    def fail_waiting(self, leader: states.Leader) -> None:
        """Fails the requests that wait after a loss of leadership; appended records may still be committed."""
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        for fetch in self.parked:
            answer = messages.FetchMetadataResponse(
                error=error,
                leader_id=self.state.leader_id,
                leader_epoch=self.leader_epoch,
                log_start_offset=self.log.start_offset,
            )
            self.respond(fetch.request_id, answer, cause_id=fetch.cause_id)
        self.parked.clear()
        if leader.change is not None:
            refused = messages.VoterChangeResponse(error=error)
            self.respond(leader.change.request_id, refused, cause_id=leader.change.cause_id)

    def _write_election(self) -> None:
        state = self.state
        voted = state.voted
        if self.log.kraft_version == 0 and voted is not None:
            voted = ReplicaKey(voted.node_id)
        self.emit(
            effects.WriteElection(
                election=effects.Election(leader_epoch=state.leader_epoch, leader_id=state.leader_id, voted=voted),
                kraft_version=self.log.kraft_version,
                is_synced=self.rules.vote_is_durable,
            )
        )

    # --- New states -------------------------------------------------------------------------------------------------

    def _unattached_at(
        self, leader_epoch: LeaderEpoch, *, leader_id: NodeId | None = None, voted: ReplicaKey | None = None
    ) -> states.Unattached:
        return states.Unattached(
            leader_epoch=leader_epoch,
            leader_id=leader_id,
            voted=voted,
            high_watermark=self.state.high_watermark,
            election_deadline_ms=self._next_election_ms(),
        )

    def _candidate_at(self, leader_epoch: LeaderEpoch) -> states.Candidate:
        return states.Candidate(
            leader_epoch=leader_epoch,
            voted=self.key,
            high_watermark=self.state.high_watermark,
            election_deadline_ms=self._next_election_ms(),
            tally=self._tally(),
        )

    def _follower_of(self, leader_id: NodeId, leader_epoch: LeaderEpoch) -> states.Follower:
        return states.Follower(
            leader_epoch=leader_epoch,
            leader_id=leader_id,
            voted=self.state.voted if leader_epoch == self.leader_epoch else None,
            high_watermark=self.state.high_watermark,
            fetch_deadline_ms=self.now_ms + self.settings.fetch_timeout_ms,
            update_voter_deadline_ms=self.now_ms + self.settings.fetch_timeout_ms,
        )

    def _resigned_at(self, leader_epoch: LeaderEpoch, *, successors: tuple[ReplicaKey, ...]) -> states.Resigned:
        return states.Resigned(
            leader_epoch=leader_epoch,
            leader_id=self.key.node_id,
            election_deadline_ms=self._next_election_ms(),
            unacknowledged={key.node_id for key in self.other_voters},
            preferred_successors=successors,
        )

    def _tally(self) -> VoteTally:
        tally = VoteTally(self.log.voters.node_ids)
        tally.record(self.key.node_id, is_granted=True)
        return tally

    def _next_election_ms(self) -> int:
        settings = self.settings
        return self.now_ms + settings.election_timeout_ms + self.draws.below(settings.election_jitter_ms)
