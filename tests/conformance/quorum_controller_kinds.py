"""Vectors of the controller on top of the quorum: what it counts on, what waits, and what a failover leaves."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from laststand.emulator.core import messages, records
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.controller.sessions import SessionKey
from laststand.emulator.core.effects import AppendMetadata
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.inputs import RequestReceived, TimerFired
from laststand.emulator.core.metadata_transactions import open_after
from laststand.emulator.core.metadata_version import level_of
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum_controller.failures import OperationFailure, outcome_of
from laststand.emulator.core.quorum_controller.values import PLAIN_VALUES
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerEpoch, MetadataOffset, RequestId
from tests.conformance.harness import Handler, Vector, mismatches
from tests.conformance.quorum_controller_world import (
    BROKER,
    BROKER_EPOCH,
    CAUSE,
    QuorumControllerWorld,
    new_cluster,
)

_TRANSACTION_RECORDS: Final[Mapping[str, records.Record]] = {
    "B": records.BeginTransactionRecord(),
    "E": records.EndTransactionRecord(),
    "X": records.AbortTransactionRecord(),
}


def run_offsets(vector: Vector) -> list[str]:
    """Commits and appends of a controller that is active, deposed, and active again."""
    world = QuorumControllerWorld()
    try:
        is_rolled_back = _play(world, vector.event["operations"].split())
    except InvariantError:
        return mismatches(vector.expect, {"refused": "RuntimeException"})
    return mismatches(vector.expect, _offsets(world, is_rolled_back=is_rolled_back))


def _play(world: QuorumControllerWorld, words: Sequence[str]) -> bool:
    """Plays operations; returns whether the last deposition or abort has undone what followed the stable state.

    Raises:
        InvariantError: one of them cannot be.
    """
    is_rolled_back = False
    at: dict[int, records.Record] = {}
    for index, word in enumerate(words):
        offset = int(word[1:] or 0)
        match word[0]:
            case "c":
                # What the next epoch begins after is appended with it, and not committed.
                following = words[index + 1] if index + 1 < len(words) else ""
                end = int(following[1:]) - 1 if following.startswith("A") else offset + 1
                first = () if world.end_offset else new_cluster()
                world.follow(end_offset=max(end, offset + 1), committed=offset + 1, first=first, at=at)
                is_rolled_back = False
            case "A" if world.core.active is None and offset >= 0:
                world.win()
                world.commit(offset)
            case "A":
                world.core.offsets.activate(MetadataOffset(offset))
            case "w":
                world.write_up_to(offset, at)
            case "C":
                world.commit(offset + 1)
            case "D" if world.core.active is not None:
                world.depose()
                is_rolled_back = True
            case "D":
                world.core.offsets.deactivate()
            case kind:
                at[offset] = _TRANSACTION_RECORDS[kind]
                open_after(world.core.offsets.transaction_start, at[offset], offset=MetadataOffset(offset))
    return is_rolled_back or words[-1].startswith("X")


def _offsets(world: QuorumControllerWorld, *, is_rolled_back: bool) -> dict[str, Any]:
    core = world.core
    # The quorum's own records are committed, too, and move nothing of the controller (KAFKA-17608).
    committed = _last_below(core.offsets.committed_end, world)
    stable_state = _last_below(core.offsets.stable_end, world)
    open_start = core.offsets.transaction_start
    last_applied = committed if core.active is None else core.active.image.next_offset - 1
    undone_state = stable_state if core.active is None or open_start is None else _last_below(open_start, world)
    return {
        "active": core.active is not None,
        "last_committed_offset": committed,
        "last_stable_offset": min(core.offsets.stable_end - 1, committed),
        "next_write_offset": -1 if core.offsets.write_end is None else core.offsets.write_end,
        "state": undone_state if is_rolled_back else last_applied,
        "state_at_last_stable_offset": stable_state,
    }


def _last_below(end_offset: int, world: QuorumControllerWorld) -> int:
    """Returns the last offset below another that is the controller's."""
    batches = world.core.quorum.replica.log.batches
    return max(
        (min(batch.end_offset, end_offset) - 1 for batch in batches if batch.values and batch.base_offset < end_offset),
        default=-1,
    )


def run_activation(vector: Vector) -> list[str]:
    """The first records of a controller, on a log that its predecessor may have left in the middle."""
    start, has_version = vector.event["transaction_start_offset"], vector.event["log_has_metadata_version"]
    # The first records of Kafka's class were a metadata version alone.
    switches = msgspec.structs.replace(Switches(), elr=False)
    properties = NodeProperties(metadata_version=vector.event.get("metadata_version", "4.2"))
    world = QuorumControllerWorld(properties, switches)
    if has_version or start >= 0:
        end = start + 2 if start >= 0 else 4
        at = {start: records.BeginTransactionRecord(name="of the predecessor")}
        first = new_cluster(level=level_of(properties.metadata_version)) if has_version else ()
        world.follow(end_offset=end, committed=end, first=first, at=at)
    world.win()
    try:
        world.commit(world.end_offset)
    except InvariantError:
        return mismatches(vector.expect, {"refused": "RuntimeException"})
    epoch = world.core.controller_epoch
    own = [batch for batch in world.core.quorum.replica.log.batches if batch.values and batch.leader_epoch == epoch]
    written = [PLAIN_VALUES.decode(value).record for batch in own for value in batch.values]
    has_transaction = any(isinstance(record, records.BeginTransactionRecord) for record in written)
    observed = {"records": [type(record).__name__ for record in written], "atomic": not has_transaction}
    return mismatches(vector.expect, observed)


_FAILURES: Final[Mapping[str, OperationFailure | ErrorCode]] = {
    "NotLeaderException": OperationFailure.NOT_LEADER,
    "RejectedExecutionException": ErrorCode.REQUEST_TIMED_OUT,
    "BoundedListTooLongException": ErrorCode.POLICY_VIOLATION,
}
"""Kafka's exceptions that say no error of the protocol, and are foreseen."""

