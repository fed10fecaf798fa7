"""The leader's answers to replicas that fetch: records, where their log diverges, or a snapshot (KIP-595, KIP-630)."""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import messages
from laststand.emulator.core.quorum.answers import has_other_cluster, leader_error
from laststand.emulator.core.quorum.batches import LogPosition
from laststand.emulator.core.quorum.leading import count_contact, count_fetch
from laststand.emulator.core.quorum.metadata_log import Comparison
from laststand.emulator.core.quorum.replica import ParkedFetch, Replica
from laststand.emulator.core.quorum.states import Leader
from laststand.emulator.core.types import CauseId, RequestId

# --- Fetch ------------------------------------------------------------------------------------------------------------


def serve_fetch(
    replica: Replica, request: messages.FetchMetadataRequest, *, request_id: RequestId, cause_id: CauseId
) -> None:
    """Answers a fetch, or lets it wait for something new."""
    response = _answer_fetch(replica, request)
    state = replica.state
    knows_less = (
        isinstance(state, Leader)
        and None not in (request.high_watermark, state.high_watermark)
        and (request.high_watermark or 0) < (state.high_watermark or 0)
    )
    is_useful = response.error is not ErrorCode.NONE or response.batches or response.diverging or response.snapshot
    if is_useful or knows_less or request.max_wait_ms == 0:
        replica.respond(request_id, response, cause_id=cause_id)
        return
    replica.parked.append(
        ParkedFetch(
            request,
            response,
            request_id=request_id,
            cause_id=cause_id,
            deadline_ms=replica.now_ms + request.max_wait_ms,
        )
    )


def _answer_fetch(replica: Replica, request: messages.FetchMetadataRequest) -> messages.FetchMetadataResponse:
    if has_other_cluster(replica, request.cluster_id):
        return _fetch_answer(replica, ErrorCode.INCONSISTENT_CLUSTER_ID, is_top_level=True)
    if (
        min(request.max_wait_ms, request.fetch_offset, request.last_fetched_epoch) < 0
        or request.last_fetched_epoch > request.leader_epoch
    ):
        return _fetch_answer(replica, ErrorCode.INVALID_REQUEST)
    if (error := leader_error(replica, leader_epoch=request.leader_epoch)) is not None:
        return _fetch_answer(replica, error)
    state = replica.state
    assert isinstance(state, Leader)
    verdict, position = replica.log.compare(LogPosition(request.last_fetched_epoch, request.fetch_offset))
    if verdict is Comparison.DIVERGING:
        return _fetch_answer(replica, diverging=position)
    if verdict is Comparison.SNAPSHOT:
        return _fetch_answer(replica, snapshot=position)
    if request.replica.node_id == replica.key.node_id:
        return _fetch_answer(replica, ErrorCode.UNKNOWN_SERVER_ERROR)
    if count_fetch(replica, state, request):
        answer_parked(replica)
    batches = replica.log.read(request.fetch_offset, batches_max=replica.settings.fetch_batches_max)
    return messages.FetchMetadataResponse(
        error=ErrorCode.NONE,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        high_watermark=state.high_watermark,
        log_start_offset=replica.log.start_offset,
        batches=batches,
    )


def _fetch_answer(
    replica: Replica,
    error: ErrorCode = ErrorCode.NONE,
    *,
    diverging: LogPosition | None = None,
    snapshot: LogPosition | None = None,
    is_top_level: bool = False,
) -> messages.FetchMetadataResponse:
    return messages.FetchMetadataResponse(
        error=error,
        leader_id=replica.state.leader_id,
        leader_epoch=replica.leader_epoch,
        high_watermark=replica.state.high_watermark if error is ErrorCode.NONE else None,
        log_start_offset=replica.log.start_offset,
        diverging=diverging,
        snapshot=snapshot,
        is_top_level=is_top_level,
    )


def answer_parked(replica: Replica) -> None:
    """Serves every waiting fetch again: there are new records, or a new high watermark.

    As in Kafka, each counts as a fetch at this moment, although its sender may be gone.
    """
    parked, replica.parked = replica.parked, []
    for fetch in parked:
        response = _answer_fetch(replica, fetch.request)
        replica.respond(fetch.request_id, response, cause_id=fetch.cause_id)


def expire_parked(replica: Replica) -> None:
    """Answers fetches that have waited long enough with nothing new."""
    due = [fetch for fetch in replica.parked if fetch.deadline_ms <= replica.now_ms]
    if not due:
        return
    replica.parked = [fetch for fetch in replica.parked if fetch.deadline_ms > replica.now_ms]
    for fetch in due:
        replica.respond(fetch.request_id, fetch.response, cause_id=fetch.cause_id)


# --- FetchSnapshot ----------------------------------------------------------------------------------------------------


def answer_fetch_snapshot(replica: Replica, request: messages.FetchSnapshotRequest) -> messages.FetchSnapshotResponse:
    """Answers with a part of a snapshot, which counts for check-quorum and for nothing else."""
    if has_other_cluster(replica, request.cluster_id):
        return _snapshot_error(replica, ErrorCode.INCONSISTENT_CLUSTER_ID)
    if (error := leader_error(replica, leader_epoch=request.leader_epoch)) is not None:
        return _snapshot_error(replica, error)
    state = replica.state
    assert isinstance(state, Leader)
    snapshot = next((each for each in replica.log.snapshots if each.position == request.snapshot), None)
    if snapshot is None:
        return _snapshot_error(replica, ErrorCode.SNAPSHOT_NOT_FOUND)
    if not 0 <= request.position < len(snapshot.content):
        return _snapshot_error(replica, ErrorCode.POSITION_OUT_OF_RANGE)
    count_contact(replica, state, request.replica)
    end = request.position + replica.settings.snapshot_chunk_bytes
    return messages.FetchSnapshotResponse(
        error=ErrorCode.NONE,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        snapshot=snapshot.position,
        position=request.position,
        size=len(snapshot.content),
        content=snapshot.content[request.position : end],
        voters=snapshot.voters,
        kraft_version=snapshot.kraft_version,
    )


def _snapshot_error(replica: Replica, error: ErrorCode) -> messages.FetchSnapshotResponse:
    return messages.FetchSnapshotResponse(
        error=error,
        leader_id=replica.state.leader_id,
        leader_epoch=replica.leader_epoch,
        is_top_level=error is ErrorCode.INCONSISTENT_CLUSTER_ID,
    )
