"""Vectors of the kind ``reconcile``: a follower's log comes to agree with its leader's through the fetch loop."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.batch import BatchDescriptor, LogSpan
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.fetch import Reader, partition_response, read_partition
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool, FollowState
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.list_offsets import list_offsets
from laststand.emulator.core.broker.replicas.offset_for_leader_epoch import offsets_for_leader_epochs
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from tests.conformance.broker_world import (
    NAME,
    TOPIC_ID,
    PartitionWorld,
    broker_id,
    configured,
    entries,
    epoch_of,
    leader_epoch,
    pairs,
    record,
    shown,
)
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered

_LEADER: Final = broker_id("L")
_FOLLOWER: Final = "F1"


class _Shelf:
    """Values of batches by their CRC, so that logs can be compared by content."""

    def __init__(self) -> None:
        self._values: list[tuple[str, ...]] = []
        self.batches: dict[BrokerId, list[BatchDescriptor]] = {}

    def batch(self, offset: int, epoch: int, values: tuple[str, ...]) -> BatchDescriptor:
        if values not in self._values:
            self._values.append(values)
        return record(offset, epoch, count=len(values), crc=self._values.index(values))

    def values(self, batch: BatchDescriptor) -> list[dict[str, Any]]:
        return [
            {"offset": batch.base_offset + index, "leader_epoch": batch.leader_epoch, "value": value}
            for index, value in enumerate(self._values[batch.crc])
        ]

    def read(self, owner: BrokerId, span: LogSpan | None) -> tuple[BatchDescriptor, ...]:
        if span is None:
            return ()
        return tuple(batch for batch in self.batches[owner] if span.base_offset <= batch.base_offset < span.end_offset)


class _Reconciliation:
    """A follower with its fetch loop, and a leader that answers."""

    def __init__(self, vector: Vector) -> None:
        self.shelf = _Shelf()
        before = vector.before
        self.follower = self._world(vector, _FOLLOWER, before["follower"])
        self.leader = self._world(vector, "L", before["leader"]) if "leader" in before else None
        self.batches_per_response: int | None = (before.get("leader") or {}).get("batches_per_response")
        self.diverging: list[int] | None = None
        self.error = ErrorCode.NONE
        self.truncations = 0
        self.processed = 0
        self.high_watermark_updates = 0
        self.truncated_to: int | None = None
        self.discarded_from: int | None = None
        self.in_flight = InFlightRequests()
        self.pool = FetcherPool(self.follower.config, self.in_flight)
        self.fetch: messages.FetchRequest | None = None
        self._lead(before.get("leader") or {})
        self._follow(before["follower"])

    def _world(self, vector: Vector, own: str, fields: Fields) -> PartitionWorld:
        epochs: list[list[int]] = []
        if fields.get("log") is not None:
            batches = self._batches(fields)
            for batch in batches:
                if not epochs or epochs[-1][0] != batch.leader_epoch:
                    epochs.append([batch.leader_epoch, batch.base_offset])
        else:
            epochs = fields.get("log_epochs") or _epochs_of_ends(fields) or [[fields.get("leader_epoch", 0), 0]]
            batches = [
                self.shelf.batch(offset, epoch_of(offset, epochs), (f"{epoch_of(offset, epochs)}:{offset}",))
                for offset in range(fields.get("start", 0), fields["leo"])
            ]
        log = ReplicaLog(NAME, TOPIC_ID)
        start = fields.get("start", batches[0].base_offset if batches else 0)
        end = batches[-1].next_offset if batches else fields.get("leo", start)
        log.load(
            batches,
            log_start_offset=Offset(start),
            log_end_offset=Offset(end),
            producers=(),
            producers_offset=Offset(0),
            now_ms=0,
        )
        log.epochs = LeaderEpochCache(() if fields.get("epoch_cache_empty") else entries(epochs))
        log.high_watermark = Offset(max(fields.get("hw", 0), start))
        self.shelf.batches[broker_id(own)] = batches
        world = PartitionWorld(configured(vector.config, vector.switches, own=own), log, topic={})
        world.register({"L": {}, _FOLLOWER: {}})
        return world

    def _batches(self, fields: Fields) -> list[BatchDescriptor]:
        records = fields["log"]
        if fields.get("one_batch") and records:
            values = tuple(one["value"] for one in records)
            return [self.shelf.batch(records[0]["offset"], records[0]["leader_epoch"], values)]
        return [self.shelf.batch(one["offset"], one["leader_epoch"], (one.get("value", ""),)) for one in records]

    def _lead(self, fields: Fields) -> None:
        if self.leader is None:
            return
        log = self.leader.partition.log
        epochs, high_watermark = log.epochs.entries, log.high_watermark
        epoch = fields.get("leader_epoch", shown(log.epochs.latest_epoch))
        self.leader.lead(
            self.leader.turn(),
            {"replicas": ["L", _FOLLOWER], "isr": ["L"], "leader_epoch": epoch, "partition_epoch": 0},
        )
        # A vector's leader has exactly the entries that it lists, its own only if it lists that.
        log.epochs = LeaderEpochCache(epochs)
        log.high_watermark = high_watermark

    def _follow(self, fields: Fields) -> None:
        world = self.follower
        turn = world.turn()
        epoch = fields.get("leader_epoch", max(0, shown(world.partition.log.epochs.latest_epoch)))
        world.follow(
            turn,
            {"replicas": ["L", _FOLLOWER], "isr": ["L"], "leader_epoch": epoch, "partition_epoch": 0},
            leader=_LEADER,
        )
        self.pool.follow(turn, world.partition, _LEADER)
        self._go_on(turn)

    def _go_on(self, turn: Turn) -> None:
        """Sends what is due; answers everything but fetches at once."""
        while True:
            self.pool.send_due(turn, BrokerEpoch(101))
            sent = [effect for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
            questions = []
            for effect in sent:
                self.in_flight.answered(turn, effect.correlation_id)
                if isinstance(effect.request, messages.FetchRequest):
                    self.fetch = effect.request
                else:
                    questions.append(effect.request)
            if not questions or self.leader is None:
                return
            turn = self.follower.turn()
            for question in questions:
                self._answer(turn, question)

    def _answer(self, turn: Turn, question: object) -> None:
        assert self.leader is not None
        before = self.follower.partition.log.log_end_offset
        match question:
            case messages.ListOffsetsRequest():
                (result,) = list_offsets(self.leader.hosted, question).partitions
                self.pool.handle_offset(turn, _LEADER, question.partitions[0], result)
            case messages.OffsetForLeaderEpochRequest():
                (end,) = offsets_for_leader_epochs(self.leader.hosted, question).partitions
                self.pool.handle_epoch_end(turn, _LEADER, question.partitions[0], end)
        self._note_truncation(before)

    def _note_truncation(self, before: Offset) -> None:
        log = self.follower.partition.log
        if log.log_end_offset < before:
            self.truncated_to = log.log_end_offset
            self.truncations += 1
        self._mirror()

    def _mirror(self) -> None:
        """Forgets the contents that a truncation dropped."""
        log = self.follower.partition.log
        kept = self.shelf.batches[broker_id(_FOLLOWER)]
        if log.is_empty:
            kept = []
        self.shelf.batches[broker_id(_FOLLOWER)] = [batch for batch in kept if batch.last_offset < log.log_end_offset]

    def fetch_round(self, step: Fields) -> None:
        """Has one fetch answered, after any backoff."""
        deadline = self.pool.timers.earliest_ms
        if self.fetch is None and deadline is not None:
            self.follower.now_ms = max(self.follower.now_ms, deadline)
            turn = self.follower.turn()
            self.pool.handle_timer(turn)
            self._go_on(turn)
        if self.leader is None or self.fetch is None:
            return
        request, self.fetch = self.fetch, None
        (asked,) = request.partitions
        self.respond(request, self._read(self.leader, request, asked, step))

    def _read(
        self, leader: PartitionWorld, request: messages.FetchRequest, asked: messages.FetchPartition, step: Fields
    ) -> messages.FetchPartitionResponse:
        reader = Reader(replica_id=request.replica_id, replica_epoch=request.replica_epoch)
        asked = msgspec.structs.replace(asked, topic_id=None)
        result = read_partition(leader.hosted, asked, reader, bytes_left=1 << 30, bytes_read=0)
        answer = partition_response(leader.hosted, asked, result, reader)
        if step.get("corrupt_response"):
            return messages.FetchPartitionResponse(
                topic=asked.topic, partition=asked.partition, error=ErrorCode.CORRUPT_MESSAGE
            )
        if answer.diverging_epoch is not None:
            self.diverging = [answer.diverging_epoch, shown(answer.diverging_end_offset)]
        batches = self.shelf.read(_LEADER, answer.span)[: self.batches_per_response]
        return msgspec.structs.replace(answer, span=None, batches=batches)

    def respond(self, request: messages.FetchRequest, answer: messages.FetchPartitionResponse) -> None:
        """Gives the follower an answer."""
        log = self.follower.partition.log
        before = log.log_end_offset
        turn = self.follower.turn()
        self.pool.handle_fetch(turn, _LEADER, request, messages.FetchResponse(partitions=(answer,)))
        self._note_truncation(before)
        self.error = answer.error
        self.processed += answer.error is ErrorCode.NONE and answer.diverging_epoch is None
        self.high_watermark_updates += sum(
            isinstance(effect, effects.RecordEvent) and isinstance(effect.event, events.FollowerHighWatermarkUpdated)
            for effect in turn.effects()
        )
        taken = [batch for batch in answer.batches if before <= batch.base_offset < log.log_end_offset]
        self.shelf.batches[broker_id(_FOLLOWER)] += taken
        left = [batch for batch in answer.batches if batch.base_offset >= log.log_end_offset]
        self.discarded_from = left[0].base_offset if left else None
        self._go_on(turn)

    def fetch_response(self, step: Fields) -> None:
        """Gives the follower an answer that no leader of the vector made up."""
        log = self.follower.partition.log
        epoch = step.get("request_leader_epoch", self.follower.partition.leader_epoch)
        asked = messages.FetchPartition(
            topic=NAME.topic,
            topic_id=TOPIC_ID,
            partition=NAME.partition,
            fetch_offset=Offset(step.get("fetch_offset", log.log_end_offset)),
            current_leader_epoch=LeaderEpoch(epoch),
        )
        batches = tuple(
            record(one["base"], one["leader_epoch"], count=one["last"] - one["base"] + 1)
            for one in step.get("batches") or ()
        )
        diverging = step.get("diverging")
        answer = messages.FetchPartitionResponse(
            topic=NAME.topic,
            partition=NAME.partition,
            error=ErrorCode[step.get("error", "NONE")],
            high_watermark=Offset(step.get("leader_hw", step.get("hw", 0))),
            log_start_offset=Offset(step.get("leader_log_start", step.get("log_start", 0))),
            diverging_epoch=leader_epoch(diverging[0]) if diverging else None,
            diverging_end_offset=Offset(diverging[1]) if diverging else None,
            batches=batches,
        )
        self.fetch = None
        self.respond(messages.FetchRequest(partitions=(asked,)), answer)

    def set_leader_epoch(self, step: Fields) -> None:
        """The leader believes in another epoch than before; its log stays as it is."""
        assert self.leader is not None
        self.leader.partition.leader_epoch = LeaderEpoch(step["epoch"])

    def set_follower_epoch(self, step: Fields) -> None:
        """Metadata names the same leader under another epoch."""
        self._follow({"leader_epoch": step["epoch"]})

    def wipe_leader(self, step: Fields) -> None:
        """The leader's log is replaced by an empty one."""
        assert self.leader is not None
        log = self.leader.partition.log
        log.restart_at(Offset(step.get("leo", 0)))
        log.log_start_offset = Offset(step.get("start", 0))
        log.high_watermark = Offset(step.get("hw", 0))
        self.shelf.batches[_LEADER] = []

    def are_equal(self) -> bool:
        """Returns whether both logs hold the same records."""
        assert self.leader is not None
        leader = self.leader.partition.log
        ours = [one for batch in self.shelf.batches[broker_id(_FOLLOWER)] for one in self.shelf.values(batch)]
        theirs = [one for batch in self.shelf.batches[_LEADER] for one in self.shelf.values(batch)]
        return self.follower.partition.log.log_end_offset == leader.log_end_offset and ours == theirs

    def observe(self) -> dict[str, Any]:
        """Returns what vectors may look at."""
        log = self.follower.partition.log
        followed = self.pool.followed.get(NAME)
        state = None if followed is None else followed.state
        records = [one for batch in self.shelf.batches[broker_id(_FOLLOWER)] for one in self.shelf.values(batch)]
        return {
            "leo": log.log_end_offset,
            "hw": log.high_watermark,
            "start": log.log_start_offset,
            "log": records,
            "epochs": pairs(log.epochs),
            "last_fetched_epoch": shown(log.epochs.latest_epoch),
            "fetch_offset": log.log_end_offset,
            "failed": state is FollowState.FAILED,
            "partition_failed": state is FollowState.FAILED,
            # Neither asked for now nor after a backoff.
            "removed_from_fetcher": self.fetch is None and self.pool.timers.earliest_ms is None,
            "error": self.error.name,
            "truncations": self.truncations,
            "processed": self.processed,
            "hw_updates": self.high_watermark_updates,
            "ready_for_fetch": state is FollowState.FETCHING,
            "diverging": self.diverging,
            "truncated_to": self.truncated_to,
            "discarded_from": self.discarded_from,
        }


