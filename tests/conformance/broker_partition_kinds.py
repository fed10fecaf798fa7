"""Vectors about one partition on its own: roles, ISR, high watermark, reads."""

import copy
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.broker.kraft.alter_partition_sender import AlterPartitionSender
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.delayed_produce import ProduceHandler
from laststand.emulator.core.broker.replicas.fetch import (
    Diverging,
    Read,
    Reader,
    ReadFailed,
    ReadResult,
    read_partition,
)
from laststand.emulator.core.broker.replicas.follower_state import FollowerState
from laststand.emulator.core.broker.replicas.high_watermark import (
    advance_high_watermark,
    effective_min_isr,
    follower_high_watermark,
)
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.isr import (
    Committed,
    IsrProposal,
    PendingExpand,
    PendingShrink,
    proposed_isr,
)
from laststand.emulator.core.broker.replicas.isr_changes import handle_answer, maybe_expand_isr, maybe_shrink_isr
from laststand.emulator.core.broker.replicas.log_opening import open_log
from laststand.emulator.core.broker.replicas.log_writer import append_batches
from laststand.emulator.core.broker.replicas.offset_for_leader_epoch import offsets_for_leader_epochs
from laststand.emulator.core.broker.replicas.produce import append_batch, commit_result
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    Acks,
    BrokerEpoch,
    BrokerId,
    IsrAnswer,
    LeaderEpoch,
    MetadataOffset,
    Offset,
    PartitionEpoch,
    RequestId,
)
from tests.conformance.broker_world import (
    NAME,
    TOPIC_ID,
    PartitionWorld,
    broker_epoch,
    broker_id,
    broker_ids,
    configured,
    leader_epoch,
    leading,
    letters,
    loaded_log,
    make_log,
    pairs,
    record,
    registration,
    shown,
    topic_settings,
)
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered, step_mismatches

_SETS: Final = ("committed_isr", "maximal_isr", "alter_proposed_isr", "out_of_sync", "stray")
_STATES: Final = {Committed: "committed", PendingExpand: "pending_expand", PendingShrink: "pending_shrink"}


