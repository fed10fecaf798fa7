"""The leader: it appends, tracks the replicas' progress, and resigns without a majority (Kafka's ``LeaderState``)."""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import effects, events, messages
from laststand.emulator.core.quorum.batches import KRaftVoters, QuorumBatch
from laststand.emulator.core.quorum.replica import Replica
from laststand.emulator.core.quorum.settings import CAUGHT_UP_MS, OBSERVER_SESSION_MS
from laststand.emulator.core.quorum.states import Collected, IllegalCall, Leader, Progress
from laststand.emulator.core.quorum.tally import majority_end_offset, majority_of
from laststand.emulator.core.quorum.voter_set import ReplicaKey, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset

# --- Appending --------------------------------------------------------------------------------------------------------


def propose(replica: Replica, leader_epoch: LeaderEpoch, values: tuple[bytes, ...], *, proposal_id: int) -> None:
    """Collects records of the state machine, and reports to it the offset of the last.

    Raises:
        IllegalCall: the proposal is of an epoch that this node has not reached.
    """
    state = replica.state
    if not isinstance(state, Leader) or leader_epoch < state.leader_epoch:
        replica.emit(effects.RefuseProposal(proposal_id=proposal_id))
        return
    if leader_epoch > state.leader_epoch:
        raise IllegalCall(f"records proposed for epoch {leader_epoch} in epoch {state.leader_epoch}")
    if state.collected and not state.collected[-1].control:
        state.collected[-1].values += values
    else:
        deadline_ms = replica.now_ms + replica.settings.append_linger_ms
        state.collected.append(Collected(values=values, deadline_ms=deadline_ms))
    last_offset = MetadataOffset(_next_offset(replica, state) - 1)
    replica.emit(effects.AcceptProposal(proposal_id=proposal_id, last_offset=last_offset))


def append_voters(replica: Replica, state: Leader, voters: VoterSet) -> MetadataOffset:
    """Collects another set of voters, to be appended at once; returns the offset of its record."""
    state.collected.append(Collected(control=(KRaftVoters(voters=voters),), deadline_ms=replica.now_ms))
    offset = MetadataOffset(_next_offset(replica, state) - 1)
    replica.record(
        events.VotersChanged(replica=replica.key, leader_epoch=state.leader_epoch, offset=offset, voters=voters.keys)
    )
    return offset


def _next_offset(replica: Replica, state: Leader) -> MetadataOffset:
    return MetadataOffset(replica.log.end_offset + sum(collected.count for collected in state.collected))


def append_collected(replica: Replica) -> bool:
    """Appends collected records if they are due; returns whether it did. From then on new voters are in force."""
    state = replica.state
    assert isinstance(state, Leader)
    if not state.collected or min(each.deadline_ms for each in state.collected) > replica.now_ms:
        return False
    collected, state.collected = state.collected, []
    batches = []
    for each in collected:
        batch = QuorumBatch(
            base_offset=replica.log.end_offset,
            leader_epoch=state.leader_epoch,
            control=each.control,
            values=each.values,
        )
        replica.log.append(batch)
        batches.append(batch)
    replica.emit(effects.AppendBatches(batches=tuple(batches)))
    _follow_voters(replica, state)
    if not counts_synced_log(replica):
        count_own_log(replica, state, replica.log.end_offset)
    replica.sync_log()
    return True


def _follow_voters(replica: Replica, state: Leader) -> None:
    """Adopts the set of voters in force; a replica that is no longer a voter becomes an observer."""
    known = {**state.observers, **state.progress}
    progress = {}
    for key in replica.log.voters.keys:
        matching = next((other for other in known if key.is_matched_by(other)), None)
        progress[key] = Progress() if matching is None else known.pop(matching)
    state.progress, state.observers = progress, known
    state.observers.pop(replica.key, None)


# --- Counting ---------------------------------------------------------------------------------------------------------


def progress_of(state: Leader, key: ReplicaKey) -> Progress:
    """Returns what is known of a replica, a voter or an observer."""
    voter = voter_key(state, key)
    if voter is not None:
        return state.progress[voter]
    return state.observers.setdefault(key, Progress())


def voter_key(state: Leader, key: ReplicaKey) -> ReplicaKey | None:
    """Returns the key of the voter that a replica's node and directory match; ``None`` for an observer."""
    return next((voter for voter in state.progress if voter.is_matched_by(key)), None)


