"""Kinds of ``txn.json`` about classic groups and offsets: a shard over a partition whose commits the vector decides.

The partition has another replica that never fetches, so nothing is committed before the vector says so.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from laststand.emulator.core import effects, group_messages
from laststand.emulator.core.batch import Marker, TransactionResult
from laststand.emulator.core.broker.coordination.caller import Caller
from laststand.emulator.core.broker.groups.group import NEXT_STATES, Group, GroupState, Member
from laststand.emulator.core.broker.groups.membership import GroupTimer, JoinTimer, SessionTimer, SyncTimer
from laststand.emulator.core.broker.groups.shard import GroupShard
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodedBatch, LoadedRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_records import (
    GroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
)
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.storage.coordinator_records import encode_records
from laststand.emulator.storage.group_records import KeyedRecord, encode_key, encode_value
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered

_GROUP: Final = "g"
_NAME: Final = TopicPartition(OFFSETS_TOPIC, 0)
_TOPIC_ID: Final = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")
_OWN, _OTHER = BrokerId(NodeId(0)), BrokerId(NodeId(1))
_BESIDE_AN_OFFSET: Final = {ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
APPEND_ERRORS: Final = {
    "NOT_LEADER_OR_FOLLOWER": ErrorCode.NOT_COORDINATOR,
    "KAFKA_STORAGE_ERROR": ErrorCode.NOT_COORDINATOR,
    "NOT_ENOUGH_REPLICAS": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "REQUEST_TIMED_OUT": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "UNKNOWN_TOPIC_OR_PARTITION": ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class _RecordingTimers(TimerQueue[GroupTimer]):
    """Notes the timers that come due."""

    def __init__(self) -> None:
        super().__init__()
        self.fired: list[str] = []

    def pop_due(self, *, now_ms: int) -> list[GroupTimer]:
        due = super().pop_due(now_ms=now_ms)
        self.fired += [_timer_name(timer) for timer in due]
        return due


def _timer_name(timer: GroupTimer) -> str:
    match timer:
        case SessionTimer(group_id=group_id, member_id=member_id):
            return f"heartbeat-{group_id}-{member_id}"
        case JoinTimer(group_id=group_id):
            return f"join-{group_id}"
        case SyncTimer(group_id=group_id):
            return f"sync-{group_id}"


class _World:
    """One coordinator after the other, on one log."""

    def __init__(self, given: Fields) -> None:
        self.now_ms = 0
        self.records: list[CoordinatorRecord] = []
        self.answers: dict[int, Any] = {}
        self.properties = NodeProperties(
            group_max_size=given.get("max_size", NodeProperties().group_max_size),
            offset_metadata_max_bytes=given.get("max_metadata", NodeProperties().offset_metadata_max_bytes),
            offsets_commit_timeout_ms=1 << 30,
            offsets_retention_minutes=10,
        )
        self.epoch = 0
        self.load()

    def load(self) -> None:
        """Makes the next coordinator load the log, all of which is committed."""
        self.epoch += 1
        log = ReplicaLog(_NAME, _TOPIC_ID)
        config = BrokerConfig(
            broker_id=_OWN,
            controller_ids=(NodeId(100),),
            cluster_id="vectors",
            incarnation_id=IncarnationId("vectors"),
            properties=self.properties,
        )
        self.partition = Partition(
            log, config=config, registrations={}, topic_properties=topic_properties(self.properties, {})
        )
        turn = self.turn()
        state = PartitionState(
            topic_id=_TOPIC_ID,
            replicas=(_OWN, _OTHER),
            isr=(_OWN, _OTHER),
            leader=_OWN,
            leader_epoch=LeaderEpoch(self.epoch),
            partition_epoch=PartitionEpoch(self.epoch),
        )
        self.partition.become_leader(turn, state)
        loaded = [LoadedRecord(record, Offset(0)) for record in self.records]
        self.shard = GroupShard(turn, self.partition, self._encode, self.properties, loaded)
        self.timers = self.shard.membership.timers = _RecordingTimers()
        self.shard.membership.start_sessions(turn)

    def _encode(self, records: Sequence[CoordinatorRecord]) -> EncodedBatch:
        self.records += records
        return encode_records(records, timestamp_ms=self.now_ms)

    def turn(self) -> Turn:
        return Turn(now_ms=self.now_ms, cause_id=CauseId("vector"))

    def ask(self, index: int, request: group_messages.GroupRequest) -> None:
        turn = self.turn()
        self.shard.handle_request(turn, Caller(RequestId(index), turn.cause_id), request)
        self.collect(turn)

    def end_transaction(self, step: Fields) -> None:
        """Ends a producer's transaction with a marker that the log takes."""
        producer = _producer(step)
        marker = Marker(result=TransactionResult[step["result"]], coordinator_epoch=0)
        ended = TransactionEnded(
            producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, marker=marker
        )
        self.shard.offsets.end_transaction(self.turn(), ended, lambda _turn, _error: None)

    def commit(self) -> None:
        """Lets the log's end be committed."""
        turn = self.turn()
        self.partition.log.high_watermark = self.partition.log.log_end_offset
        self.shard.settle(turn)
        self.collect(turn)

    def fail(self, error: ErrorCode) -> None:
        """Lets what is not committed fail."""
        turn = self.turn()
        self.shard.log.fail(turn, error)
        self.collect(turn)

    def sleep(self, duration_ms: int) -> None:
        turn = self.turn()
        self.now_ms = turn.now_ms = self.now_ms + duration_ms
        self.shard.handle_timer(turn)
        self.collect(turn)

    def collect(self, turn: Turn) -> None:
        for effect in turn.effects():
            if isinstance(effect, effects.SendResponse):
                assert effect.request_id not in self.answers, "answered twice"
                self.answers[effect.request_id] = effect.response

    @property
    def group(self) -> Group | None:
        return self.shard.membership.groups.get(_GROUP)