class _PartitionPlay:
    """Plays the operations of the kind ``partition``."""

    def __init__(self, vector: Vector) -> None:
        before = vector.before
        self.vector = vector
        self.world = PartitionWorld(
            configured(vector.config, vector.switches),
            make_log(before.get("log") or {}),
            topic=topic_settings(vector.config),
        )
        self.world.now_ms = before.get("now_ms", 1_000_000)
        self.world.register(before.get("brokers") or {})
        self.in_flight = InFlightRequests()
        self.sender = AlterPartitionSender(self.world.config, ControllerChannel(self.world.config, self.in_flight))
        self.produce = ProduceHandler(self.world.hosted, vector.switches)
        self.request: messages.AlterPartitionRequest | None = None
        self.proposal: IsrProposal | None = None
        self.failed_updates = 0
        self.last_append_error: ErrorCode | None = None
        self.last_fetch_error: ErrorCode | None = None
        self._set_up(before)

    def _set_up(self, before: Fields) -> None:
        partition = self.world.partition
        match before.get("role", "none"):
            case "leader":
                high_watermark = partition.log.high_watermark
                self.world.lead(self.world.turn(), before)
                partition.log.high_watermark = high_watermark
            case "follower":
                leader = broker_id(before.get("leader", "F1"))
                self.world.follow(self.world.turn(), before, leader=leader)
            case _:
                if before.get("leader_epoch") is not None:
                    partition.leader_epoch = LeaderEpoch(before["leader_epoch"])
                if before.get("partition_epoch") is not None:
                    partition.partition_epoch = PartitionEpoch(before["partition_epoch"])
        for letter, fields in (before.get("remote") or {}).items():
            set_follower(partition.followers[broker_id(letter)], fields)

    def play(self) -> list[str]:
        found: list[str] = []
        for index, step in enumerate(self.vector.steps):
            found += numbered(index, self._step(step))
        # Where upstream's behaviour is a hazard the vector says so, and beside it what is recommended.
        final = {key: value for key, value in self.vector.final.items() if key not in ("hazard", "recommended")}
        return found + self._compare({**final, **self.vector.final.get("recommended", {})})

    def _step(self, step: Fields) -> list[str]:
        world, partition = self.world, self.world.partition
        turn = world.turn()
        outcome: object = None
        match step["op"]:
            case "check":
                return self._compare({key: value for key, value in step.items() if key not in ("op", "note")})
            case "advance":
                world.now_ms += step["ms"]
                turn = world.turn()
                self.produce.handle_timer(turn)
            case "become_leader":
                was_leader = partition.is_leader
                world.lead(turn, step)
                outcome = partition.is_leader and not was_leader
                if "epoch_start_override" in step:
                    partition.epoch_start_offset = Offset(step["epoch_start_override"])
            case "become_follower":
                outcome = world.follow(turn, step, leader=broker_id(step.get("leader", "F1")))
            case "append":
                outcome = self._append(turn, step)
            case "fetch":
                outcome = self._fetch(turn, step)
            case "shrink_tick":
                maybe_shrink_isr(turn, partition)
            case "alter_response":
                self._answer(turn, step)
            case "broker_state":
                self._change_broker(step)
            case "open_log":
                log = open_log(
                    turn,
                    loaded_log(self.vector.before["log"], high_watermark_checkpoint=step.get("hw_checkpoint") or 0),
                    TOPIC_ID,
                    switches=self.vector.switches,
                )
                world.host(log, topic_settings(self.vector.config))
            case "offset_for_leader_epoch":
                outcome = self._look_up(step)
            case unknown:
                return [f"operation {unknown} is not known"]
        self.produce.check(turn, NAME)
        self._submit(turn)
        self._note_produce_answer(turn)
        self._note_failed_updates(turn)
        if "expect" not in step:
            return []
        if isinstance(step["expect"], dict):
            return self._compare(step["expect"])
        observed = {} if outcome is None else {step["op"]: outcome}
        return mismatches({step["op"]: step["expect"]}, observed)

    def _append(self, turn: Turn, step: Fields) -> str:
        count = step.get("records", 1)
        partition = self.world.partition
        if step.get("no_hw_update"):
            batch = record(partition.log.log_end_offset, partition.leader_epoch, count=count)
            append_batches(
                turn,
                partition.log,
                (batch,),
                role=events.AppendRole.LEADER,
                current_leader_epoch=partition.leader_epoch,
            )
            self.last_append_error = ErrorCode.NONE
        else:
            asked = messages.ProducePartition(
                topic=NAME.topic, partition=NAME.partition, batch=record(0, 0, count=count)
            )
            request = messages.ProduceRequest(
                acks=step.get("acks", Acks.LEADER), timeout_ms=step.get("timeout_ms", 30_000), partitions=(asked,)
            )
            # An append that waits for its commit has no error until it is answered.
            self.last_append_error = ErrorCode.NONE
            self.produce.handle_request(turn, RequestId(1), request)
            self._note_produce_answer(turn)
        return self.last_append_error.name

    def _note_failed_updates(self, turn: Turn) -> None:
        for effect in turn.effects():
            if isinstance(effect, effects.RecordEvent) and isinstance(effect.event, events.AlterPartitionAnswered):
                self.failed_updates += effect.event.outcome in (IsrAnswer.REVERTED, IsrAnswer.PENDING)

    def _note_produce_answer(self, turn: Turn) -> None:
        for effect in turn.effects():
            if isinstance(effect, effects.RecordEvent) and isinstance(effect.event, events.ProduceAnswered):
                self.last_append_error = ErrorCode[effect.event.error]

    def _fetch(self, turn: Turn, step: Fields) -> str:
        replica = broker_id(step["replica"])
        live = self.world.image.brokers.get(replica)
        epoch = None if live is None else live.broker_epoch
        if "broker_epoch" in step:
            epoch = broker_epoch(step["broker_epoch"])
        result = read(self.world, step, replica, epoch)
        error = result.error if isinstance(result, ReadFailed) else ErrorCode.NONE
        if isinstance(result, Read):
            error = self.world.partition.note_fetch(
                turn,
                replica,
                fetch_offset=Offset(step["offset"]),
                log_start_offset=Offset(step.get("log_start", 0)),
                broker_epoch=epoch,
            )
            if "live_epoch_becomes_before_isr_check" in step:
                becomes = step["live_epoch_becomes_before_isr_check"]
                self._change_broker({"broker": step["replica"], "epoch": becomes})
            if error is ErrorCode.NONE:
                maybe_expand_isr(turn, self.world.partition, replica)
        self.last_fetch_error = error
        return error.name

    def _change_broker(self, step: Fields) -> None:
        id_ = broker_id(step["broker"])
        brokers = self.world.image.brokers
        if step.get("epoch", 0) is None or step.get("registered") is False:
            brokers.pop(id_, None)
            return
        current = brokers.get(id_) or registration(id_, {})
        brokers[id_] = msgspec.structs.replace(
            current,
            broker_epoch=BrokerEpoch(step.get("epoch", current.broker_epoch)),
            fenced=step.get("fenced", current.fenced),
            in_controlled_shutdown=step.get("shutting_down", current.in_controlled_shutdown),
        )

    def _look_up(self, step: Fields) -> list[int]:
        position = messages.EpochPosition(
            topic=NAME.topic, partition=NAME.partition, leader_epoch=LeaderEpoch(step["epoch"])
        )
        response = offsets_for_leader_epochs(
            self.world.hosted, messages.OffsetForLeaderEpochRequest(partitions=(position,))
        )
        (end,) = response.partitions
        return [shown(end.leader_epoch), shown(end.end_offset)]

    def _answer(self, turn: Turn, step: Fields) -> None:
        assert self.request is not None, "no proposal is outstanding"
        request, self.request = self.request, None
        partition = self.world.partition
        error = ErrorCode[step.get("error", "NONE")]
        result = messages.AlterPartitionResult(
            topic=NAME.topic,
            topic_id=TOPIC_ID,
            partition=NAME.partition,
            error=error,
            leader=self.world.config.broker_id,
            leader_epoch=LeaderEpoch(step.get("leader_epoch", partition.leader_epoch)),
            isr=broker_ids(step.get("isr") or ()),
            partition_epoch=PartitionEpoch(step.get("partition_epoch", partition.partition_epoch)),
        )
        response = messages.AlterPartitionResponse(error=ErrorCode.NONE, partitions=(result,))
        for answered in self.sender.handle_response(turn, request, response, known_end_offset=MetadataOffset(0)):
            handle_answer(turn, partition, answered.proposal, answered.result)

    def _submit(self, turn: Turn) -> None:
        for proposal in turn.proposals:
            error = self.sender.submit(proposal)
            if error is ErrorCode.NONE:
                self.proposal = proposal
                continue
            refusal = messages.AlterPartitionResult(
                topic=NAME.topic, topic_id=TOPIC_ID, partition=NAME.partition, error=error
            )
            handle_answer(turn, self.world.partition, proposal, refusal)
        self.sender.send_queued(turn, BrokerEpoch(100))
        for effect in turn.effects():
            if isinstance(effect, effects.SendRequest) and isinstance(effect.request, messages.AlterPartitionRequest):
                self.request = effect.request

    def _compare(self, expect: Fields) -> list[str]:
        actual = self._observe()
        remote = expect.get("remote") or {}
        plain = {key: _as_set(key, value) for key, value in expect.items() if key != "remote"}
        found = mismatches(plain, {key: _as_set(key, value) for key, value in actual.items()})
        followers = self.world.partition.followers
        if "remote" in expect and not remote:
            found += mismatches({"remote": []}, {"remote": letters(followers)})
        for letter, fields in remote.items():
            follower = followers.get(broker_id(letter))
            if fields is None:
                found += mismatches({f"remote {letter}": None}, {f"remote {letter}": follower})
                continue
            observed = {} if follower is None else _observe_follower(follower, self.world)
            found += [f"remote {letter} {text}" for text in mismatches(fields, observed)]
        return found

    def _observe(self) -> dict[str, Any]:
        partition = self.world.partition
        log = partition.log
        return {
            "role": partition.role.value,
            "committed_isr": letters(partition.committed_isr),
            "maximal_isr": letters(partition.maximal_isr),
            "state": _STATES[type(partition.isr_state)],
            "alter_outstanding": 0 if self.proposal is None else int(is_queued(self.sender, self.proposal)),
            "alter_proposed_isr": letters(proposed_isr(self.proposal.state)) if self.proposal else None,
            "alter_proposed_broker_epochs": _member_epochs(self.proposal),
            "alter_broker_epochs": _member_epochs(self.proposal),
            "alter_proposed_epochs": _member_epochs(self.proposal),
            "failures": self.failed_updates,
            "under_min_isr": partition.is_under_min_isr,
            "out_of_sync": letters(partition.out_of_sync_members(now_ms=self.world.now_ms)),
            "hw": log.high_watermark,
            "leo": log.log_end_offset,
            "start": log.log_start_offset,
            "log_start": log.log_start_offset,
            "epochs": pairs(log.epochs),
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "leader_epoch_start": partition.epoch_start_offset,
            "epoch_start": partition.epoch_start_offset,
            "leader_epoch_start_offset": partition.epoch_start_offset,
            "epoch_start_offset": partition.epoch_start_offset,
            "effective_min_isr": partition.effective_min_isr,
            "replicas": letters(partition.replicas),
            "last_append_error": None if self.last_append_error is None else self.last_append_error.name,
            "last_fetch_error": None if self.last_fetch_error is None else self.last_fetch_error.name,
        }


