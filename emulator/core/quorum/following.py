"""The follower: it fetches, appends, and truncates records that its leader does not have (KIP-595, KIP-630)."""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import effects, events, messages
from laststand.emulator.core.quorum.answers import Handled, handle_answer
from laststand.emulator.core.quorum.batches import LogPosition, QuorumBatch, Snapshot
from laststand.emulator.core.quorum.metadata_log import MetadataLog
from laststand.emulator.core.quorum.replica import Replica
from laststand.emulator.core.quorum.states import Download, Follower, IllegalCall, IllegalQuorumState
from laststand.emulator.core.types import MetadataOffset, NodeId


class CommittedRecordsMissing(IllegalQuorumState):
    """The leader lacks records that are committed here. The process stops, and truncates nothing (KAFKA-12460)."""


class HighWatermarkFell(IllegalQuorumState):
    """The leader's high watermark is below one that this node had from it, or from an earlier leader."""


# --- Asking -----------------------------------------------------------------------------------------------------------


def fetch_from_leader(replica: Replica, state: Follower) -> None:
    """Fetches from the leader; if that does not answer, from another server, to learn of a new leader.

    One fetch is under way at a time, to any node: two fetches could append the same records twice. It waits until
    records that were fetched before are durable, because its offset reports them as durable.
    """
    outbox, now_ms = replica.outbox, replica.now_ms
    if outbox.has_timed_out(state.leader_id, now_ms=now_ms):
        outbox.forget(state.leader_id)
        fetch_from_any(replica)
    elif outbox.is_backing_off(state.leader_id, now_ms=now_ms):
        fetch_from_any(replica)
    elif not outbox.is_waiting(now_ms=now_ms):
        _send(replica, state.leader_id)


def fetch_from_any(replica: Replica) -> None:
    """Fetches from a server that is ready, drawn among all, whose response names at least the leader."""
    if replica.outbox.is_waiting(now_ms=replica.now_ms):
        return
    ready = replica.outbox.ready_among(replica.settings.servers, now_ms=replica.now_ms)
    if ready:
        _send(replica, ready[replica.draws.below(len(ready))])


def _send(replica: Replica, node_id: NodeId) -> None:
    if not replica.may_claim_log:
        return
    settings, state = replica.settings, replica.state
    request: messages.QuorumRequest
    if isinstance(state, Follower) and state.download is not None and node_id == state.leader_id:
        request = messages.FetchSnapshotRequest(
            cluster_id=settings.cluster_id,
            replica=replica.key,
            leader_epoch=state.leader_epoch,
            snapshot=state.download.position,
            position=len(state.download.content),
        )
    else:
        request = messages.FetchMetadataRequest(
            cluster_id=settings.cluster_id,
            replica=replica.key,
            leader_epoch=state.leader_epoch,
            fetch_offset=replica.log.end_offset,
            last_fetched_epoch=replica.log.last_epoch,
            high_watermark=state.high_watermark,
            max_wait_ms=settings.fetch_wait_ms,
        )
    replica.send(node_id, request)


# --- Answers ----------------------------------------------------------------------------------------------------------


def handle_fetch_response(replica: Replica, answer: messages.FetchMetadataResponse) -> Handled:
    """Appends batches, truncates the log, or begins to download a snapshot, as the response demands."""
    handled = handle_answer(replica, answer)
    if handled is not Handled.OPEN:
        return handled
    state = replica.state
    if answer.error is not ErrorCode.NONE or not isinstance(state, Follower):
        return Handled.FAILED
    if answer.diverging is not None:
        _cut(replica, state, answer.diverging)
    elif answer.snapshot is not None:
        state.download = Download(position=answer.snapshot)
    else:
        if answer.batches:
            _append(replica, answer.batches)
        _follow_high_watermark(replica, state, answer.high_watermark)
    _note_success(replica, state)
    return Handled.DONE


def _note_success(replica: Replica, state: Follower) -> None:
    state.has_fetched = True
    state.fetch_deadline_ms = replica.now_ms + replica.settings.fetch_timeout_ms


def cut_offset(log: MetadataLog, diverging: LogPosition, *, high_watermark: MetadataOffset | None) -> MetadataOffset:
    """Returns the offset to which a log that diverges from its leader's is truncated.

    Raises:
        CommittedRecordsMissing: that offset is below the high watermark.
    """
    offset = min(log.truncation_offset(diverging), log.end_offset)
    if high_watermark is not None and min(offset, diverging.end_offset) < high_watermark:
        raise CommittedRecordsMissing(f"{diverging} of the leader is below the high watermark {high_watermark}")
    return offset


