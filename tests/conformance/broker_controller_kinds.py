"""Vectors about what a broker tells the controller: its life cycle, and its queue of ISR changes."""

from collections.abc import Mapping
from typing import Any, Final

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.kraft.alter_partition_sender import AlterPartitionSender
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.kraft.lifecycle import BrokerLifecycle
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.isr import IsrProposal, PendingShrink
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    BrokerState,
    CauseId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from tests.conformance.broker_node_kinds import partition_of
from tests.conformance.broker_partition_kinds import is_queued
from tests.conformance.broker_world import (
    TOPIC_ID,
    broker_epoch,
    configured,
    shown,
)
from tests.conformance.harness import Fields, Handler, Vector, mismatches, numbered, step_mismatches

_CAUSE: Final = CauseId("vector")


def _without(fields: Fields, *names: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in names}


class _Sender:
    """The AlterPartition queue with a controller that answers by script."""

    def __init__(self, vector: Vector) -> None:
        self.now_ms = 0
        self.broker_epoch = BrokerEpoch(vector.before.get("broker_epoch", 100))
        config = configured(vector.config, vector.switches)
        self.sender = AlterPartitionSender(config, ControllerChannel(config, InFlightRequests()))
        self.requests: list[messages.AlterPartitionRequest] = []
        self.callbacks: dict[str, str] = {}
        self.last_callback: str | None = None
        self.submitted: dict[TopicPartition, IsrProposal] = {}
        self.resubmits: dict[TopicPartition, IsrProposal] = {}

    def turn(self) -> Turn:
        return Turn(now_ms=self.now_ms, cause_id=_CAUSE)

    def collect(self, turn: Turn) -> None:
        for effect in turn.effects():
            if isinstance(effect, effects.SendRequest) and isinstance(effect.request, messages.AlterPartitionRequest):
                self.requests.append(effect.request)

    def submit(self, step: Fields) -> str:
        partition = partition_of(step["tp"])
        epochs = step.get("broker_epochs") or {}
        topic_id = TopicId(step["topic_id"] or "") or None if "topic_id" in step else TOPIC_ID
        proposal = IsrProposal(
            partition=partition,
            topic_id=None if step.get("has_topic_id") is False else topic_id,
            leader_epoch=LeaderEpoch(step.get("leader_epoch", 1)),
            partition_epoch=PartitionEpoch(step.get("partition_epoch", 1)),
            members=tuple(
                messages.IsrMember(BrokerId(NodeId(one)), broker_epoch(epochs.get(str(one)))) for one in step["isr"]
            ),
            state=PendingShrink((), frozenset()),
        )
        error = self.sender.submit(proposal)
        self.submitted[partition] = proposal
        if step.get("on_error") == "resubmit":
            self.resubmits[partition] = proposal
        turn = self.turn()
        self.sender.send_queued(turn, self.broker_epoch)
        self.collect(turn)
        return "enqueued" if error is ErrorCode.NONE else error.name

    def submit_many(self, step: Fields) -> str:
        """Submits a change of each partition of a range; returns the last outcome."""
        outcome = ""
        for number in range(step["first"], step["last"] + 1):
            outcome = self.submit({"isr": [1, 2, 3], **step, "tp": f"{step['topic']}-{number}"})
        return outcome

    def fail(self) -> None:
        """No answer comes."""
        turn = self.turn()
        self.sender.handle_failure(turn)
        self.collect(turn)

    def respond(self, step: Fields) -> None:
        if step.get("top_level_error", "NONE") not in ErrorCode.__members__:
            # What is no error code is an exchange that failed: no connection, no authentication, no such version.
            self.fail()
            return
        turn = self.turn()
        request = self.requests[-1]
        response = messages.AlterPartitionResponse(
            error=ErrorCode[step.get("top_level_error", "NONE")],
            partitions=tuple(
                messages.AlterPartitionResult(
                    topic=partition_of(name).topic,
                    topic_id=TOPIC_ID,
                    partition=partition_of(name).partition,
                    error=ErrorCode[error],
                )
                for name, error in (step.get("partitions") or {}).items()
            ),
        )
        self.callbacks = {}
        for answered in self.sender.handle_response(turn, request, response, known_end_offset=MetadataOffset(0)):
            partition, error = answered.proposal.partition, answered.result.error
            self.callbacks[str(partition)] = self.last_callback = error.name
            if error is not ErrorCode.NONE and partition in self.resubmits:
                self.sender.submit(self.resubmits[partition])
        if response.error is ErrorCode.NONE:
            self.sender.send_queued(turn, self.broker_epoch)
        self.collect(turn)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        turn = self.turn()
        self.sender.handle_timer(turn, self.broker_epoch)
        self.collect(turn)

    def observe(self) -> dict[str, Any]:
        last = self.requests[-1] if self.requests else None
        data = () if last is None else last.partitions
        return {
            "requests_sent": len(self.requests),
            "still_queued": [
                str(name) for name, proposal in self.submitted.items() if is_queued(self.sender, proposal)
            ],
            "last_request_partitions": len(data),
            "last_request_only": [f"{one.topic}-{one.partition}" for one in data],
            "last_request_isr": {
                f"{one.topic}-{one.partition}": [member.broker_id for member in one.new_isr] for one in data
            },
            "callback": self.callbacks,
            "callback_error": self.last_callback,
            "last_request_broker_epoch": None if last is None else last.broker_epoch,
            "last_request_version": None if last is None else last.api_version,
            "last_request_broker_epochs": {
                f"{one.topic}-{one.partition}": [shown(member.broker_epoch) for member in one.new_isr] for one in data
            },
            "last_request_recovery": {f"{one.topic}-{one.partition}": one.leader_recovery_state.name for one in data},
            "last_request_max_version": None if last is None else last.api_version,
            "uses_topic_ids": all(one.topic_id is not None for one in data),
            "request_version": None if last is None else last.api_version,
            "version": None if last is None else last.api_version,
            "api_version": None if last is None else last.api_version,
            "broker_epoch": None if last is None else last.broker_epoch,
        }