def is_queued(sender: AlterPartitionSender, proposal: IsrProposal) -> bool:
    """Returns whether a change of that partition awaits an answer: another one would be refused."""
    return copy.deepcopy(sender).submit(proposal) is ErrorCode.OPERATION_NOT_ATTEMPTED


def _member_epochs(proposal: IsrProposal | None) -> dict[str, int] | None:
    if proposal is None:
        return None
    return {letters([member.broker_id])[0]: shown(member.broker_epoch) for member in proposal.members}


def _as_set(key: str, value: Any) -> Any:
    return sorted(value) if key in _SETS and value is not None else value


def set_follower(follower: FollowerState, fields: Fields) -> None:
    """Puts what the leader knows of a follower into the state that a vector names."""
    if "leo" in fields:
        follower.log_end_offset = None if fields["leo"] < 0 else Offset(fields["leo"])
    if "start" in fields or "log_start" in fields:
        start = fields.get("start", fields.get("log_start"))
        follower.log_start_offset = None if start < 0 else Offset(start)
    if "last_caught_up_ms" in fields:
        follower.last_caught_up_ms = fields["last_caught_up_ms"]
    if "broker_epoch" in fields:
        follower.broker_epoch = broker_epoch(fields["broker_epoch"])


def _observe_follower(follower: FollowerState, world: PartitionWorld) -> dict[str, Any]:
    return {
        "caught_up": follower.is_caught_up(
            log_end_offset=world.partition.log.log_end_offset,
            now_ms=world.now_ms,
            lag_time_max_ms=world.config.properties.replica_lag_time_max_ms,
        ),
        "leo": shown(follower.log_end_offset),
        "start": shown(follower.log_start_offset),
        "log_start": shown(follower.log_start_offset),
        "last_caught_up_ms": follower.last_caught_up_ms,
        "broker_epoch": shown(follower.broker_epoch),
    }


