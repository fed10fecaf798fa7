"""Vectors of one node of the quorum: a state, an event, and what the node does."""

from collections.abc import Mapping
from typing import Any, Final

from tests.conformance.harness import Fields, Handler, Vector, mismatches
from tests.conformance.quorum_world import QuorumWorld

_UNORDERED: Final = frozenset({"sent", "then_sent", "responses"})
_JAVA_TEXT: Final = frozenset({"fatal_message"})


def run_start(vector: Vector) -> list[str]:
    """From the files to the first state, and what the first turn sends."""
    world = QuorumWorld(vector.config)
    observed: dict[str, Any] = {"after_start": world.state()}
    world.start()
    observed["then_sent"] = world.shown_sent(vector.expect.get("then_sent"))
    observed["state_after_first_polls"] = world.state()["state"]
    return mismatches(vector.expect, observed, sets=_UNORDERED)


def run_step(vector: Vector) -> list[str]:
    """The state before, which the steps of ``setup`` lead to, then one event."""
    world = QuorumWorld(vector.config)
    if not _is_unpolled(vector):
        world.start()
    for step in vector.raw.get("setup") or []:
        world.play(step)
    before = world.state()
    found = [f"before: {text}" for text in mismatches(vector.before, before)]
    world.forget()
    world.play(vector.event)
    return found + _mismatches(vector, _observed(vector, world), before)


def _is_unpolled(vector: Vector) -> bool:
    """The recording harness did not poll some nodes before the event: their state machine has heard of nothing."""
    told = vector.before.get("state_machine", {}).get("told_epoch")
    return bool(vector.event["type"] == "poll" and told == 0)


def _observed(vector: Vector, world: QuorumWorld) -> dict[str, Any]:
    observed: dict[str, Any] = {
        "after": world.state(),
        "sent": world.shown_sent(vector.expect.get("sent")),
        "quorum_state_writes": world.election_writes,
        "log_fsynced": world.is_log_synced,
        "fatal": world.fatal,
        "call_error": world.call_error,
        "appended_last_offset": world.accepted,
        "responses": world.shown_responses(),
    }
    responses = observed["responses"]
    if len(responses) < 2:
        observed["response"] = responses[0] if responses else None
    return observed


def _mismatches(vector: Vector, observed: Fields, before: Fields) -> list[str]:
    """Compares all that the vector says, and allows nothing else: no other answer, no error, no key of a state."""
    rest = {key: value for key, value in vector.expect.items() if key != "after"}
    found = mismatches(rest, observed, sets=_UNORDERED, informative=_JAVA_TEXT)
    state = vector.expect.get("after", {})
    found += [f"after: {text}" for text in mismatches(state, observed["after"])]
    if "persisted" in state:
        found += [f"after: {key} should be gone" for key in before if key in observed["after"] and key not in state]
    for key in ("fatal", "call_error"):
        if key not in vector.expect and observed[key] is not None:
            found.append(f"{key}: expected none, actual {observed[key]}")
    if not vector.expect.keys() & {"response", "responses"} and observed["responses"]:
        found.append(f"responses: expected none, actual {observed['responses']}")
    return found


KINDS: Final[Mapping[str, Handler]] = {
    "start": run_start,
    **dict.fromkeys(
        (
            "vote-request",
            "prevote-request",
            "vote-response",
            "begin-quorum-epoch",
            "end-quorum-epoch",
            "time",
            "fetch-request",
            "fetch-response",
            "append",
            "commit",
            "snapshot",
            "observer",
            "check-quorum",
            "resign",
            "voter-change",
            "describe-quorum",
        ),
        run_step,
    ),
}