_ERRORS: Final[Mapping[str, ErrorCode]] = {
    "TimeoutException": ErrorCode.REQUEST_TIMED_OUT,
    "CorruptRecordException": ErrorCode.CORRUPT_MESSAGE,
    "InvalidTopicException": ErrorCode.INVALID_TOPIC_EXCEPTION,
    "TopicExistsException": ErrorCode.TOPIC_ALREADY_EXISTS,
    "InvalidConfigurationException": ErrorCode.INVALID_CONFIG,
    "UnknownServerException": ErrorCode.UNKNOWN_SERVER_ERROR,
} | {f"{error.name.title().replace('_', '')}Exception": error for error in ErrorCode}
"""Errors of the protocol by the names of Kafka's exceptions."""


def run_exception(vector: Vector) -> list[str]:
    """The answer to an operation that ends with an exception, and whether its controller goes on."""
    name = vector.event["exception"]
    failure = _ERRORS.get(name) or _FAILURES.get(name, OperationFailure.UNFORESEEN)
    outcome = outcome_of(failure)
    seen = [name for name, error in _ERRORS.items() if error is outcome.error]
    observed = {
        "resigns": outcome.resigns,
        "is_fault": outcome.is_fault,
        "client_sees": name if name in seen else seen[0],
    }
    return mismatches(vector.expect, observed)


def _active(
    *, end_offset: int, properties: NodeProperties | None = None, is_fenced: bool = False
) -> QuorumControllerWorld:
    """Returns a controller that is active, with everything committed up to an offset."""
    world = QuorumControllerWorld(properties)
    world.follow(end_offset=end_offset - 3, committed=end_offset - 3)
    world.follow(end_offset=end_offset - 1, committed=end_offset - 1, first=new_cluster(is_fenced=is_fenced))
    world.win()
    world.commit(end_offset)
    return world


def run_deferred(vector: Vector) -> list[str]:
    """Operations whose answers wait: ``aN`` for offset N, ``r`` a read; ``sN`` commits up to N, ``f`` deposes."""
    words = vector.event["operations"].split()
    first = next((int(word[1:]) for word in words if word[0] == "a"), 10)
    world = _active(end_offset=first)
    asked: list[RequestId] = []
    for word in words:
        offset = int(word[1:] or 0)
        match word[0]:
            case "a":
                while world.end_offset < offset:
                    world.write()
                asked.append(world.write() if world.end_offset == offset else world.read())
            case "r":
                asked.append(world.read())
            case "s":
                world.commit(offset + 1)
            case "f":
                world.depose()
            case unknown:
                return [f"operation {unknown} is not known"]
    answered = [(number, world.answers[each]) for number, each in enumerate(asked) if each in world.answers]
    completed = [f"{number}:{_outcome(answer)}" for number, answer in answered]
    return mismatches(vector.expect, {"completed": completed})


def _outcome(response: messages.Response) -> str:
    assert isinstance(response, messages.AllocateProducerIdsResponse | messages.DescribeTopicPartitionsResponse)
    return "NotControllerException" if response.error is ErrorCode.NOT_CONTROLLER else "ok"


_REGISTERED: Final = re.compile(r"reg1([uf])")
_HEARTBEAT: Final = re.compile(r"hb1/(\d+)")


def run_sessions(vector: Vector) -> list[str]:
    """Sessions that a new controller gives: ``reg1u`` is registered unfenced, ``tN`` lets N ms pass."""
    properties = NodeProperties(broker_session_timeout_ms=vector.event["session_timeout_ms"])
    words = vector.event["operations"].split()
    registered = _REGISTERED.fullmatch(words[0])
    if registered is None or words[1] != "activate":
        return [f"operations {words} are not known"]
    world = _active(end_offset=BROKER_EPOCH + 4, properties=properties, is_fenced=registered[1] == "f")
    controller = world.core.active
    assert controller is not None
    for word in words[2:]:
        if beat := _HEARTBEAT.fullmatch(word):
            request = messages.BrokerHeartbeatRequest(
                broker_id=BROKER,
                broker_epoch=BrokerEpoch(int(beat[1])),
                current_metadata_offset=MetadataOffset(0),
                want_fence=False,
                want_shut_down=False,
            )
            received = RequestReceived(cause_id=CAUSE, request_id=RequestId(0), request=request)
            controller.step(received, now_ms=world.now_ms)
        elif word[0] == "t":
            world.now_ms += int(word[1:])
        else:
            return [f"operation {word} is not known"]
    key = SessionKey(broker_id=BROKER, broker_epoch=BROKER_EPOCH)
    observed = {
        "broker": BROKER,
        "broker_epoch": BROKER_EPOCH,
        "session_valid": controller.sessions.is_valid(key, now_ms=world.now_ms),
        "expired_next": _expired_next(controller, now_ms=world.now_ms),
    }
    return mismatches(vector.expect, observed)


def _expired_next(controller: Controller, *, now_ms: int) -> str | None:
    """Fires the timers; returns the broker that is fenced by that."""
    for effect in controller.step(TimerFired(cause_id=CAUSE), now_ms=now_ms):
        if isinstance(effect, AppendMetadata):
            (record,) = effect.batch.records
            assert isinstance(record, records.BrokerRegistrationChangeRecord)
            return f"{record.broker_id}/{record.broker_epoch}"
    return None


KINDS: Final[Mapping[str, Handler]] = {
    "controller-activation": run_activation,
    "controller-exception": run_exception,
    "controller-offsets": run_offsets,
    "controller-deferred": run_deferred,
    "controller-sessions": run_sessions,
}