def read(world: PartitionWorld, step: Fields, replica: BrokerId | None, epoch: BrokerEpoch | None) -> ReadResult:
    """Reads as a step of a vector asks."""
    asked = messages.FetchPartition(
        topic=NAME.topic,
        topic_id=None,
        partition=NAME.partition,
        fetch_offset=Offset(step["offset"]),
        current_leader_epoch=leader_epoch(step.get("current_leader_epoch")),
        last_fetched_epoch=leader_epoch(step.get("last_fetched_epoch")),
        log_start_offset=Offset(step.get("log_start", 0)),
        partition_max_bytes=step.get("max_bytes", 1 << 20),
    )
    reader = Reader(replica_id=replica, replica_epoch=epoch)
    return read_partition(world.hosted, asked, reader, bytes_left=1 << 30, bytes_read=0)


def run_partition(vector: Vector) -> list[str]:
    """Roles, ISR changes and the high watermark of one partition."""
    return _PartitionPlay(vector).play()


def run_produce_completion(vector: Vector) -> list[str]:
    """One look at a waiting acks=all append."""
    before = vector.before
    log = {"start": 0, "leo": max(before["hw"], before["required_offset"]), "hw": before["hw"], "epochs": [[0, 0]]}
    world = leading(vector.config, vector.switches, before, log=log, isr=before["maximal_isr"])
    if not before.get("is_leader", True):
        world.follow(world.turn(), {"leader_epoch": 1}, leader=broker_id("F1"))
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        if step["op"] != "try_complete":
            return [f"step {index}: operation {step['op']} is not known"]
        error = commit_result(world.partition, Offset(before["required_offset"]))
        actual = {"complete": error is not None, "error": ErrorCode.NONE.name if error is None else error.name}
        found += step_mismatches(index, step, actual, outcome="error")
    return found + mismatches(vector.final, actual)


def run_hw_basic(vector: Vector) -> list[str]:
    """The high watermark's primitives."""
    log = make_log(vector.before["log"])
    found: list[str] = []

    def observe() -> dict[str, Any]:
        return {"hw": log.high_watermark, "leo": log.log_end_offset, "start": log.log_start_offset}

    for index, step in enumerate(vector.steps):
        match step["op"]:
            case "append":
                for _ in range(step["records"]):
                    log.append(record(log.log_end_offset, 0), now_ms=0)
            case "leader_hw":
                decision = advance_high_watermark(
                    high_watermark=log.high_watermark,
                    log_end_offset=log.log_end_offset,
                    waited_for=(Offset(step["offset"]),),
                    committed_isr_size=2,
                    required_isr_size=1,
                )
                log.high_watermark = decision.high_watermark
            case "follower_hw":
                log.high_watermark = follower_high_watermark(
                    leader_high_watermark=Offset(step["offset"]),
                    log_start_offset=log.log_start_offset,
                    log_end_offset=log.log_end_offset,
                )
            case "truncate_to":
                log.truncate_to(Offset(step["offset"]), now_ms=0)
            case "truncate_fully":
                log.restart_at(Offset(step["offset"]))
            case "raise_log_start":
                log.raise_log_start(Offset(step["offset"]))
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, step, observe(), outcome="hw")
    return found + mismatches(vector.final, observe())