def count_own_log(replica: Replica, state: Leader, end_offset: MetadataOffset) -> bool:
    """Counts the leader's own log up to an offset, if it is a voter; returns whether more is committed."""
    own = voter_key(state, replica.key)
    if own is not None:
        state.progress[own].end_offset = end_offset
    return advance_high_watermark(replica, state)


def count_fetch(replica: Replica, state: Leader, request: messages.FetchMetadataRequest) -> bool:
    """Counts a valid fetch; returns whether it commits anything. A voter that lost records counts up to its new end."""
    progress, now_ms = progress_of(state, request.replica), replica.now_ms
    leader_end_offset = replica.log.end_offset
    if request.fetch_offset >= leader_end_offset:
        progress.last_caught_up_ms = now_ms
    elif progress.last_fetch_end_offset is not None and request.fetch_offset >= progress.last_fetch_end_offset:
        progress.last_caught_up_ms = max(progress.last_caught_up_ms or 0, progress.last_fetch_ms or 0)
    progress.last_fetch_ms = now_ms
    progress.last_fetch_end_offset = leader_end_offset
    progress.end_offset = request.fetch_offset
    count_contact(replica, state, request.replica)
    return voter_key(state, request.replica) is not None and advance_high_watermark(replica, state)


def count_contact(replica: Replica, state: Leader, key: ReplicaKey) -> None:
    """Counts a voter for check-quorum: once the counted voters and the leader are a majority, the timer restarts."""
    voter = voter_key(state, key)
    if voter is not None:
        state.fetched.add(voter)
    needed = majority_of(len(state.progress)) - (voter_key(state, replica.key) is not None)
    if len(state.fetched) >= needed:
        state.fetched.clear()
        state.check_quorum_deadline_ms = replica.now_ms + replica.settings.check_quorum_timeout_ms


def advance_high_watermark(replica: Replica, state: Leader) -> bool:
    """Raises the high watermark to the offset that a majority has, once that is past the epoch's start (KIP-595)."""
    end_offset = majority_end_offset(progress.end_offset for progress in state.progress.values())
    if end_offset is None or end_offset <= (state.high_watermark or 0):
        return False
    if end_offset <= state.epoch_start_offset and replica.rules.commit_own_epoch:
        return False
    replica.expose(end_offset)
    return True


def misses_majority(replica: Replica, state: Leader) -> bool:
    """Returns whether no majority has fetched for so long that the leader has to resign (KAFKA-15489)."""
    return checks_quorum(replica, state) and replica.now_ms >= state.check_quorum_deadline_ms


def checks_quorum(replica: Replica, state: Leader) -> bool:
    """Returns whether the leader resigns when no majority fetches for too long."""
    return replica.rules.check_quorum and len(state.progress) > 1


def counts_synced_log(replica: Replica) -> bool:
    """Returns whether a leader counts its own log once it is synced, and not at the append."""
    return replica.rules.leader_syncs_first


def is_caught_up(replica: Replica, state: Leader, key: ReplicaKey) -> bool:
    """Returns whether an observer once had everything, and has fetched within the last hour (``LeaderState``)."""
    progress = state.observers.get(key)
    return (
        progress is not None
        and progress.last_caught_up_ms is not None
        and progress.last_fetch_ms is not None
        and progress.last_fetch_ms > replica.now_ms - CAUGHT_UP_MS
    )


def describe(replica: Replica, state: Leader) -> messages.DescribeQuorumResponse:
    """Returns what the leader knows of all replicas that fetch."""
    silent_ms = replica.now_ms - OBSERVER_SESSION_MS
    observers = {
        key: progress for key, progress in state.observers.items() if (progress.last_fetch_ms or 0) > silent_ms
    }
    return messages.DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        high_watermark=state.high_watermark,
        voters=tuple(_described(key, progress) for key, progress in sorted(state.progress.items(), key=_by_node)),
        observers=tuple(_described(key, progress) for key, progress in sorted(observers.items(), key=_by_node)),
    )


def _by_node(entry: tuple[ReplicaKey, Progress]) -> tuple[int, str]:
    key, _ = entry
    return key.node_id, key.directory_id or ""


def _described(key: ReplicaKey, progress: Progress) -> messages.ReplicaProgress:
    return messages.ReplicaProgress(
        key=key,
        log_end_offset=progress.end_offset,
        last_fetch_ms=progress.last_fetch_ms,
        last_caught_up_ms=progress.last_caught_up_ms,
    )
