"""Sends an administrator's action to the controller, and checks the response.

An error that the action does not allow ends the plan, since the following steps depend on it.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from chaos.play.target import Target
from chaos.play.waiting import StepError
from emulator.core.errors import ErrorCode
from emulator.core.messages import Request
from emulator.core.types import TopicId
from emulator.plan.actions import Administration, Outcome
from emulator.plan.requests import errors_of, requests_of
from emulator.plan.topics import draw_topic_id

_SUCCESS: Final = ((ErrorCode.NONE, ""),)

_RETRY_MS: Final = 100
_TRIES: Final = 100
"""``retry.backoff.ms`` and ten seconds: Kafka's administrators ask again while nobody is the controller."""


async def administer(target: Target, action: Administration, *, chance: Random) -> Outcome:
    """Sends the request; the outcome has the controller's response. ``chance`` draws the id of a new topic.

    Raises:
        StepError: the response has an error that the action does not allow.
        EmulatorError: there was no response.
    """
    topic_id: TopicId = draw_topic_id(chance)
    answers: list[tuple[ErrorCode, str]] = []
    for request in requests_of(action, target.image, topic_id=topic_id):
        answers += await _answers(target, request, action)
    text = ", ".join(f"{error.name} ({message})" if message else error.name for error, message in answers)
    unexpected = [error for error, _ in answers if error not in action.answers]
    if unexpected:
        allowed = ", ".join(error.name for error in action.answers)
        raise StepError(f"the controller answered {text}, allowed: {allowed}")
    has_changed = any(error is ErrorCode.NONE for error, _ in answers)
    return Outcome(took_effect=has_changed, bit=has_changed, seen=text)


async def _answers(target: Target, request: Request, action: Administration) -> Sequence[tuple[ErrorCode, str]]:
    for _ in range(_TRIES):
        answers = errors_of(await target.ask_controller(request)) or _SUCCESS
        is_refused = all(error is ErrorCode.NOT_CONTROLLER for error, _ in answers)
        if not is_refused or ErrorCode.NOT_CONTROLLER in action.answers:
            break
        await target.pause(duration_ms=_RETRY_MS)
    return answers
