"""Vectors about requests to one partition: produce, fetch, ListOffsets, DeleteRecords."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.broker.replicas.delayed_produce import ProduceHandler
from laststand.emulator.core.broker.replicas.delete_records import delete_records
from laststand.emulator.core.broker.replicas.fetch import (
    Diverging,
    Read,
    Reader,
    ReadFailed,
    visible_end_offset,
)
from laststand.emulator.core.broker.replicas.hosted import check_leader_epoch
from laststand.emulator.core.broker.replicas.list_offsets import list_offsets
from laststand.emulator.core.broker.replicas.offset_for_leader_epoch import offsets_for_leader_epochs
from laststand.emulator.core.broker.replicas.partition import PartitionRole
from laststand.emulator.core.broker.replicas.produce import append_batch
from laststand.emulator.core.effects import CloseConnection, SendResponse
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Acks, BrokerId, LeaderEpoch, Offset, RequestId
from tests.conformance.broker_partition_kinds import fetch_by_follower, read, set_follower
from tests.conformance.broker_world import (
    LETTERS,
    NAME,
    PartitionWorld,
    broker_id,
    leader_epoch,
    leading,
    pairs,
    record,
    shown,
)
from tests.conformance.harness import Fields, Handler, Vector, mismatches, step_mismatches


def run_fetch_validation(vector: Vector) -> list[str]:
    """The leader's check of where a follower is."""
    world = leading(vector.config, vector.switches, vector.before, log=vector.before["log"], isr=["L"])
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        if step["op"].startswith("set_"):
            _set_offset(world, step)
            found += step_mismatches(index, step, _log_offsets(world))
            continue
        result = read(world, step, broker_id(step.get("replica", "F1")), None)
        actual = {"error": "NONE", "diverging": None, **_log_offsets(world)}
        match result:
            case ReadFailed(error):
                actual["error"] = error.name
            case Diverging(_, end):
                actual["diverging"] = [end.leader_epoch, end.end_offset]
        found += step_mismatches(index, step, actual, outcome="error")
    return found + mismatches(vector.final, actual)


def _set_offset(world: PartitionWorld, step: Fields) -> None:
    """Puts the log start or the high watermark where a step wants it."""
    log, offset = world.partition.log, Offset(step["offset"])
    match step["op"]:
        case "set_log_start":
            # As DeleteRecords does it, which deletes nothing above the high watermark.
            log.high_watermark = max(log.high_watermark, offset)
            log.raise_log_start(offset)
        case "set_hw":
            log.high_watermark = offset
        case unknown:
            raise ValueError(f"operation {unknown} is not known")


def _log_offsets(world: PartitionWorld) -> dict[str, Any]:
    log = world.partition.log
    return {"log_start": log.log_start_offset, "hw": log.high_watermark, "leo": log.log_end_offset}


def run_epoch_check(vector: Vector) -> list[str]:
    """Leader epochs that a request may name."""
    before = vector.before
    log = before.get("log") or {"start": 0, "leo": 0, "hw": 0, "epochs": []}
    world = leading(vector.config, vector.switches, before, log=log, isr=before.get("isr") or ["L", "F1"])
    if before["role"] != PartitionRole.LEADER.value:
        world.follow(world.turn(), {"leader_epoch": before["leader_epoch"]}, leader=broker_id("F1"))
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        if step["op"] in ("reassign", "become_leader"):
            # A reassignment leaves the ISR and the leader epoch as they are.
            isr = step.get("isr") or [LETTERS[one] for one in world.partition.committed_isr]
            world.lead(world.turn(), {**step, "isr": isr})
            found += step_mismatches(index, step, {"error": "NONE"})
            continue
        if step["op"] == "become_follower":
            world.follow(world.turn(), step, leader=broker_id(step.get("leader", "F1")))
            found += step_mismatches(index, step, {"error": "NONE"})
            continue
        actual = {"error": _epoch_check_error(world, step)}
        found += step_mismatches(index, step, actual, outcome="error")
    return found + mismatches(vector.final, actual)


_EPOCHS_ONLY: Final = ("leader_required", "require_leader", "leader_only", "only_from_leader", "fetch_only_from_leader")
"""Arguments whose value false asks for the epoch check alone, which a follower makes too."""


