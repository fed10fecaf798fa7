"""Kinds of ``txn.json`` about coordinators of transactions: a shard over a partition whose commits the vector decides.

The partition has another replica that never fetches, so nothing is committed before the vector says so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from laststand.emulator.core import transaction_messages
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.producer_id_blocks import Allocated
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions import metadata as transitions
from laststand.emulator.core.broker.transactions.markers import MarkerSender
from laststand.emulator.core.broker.transactions.shard import Transaction, TransactionShard, refusal, refused_partitions
from laststand.emulator.core.broker.transactions.verifier import Verifier
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodedBatch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.messages import Response
from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_records import (
    TransactionMetadata,
    TransactionRemoved,
    TransactionState,
)
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.storage.coordinator_records import decode_records, encode_records
from laststand.emulator.storage.transaction_records import decode_record, encode_key, encode_value
from tests.conformance.group_kinds import APPEND_ERRORS, partition_named
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered

_ID: Final = "x"
_NAME: Final = TopicPartition(TRANSACTIONS_TOPIC, 0)
_TOPIC_ID: Final = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")
_OWN, _OTHER = BrokerId(NodeId(100)), BrokerId(NodeId(101))
_TIMEOUT_MS: Final = 60_000
_FIRST_PRODUCER_ID: Final = 1000


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _metadata(given: Fields) -> TransactionMetadata:
    last = given.get("last_producer_epoch", -1)
    start = given.get("start_ms", -1)
    return TransactionMetadata(
        transactional_id=given.get("id", _ID),
        producer_id=ProducerId(given["producer_id"]),
        producer_epoch=ProducerEpoch(given["producer_epoch"]),
        timeout_ms=given.get("timeout_ms", _TIMEOUT_MS),
        state=TransactionState[given["state"]],
        partitions=frozenset(map(partition_named, given.get("partitions", ()))),
        start_ms=None if start < 0 else start,
        update_ms=given.get("update_ms", 0),
        client_version=given.get("client_tv", 2),
        last_producer_epoch=None if last < 0 else ProducerEpoch(last),
    )


class _Waiting:
    """Takes one answer."""

    def __init__(self, take: Callable[[Response], None]) -> None:
        self._take = take

    def answer(self, turn: Turn, response: Response) -> None:
        """Notes the answer."""
        self._take(response)


class _World:
    """One coordinator after the other, on one log."""

    def __init__(self, given: Fields) -> None:
        self.now_ms = 1000
        self.given = given
        self.appended: list[tuple[CoordinatorRecord, int]] = []
        self.stored: list[CoordinatorRecord] = []
        self.responses: list[dict[str, Any]] = []
        self.held_back: list[dict[str, Any]] = []
        self.requests: list[tuple[BrokerId, transaction_messages.WriteTxnMarkersRequest]] = []
        self.is_held = False
        self.next_producer_id = _FIRST_PRODUCER_ID
        self.properties = NodeProperties()
        self.switches = Switches(epoch_per_transaction=given.get("transaction_version", 2) >= 2)
        self.image = MetadataImage()
        for name, leader in given.get("leaders", {}).items():
            self.set_leader(name, leader)
        self.sender = MarkerSender(self.image)
        self.shard: TransactionShard | None = None
        if not given.get("not_coordinator"):
            self.elect(given.get("coordinator_epoch", 0))
            assert self.shard is not None, "it was elected"
            for each in given.get("transactions", ()):
                loaded = _metadata(each)
                self.shard.transactions[loaded.transactional_id] = Transaction(loaded)

    def set_leader(self, name: str, leader: int | None) -> None:
        """Has the metadata name a leader; -1 for none, ``None`` for no such partition."""
        partition = partition_named(name)
        if leader is None:
            self.image.partitions.pop(partition, None)
            return
        self.image.partitions[partition] = PartitionState(
            topic_id=_TOPIC_ID,
            replicas=(_OWN,),
            isr=(_OWN,),
            leader=None if leader < 0 else BrokerId(NodeId(leader)),
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(0),
        )

    def turn(self) -> Turn:
        """Returns a step of now."""
        return Turn(now_ms=self.now_ms, cause_id=CauseId("vector"))

    def elect(self, epoch: int) -> None:
        """Makes a coordinator load what is stored."""
        config = BrokerConfig(
            broker_id=_OWN,
            controller_ids=(NodeId(200),),
            cluster_id="vectors",
            incarnation_id=IncarnationId("vectors"),
            properties=self.properties,
            switches=self.switches,
        )
        self.partition = Partition(
            ReplicaLog(_NAME, _TOPIC_ID),
            config=config,
            registrations={},
            topic_properties=topic_properties(self.properties, {}),
        )
        turn = self.turn()
        state = PartitionState(
            topic_id=_TOPIC_ID,
            replicas=(_OWN, _OTHER),
            isr=(_OWN, _OTHER),
            leader=_OWN,
            leader_epoch=LeaderEpoch(epoch),
            partition_epoch=PartitionEpoch(epoch),
        )
        self.partition.become_leader(turn, state)
        content = b"".join(encode_records((record,), timestamp_ms=0).content for record in self.stored)
        loaded = decode_records(content, is_of_transactions=True)
        self.shard = TransactionShard(
            turn, self.partition, self._encode, config, loaded, allocate=self._allocate, send_markers=self.sender.send
        )

    def resign(self) -> None:
        """Has the coordinator lose its partition; Kafka's class answers a held append when its result is known."""
        if self.shard is not None:
            before = len(self.responses)
            self.shard.resign(self.turn())
            self.sender.forget(self.shard)
            self.held_back += self.responses[before:]
            del self.responses[before:]
        self.shard = None
        self.is_held = False

    def _encode(self, records: Sequence[CoordinatorRecord]) -> EncodedBatch:
        timeout_ms = 30_000 if isinstance(records[0], TransactionRemoved) else _TIMEOUT_MS
        self.appended += [(record, timeout_ms) for record in records]
        self.stored += records
        return encode_records(records, timestamp_ms=self.now_ms)

    def _allocate(self, turn: Turn, allocated: Allocated) -> None:
        self.next_producer_id += 1
        allocated(turn, ProducerId(self.next_producer_id - 1))

    def ask(self, step: int, request: transaction_messages.TransactionalIdRequest) -> None:
        """Asks the coordinator."""
        waiting = _Waiting(lambda response: self.responses.append(_response(step, response)))
        if not request.transactional_id:
            waiting.answer(self.turn(), refusal(request, ErrorCode.INVALID_REQUEST))
        elif self.shard is None:
            waiting.answer(self.turn(), refusal(request, ErrorCode.NOT_COORDINATOR))
        else:
            self.shard.handle_request(self.turn(), waiting, request)

    def add(self, step: int, request: transaction_messages.AddPartitions) -> None:
        """Has partitions added, or verified."""

        def told(_turn: Turn, outcome: transaction_messages.AddPartitionsOutcome) -> None:
            self.responses.append(_added(step, request, outcome))

        if not request.transactional_id:
            told(self.turn(), refused_partitions(request, ErrorCode.INVALID_REQUEST))
        elif self.shard is None:
            told(self.turn(), refused_partitions(request, ErrorCode.NOT_COORDINATOR))
        else:
            self.shard.add_partitions(self.turn(), request, told)

    def finish_appends(self, outcome: str) -> None:
        """Commits what is appended, and what follows from that; or lets it fail."""
        self.is_held |= outcome == "hold"
        if self.shard is None or self.is_held:
            return
        if outcome == "NONE":
            log = self.partition.log
            while log.high_watermark < log.log_end_offset:
                log.high_watermark = log.log_end_offset
                self.shard.settle(self.turn())
            return
        failed = len(self.appended)
        self.shard.log.fail(self.turn(), APPEND_ERRORS.get(outcome, ErrorCode.UNKNOWN_SERVER_ERROR))
        assert len(self.appended) == failed, "nothing follows from a failure"