# --- Members ------------------------------------------------------------------------------------------------------


def _classic_group(vector: Vector) -> list[str]:
    world = _World(vector.raw.get("given") or {})
    found: list[str] = []
    asked: dict[int, str] = {}
    made = 0
    for index, step in enumerate(vector.steps):
        before, told = len(world.records), set(world.answers)
        world.timers.fired.clear()
        fresh_id = f"m{made + 1}"
        asked[index] = step["op"]
        error = _play(world, index, step, fresh_id)
        if world.group is not None and {fresh_id} & (world.group.members.keys() | world.group.pending_members):
            made += 1
        answered = [each for each in sorted(world.answers) if each not in told]
        outcome, responses = None if error is None else error.name, []
        for number in answered:
            response = world.answers[number]
            refused = _refusal(asked[number], response)
            if refused is None:
                responses.append(_response(vector.steps[number], number, response))
            else:
                outcome = refused.name
        if step["op"] == "list":
            groups = [f"{group.group_id}:{group.state}:classic" for group in world.shard.listed()]
            responses.append({"to_step": index, "groups": groups})
        observed = {
            "timers": list(world.timers.fired),
            "error": outcome,
            "responses": responses,
            "appended": [_appended(record, world.now_ms) for record in world.records[before:]]
            if step["op"] != "reload"
            else [],
            "group": _group(world.group),
        }
        found += numbered(index, mismatches(step["expect"], observed, sets=("responses", "timers")))
    return found