def _epochs_of_ends(fields: Fields) -> list[list[int]]:
    """Returns epochs under which a log answers as ``own_end_for`` says: the last offsets belong to a later epoch."""
    ends = sorted(own for own in (fields.get("own_end_for") or {}).values() if own is not None and own[0] >= 0)
    epochs: list[list[int]] = []
    start = fields.get("start", 0)
    for epoch, end in ends:
        epochs.append([epoch, start])
        start = end
    if epochs and start < fields["leo"]:
        epochs.append([epochs[-1][0] + 1, start])
    return epochs


_ROUNDS_MAX: Final = 50


def run_reconcile(vector: Vector) -> list[str]:
    """Two logs that come to agree through the fetch loop."""
    play = _Reconciliation(vector)
    found: list[str] = []

    def compare(expect: Fields) -> list[str]:
        observed = play.observe()
        nested = expect.get("follower") or {}
        plain = {k: v for k, v in expect.items() if k not in ("op", "follower")}
        return mismatches(plain, observed) + mismatches(nested, observed)

    for index, step in enumerate(vector.steps):
        match step["op"]:
            case "fetch_round":
                play.fetch_round(step)
            case "run_fetcher_until_equal":
                rounds = 0
                while not play.are_equal() and rounds < _ROUNDS_MAX:
                    play.fetch_round(step)
                    rounds += 1
                if not play.are_equal():
                    found.append(f"step {index}: logs differ after {rounds} rounds")
            case "fetch_response":
                play.fetch_response(step)
            case "leader_epoch_becomes":
                play.set_leader_epoch(step)
            case "follower_epoch_becomes":
                play.set_follower_epoch(step)
            case "leader_wiped":
                play.wipe_leader(step)
            case "check":
                found += numbered(index, compare({key: value for key, value in step.items() if key != "expect"}))
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        if "expect" in step:
            expect = step["expect"]
            found += numbered(
                index, compare(expect if isinstance(expect, dict) else {f"outcome of {step['op']}": expect})
            )
    return found + compare(vector.final)


KINDS: Final[Mapping[str, Handler]] = {"reconcile": run_reconcile}
