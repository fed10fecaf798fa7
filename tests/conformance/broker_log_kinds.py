"""Vectors about a replica's log: epoch cache, truncation, what followers append, idempotent producers."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from laststand.emulator.core.batch import BatchDescriptor, EpochEndOffset
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.following import (
    append_as_follower,
    follow_high_watermark,
    follow_log_start,
)
from laststand.emulator.core.broker.replicas.log_writer import CutDurability, truncate_log
from laststand.emulator.core.broker.replicas.producer_state import DuplicateBatch, ProducerEntry, RejectedBatch
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.truncation import truncation_target
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TruncationReason
from laststand.emulator.storage.producer_snapshot import snapshot_entry
from tests.conformance.broker_world import (
    NAME,
    TOPIC_ID,
    PartitionWorld,
    broker_id,
    configured,
    entries,
    leader_epoch,
    make_log,
    optional,
    pairs,
    record,
    shown,
    topic_settings,
)
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered, step_mismatches

_LEADER: Final = broker_id("L")
_FOLLOWER: Final = "F1"


def run_epoch_cache(vector: Vector) -> list[str]:
    """The leader epoch cache."""
    cache = LeaderEpochCache(entries(vector.before.get("entries") or []))
    found: list[str] = []

    def observe() -> dict[str, Any]:
        return {"entries": pairs(cache), "latest_epoch": shown(cache.latest_epoch)}

    for index, step in enumerate(vector.steps):
        outcome: dict[str, Any] = {}
        match step["op"]:
            case "assign":
                cache.assign(LeaderEpoch(step["epoch"]), Offset(step["start"]))
            case "truncate_from_end":
                cache.truncate_from_end(Offset(step["offset"]))
            case "truncate_from_start":
                cache.truncate_from_start(Offset(step["offset"]))
            case "end_offset_for":
                epoch = leader_epoch(step["epoch"])
                leo = Offset(step.get("leo", 0))
                end = None if epoch is None else cache.end_offset_for(epoch, log_end_offset=leo)
                outcome["end_offset"] = [-1, -1] if end is None else [end.leader_epoch, end.end_offset]
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, step, {**observe(), **outcome}, outcome="end_offset")
    return found + mismatches(vector.final, observe())


def run_log_truncate(vector: Vector) -> list[str]:
    """Truncation of a log and its epoch cache."""
    log = make_log(vector.before["log"])
    found: list[str] = []

    def observe() -> dict[str, Any]:
        return {
            "epochs": pairs(log.epochs),
            "leo": log.log_end_offset,
            "start": log.log_start_offset,
            "log_start": log.log_start_offset,
            "hw": log.high_watermark,
            "batches": log.batch_count,
        }

    for index, step in enumerate(vector.steps):
        match step["op"]:
            case "assign":
                log.epochs.assign(LeaderEpoch(step["epoch"]), Offset(step["start"]))
            case "truncate_to":
                log.truncate_to(Offset(step["offset"]), now_ms=0)
            case "truncate_fully":
                log.restart_at(Offset(step["offset"]))
            case "raise_log_start":
                log.raise_log_start(Offset(step["offset"]))
            case "append":
                epoch = step.get("leader_epoch", shown(log.epochs.latest_epoch))
                log.epochs.assign(LeaderEpoch(epoch), log.log_end_offset)
                log.append(record(log.log_end_offset, epoch, count=step.get("records", 1)), now_ms=0)
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, step, observe())
    return found + mismatches(vector.final, observe())


def run_truncation_decision(vector: Vector) -> list[str]:
    """The offset at which a follower cuts, by the leader's answer."""
    before = vector.before
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        own = (before.get("own_end_for") or {}).get(str(step["epoch"]))
        floor = None
        if own is not None and own[0] >= 0:
            floor = EpochEndOffset(leader_epoch=LeaderEpoch(own[0]), end_offset=Offset(own[1]))
        target = truncation_target(
            leader_epoch=leader_epoch(step["epoch"]),
            end_offset=None if optional(step["end"]) is None else Offset(step["end"]),
            own_floor=floor,
            log_end_offset=Offset(before["leo"]),
            initial_offset=Offset(before.get("initial_offset", before.get("hw", 0))),
        )
        actual = {"truncate_to": target.offset, "complete": target.is_final}
        found += step_mismatches(index, step, actual, outcome="truncate_to")
    return found + mismatches(vector.final, actual)