def _play(world: _World, index: int, step: Fields, fresh_id: str) -> ErrorCode | None:
    match step["op"]:
        case "join":
            world.ask(index, _join(step, fresh_id))
        case "sync":
            asked = group_messages.SyncGroupRequest(
                group_id=_GROUP,
                member_id=step["member"],
                instance_id=step.get("instance"),
                generation_id=step["generation"],
                protocol_type=step.get("protocol_type"),
                protocol_name=step.get("protocol_name"),
                assignments=tuple((member, text.encode()) for member, text in step.get("assignments", {}).items()),
            )
            world.ask(index, asked)
        case "heartbeat":
            beat = group_messages.HeartbeatRequest(
                group_id=_GROUP,
                member_id=step["member"],
                instance_id=step.get("instance"),
                generation_id=step["generation"],
            )
            world.ask(index, beat)
        case "leave":
            members = tuple(
                group_messages.LeavingMember(member_id=each.get("member") or "", instance_id=each.get("instance"))
                for each in step["members"]
            )
            world.ask(index, group_messages.LeaveGroupRequest(group_id=_GROUP, members=members))
        case "sleep":
            world.sleep(step["ms"])
        case "reload":
            world.records = world.records[: step.get("log_records", len(world.records))]
            world.load()
        case "append_result" | "list":
            pass
        case other:
            raise ValueError(f"unknown operation {other}")
    match step.get("append"):
        case None:
            world.commit()
        case "hold":
            pass
        case error:
            world.fail(APPEND_ERRORS[error])
    return None


def _join(step: Fields, fresh_id: str) -> group_messages.JoinGroupRequest:
    protocols = step.get("protocols", ["range"])
    named = protocols if isinstance(protocols, dict) else dict.fromkeys(protocols, "")
    return group_messages.JoinGroupRequest(
        api_version=step.get("version", 3),
        group_id=_GROUP,
        member_id=step["member"],
        drawn_member_id=fresh_id,
        instance_id=step.get("instance"),
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=step.get("session_timeout_ms", 5000),
        rebalance_timeout_ms=step.get("rebalance_timeout_ms", 10_000),
        protocol_type=step.get("protocol_type", "consumer"),
        protocols=tuple(
            group_messages.GroupProtocol(name=name, metadata=str(text).encode()) for name, text in named.items()
        ),
    )


def _refusal(operation: str, response: Any) -> ErrorCode | None:
    """Returns the error of an answer that Kafka's classes give as an exception."""
    is_thrown = operation == "heartbeat" and response.error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
    return response.error if is_thrown or (operation == "leave" and response.error) else None


def _response(step: Fields, number: int, response: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"to_step": number}
    match response:
        case group_messages.JoinGroupResponse():
            told |= {"api": "join", "error": response.error.name, "member": response.member_id}
            told["generation"] = response.generation_id
            if response.error is ErrorCode.NONE:
                told |= {"leader": response.leader, "protocol": response.protocol_name}
                told |= {"skip_assignment": response.skip_assignment}
                told["members"] = [member.member_id for member in response.members]
        case group_messages.SyncGroupResponse():
            told |= {"api": "sync", "error": response.error.name, "assignment": response.assignment.decode()}
        case group_messages.LeaveGroupResponse():
            members = [
                {"member": each.get("member") or "", "instance": each.get("instance"), "error": error.name}
                for each, error in zip(step["members"], response.members, strict=True)
            ]
            told |= {"error": response.error.name, "members": members}
        case _:
            told["error"] = response.error.name
    return told


def _appended(record: CoordinatorRecord, now_ms: int) -> dict[str, Any]:
    match record:
        case GroupMetadata():
            return {
                "type": "group_metadata",
                "group": record.group_id,
                "generation": record.generation_id,
                "protocol_type": record.protocol_type,
                "protocol": record.protocol_name,
                "leader": record.leader,
                "version": 3,
                "members": {member.member_id: member.assignment.decode() for member in record.members},
            }
        case GroupRemoved():
            return {"type": "group_metadata", "group": record.group_id, "value": None}
        case OffsetRemoved():
            return {
                "type": "offset_commit",
                "group": record.group_id,
                "partition": str(record.partition),
                "value": None,
            }
        case OffsetCommitted():
            told: dict[str, Any] = {
                "type": "offset_commit",
                "group": record.group_id,
                "partition": str(record.partition),
                "offset": record.offset,
                "leader_epoch": -1 if record.leader_epoch is None else record.leader_epoch,
                "version": 4 if record.retention_ms is None else 1,
            }
            if record.retention_ms is not None:
                told["expire_ms"] = now_ms + record.retention_ms
            return told
        case _:
            return {"type": "marker"}