def run_alter_sender(vector: Vector) -> list[str]:
    """Batching and retries of AlterPartition."""
    play = _Sender(vector)
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        outcome: dict[str, Any] = {}
        match step["op"]:
            case "submit":
                outcome["submit"] = play.submit(step)
            case "submit_many":
                outcome["submit"] = play.submit_many(step)
            case "response" if "partitions" in step or "top_level_error" in step:
                play.respond(step)
            case "advance":
                play.advance(step["ms"])
            case "broker_epoch":
                play.broker_epoch = BrokerEpoch(step["epoch"])
            # An answer without content is a failed exchange.
            case "response" | "timeout" | "disconnect" | "no_response":
                play.fail()
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, step, {**play.observe(), **outcome}, outcome="submit")
    return found + mismatches(vector.final, play.observe())


class _Life:
    """A life cycle with a controller that answers by script, and by default as it did last."""

    def __init__(self, vector: Vector) -> None:
        self.now_ms = 0
        config = configured(vector.config, vector.switches)
        fields = {name: getattr(config, name) for name in config.__struct_fields__}
        fields["previous_broker_epoch"] = broker_epoch(vector.before.get("previous_broker_epoch"))
        fields["log_dirs"] = tuple(vector.before.get("log_dirs") or ())
        self.heartbeat_interval_ms = config.properties.broker_heartbeat_interval_ms
        own = type(config)(**fields)
        self.lifecycle = BrokerLifecycle(own, ControllerChannel(own, InFlightRequests()))
        self.unanswered: list[messages.Request] = []
        self.looked_at = False
        self.habit = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=False, is_fenced=True)
        if "state" in vector.before:
            self.reach(BrokerState[vector.before["state"]], BrokerEpoch(vector.before.get("broker_epoch", 1)))

    def turn(self) -> Turn:
        return Turn(now_ms=self.now_ms, cause_id=_CAUSE)

    def collect(self, turn: Turn) -> None:
        for effect in turn.effects():
            if isinstance(effect, effects.SendRequest):
                self.unanswered.append(effect.request)
                self.looked_at = False

    def do(self, action: Any, *arguments: Any) -> None:
        turn = self.turn()
        action(turn, *arguments)
        self.collect(turn)

    def reach(self, state: BrokerState, epoch: BrokerEpoch) -> None:
        """Goes the usual way into a state, under a broker epoch."""
        if state is BrokerState.NOT_RUNNING:
            return
        self.do(self.lifecycle.start)
        if state is BrokerState.STARTING:
            return
        self.next_request(messages.BrokerRegistrationRequest)
        self.unanswered.pop()
        self.do(
            self.lifecycle.handle_registration,
            messages.BrokerRegistrationResponse(error=ErrorCode.NONE, broker_epoch=epoch),
        )
        self.next_request(messages.BrokerHeartbeatRequest)
        self.answer_heartbeat(messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=True))
        if state is BrokerState.RECOVERY:
            return
        self.do(self.lifecycle.become_ready)
        self.next_request(messages.BrokerHeartbeatRequest)
        self.answer_heartbeat(
            messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=False)
        )
        if state in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN):
            self.do(self.lifecycle.begin_shutdown)
        if state is BrokerState.SHUTTING_DOWN:
            self.do(self.lifecycle.end)

    def next_after_error(self) -> str:
        """Returns when the next heartbeats go out after one answer with an error, and after more of them."""
        delays = []
        for _ in range(3):
            deadline = self.lifecycle.next_deadline_ms()
            assert deadline is not None
            delays.append(deadline - self.now_ms)
            self.next_request(messages.BrokerHeartbeatRequest)
            self.answer_heartbeat(
                messages.BrokerHeartbeatResponse(error=ErrorCode.STALE_BROKER_EPOCH, is_caught_up=True, is_fenced=False)
            )
        if set(delays) == {self.heartbeat_interval_ms}:
            return "retry after broker.heartbeat.interval.ms (fixed, no exponential backoff)"
        return f"retries after {delays} ms"

    def answer_seen_heartbeat(self) -> None:
        """Answers a heartbeat that the vector has looked at, as usual."""
        if self.looked_at and self.unanswered:
            self.answer_heartbeat(self.habit)

    def answer_heartbeat(self, response: messages.BrokerHeartbeatResponse) -> None:
        self.habit = response
        self.unanswered.pop()
        self.looked_at = False
        self.do(self.lifecycle.handle_heartbeat, response)

    def next_request(self, kind: type[messages.Request]) -> Any:
        """Returns the request of a kind that is in flight, waiting for its time if need be."""
        self.answer_seen_heartbeat()
        for _ in range(3):
            if self.unanswered and isinstance(self.unanswered[-1], kind):
                self.looked_at = True
                return self.unanswered[-1]
            deadline = self.lifecycle.next_deadline_ms()
            if deadline is None:
                break
            self.now_ms = max(self.now_ms, deadline)
            self.do(self.lifecycle.handle_timer)
        raise AssertionError(f"no {kind.__name__} is sent")

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (deadline := self.lifecycle.next_deadline_ms()) is not None and deadline <= end_ms:
            self.now_ms = max(self.now_ms, deadline)
            self.do(self.lifecycle.handle_timer)
        self.now_ms = end_ms

    def observe(self) -> dict[str, Any]:
        return {
            "broker_epoch": shown(self.lifecycle.broker_epoch),
            "state": self.lifecycle.state.value,
            "offline_dirs": self.lifecycle.offline_log_dirs,
            "exited": self.lifecycle.state is BrokerState.SHUTTING_DOWN,
        }