def _cut(replica: Replica, state: Follower, diverging: LogPosition) -> None:
    # What this process has exposed in an earlier state is committed, too (the high watermark of Kafka's log).
    known = replica.committed_end_offset if replica.rules.committed_is_never_cut else None
    offset = cut_offset(replica.log, diverging, high_watermark=known)
    if offset == replica.log.end_offset:
        return
    replica.record(
        events.LogTruncated(
            replica=replica.key,
            leader_epoch=state.leader_epoch,
            from_end_offset=replica.log.end_offset,
            end_offset=offset,
        )
    )
    replica.log.truncate(offset)
    replica.emit(effects.TruncateMetadata(end_offset=offset))
    replica.note_cut()
    if state.high_watermark is not None:
        state.high_watermark = min(state.high_watermark, offset)


def _append(replica: Replica, batches: tuple[QuorumBatch, ...]) -> None:
    """Appends the batches of this epoch or older ones; drops the rest."""
    appended = []
    for batch in batches:
        if batch.leader_epoch > replica.leader_epoch:
            break
        replica.log.append(batch)
        appended.append(batch)
    if appended:
        replica.emit(effects.AppendBatches(batches=tuple(appended)))
    if replica.has_to_sync:
        replica.sync_log()


def _follow_high_watermark(replica: Replica, state: Follower, leaders: MetadataOffset | None) -> None:
    if leaders is None:
        return
    high_watermark = min(replica.log.end_offset, leaders)
    if state.high_watermark is not None and high_watermark < state.high_watermark:
        raise HighWatermarkFell(f"from {state.high_watermark} to {high_watermark}")
    if high_watermark != state.high_watermark:
        replica.expose(high_watermark)


def handle_fetch_snapshot_response(
    replica: Replica, request: messages.FetchSnapshotRequest, answer: messages.FetchSnapshotResponse
) -> Handled:
    """Adds a part of a snapshot; the whole one is stored before it replaces the log.

    Raises:
        IllegalQuorumState: the part is not the requested one, or the snapshot does not go beyond the log.
    """
    handled = handle_answer(replica, answer)
    if handled is not Handled.OPEN:
        return handled
    state = replica.state
    if not isinstance(state, Follower):
        return Handled.FAILED
    if answer.error is ErrorCode.SNAPSHOT_NOT_FOUND or answer.snapshot is None:
        state.download = None
        _note_success(replica, state)
        return Handled.DONE
    download = state.download
    if download is None or (answer.snapshot, answer.position) != (download.position, len(download.content)):
        raise IllegalQuorumState(f"{answer.snapshot} at {answer.position} was not asked for by {request}")
    download.content += answer.content
    if len(download.content) == answer.size:
        _restart_from(replica, state, answer, download)
    _note_success(replica, state)
    return Handled.DONE


def _restart_from(
    replica: Replica, state: Follower, answer: messages.FetchSnapshotResponse, download: Download
) -> None:
    if download.position.end_offset <= replica.log.end_offset and download.position < replica.log.position:
        raise IllegalQuorumState(f"snapshot {download.position} is not above the log's end {replica.log.position}")
    snapshot = Snapshot(
        position=download.position,
        voters=answer.voters,
        kraft_version=answer.kraft_version,
        content=download.content,
    )
    state.download = None
    replica.emit(effects.StoreSnapshot(snapshot=snapshot))
    replica.log.restart(snapshot)
    replica.emit(effects.RestartMetadata(position=snapshot.position))
    replica.note_cut()
    replica.synced_end_offset = replica.log.end_offset
    replica.committed_end_offset = replica.log.end_offset
    replica.expose(replica.log.end_offset)
    replica.emit(effects.LoadSnapshot(position=snapshot.position))


# --- Own snapshots ----------------------------------------------------------------------------------------------------


def take_snapshot(replica: Replica, position: LogPosition, content: bytes) -> None:
    """Stores a snapshot of what the state machine has applied, which has to be committed (KIP-630).

    Raises:
        IllegalCall: the position is above the high watermark, not in the log, or within a batch.
    """
    log = replica.log
    if position.end_offset < log.start_offset or any(each.position == position for each in log.snapshots):
        return
    if position.end_offset > (replica.state.high_watermark or 0):
        raise IllegalCall(f"snapshot at {position}, above the high watermark {replica.state.high_watermark}")
    end = log.end_of_epoch(position.leader_epoch)
    if end.leader_epoch != position.leader_epoch or end.end_offset < position.end_offset:
        raise IllegalCall(f"{position} is not in the log")
    if not log.starts_batch(position.end_offset):
        raise IllegalCall(f"{position} is within a batch")
    snapshot = Snapshot(
        position=position,
        voters=log.voters_at(position.end_offset) if log.kraft_version else None,
        kraft_version=log.kraft_version,
        content=content,
    )
    log.add_snapshot(snapshot)
    replica.emit(effects.StoreSnapshot(snapshot=snapshot))