def _added(
    step: int, request: transaction_messages.AddPartitions, outcome: transaction_messages.AddPartitionsOutcome
) -> dict[str, Any]:
    if not request.is_verify_only:
        return {"to_step": step, "error": outcome.errors[0].name}
    by_name = zip(request.partitions, outcome.errors, strict=True)
    return {"to_step": step, "partitions": {str(name): error.name for name, error in by_name}}


def _response(step: int, response: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"to_step": step}
    match response:
        case transaction_messages.DescribeTransactionResponse():
            told["error"] = response.error.name
            if response.error is ErrorCode.NONE:
                told |= {"state": response.state, "producer_id": response.producer_id}
                told |= {"producer_epoch": response.producer_epoch, "start_ms": _number(response.start_ms)}
            return told
        case _:
            told |= {"error": response.error.name, "producer_id": response.producer_id}
            return told | {"producer_epoch": response.producer_epoch}


def _coordinator(vector: Vector) -> list[str]:
    world = _World(vector.raw.get("given") or {})
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        world.appended.clear()
        world.responses.clear()
        stored = len(world.stored)
        shown = _play(world, index, step)
        outcome = step.get("append", "NONE")
        if step["op"] not in ("resign", "elect", "write_log", "sleep", "leader"):
            world.finish_appends(outcome)
        if outcome not in ("NONE", "hold", "REQUEST_TIMED_OUT"):
            del world.stored[stored:]
        observed: dict[str, Any] = {
            "responses": list(world.responses),
            "appended": [_appended(record, timeout_ms) for record, timeout_ms in world.appended],
            "transaction": _transaction(world, step),
            "transactions_waiting_for_markers": len(world.sender),
        }
        if step["op"] == "tick":
            observed["aborted"] = [
                {"id": record.transactional_id, "error": APPEND_ERRORS.get(outcome, ErrorCode.NONE).name}
                for record, _ in world.appended
                if isinstance(record, TransactionMetadata) and record.state is TransactionState.PREPARE_ABORT
            ]
        found += numbered(index, mismatches(step["expect"], observed | shown, sets=("responses", "requests")))
    return found