def _observe_heartbeat(heartbeat: messages.BrokerHeartbeatRequest) -> dict[str, Any]:
    return {
        "offline_dirs": list(heartbeat.offline_log_dirs),
        "want_fence": heartbeat.want_fence,
        "want_shut_down": heartbeat.want_shut_down,
        "want_shutdown": heartbeat.want_shut_down,
        "broker_epoch": heartbeat.broker_epoch,
        "current_metadata_offset": heartbeat.current_metadata_offset,
    }


def _observe_registration(request: messages.BrokerRegistrationRequest) -> dict[str, Any]:
    return {
        "previous_broker_epoch": shown(request.previous_broker_epoch),
        "broker_id": request.broker_id,
        "log_dirs": list(request.log_dirs),
        "cluster_id": request.cluster_id,
    }


def _life_step(life: _Life, step: Fields) -> list[str]:
    unseen = [] if "expect" not in step else [f"outcome of {step['op']} is not observed"]
    return unseen + _apply_life_step(life, step)


def _apply_life_step(life: _Life, step: Fields) -> list[str]:
    lifecycle = life.lifecycle
    if step["op"] not in ("heartbeat_response", "check"):
        life.answer_seen_heartbeat()
    match step["op"]:
        case "start":
            life.do(lifecycle.start)
        case "expect_registration":
            actual = _observe_registration(life.next_request(messages.BrokerRegistrationRequest))
            return mismatches(_without(step, "op"), actual, sets=_DIRECTORY_SETS)
        case "registration_response":
            response = messages.BrokerRegistrationResponse(
                error=ErrorCode[step.get("error", "NONE")], broker_epoch=broker_epoch(step.get("broker_epoch"))
            )
            if life.unanswered:
                life.unanswered.pop()
            life.do(lifecycle.handle_registration, response)
        case "expect_heartbeat":
            actual = _observe_heartbeat(life.next_request(messages.BrokerHeartbeatRequest))
            return mismatches(_without(step, "op"), actual, sets=_DIRECTORY_SETS)
        case "heartbeat_response":
            life.next_request(messages.BrokerHeartbeatRequest) if not life.looked_at else None
            life.answer_heartbeat(
                messages.BrokerHeartbeatResponse(
                    error=ErrorCode[step.get("error", "NONE")],
                    is_caught_up=_flag(step, "caught_up", usual=life.habit.is_caught_up),
                    is_fenced=_flag(step, "fenced", usual=life.habit.is_fenced),
                    should_shut_down=_flag(step, "should_shut_down", "should_shutdown", usual=False),
                )
            )
        case "dir_fails":
            life.do(lifecycle.fail_log_dir, step["dir"])
        case "ready_to_unfence" | "ready":
            life.do(lifecycle.become_ready)
        case "begin_controlled_shutdown" | "controlled_shutdown" | "shutdown":
            life.do(lifecycle.begin_shutdown)
        case "advance":
            life.advance(step["ms"])
        case "check":
            return mismatches(_without(step, "op"), life.observe())
        case unknown:
            return [f"operation {unknown} is not known"]
    return []


def _flag(step: Fields, *names: str, usual: bool) -> bool:
    given = [step[key] for name in names for key in (name, f"is_{name}") if key in step]
    return bool(given[0]) if given else usual


def run_lifecycle(vector: Vector) -> list[str]:
    """Registration, heartbeats, shutdown."""
    life = _Life(vector)
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        found += numbered(index, _life_step(life, step))
    actual = life.observe()
    if any(key.startswith("next_heartbeat_") for key in vector.final):
        heartbeat = _observe_heartbeat(life.next_request(messages.BrokerHeartbeatRequest))
        actual |= {f"next_heartbeat_{key}": value for key, value in heartbeat.items()}
    if "next" in vector.final:
        actual["next"] = life.next_after_error()
    return found + mismatches(vector.final, actual, sets=_DIRECTORY_SETS)


_DIRECTORY_SETS: Final = ("log_dirs", "offline_dirs", "next_heartbeat_offline_dirs")


KINDS: Final[Mapping[str, Handler]] = {"alter_sender": run_alter_sender, "lifecycle": run_lifecycle}