def run_hw_advance(vector: Vector) -> list[str]:
    """The leader's rule on plain numbers."""
    event = vector.event
    required = effective_min_isr(
        min_insync_replicas=event["min_isr"], replica_count=event["replicas"], switches=vector.switches
    )
    known = {member: leo for member, leo in event["leos"].items() if leo is not None and leo >= 0}
    offsets = [None if (leo := known.get(str(member))) is None else Offset(leo) for member in event["maximal_isr"]]
    decision = advance_high_watermark(
        high_watermark=Offset(event["hw"]),
        log_end_offset=Offset(max(known.values())),
        waited_for=offsets,
        committed_isr_size=len(event["isr"]),
        required_isr_size=required if vector.switches.hw_requires_min_isr else 0,
    )
    return mismatches(vector.expect, {"hw": decision.high_watermark})


def run_follower_state(vector: Vector) -> list[str]:
    """The followers' state that a leader learns from their fetches."""
    before = vector.before
    log = {"start": 0, "hw": 0, "epochs": [[before.get("leader_epoch", 0), 0]], **(before.get("leader") or {})}
    world = leading(vector.config, vector.switches, before, log=log, isr=before.get("isr") or ["L", "F1"])
    world.now_ms = before.get("now_ms", world.now_ms)
    for letter, fields in (before.get("remote") or {}).items():
        set_follower(world.partition.followers[broker_id(letter)], fields)
    found: list[str] = []

    def observe() -> dict[str, Any]:
        followers = world.partition.followers.values()
        remote = {letters([one.broker_id])[0]: _observe_follower(one, world) for one in followers}
        log = world.partition.log
        return {"hw": log.high_watermark, "leo": log.log_end_offset, "remote": remote}

    for index, step in enumerate(vector.steps):
        actual: dict[str, Any] = {}
        match step["op"]:
            case "check":
                pass
            case "advance":
                world.now_ms += step["ms"]
            case "append":
                _append_records(world, step.get("records", 1))
            case "fetch":
                actual = {"error": fetch_by_follower(world, step).name}
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, *_only_named_remotes(step, {**observe(), **actual}), outcome="error")
    _, final = _only_named_remotes(vector.final, observe())
    return found + mismatches(vector.final, final)


def _only_named_remotes(expect: Fields, observed: dict[str, Any]) -> tuple[Fields, dict[str, Any]]:
    """Returns what was observed without the replicas and fields that an expectation does not name."""
    nested = expect.get("expect")
    named = {**(expect.get("remote") or {}), **((nested.get("remote") or {}) if isinstance(nested, dict) else {})}
    remote = {
        letter: {field: value for field, value in observed["remote"].get(letter, {}).items() if field in fields}
        for letter, fields in named.items()
    }
    return expect, {**observed, "remote": remote}


def _append_records(world: PartitionWorld, count: int) -> None:
    for _ in range(count):
        batch = messages.ProducePartition(topic=NAME.topic, partition=NAME.partition, batch=record(0, 0))
        append_batch(world.turn(), world.hosted, batch, acks=Acks.LEADER)


def fetch_by_follower(world: PartitionWorld, step: Fields) -> ErrorCode:
    leader_end = step.get("leader_leo", step.get("leader_end_offset"))
    if leader_end is not None:
        _append_records(world, leader_end - world.partition.log.log_end_offset)
    replica = broker_id(step.get("replica", "F1"))
    epoch = broker_epoch(step.get("broker_epoch"))
    result = read(world, step, replica, epoch)
    if isinstance(result, ReadFailed):
        return result.error
    if isinstance(result, Diverging):
        return ErrorCode.NONE
    return world.partition.note_fetch(
        world.turn(),
        replica,
        fetch_offset=Offset(step["offset"]),
        log_start_offset=Offset(step.get("log_start", step.get("start", 0))),
        broker_epoch=epoch,
    )


KINDS: Final[Mapping[str, Handler]] = {
    "partition": run_partition,
    "produce_completion": run_produce_completion,
    "hw_basic": run_hw_basic,
    "hw_advance": run_hw_advance,
    "follower_state": run_follower_state,
}