def _group(group: Group | None) -> dict[str, Any] | None:
    if group is None:
        return None
    return {
        "state": group.state.name,
        "generation": group.generation_id,
        "leader": group.leader,
        "protocol": group.protocol_name,
        "members": list(group.members),
        "awaiting_join": sum(member.awaiting_join is not None for member in group.members.values()),
        "pending_join": len(group.pending_members),
    }


def _transition(vector: Vector) -> list[str]:
    state = GroupState[vector.raw["given"]["from"]]
    observed = {"to": [after.name for after in NEXT_STATES[state]], "name": state.value}
    return mismatches(vector.expect, observed, sets=("to",))


# --- Offsets ------------------------------------------------------------------------------------------------------


def _offsets(vector: Vector) -> list[str]:
    given = vector.raw.get("given") or {}
    world = _World(given)
    if "group" in given:
        world.shard.membership.groups[_GROUP] = _given_group(given["group"])
    seen: list[dict[str, Any]] = []
    for index, step in enumerate(vector.steps):
        before = len(world.records)
        may_go: bool | None = None
        match step["op"]:
            case "commit" | "txn_commit":
                world.ask(index, _commit(step))
            case "marker":
                world.end_transaction(step)
            case "fetch":
                wanted = step.get("partitions")
                asked = group_messages.OffsetFetchRequest(
                    group_id=_GROUP,
                    partitions=None if wanted is None else _partitions(wanted),
                    require_stable=step.get("require_stable", False),
                )
                world.ask(index, asked)
            case "delete":
                deleted = group_messages.OffsetDeleteRequest(
                    group_id=_GROUP, partitions=_partitions(step["partitions"])
                )
                world.ask(index, deleted)
            case "partitions_deleted":
                world.shard.forget_partitions(world.turn(), _partitions(step["partitions"]))
            case "commit_log":
                world.commit()
            case "expire":
                world.now_ms += step["ms"]
                assert world.group is not None, "vectors have a group expire that there is"
                may_go = world.shard.offsets.expire(world.turn(), world.group)
            case other:
                raise ValueError(f"unknown operation {other}")
        seen.append(
            {
                "group_may_go": may_go,
                "appended": [
                    _appended(record, world.now_ms)
                    for record in world.records[before:]
                    if not isinstance(record, TransactionEnded)
                ],
                "group_state": None if world.group is None else world.group.state.name,
                "error": None,
            }
        )
    # Kafka's classes give an answer with the records; here it waits until they are committed.
    world.commit()
    found: list[str] = []
    for index, (step, observed) in enumerate(zip(vector.steps, seen, strict=True)):
        if index in world.answers:
            observed |= _offsets_answer(step, world.answers[index])
        found += numbered(index, mismatches(step["expect"], observed))
    return found


def _given_group(given: Fields) -> Group:
    group = Group(_GROUP)
    for each in given.get("members", ()):
        protocol = group_messages.GroupProtocol(name="range", metadata=b"", topics=("t",))
        member = Member(
            each["member"],
            instance_id=each.get("instance"),
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=5000,
            rebalance_timeout_ms=10_000,
            protocols=(protocol,),
        )
        group.add(member, protocol_type="consumer")
    group.state = GroupState[given["state"]]
    group.generation_id = given.get("generation", 1)
    group.protocol_name = "range" if group.members else None
    return group