def _follower_world(vector: Vector) -> PartitionWorld:
    log = vector.before.get("log") or vector.before
    world = PartitionWorld(
        configured(vector.config, vector.switches, own=_FOLLOWER),
        make_log({"epochs": [[0, 0]], **log}),
        topic=topic_settings(vector.config),
    )
    epoch = vector.before.get("leader_epoch", max(0, shown(world.partition.log.epochs.latest_epoch)))
    fields = {"replicas": ["L", _FOLLOWER], "isr": ["L"], "leader_epoch": epoch, "partition_epoch": 0}
    world.follow(world.turn(), fields, leader=_LEADER)
    return world


def _observe_follower(world: PartitionWorld) -> dict[str, Any]:
    log = world.partition.log
    return {
        "leo": log.log_end_offset,
        "hw": log.high_watermark,
        "start": log.log_start_offset,
        "log_start": log.log_start_offset,
        "epochs": pairs(log.epochs),
    }


def _append(world: PartitionWorld, *batches: BatchDescriptor) -> str:
    epoch = max(batch.leader_epoch for batch in batches)
    problem = append_as_follower(world.turn(), world.partition, batches, request_leader_epoch=epoch)
    if problem is None:
        return "NONE"
    # Kafka has one exception for a first batch below the log's end, and one for batches that do not ascend.
    is_first = problem.base_offset == batches[0].base_offset
    return "UNEXPECTED_APPEND_OFFSET" if is_first else "OFFSETS_OUT_OF_ORDER"


def _batches_to_append(world: PartitionWorld, step: Fields) -> list[BatchDescriptor]:
    """Returns the batches of a step, which names them all, or one by its first offset and its size or last offset."""
    batches = []
    for one in step.get("batches") or [step]:
        epoch = one.get("leader_epoch", world.partition.leader_epoch)
        base = one.get("base", world.partition.log.log_end_offset)
        batches.append(record(base, epoch, count=one["last"] - base + 1 if "last" in one else one.get("records", 1)))
    return batches


def run_follower_append(vector: Vector) -> list[str]:
    """Appends of fetched batches."""
    world = _follower_world(vector)
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        actual: dict[str, Any] = {}
        match step["op"]:
            case "follower_append":
                actual["append"] = _append(world, *_batches_to_append(world, step))
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, step, {**_observe_follower(world), **actual}, outcome="append")
    return found + mismatches(vector.final, _observe_follower(world))


def run_follower_hw(vector: Vector) -> list[str]:
    """A follower's high watermark."""
    world = _follower_world(vector)
    partition = world.partition
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        before = partition.log.high_watermark
        match step["op"]:
            case "check":
                pass
            case "truncate_to":
                truncate_log(
                    world.turn(),
                    partition.log,
                    Offset(step["offset"]),
                    reason=TruncationReason.DIVERGING_EPOCH,
                    leader=_LEADER,
                    leader_epoch=partition.leader_epoch,
                    durability=CutDurability.SYNCED,
                )
            case "append" | "follower_append":
                _append(world, *_batches_to_append(world, step))
            case _:
                if step.get("records") or step.get("batches"):
                    _append(world, *_batches_to_append(world, step))
                _take_leader_state(world, step)
        # ``null`` is how Kafka's method says that it changed nothing.
        is_same = partition.log.high_watermark == before and step.get("expect") is None
        outcome = {"outcome": None if is_same else partition.log.high_watermark}
        found += step_mismatches(index, step, {**_observe_follower(world), **outcome}, outcome="outcome")
    return found + mismatches(vector.final, _observe_follower(world))


def _take_leader_state(world: PartitionWorld, step: Fields) -> None:
    leader_high_watermark = step.get("leader_hw", step.get("hw", step.get("offset")))
    if leader_high_watermark is not None and not step.get("diverging"):
        follow_high_watermark(world.turn(), world.partition, Offset(leader_high_watermark))
    leader_log_start = step.get("leader_log_start", step.get("log_start", step.get("leader_start")))
    if leader_log_start is not None:
        follow_log_start(world.turn(), world.partition, Offset(leader_log_start))