def _play(world: _World, index: int, step: Fields) -> dict[str, Any]:
    shard, turn = world.shard, world.turn()
    match step["op"]:
        case "init_producer_id":
            _init(world, index, step)
        case "add_partitions" | "verify":
            added = transaction_messages.AddPartitions(
                transactional_id=step.get("id", _ID),
                producer_id=ProducerId(step["producer_id"]),
                producer_epoch=ProducerEpoch(step["producer_epoch"]),
                partitions=tuple(map(partition_named, step["partitions"])),
                is_verify_only=step["op"] == "verify",
                client_version=step.get("client_tv", 2),
            )
            world.add(index, added)
        case "end_txn":
            ended = transaction_messages.EndTxnRequest(
                transactional_id=step.get("id", _ID),
                producer_id=ProducerId(step["producer_id"]),
                producer_epoch=ProducerEpoch(step["producer_epoch"]),
                result=TransactionResult.COMMIT if step.get("commit", True) else TransactionResult.ABORT,
                client_version=step.get("client_tv", 2),
            )
            world.ask(index, ended)
        case "describe":
            world.ask(index, transaction_messages.DescribeTransactionRequest(transactional_id=step.get("id", _ID)))
        case "tick":
            world.now_ms += step["ms"]
            if shard is not None:
                shard.abort_late(world.turn())
        case "expire_ids":
            world.now_ms += step["ms"]
            if shard is not None:
                shard.expire(world.turn())
        case "sleep":
            world.now_ms += step["ms"]
        case "leader":
            world.set_leader(step["partition"], step.get("broker"))
        case "send_markers":
            world.sender.retry(turn)
            due = world.sender.pop_due()
            world.requests += due
            return {"requests": [_marker(broker, marker) for broker, sent in due for marker in sent.markers]}
        case "marker_response":
            _answer_markers(world, step)
        case "append_result":
            world.is_held = False
            world.responses += world.held_back
            world.held_back.clear()
        case "resign":
            world.resign()
        case "elect":
            if "log_records" in step:
                del world.stored[step["log_records"] :]
            world.elect(step["coordinator_epoch"])
        case "write_log":
            world.stored.append(_metadata(step["transaction"]))
        case other:
            raise ValueError(f"unknown operation {other}")
    return {}