def _commit(step: Fields) -> group_messages.OffsetCommitRequest:
    return group_messages.OffsetCommitRequest(
        api_version=step.get("version", 8),
        group_id=_GROUP,
        member_id=step.get("member", ""),
        instance_id=step.get("instance"),
        generation_id=step.get("generation", -1),
        offsets=tuple(
            group_messages.CommittedOffset(
                partition=partition_named(name), offset=offset, metadata="x" * step.get("metadata_length", 0)
            )
            for name, offset in step["offsets"].items()
        ),
        retention_ms=step.get("retention_ms"),
        producer=_producer(step) if step["op"] == "txn_commit" else None,
    )


def _producer(step: Fields) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(step["producer_id"]), ProducerEpoch(step.get("producer_epoch", 0)))


def partition_named(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def _partitions(names: Sequence[str]) -> tuple[TopicPartition, ...]:
    return tuple(map(partition_named, names))


def _offsets_answer(step: Fields, response: Any) -> dict[str, Any]:
    match response:
        case group_messages.OffsetCommitResponse(errors=errors):
            refused = [error for error in errors if error not in _BESIDE_AN_OFFSET]
            if refused:
                return {"error": refused[0].name}
            return {"partitions": {name: error.name for name, error in zip(step["offsets"], errors, strict=True)}}
        case group_messages.OffsetFetchResponse(offsets=offsets, unstable=unstable):
            by_name = {str(offset.partition): (offset.offset, "NONE") for offset in offsets}
            by_name |= {str(name): (-1, "UNSTABLE_OFFSET_COMMIT") for name in unstable}
            names = by_name if step.get("partitions") is None else step["partitions"]
            told = {name: by_name.get(name, (-1, "NONE")) for name in names}
            return {"offsets": {name: {"offset": offset, "error": error} for name, (offset, error) in told.items()}}
        case group_messages.OffsetDeleteResponse(error=error, errors=errors):
            if error is not ErrorCode.NONE:
                return {"error": error.name}
            return {"partitions": {name: each.name for name, each in zip(step["partitions"], errors, strict=True)}}
        case _:
            raise AssertionError(f"{response} is no answer about offsets")


# --- Bytes --------------------------------------------------------------------------------------------------------


def _record_bytes(vector: Vector) -> list[str]:
    given = vector.raw["given"]
    record = _given_record(given)
    value = encode_value(record)
    observed = {"key_hex": encode_key(record).hex(), "value_hex": None if value is None else value.hex()}
    return mismatches(vector.expect, observed)


def _given_record(given: Fields) -> KeyedRecord:
    group_id = given["group"]
    match given["record"]:
        case "group_tombstone":
            return GroupRemoved(group_id=group_id)
        case "offset_tombstone":
            return OffsetRemoved(group_id=group_id, partition=TopicPartition(given["topic"], given["partition"]))
        case "offset":
            leader_epoch = given.get("leader_epoch", -1)
            expires_ms = given.get("expire_ms")
            return OffsetCommitted(
                group_id=group_id,
                partition=TopicPartition(given["topic"], given["partition"]),
                offset=given["offset"],
                leader_epoch=None if leader_epoch < 0 else LeaderEpoch(leader_epoch),
                metadata=given.get("metadata", ""),
                committed_ms=given.get("commit_ms", 0),
                retention_ms=None if expires_ms is None else expires_ms - given["commit_ms"],
            )
        case other:
            raise ValueError(f"unknown record {other}")


_RECORDS: Final = ("offset", "offset_tombstone", "group_tombstone")

KINDS: Final[Mapping[str, Handler]] = {
    "classic_group": _classic_group,
    "classic_group_load": _classic_group,
    "classic_group_transition": _transition,
    "offset_commit": _offsets,
    "offset_fetch": _offsets,
    "offset_delete": _offsets,
    "offset_expiration": _offsets,
    "offset_expiration.transactional": _offsets,
    "txn_offset_commit": _offsets,
    "txn_offset_commit.transactional": _offsets,
    "offset_fetch.transactional": _offsets,
    "offset_commit.transactional": _offsets,
    "offset_delete.transactional": _offsets,
    **{f"record_bytes.{record}": _record_bytes for record in _RECORDS},
}