class _Producers:
    """A log with idempotent producers."""

    def __init__(self) -> None:
        self.log = ReplicaLog(NAME, TOPIC_ID)
        self.batches: list[BatchDescriptor] = []
        self.producer_id = ProducerId(1)

    def batch(self, step: Fields, *, base_offset: int) -> BatchDescriptor:
        """Returns the batch that a step describes."""
        self.producer_id = ProducerId(step.get("producer_id", self.producer_id))
        first, last = step.get("first_seq", 0), step.get("last_seq", 0)
        count = ((last - first) & 0x7FFFFFFF) + 1
        return msgspec.structs.replace(
            record(base_offset, 0, count=count),
            producer_id=self.producer_id,
            producer_epoch=ProducerEpoch(step.get("producer_epoch", 0)),
            base_sequence=first,
        )

    def append(self, batch: BatchDescriptor) -> None:
        """Appends without a check."""
        self.log.append(batch, now_ms=0)
        self.batches.append(batch)

    def _base_offset(self, step: Fields) -> int:
        """Returns where a batch goes: to the end, or behind a gap that the vector names."""
        return max(int(self.log.log_end_offset), int(step.get("base", step.get("offset", 0))))

    def replicated_batch(self, step: Fields) -> dict[str, Any]:
        """Appends as a follower does."""
        batch = self.batch(step, base_offset=self._base_offset(step))
        self.append(batch)
        return {"outcome": "OK", "returns": [batch.base_offset, batch.last_offset], "offset": batch.base_offset}

    def client_batch(self, step: Fields) -> dict[str, Any]:
        """Appends as a leader does."""
        batch = self.batch(step, base_offset=self._base_offset(step))
        verdict = self.log.producers.check(batch)
        if isinstance(verdict, RejectedBatch):
            return {"outcome": verdict.error.name}
        if isinstance(verdict, DuplicateBatch):
            return {"outcome": "DUPLICATE", "returns": [verdict.base_offset, verdict.last_offset]}
        self.append(batch)
        return {"outcome": "OK", "returns": [batch.base_offset, batch.last_offset], "offset": batch.base_offset}

    def marker(self, step: Fields) -> dict[str, Any]:
        """Appends the end of a transaction."""
        plain = {key: step[key] for key in ("producer_id", "producer_epoch") if key in step}
        batch = msgspec.structs.replace(
            self.batch(plain, base_offset=self._base_offset(step)), base_sequence=-1, is_control=True
        )
        verdict = self.log.producers.check(batch)
        if isinstance(verdict, RejectedBatch):
            return {"outcome": verdict.error.name}
        self.append(batch)
        return {"outcome": "OK", "offset": batch.base_offset}

    def reload(self) -> None:
        """Starts again from a snapshot of now."""
        log = self.log
        last = {batch.producer_id: batch for batch in self.batches if not batch.is_control}
        self.log = ReplicaLog(NAME, TOPIC_ID)
        self.log.load(
            self.batches,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            producers=tuple(snapshot_entry(batch) for batch in last.values()),
            producers_offset=log.log_end_offset,
            now_ms=0,
        )

    def lose_tail(self, offset: int) -> None:
        """Cuts the log."""
        self.log.truncate_to(Offset(offset), now_ms=0)
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]

    def observe(self) -> dict[str, Any]:
        """Returns the current producer's state."""
        entry: ProducerEntry | None = self.log.producers.get(self.producer_id)
        batches = [] if entry is None else list(entry.batches)
        return {
            "leo": self.log.log_end_offset,
            "known": entry is not None,
            "producer_epoch": -1 if entry is None else entry.producer_epoch,
            "first_seq": batches[0].base_sequence if batches else -1,
            "last_seq": batches[-1].last_sequence if batches else -1,
            "last_offset": batches[-1].last_offset if batches else -1,
            "first_offset": batches[0].base_offset if batches else -1,
            "batches": len(batches),
            "retained": len(batches),
            "retained_batches": len(batches),
        }


def run_producer_state(vector: Vector) -> list[str]:
    """Sequences of one idempotent producer."""
    producers = _Producers()
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        actual: dict[str, Any] = {}
        match step["op"]:
            case "client_batch":
                actual = producers.client_batch(step)
            case "replicated_batch":
                actual = producers.replicated_batch(step)
            case "txn_marker":
                actual = producers.marker(step)
            case "snapshot_and_reload":
                producers.reload()
            case "lose_tail":
                producers.lose_tail(step["leo"])
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        expect = {key: step[key] for key in ("returns", "offset") if key in step and step["op"] != "check"}
        found += numbered(index, mismatches(expect, actual))
        found += step_mismatches(index, step, {**producers.observe(), **actual}, outcome="outcome")
    return found + mismatches(vector.final, producers.observe())


KINDS: Final[Mapping[str, Handler]] = {
    "epoch_cache": run_epoch_cache,
    "log_truncate": run_log_truncate,
    "truncation_decision": run_truncation_decision,
    "follower_hw": run_follower_hw,
    "follower_append": run_follower_append,
    "producer_state": run_producer_state,
}