def _init(world: _World, index: int, step: Fields) -> None:
    transactional_id = step.get("id", _ID)
    if transactional_id is None:
        world._allocate(
            world.turn(),
            lambda _turn, given: world.responses.append(
                {"to_step": index, "error": "NONE", "producer_id": given, "producer_epoch": 0}
            ),
        )
        return
    producer_id, producer_epoch = step.get("producer_id", -1), step.get("producer_epoch", -1)
    request = transaction_messages.InitTransactionRequest(
        transactional_id=transactional_id,
        timeout_ms=step.get("timeout_ms", _TIMEOUT_MS),
        producer_id=None if producer_id < 0 else ProducerId(producer_id),
        producer_epoch=None if producer_epoch < 0 else ProducerEpoch(producer_epoch),
    )
    world.ask(index, request)


def _answer_markers(world: _World, step: Fields) -> None:
    place = next(
        place for place, (broker, _) in enumerate(world.requests) if "broker" not in step or broker == step["broker"]
    )
    _, request = world.requests.pop(place)
    if step.get("disconnect") or step.get("disconnected"):
        world.sender.handle_failure(world.turn(), request)
        return
    named = step.get("errors", {})
    usual = step.get("error") or "NONE"
    outcomes = tuple(
        transaction_messages.MarkerOutcome(
            errors=tuple(ErrorCode[named.get(str(name), usual)] for name in marker.partitions)
        )
        for marker in request.markers
    )
    world.sender.handle_response(world.turn(), request, transaction_messages.WriteTxnMarkersResponse(markers=outcomes))


def _marker(broker: BrokerId, marker: transaction_messages.TransactionMarkers) -> dict[str, Any]:
    return {
        "broker": broker,
        "producer_id": marker.producer_id,
        "producer_epoch": marker.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
        "result": marker.result.name,
        "transaction_version": 2 if marker.raises_epoch else 0,
        "partitions": [str(name) for name in marker.partitions],
    }


def _appended(record: CoordinatorRecord, timeout_ms: int) -> dict[str, Any]:
    if isinstance(record, TransactionRemoved):
        return {"key": record.transactional_id, "value": None, "acks": -1, "timeout_ms_of_append": timeout_ms}
    assert isinstance(record, TransactionMetadata), "coordinators of transactions write nothing else"
    return {
        "key": record.transactional_id,
        "state": record.state.name,
        "producer_id": record.producer_id,
        "producer_epoch": record.producer_epoch,
        "timeout_ms": record.timeout_ms,
        "partitions": [str(name) for name in sorted(record.partitions)],
        "start_ms": _number(record.start_ms),
        "client_tv": record.client_version,
        "acks": -1,
        "timeout_ms_of_append": record.timeout_ms,
    }


def _transaction(world: _World, step: Fields) -> dict[str, Any] | str | None:
    if world.shard is None:
        return "NOT_COORDINATOR"
    transaction = world.shard.transactions.get(step.get("id", _ID) or "")
    if transaction is None:
        return None
    metadata = transaction.metadata
    return {
        "state": metadata.state.name,
        "pending_state": None if transaction.pending is None else transaction.pending.name,
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
        "last_producer_epoch": _number(metadata.last_producer_epoch),
        "prev_producer_id": _number(metadata.previous_producer_id),
        "next_producer_id": _number(metadata.next_producer_id),
        "partitions": [str(name) for name in sorted(metadata.partitions)],
        "failed_epoch_fence": transaction.has_failed_fence,
        "coordinator_epoch": world.shard.leader_epoch,
    }


# --- Transitions --------------------------------------------------------------------------------------------------


