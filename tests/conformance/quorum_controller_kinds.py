"""Vectors of the controller on top of the quorum: what it counts on, what waits, and what a failover leaves."""

import re
from collections.abc import Mapping
from typing import Any, Final

from laststand.emulator.core import messages
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.controller.sessions import SessionKey
from laststand.emulator.core.effects import AppendMetadata
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.inputs import RequestReceived, TimerFired
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.records import BrokerRegistrationChangeRecord
from laststand.emulator.core.types import BrokerEpoch, MetadataOffset, RequestId
from tests.conformance.harness import Handler, Vector, mismatches
from tests.conformance.quorum_controller_world import (
    BROKER,
    BROKER_EPOCH,
    CAUSE,
    QuorumControllerWorld,
    new_cluster,
)


def run_offsets(vector: Vector) -> list[str]:
    """Commits and appends of a controller that is active, deposed, and active again."""
    world = QuorumControllerWorld()
    words = vector.event["operations"].split()
    for index, word in enumerate(words):
        offset = int(word[1:] or 0)
        match word[0]:
            case "c":
                # What the next epoch begins after is appended with it, and not committed.
                following = words[index + 1] if index + 1 < len(words) else ""
                end = int(following[1:]) - 1 if following.startswith("A") else offset + 1
                first = () if world.end_offset else new_cluster()
                world.follow(end_offset=max(end, offset + 1), committed=offset + 1, first=first)
            case "A":
                world.win()
                world.commit(offset)
            case "w":
                world.write()
            case "C":
                world.commit(offset + 1)
            case "D":
                world.depose()
            case unknown:
                return [f"operation {unknown} is not known"]
    return mismatches(vector.expect, _offsets(world))


def _offsets(world: QuorumControllerWorld) -> dict[str, Any]:
    core = world.core
    # The quorum's own records are committed, too, and move nothing of the controller (KAFKA-17608).
    committed = max(
        batch.end_offset - 1
        for batch in core.quorum.replica.log.batches
        if batch.values and batch.end_offset <= core.published_end_offset
    )
    return {
        "active": core.active is not None,
        "last_committed_offset": committed,
        "last_stable_offset": committed,
        "next_write_offset": -1 if core.active is None else core.active.image.next_offset,
        "state": committed if core.active is None else core.active.image.next_offset - 1,
        "state_at_last_stable_offset": committed,
    }


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
            assert isinstance(record, BrokerRegistrationChangeRecord)
            return f"{record.broker_id}/{record.broker_epoch}"
    return None


KINDS: Final[Mapping[str, Handler]] = {
    "controller-offsets": run_offsets,
    "controller-deferred": run_deferred,
    "controller-sessions": run_sessions,
}