def _epoch_check_error(world: PartitionWorld, step: Fields) -> str:
    epoch = leader_epoch(step.get("current_leader_epoch"))
    operation = step["op"]
    if any(step.get(name) is False for name in _EPOCHS_ONLY):
        return check_leader_epoch(world.partition, epoch).name
    if "epoch" in operation and "fetch" not in operation:
        position = messages.EpochPosition(
            topic=NAME.topic,
            partition=NAME.partition,
            leader_epoch=LeaderEpoch(step.get("leader_epoch", 0)),
            current_leader_epoch=epoch,
        )
        ends = offsets_for_leader_epochs(world.hosted, messages.OffsetForLeaderEpochRequest(partitions=(position,)))
        return ends.partitions[0].error.name
    if "list" in operation or "timestamp" in operation:
        return _list_offsets(world, step, timestamp=-2, isolation="read_uncommitted").error.name
    is_consumer = "consumer" in operation or "client" in operation
    replica = None if is_consumer else broker_id(step.get("replica", "F1"))
    result = read(world, {"offset": 0, **step}, replica, None)
    return result.error.name if isinstance(result, ReadFailed) else "NONE"


def _list_offsets(
    world: PartitionWorld, step: Fields, *, timestamp: int, isolation: str | None
) -> messages.ListOffsetsResult:
    asked = messages.ListOffsetsPosition(
        topic=NAME.topic,
        partition=NAME.partition,
        timestamp=timestamp,
        current_leader_epoch=leader_epoch(step.get("current_leader_epoch")),
    )
    replica = broker_id("F1") if isolation is None else None
    (result,) = list_offsets(
        world.hosted, messages.ListOffsetsRequest(partitions=(asked,), replica_id=replica)
    ).partitions
    return result


def run_list_offsets(vector: Vector) -> list[str]:
    """Lookups by clients and replicas."""
    before = vector.before
    log = {**before["log"], "timestamps": before.get("timestamps")}
    world = leading(vector.config, vector.switches, before, log=log, isr=before.get("isr") or ["L", "F1"])
    if before.get("role") == PartitionRole.FOLLOWER.value:
        world.follow(world.turn(), {"leader_epoch": world.partition.leader_epoch}, leader=broker_id("F1"))
    if "epoch_start_offset" in before:
        world.partition.epoch_start_offset = Offset(before["epoch_start_offset"])
    timestamps: dict[str, int] = {"latest": -1, "earliest": -2}
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        if step["op"] in ("set_hw", "set_log_start"):
            _set_offset(world, step)
        else:
            timestamp = timestamps[step["query"]] if step["query"] in timestamps else step["timestamp"]
            result = _list_offsets(world, step, timestamp=timestamp, isolation=step.get("isolation"))
            actual = {"error": result.error.name, "offset": result.offset, "leader_epoch": shown(result.leader_epoch)}
        found += step_mismatches(index, step, actual, outcome="error")
    return found + mismatches(vector.final, actual)


def run_fetch_isolation(vector: Vector) -> list[str]:
    """Records that consumers and replicas get to see."""
    before = vector.before
    world = leading(vector.config, vector.switches, before, log=before["log"], isr=before.get("isr") or ["L", "F1"])
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        match step["op"]:
            case "set_hw" | "set_log_start":
                _set_offset(world, step)
            case "append":
                asked = messages.ProducePartition(
                    topic=NAME.topic, partition=NAME.partition, batch=record(0, 0, count=step.get("records", 1))
                )
                append_batch(world.turn(), world.hosted, asked, acks=Acks.LEADER)
            case _:
                actual = _observe_read(world, step)
        found += step_mismatches(index, step, actual, outcome="error")
    return found + mismatches(vector.final, actual)


def _observe_read(world: PartitionWorld, step: Fields) -> dict[str, Any]:
    replica = _reader(step)
    result = read(world, step, replica, None)
    log = world.partition.log
    span = result.span if isinstance(result, Read) else None
    offsets = [] if span is None else list(range(max(span.base_offset, step["offset"]), span.end_offset))
    return {
        "error": result.error.name if isinstance(result, ReadFailed) else "NONE",
        "records": offsets if _wants_offsets(step) else len(offsets),
        "count": len(offsets),
        "max_offset": offsets[-1] if offsets else None,
        "upper_bound": visible_end_offset(world.partition, Reader(replica_id=replica)),
        "empty": not offsets,
        "offsets": offsets,
        "first": offsets[0] if offsets else None,
        "last": offsets[-1] if offsets else None,
        "first_offset": offsets[0] if offsets else None,
        "last_offset": offsets[-1] if offsets else None,
        "end_offset": step["offset"] if span is None else span.end_offset,
        "up_to": step["offset"] if span is None else span.end_offset,
        "hw": log.high_watermark,
        "high_watermark": log.high_watermark,
        "lso": log.high_watermark,
        "log_start": log.log_start_offset,
        "leo": log.log_end_offset,
    }