def _transition(vector: Vector) -> list[str]:
    state = TransactionState[vector.raw["given"]["from"]]
    has_partitions = state not in (*transitions.RESTING, TransactionState.DEAD)
    metadata = TransactionMetadata(
        transactional_id=_ID,
        producer_id=ProducerId(1),
        producer_epoch=ProducerEpoch(3),
        last_producer_epoch=ProducerEpoch(2),
        timeout_ms=_TIMEOUT_MS,
        state=state,
        partitions=frozenset({TopicPartition("t", 0)}) if has_partitions else frozenset(),
        start_ms=5,
        update_ms=5,
        client_version=2,
    )
    commit, abort = TransactionResult.COMMIT, TransactionResult.ABORT
    preparations: dict[str, Callable[[], TransactionMetadata | ErrorCode]] = {
        "fence_epoch": lambda: transitions.fenced(metadata, has_failed=False, now_ms=9),
        "increment_epoch": lambda: transitions.next_epoch(metadata, timeout_ms=_TIMEOUT_MS, expected=None, now_ms=9),
        "rotate_producer_id": lambda: transitions.next_producer(
            metadata, ProducerId(77), timeout_ms=_TIMEOUT_MS, is_expected=True, now_ms=9
        ),
        "add_partitions": lambda: transitions.with_partitions(
            metadata, frozenset({TopicPartition("t", 1)}), client_version=2, now_ms=9
        ),
        "prepare_commit_tv1": lambda: transitions.prepared(metadata, commit, raises_epoch=False, now_ms=9),
        "prepare_abort_tv1": lambda: transitions.prepared(metadata, abort, raises_epoch=False, now_ms=9),
        "prepare_commit_tv2": lambda: transitions.prepared(metadata, commit, raises_epoch=True, now_ms=9),
        "prepare_abort_tv2": lambda: transitions.prepared(metadata, abort, raises_epoch=True, now_ms=9),
        "complete": lambda: transitions.completed(metadata, now_ms=9),
        "dead": lambda: transitions.expired(metadata),
    }
    observed = {
        "to": [after.name for after in transitions.NEXT_STATES[state]],
        "id": state.value,
        "name": state.title,
        "expiration_allowed": state in transitions.RESTING,
        "prepare": {name: _prepared(prepare) for name, prepare in preparations.items()},
    }
    return mismatches(vector.expect, observed, sets=("to",))


def _prepared(prepare: Callable[[], TransactionMetadata | ErrorCode]) -> dict[str, Any]:
    try:
        after = prepare()
    except transitions.TransitionError:
        return {"refused": "IllegalStateException"}
    assert isinstance(after, TransactionMetadata), "no epoch is expected"
    return {
        "state": after.state.name,
        "producer_id": after.producer_id,
        "producer_epoch": after.producer_epoch,
        "last_producer_epoch": _number(after.last_producer_epoch),
        "partitions": [str(name) for name in sorted(after.partitions)],
        "start_ms": _number(after.start_ms),
        "completes": after.state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE),
    }


# --- Verification -------------------------------------------------------------------------------------------------


def _verification(vector: Vector) -> list[str]:
    given = vector.raw.get("given") or {}
    image = MetadataImage()
    image.partition_counts[TRANSACTIONS_TOPIC] = 1
    image.partitions[_NAME] = PartitionState(
        topic_id=_TOPIC_ID,
        replicas=(_OWN,),
        isr=(_OWN,),
        leader=BrokerId(NodeId(1)) if given.get("alive", True) else None,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
    )
    verifier = Verifier(image)
    told: list[dict[str, Any]] = []
    sent: list[tuple[BrokerId, transaction_messages.AddPartitionsToTxnRequest]] = []
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        told.clear()
        observed: dict[str, Any] = {}
        turn = Turn(now_ms=0, cause_id=CauseId("vector"))
        match step["op"]:
            case "ask":
                _ask(verifier, turn, index, step, told)
            case "send":
                due = verifier.pop_due()
                sent += due
                observed["requests"] = [_question(broker, each) for broker, asked in due for each in asked.transactions]
            case "answer":
                _answer_questions(verifier, turn, step, *sent.pop(0))
            case other:
                raise ValueError(f"unknown operation {other}")
        observed["called_back"] = list(told)
        found += numbered(index, mismatches(step["expect"], observed, sets=("called_back", "requests")))
    return found


