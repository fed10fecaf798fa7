"""A node of the quorum in the state that a vector describes, its disk, and the words for what became of it."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from laststand.emulator.core import effects as node_effects
from laststand.emulator.core import inputs as node_inputs
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.quorum import effects, inputs, messages
from laststand.emulator.core.quorum.batches import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    LogPosition,
    QuorumBatch,
    Snapshot,
)
from laststand.emulator.core.quorum.following import CommittedRecordsMissing, HighWatermarkFell
from laststand.emulator.core.quorum.node import QuorumNode
from laststand.emulator.core.quorum.settings import QuorumSettings
from laststand.emulator.core.quorum.states import (
    Candidate,
    Follower,
    IllegalCall,
    IllegalQuorumState,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, VersionRange, Voter, VoterSet
from laststand.emulator.core.switches import ERAS
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset, NodeId, RequestId
from tests.conformance.harness import Fields

CLUSTER_ID: Final = "the-cluster"
_CAUSE: Final = CauseId("vector")
_START_MS: Final = 1_000_000
_SNAPSHOT_BYTES: Final = 422
"""Of a snapshot of the recording harness: header, version, voters and footer."""

ANY_SERVER: Final = "any bootstrap server"

_STATES: Final = {
    Unattached: "Unattached",
    Prospective: "Prospective",
    Candidate: "Candidate",
    Leader: "Leader",
    Follower: "Follower",
    Resigned: "Resigned",
}
_CONTROL: Final = {LeaderChange: "LEADER_CHANGE", KRaftVersion: "KRAFT_VERSION", KRaftVoters: "KRAFT_VOTERS"}
_FATAL: Final = {
    CommittedRecordsMissing: "KafkaException",
    HighWatermarkFell: "IllegalArgumentException",
    IllegalQuorumState: "IllegalStateException",
}


def directory(name: str | None) -> DirectoryId | None:
    """Returns a directory id; ``none`` is none."""
    return None if name is None or name == "none" else DirectoryId(name)


def replica_key(fields: Fields) -> ReplicaKey:
    """Returns a replica key from ``id`` and ``directory``."""
    return ReplicaKey(NodeId(fields["id"]), directory(fields.get("directory")))


def parse_key(text: str) -> ReplicaKey:
    """Returns a replica key from ``2/d2`` or ``2``."""
    node_id, _, name = text.partition("/")
    return ReplicaKey(NodeId(int(node_id)), directory(name or None))


def voter_set(keys: Iterable[ReplicaKey]) -> VoterSet:
    """Returns a set with an address for every voter."""
    return VoterSet.of(Voter(key=key, listener=_listener(key.node_id)) for key in keys)


def _listener(node_id: int) -> str:
    return f"node-{node_id}:9093"


def batches_of(counts: Iterable[tuple[int, int]]) -> list[QuorumBatch]:
    """Returns a batch per epoch and number of records, from offset 0 on."""
    made: list[QuorumBatch] = []
    for leader_epoch, records in counts:
        base = made[-1].end_offset if made else MetadataOffset(0)
        made.append(QuorumBatch(base_offset=base, leader_epoch=LeaderEpoch(leader_epoch), values=(b"",) * records))
    return made


def position_of(fields: Fields) -> LogPosition:
    """Returns a position from ``epoch`` and ``offset`` or ``end_offset``."""
    offset = fields["offset"] if "offset" in fields else fields["end_offset"]
    return LogPosition(LeaderEpoch(fields["epoch"]), MetadataOffset(offset))


def _shown_position(position: LogPosition) -> Fields:
    return {"offset": position.end_offset, "epoch": position.leader_epoch}


def _shown_key(key: ReplicaKey | None) -> Fields | None:
    return None if key is None else {"id": key.node_id, "directory": key.directory_id}


def _offset(value: int | None) -> MetadataOffset | None:
    return None if value is None or value == -1 else MetadataOffset(value)


def _node_id(value: int | None) -> NodeId | None:
    return None if value is None or value == -1 else NodeId(value)


def _wire(value: int | None) -> int:
    return -1 if value is None else value


def _error(event: Fields) -> ErrorCode:
    return ErrorCode[event.get("error", "NONE")]


class QuorumWorld:
    """The node under test.

    Args:
        config: of the vector.

    Attributes:
        node: under test.
        now_ms: its time.
        fatal: name of Kafka's exception that would have ended the process.
        call_error: name of the exception that the caller would have got.
    """

    def __init__(self, config: Fields) -> None:
        self.now_ms = _START_MS
        self.fatal: str | None = None
        self.call_error: str | None = None
        self.accepted: int | None = None
        self.sent: list[node_effects.SendRequest] = []
        self.responses: list[messages.QuorumAnswer] = []
        self.election_writes = 0
        self.is_log_synced = False
        self._requests = itertools.count(1)
        self._election = effects.Election()
        self._announced: tuple[int, int | None] = (0, None)
        self._committed_end = 0
        self._under_way: list[node_effects.SendRequest] = []
        self._settings = _settings(config)
        loaded = _loaded(config, self._settings)
        self._synced_end = loaded.batches[-1].end_offset if loaded.batches else 0
        self.node = QuorumNode(self._settings, loaded, now_ms=self.now_ms)
        self._execute(self.node.replica.take_effects())

    # --- Playing ----------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Begins to watch: what was sent and written so far does not count."""
        self.sent, self.responses = [], []
        self.election_writes, self.is_log_synced = 0, False

    def start(self) -> None:
        """Lets the node do what it wants to do first."""
        self._step(node_inputs.Started(cause_id=_CAUSE))

    def play(self, event: Fields) -> None:
        """Plays an event or a step of ``setup``."""
        match event["type"]:
            case "poll":
                self._pass_time(0)
            case "time":
                self._pass_time(event["ms"])
            case "become_leader":
                self._become_leader()
            case "commit_all":
                self._commit_all()
            case "append":
                values = tuple(str(value).encode() for value in event["values"])
                self._step(
                    inputs.Proposed(
                        cause_id=_CAUSE, proposal_id=1, leader_epoch=LeaderEpoch(event["epoch"]), values=values
                    )
                )
            case "resign":
                self._step(inputs.ResignRequested(cause_id=_CAUSE, leader_epoch=LeaderEpoch(event["epoch"])))
            case "shutdown":
                self._step(node_inputs.ShutdownRequested(cause_id=_CAUSE))
            case "create_snapshot":
                content = bytes(_SNAPSHOT_BYTES)
                self._step(inputs.SnapshotTaken(cause_id=_CAUSE, position=position_of(event), content=content))
            case kind if kind.endswith("_response"):
                self._answer(event)
            case _:
                self._ask(self._request(event))

    def _pass_time(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self._step(node_inputs.TimerFired(cause_id=_CAUSE))

    def _become_leader(self) -> None:
        state = self.node.replica.state
        assert isinstance(state, Unattached)
        self._pass_time(state.election_deadline_ms - self.now_ms)
        for nominee in (Prospective, Candidate):
            for voter in self.node.replica.other_voters:
                state = self.node.replica.state
                if isinstance(state, nominee):
                    self._answer(
                        {"type": "vote_response", "from": voter.node_id, "epoch": state.leader_epoch, "granted": True}
                    )

    def _commit_all(self) -> None:
        replica = self.node.replica
        for voter in replica.other_voters:
            self._ask(
                messages.FetchMetadataRequest(
                    cluster_id=CLUSTER_ID,
                    replica=voter,
                    leader_epoch=replica.leader_epoch,
                    fetch_offset=replica.log.end_offset,
                    last_fetched_epoch=replica.log.last_epoch,
                    high_watermark=None,
                    max_wait_ms=0,
                )
            )

    def _ask(self, request: messages.QuorumRequest) -> None:
        request_id = RequestId(next(self._requests))
        self._step(node_inputs.RequestReceived(cause_id=_CAUSE, request_id=request_id, request=cast(Any, request)))

    def _request(self, event: Fields) -> messages.QuorumRequest:
        cluster_id = {"absent": None, None: CLUSTER_ID}.get(event.get("cluster"), "another-cluster")
        key = self._settings.key
        voter = replica_key(event["voter"]) if "voter" in event else key
        epoch = LeaderEpoch(event.get("epoch", 0))
        listener = _listener(event.get("id", 0)) if event.get("endpoints", True) else None
        named = ReplicaKey(NodeId(event.get("id", -1)), directory(event.get("directory")))
        sender = ReplicaKey(NodeId(event.get("from", -1)), directory(event.get("directory")))
        match event["type"]:
            case "vote":
                return messages.VoteRequest(
                    cluster_id=cluster_id,
                    voter=voter,
                    candidate=sender,
                    leader_epoch=epoch,
                    last_epoch=LeaderEpoch(event["last_epoch"]),
                    last_offset=MetadataOffset(event["last_offset"]),
                    is_pre_vote=event.get("pre_vote", False),
                )
            case "begin_quorum_epoch":
                return messages.BeginQuorumEpochRequest(
                    cluster_id=cluster_id, voter=voter, leader_id=NodeId(event["leader"]), leader_epoch=epoch
                )
            case "end_quorum_epoch":
                return messages.EndQuorumEpochRequest(
                    cluster_id=cluster_id,
                    leader_id=NodeId(event["leader"]),
                    leader_epoch=epoch,
                    preferred_successors=tuple(replica_key(each) for each in event["preferred"]),
                )
            case "fetch":
                return messages.FetchMetadataRequest(
                    cluster_id=cluster_id,
                    replica=sender,
                    leader_epoch=epoch,
                    fetch_offset=MetadataOffset(event["offset"]),
                    last_fetched_epoch=LeaderEpoch(event["last_epoch"]),
                    high_watermark=_offset(event.get("high_watermark")),
                    max_wait_ms=event.get("max_wait_ms", 0),
                )
            case "fetch_snapshot":
                return messages.FetchSnapshotRequest(
                    cluster_id=cluster_id,
                    replica=sender,
                    leader_epoch=epoch,
                    snapshot=position_of(event["snapshot"]),
                    position=event["position"],
                )
            case "add_voter":
                return messages.AddRaftVoterRequest(
                    cluster_id=cluster_id,
                    voter=named,
                    listener=listener,
                    ack_when_committed=event.get("ack_when_committed", True),
                )
            case "remove_voter":
                return messages.RemoveRaftVoterRequest(cluster_id=cluster_id, voter=named)
            case "update_voter":
                return messages.UpdateRaftVoterRequest(
                    cluster_id=cluster_id,
                    leader_epoch=epoch,
                    voter=named,
                    listener=listener,
                    versions=VersionRange(event["min"], event["max"]),
                )
            case "describe_quorum":
                return messages.DescribeQuorumRequest()
            case unknown:
                raise ValueError(f"event {unknown} is not known")

    def _answer(self, event: Fields) -> None:
        answer = self._response(event)
        asked = self._asked(event["from"], answer)
        if asked is None:
            return
        self._under_way.remove(asked)
        self._step(
            node_inputs.ResponseReceived(
                cause_id=_CAUSE, correlation_id=asked.correlation_id, response=cast(Any, answer)
            )
        )

    def _asked(self, sender: int, answer: messages.QuorumAnswer) -> node_effects.SendRequest | None:
        """Returns the request that is answered; whoever knows no leader asked any server, so any may answer."""
        wanted = type(answer).__name__.removesuffix("Response")
        of_kind = [each for each in self._under_way if type(each.request).__name__.removesuffix("Request") == wanted]
        from_sender = [each for each in of_kind if each.destination == sender]
        if isinstance(self.node.replica.state, Unattached):
            from_sender = from_sender or of_kind
        return from_sender[-1] if from_sender else None

    def _response(self, event: Fields) -> messages.QuorumAnswer:
        common: dict[str, Any] = {
            "error": _error(event),
            "leader_id": _node_id(event.get("leader")),
            "leader_epoch": LeaderEpoch(event.get("epoch", 0)),
        }
        match event["type"]:
            case "vote_response":
                return messages.VoteResponse(**common, is_granted=event.get("granted", False))
            case "begin_quorum_epoch_response":
                return messages.BeginQuorumEpochResponse(**common)
            case "end_quorum_epoch_response":
                return messages.EndQuorumEpochResponse(**common)
            case "fetch_response":
                return messages.FetchMetadataResponse(
                    **common,
                    high_watermark=_offset(event.get("high_watermark")),
                    diverging=position_of(event["diverging"]) if "diverging" in event else None,
                    snapshot=position_of(event["snapshot"]) if "snapshot" in event else None,
                    batches=_batches(event.get("records")),
                )
            case "fetch_snapshot_response":
                return self._snapshot_part(event, common)
            case "update_voter_response" | "update_raft_voter_response":
                return messages.UpdateRaftVoterResponse(**common)
            case "api_versions_response":
                versions = VersionRange(event.get("min", 0), event.get("max", 1))
                return messages.ApiVersionsResponse(error=_error(event), versions=versions)
            case unknown:
                raise ValueError(f"event {unknown} is not known")

    def _snapshot_part(self, event: Fields, common: dict[str, Any]) -> messages.FetchSnapshotResponse:
        if common["error"] is not ErrorCode.NONE:
            return messages.FetchSnapshotResponse(**common)
        end = _SNAPSHOT_BYTES // 2 if event.get("part") == "half" else _SNAPSHOT_BYTES
        return messages.FetchSnapshotResponse(
            **common,
            snapshot=position_of(event["snapshot"]),
            position=event["position"],
            size=_SNAPSHOT_BYTES,
            content=bytes(end - event["position"]),
            voters=self._settings.bootstrap_voters if self._settings.kraft_version else None,
            kraft_version=self._settings.kraft_version,
        )

    def _step(self, incoming: inputs.QuorumInput) -> None:
        if self.fatal is not None:
            return
        try:
            taken = self.node.step(incoming, now_ms=self.now_ms)
        except IllegalCall:
            self.call_error = "IllegalArgumentException"
            return
        except InvariantError as error:
            self.fatal = next((name for kind, name in _FATAL.items() if isinstance(error, kind)), "unknown")
            return
        self._execute(taken)

    def _execute(self, taken: Sequence[effects.QuorumEffect]) -> None:
        synced: list[effects.SyncMetadata] = []
        for effect in taken:
            match effect:
                case node_effects.SendRequest():
                    self.sent.append(effect)
                    self._under_way.append(effect)
                case node_effects.SendResponse():
                    self.responses.append(cast(messages.QuorumAnswer, effect.response))
                case effects.WriteElection():
                    self._election = effect.election
                    self.election_writes += 1
                case effects.SyncMetadata():
                    synced.append(effect)
                    self.is_log_synced = True
                    self._synced_end = effect.end_offset
                case effects.TruncateMetadata():
                    self._synced_end = min(self._synced_end, effect.end_offset)
                case effects.RestartMetadata():
                    self._synced_end = effect.position.end_offset
                    self.is_log_synced = True
                case effects.AnnounceLeader():
                    self._announced = (effect.leader_epoch, effect.leader_id)
                case effects.Commit():
                    self._committed_end = effect.end_offset
                case effects.AcceptProposal():
                    self.accepted = effect.last_offset
                case effects.RefuseProposal():
                    self.call_error = "NotLeaderException"
                case _:
                    pass
        for sync in synced:
            self._step(inputs.LogSynced(cause_id=_CAUSE, end_offset=sync.end_offset, generation=sync.generation))

    # --- Observing --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Returns the state in the words of ``before`` and ``after``."""
        replica = self.node.replica
        state, log = replica.state, replica.log
        epoch, leader = self._announced
        observed: dict[str, Any] = {
            "state": _STATES[type(state)],
            "epoch": state.leader_epoch,
            "leader": state.leader_id,
            "voted": _shown_key(state.voted),
            "is_voter": replica.is_voter,
            "high_watermark": state.high_watermark,
            "log_end_offset": log.end_offset,
            "log_last_epoch": log.last_epoch,
            "log_fsynced_up_to": self._synced_end,
            "timers_ms": self._timers(),
            "persisted": {
                "epoch": self._election.leader_epoch,
                "leader": self._election.leader_id,
                "voted": _shown_key(self._election.voted),
            },
            "voter_set": [str(key) for key in log.voters.keys],
            "state_machine": {
                "told_epoch": epoch,
                "told_leader": leader,
                "claimed_epoch": epoch if leader == self._settings.key.node_id else None,
                "last_committed_offset": self._committed_end - 1 if self._committed_end else None,
            },
        }
        if log.start_offset:
            observed["log_start_offset"] = log.start_offset
        if log.latest_snapshot is not None:
            observed["latest_snapshot"] = _shown_position(log.latest_snapshot.position)
        match state:
            case Prospective() | Candidate():
                observed["granted"] = sorted(state.tally.granted)
                observed["rejected"] = sorted(state.tally.rejected)
            case Leader():
                ends = sorted((key.node_id, each.end_offset) for key, each in state.progress.items())
                observed["voter_end_offsets"] = {str(node_id): end for node_id, end in ends}
                observed["epoch_start_offset"] = state.epoch_start_offset
                observed["voter_change_pending"] = state.change is not None
            case Follower() if state.download is not None:
                observed["fetching_snapshot"] = _shown_position(state.download.position)
            case Resigned():
                observed["unacked_voters"] = sorted(state.unacknowledged)
            case _:
                pass
        return observed

    def _timers(self) -> dict[str, int | None]:
        state = self.node.replica.state
        match state:
            case Leader():
                has_timer = len(state.progress) > 1
                return {"check_quorum": self._left(state.check_quorum_deadline_ms) if has_timer else None}
            case Follower():
                return {"fetch": self._left(state.fetch_deadline_ms)}
            case _:
                return {"election": self._left(state.election_deadline_ms)}

    def _left(self, deadline_ms: int) -> int:
        return max(0, deadline_ms - self.now_ms)

    def shown_sent(self, expected: object) -> list[Fields]:
        """Returns what was sent; a fetch as one to any server where such a one is expected, if it went to a server."""
        is_any_expected = isinstance(expected, list) and any(
            isinstance(each, dict) and each.get("to") == ANY_SERVER for each in expected
        )
        shown: list[Fields] = []
        for effect in self.sent:
            fields = _shown_request(cast(messages.QuorumRequest, effect.request))
            to: object = effect.destination
            is_fetch = fields["type"] == "fetch" and effect.destination in self._settings.servers
            if is_fetch and is_any_expected:
                to = ANY_SERVER
            shown.append({**fields, "to": to})
        return shown

    def shown_responses(self) -> list[Fields]:
        """Returns the answers that were given."""
        return [_shown_response(response) for response in self.responses]


def _settings(config: Fields) -> QuorumSettings:
    voters = voter_set(replica_key(each) for each in config["voters"])
    node_id = NodeId(config["node"])
    return QuorumSettings(
        key=ReplicaKey(node_id, directory(config["directory"])),
        cluster_id=CLUSTER_ID,
        rules=ERAS["kafka-4.2"],
        bootstrap_voters=voters,
        kraft_version=config["kraft_version"],
        can_become_voter=config.get("can_become_voter", False),
        auto_join=config.get("auto_join", False),
        listener=_listener(node_id),
        # The recording harness draws the same jitter every time.
        election_timeout_ms=config["election_timeout_ms"] + config["election_jitter_ms"],
        election_jitter_ms=0,
        fetch_timeout_ms=config["fetch_timeout_ms"],
        request_timeout_ms=config["request_timeout_ms"],
        retry_backoff_ms=0,
        election_backoff_max_ms=config["election_backoff_max_ms"],
        append_linger_ms=config["linger_ms"],
        fetch_batches_max=2,  # as Kafka's MockLog reads
    )


def _loaded(config: Fields, settings: QuorumSettings) -> inputs.LoadedQuorum:
    batches = batches_of((each["epoch"], each["records"]) for each in config["log"])
    snapshots: tuple[Snapshot, ...] = ()
    if (given := config.get("snapshot")) is not None:
        position = position_of(given)
        snapshot = Snapshot(
            position=position,
            voters=settings.bootstrap_voters if settings.kraft_version else None,
            kraft_version=settings.kraft_version,
            content=bytes(_SNAPSHOT_BYTES),
        )
        snapshots = (snapshot,)
        if given.get("log_starts_there"):
            batches = [batch for batch in batches if batch.base_offset >= position.end_offset]
    election = None
    if (file := config.get("quorum_state")) is not None:
        voted = file["voted"]
        election = effects.Election(
            leader_epoch=LeaderEpoch(file["epoch"]),
            leader_id=_node_id(file["leader"]),
            voted=None if voted is None else replica_key(voted),
        )
    return inputs.LoadedQuorum(election=election, snapshots=snapshots, batches=tuple(batches))


def _batches(given: Fields | None) -> tuple[QuorumBatch, ...]:
    if given is None:
        return ()
    values = tuple(str(value).encode() for value in given["values"])
    return (
        QuorumBatch(base_offset=MetadataOffset(given["base"]), leader_epoch=LeaderEpoch(given["epoch"]), values=values),
    )


def _shown_request(request: messages.QuorumRequest) -> dict[str, Any]:
    match request:
        case messages.VoteRequest():
            return {
                "type": "vote",
                "pre_vote": request.is_pre_vote,
                "epoch": request.leader_epoch,
                "last_epoch": request.last_epoch,
                "last_offset": request.last_offset,
                "voter_directory": None if request.voter is None else request.voter.directory_id,
            }
        case messages.BeginQuorumEpochRequest():
            return {
                "type": "begin_quorum_epoch",
                "epoch": request.leader_epoch,
                "leader": request.leader_id,
                "voter_directory": None if request.voter is None else request.voter.directory_id,
            }
        case messages.EndQuorumEpochRequest():
            return {
                "type": "end_quorum_epoch",
                "epoch": request.leader_epoch,
                "leader": request.leader_id,
                "preferred": [key.node_id for key in request.preferred_successors],
            }
        case messages.FetchMetadataRequest():
            return {
                "type": "fetch",
                "epoch": request.leader_epoch,
                "offset": request.fetch_offset,
                "last_epoch": request.last_fetched_epoch,
                "high_watermark": _wire(request.high_watermark),
            }
        case messages.FetchSnapshotRequest():
            return {
                "type": "fetch_snapshot",
                "epoch": request.leader_epoch,
                "position": request.position,
                "snapshot": _shown_position(request.snapshot),
            }
        case messages.AddRaftVoterRequest():
            return {
                "type": "add_raft_voter",
                "id": request.voter.node_id,
                "directory": request.voter.directory_id,
                "ack_when_committed": request.ack_when_committed,
            }
        case messages.RemoveRaftVoterRequest():
            return {
                "type": "remove_raft_voter",
                "id": request.voter.node_id,
                "directory": request.voter.directory_id,
            }
        case messages.UpdateRaftVoterRequest():
            return {
                "type": "update_raft_voter",
                "id": request.voter.node_id,
                "directory": request.voter.directory_id,
                "epoch": request.leader_epoch,
            }
        case messages.ApiVersionsRequest():
            return {"type": "api_versions"}
        case messages.DescribeQuorumRequest():
            return {"type": "describe_quorum"}


def _shown_response(response: messages.QuorumAnswer) -> dict[str, Any]:
    shown: dict[str, Any] = {"error": response.error.name}
    if isinstance(response, messages.QuorumResponse):
        if response.is_top_level:
            return {**shown, "top_level": True}
        shown |= {"epoch": response.leader_epoch, "leader": _wire(response.leader_id)}
    match response:
        case messages.VoteResponse():
            shown["granted"] = response.is_granted
        case messages.FetchMetadataResponse():
            shown |= {
                "high_watermark": _wire(response.high_watermark),
                "log_start_offset": response.log_start_offset,
                "batches": [_shown_batch(batch) for batch in response.batches],
            }
            if response.diverging is not None:
                shown["diverging"] = {
                    "epoch": response.diverging.leader_epoch,
                    "end_offset": response.diverging.end_offset,
                }
            if response.snapshot is not None:
                shown["snapshot"] = _shown_position(response.snapshot)
        case messages.FetchSnapshotResponse() if response.snapshot is not None:
            is_whole = response.position + len(response.content) == response.size
            shown |= {"position": response.position, "whole_snapshot_sent": is_whole}
        case messages.DescribeQuorumResponse() if response.error is ErrorCode.NONE:
            shown |= {
                "leader": response.leader_id,
                "epoch": response.leader_epoch,
                "high_watermark": _wire(response.high_watermark),
                "voters": {str(each.key): each.log_end_offset for each in response.voters},
                "observers": {str(each.key): each.log_end_offset for each in response.observers},
            }
        case _:
            pass
    return shown


def _shown_batch(batch: QuorumBatch) -> Fields:
    shown: dict[str, Any] = {"base": batch.base_offset, "last": batch.end_offset - 1, "epoch": batch.leader_epoch}
    return {**shown, "control": [_control(record) for record in batch.control]} if batch.control else shown


def _control(record: ControlRecord) -> str:
    return _CONTROL[type(record)]