def _reader(step: Fields) -> BrokerId | None:
    """Returns the replica that reads, or ``None`` for a consumer; a step names it, its kind or its isolation."""
    who = step.get("replica", step.get("who"))
    if who in ("consumer", "client"):
        return None
    if who in LETTERS:
        return broker_id(who)
    is_replica = who is not None or str(step.get("isolation") or "log_end").lower() == "log_end"
    return broker_id("F1") if is_replica else None


def _wants_offsets(step: Fields) -> bool:
    expect = step.get("expect")
    return isinstance(expect, dict) and isinstance(expect.get("records"), list)


def run_produce(vector: Vector) -> list[str]:
    """Validation of produce requests."""
    before = vector.before
    log = before.get("log") or {"start": 0, "leo": before.get("leo", 0), "hw": before.get("hw", 0), "epochs": []}
    isr = before.get("committed_isr") or before.get("isr") or ["L"]
    world = leading(vector.config, vector.switches, before, log=log, isr=isr)
    if before.get("role") == PartitionRole.FOLLOWER.value or before.get("is_leader") is False:
        world.follow(world.turn(), {"leader_epoch": world.partition.leader_epoch + 1}, leader=broker_id("F1"))
    if before.get("hosted") is False:
        world.hosted.remove(NAME)
        if before.get("in_metadata", True):
            world.image.partitions[NAME] = world.state({}, leader=broker_id("F1"))
    handler = ProduceHandler(world.hosted, vector.switches)
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        actual = _produce(world, handler, step)
        found += step_mismatches(index, step, actual, outcome="error")
    return found + mismatches(vector.final, actual)


def _produce(world: PartitionWorld, handler: ProduceHandler, step: Fields) -> dict[str, Any]:
    asked = messages.ProducePartition(
        topic=step.get("topic", NAME.topic), partition=NAME.partition, batch=_batch_to_produce(step)
    )
    before = world.partition.log.log_end_offset
    turn = world.turn()
    request = messages.ProduceRequest(acks=step.get("acks", -1), timeout_ms=30_000, partitions=(asked,))
    handler.handle_request(turn, RequestId(1), request)
    effects = turn.effects()
    answers = [one.response for one in effects if isinstance(one, SendResponse)]
    answer = next((one.partitions[0] for one in answers if isinstance(one, messages.ProduceResponse)), None)
    log = world.partition.log
    return {
        "error": "NONE" if answer is None else answer.error.name,
        "base_offset": shown(None if answer is None else answer.base_offset),
        "complete": answer is not None,
        "waiting": len(handler) > 0,
        "connection_closed": any(isinstance(one, CloseConnection) for one in effects),
        "appended": log.log_end_offset > before,
        "leo": log.log_end_offset,
        "hw": log.high_watermark,
    }


def _batch_to_produce(step: Fields) -> BatchDescriptor | InvalidBatch:
    if step.get("crc_valid") is False or step.get("corrupt"):
        return InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason="the vector says so")
    batch = record(step.get("base_offset", 0), 0, count=step.get("records", 1))
    return msgspec.structs.replace(batch, size=step.get("size", batch.size))


def run_delete_records(vector: Vector) -> list[str]:
    """DeleteRecords on the leader."""
    log = {"epochs": [[0, 0]], **vector.before["log"]}
    isr = vector.before.get("isr") or ["L", "F1"]
    world = leading(vector.config, vector.switches, vector.before, log=log, isr=isr)
    for letter, fields in (vector.before.get("remote") or {}).items():
        set_follower(world.partition.followers[broker_id(letter)], fields)
    found: list[str] = []

    def observe() -> dict[str, Any]:
        log = world.partition.log
        return {
            "log_start": log.log_start_offset,
            "low_watermark": world.partition.low_watermark(),
            "hw": log.high_watermark,
            "leo": log.log_end_offset,
            "epochs": pairs(log.epochs),
        }

    for index, step in enumerate(vector.steps):
        actual: dict[str, Any] = {}
        match step["op"]:
            case "delete_records":
                offset = None if step["offset"] == -1 else Offset(step["offset"])
                outcome = delete_records(world.turn(), world.partition, offset)
                actual = {"error": outcome.name if isinstance(outcome, ErrorCode) else "NONE"}
            case "fetch":
                actual = {"error": fetch_by_follower(world, step).name}
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, step, {**observe(), **actual}, outcome="error")
    return found + mismatches(vector.final, observe())


KINDS: Final[Mapping[str, Handler]] = {
    "produce": run_produce,
    "fetch_validation": run_fetch_validation,
    "epoch_check": run_epoch_check,
    "list_offsets": run_list_offsets,
    "fetch_isolation": run_fetch_isolation,
    "delete_records": run_delete_records,
}