def _ask(verifier: Verifier, turn: Turn, index: int, step: Fields, told: list[dict[str, Any]]) -> None:
    def done(_turn: Turn, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        told.append({"to_step": index, "errors": {str(name): error.name for name, error in errors.items()}})

    operation = step.get("operation", "ADD_PARTITION")
    request = transaction_messages.AddPartitions(
        transactional_id=step.get("id", _ID),
        producer_id=ProducerId(step.get("producer_id", 1)),
        producer_epoch=ProducerEpoch(step.get("producer_epoch", 0)),
        partitions=tuple(map(partition_named, step["partitions"])),
        is_verify_only=operation != "ADD_PARTITION",
        client_version=2,
    )
    verifier.ask(turn, request, knows_abortable=operation != "DEFAULT_ERROR", done=done)


def _question(broker: BrokerId, asked: transaction_messages.AddPartitions) -> dict[str, Any]:
    return {
        "broker": broker,
        "id": asked.transactional_id,
        "producer_id": asked.producer_id,
        "producer_epoch": asked.producer_epoch,
        "verify_only": asked.is_verify_only,
        "partitions": [str(name) for name in asked.partitions],
    }


def _answer_questions(
    verifier: Verifier,
    turn: Turn,
    step: Fields,
    broker: BrokerId,
    request: transaction_messages.AddPartitionsToTxnRequest,
) -> None:
    if step.get("disconnected") or step.get("disconnect"):
        verifier.handle_failure(turn, broker)
        return
    whole = "UNSUPPORTED_VERSION" if step.get("unsupported") else step.get("error") or "NONE"
    errors = step.get("errors", {})
    answers = tuple(
        transaction_messages.AddPartitionsOutcome(
            errors=tuple(ErrorCode[errors.get(str(name), "NONE")] for name in asked.partitions)
        )
        for asked in request.transactions
    )
    response = transaction_messages.AddPartitionsToTxnResponse(error=ErrorCode[whole], transactions=answers)
    verifier.handle_response(turn, broker, response)


# --- Bytes --------------------------------------------------------------------------------------------------------


def _record_bytes(vector: Vector) -> list[str]:
    given = vector.raw["given"]
    version = given.get("transaction_version", 2)
    record = msgspec.structs.replace(_metadata(given), client_version=version if version == 2 else 0)
    key, value = encode_key(record), encode_value(record)
    assert value is not None, "it is no tombstone"
    read = decode_record(key, value)
    assert isinstance(read, TransactionMetadata), "so was it written"
    observed = {
        "key_hex": key.hex(),
        "value_hex": value.hex(),
        "value_version": int.from_bytes(value[:2], "big"),
        "read_back": {
            "state": read.state.name,
            "producer_id": read.producer_id,
            "producer_epoch": read.producer_epoch,
            "last_producer_epoch": _number(read.last_producer_epoch),
            "prev_producer_id": _number(read.previous_producer_id),
            "next_producer_id": _number(read.next_producer_id),
            "client_tv": read.client_version,
            "partitions": [str(name) for name in sorted(read.partitions)],
        },
    }
    return mismatches(vector.expect, observed)


_OF_COORDINATORS: Final = (
    "init_producer_id",
    "add_partitions_to_txn",
    "verify_partitions",
    "end_txn",
    "txn_markers",
    "txn_coordinator_load",
    "txn_timeout",
    "txn_expiration",
    "describe_transactions",
)

KINDS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(_OF_COORDINATORS, _coordinator),
    "txn_transition": _transition,
    "verification_request": _verification,
    "record_bytes.transaction": _record_bytes,
}
