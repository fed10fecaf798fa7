"""Sends an administrator's action to the controller, or to a leader, and checks the response.

An error that the action does not allow ends the plan, since the following steps depend on it.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from laststand.chaos.play.target import Target
from laststand.chaos.play.waiting import StepError
from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import TopicId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.requests import described_answers, errors_of, requests_of
from laststand.emulator.plan.topics import draw_topic_id

_SUCCESS: Final = ((ErrorCode.NONE, ""),)

_ELSEWHERE: Final = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE}
)
"""Errors after which the request is repeated: another node is controller or leader, or there is none yet."""

_RETRY_MS: Final = 100
_TRIES: Final = 100
"""``retry.backoff.ms`` and ten seconds: Kafka's administrators ask again while there is no controller, or no leader."""


async def administer(target: Target, action: actions.Administration, *, chance: Random) -> actions.Outcome:
    """Sends the request; the outcome has the controller's response. ``chance`` draws the id of a new topic.

    Raises:
        StepError: the response has an error that the action does not allow.
        EmulatorError: there was no response.
    """
    topic_id: TopicId = draw_topic_id(chance)
    answers: list[tuple[ErrorCode, str]] = []
    for request in requests_of(action, target.image, topic_id=topic_id):
        answers += await _answers(target, request, action)
    text = described_answers(answers)
    unexpected = [error for error, _ in answers if error not in action.answers]
    if unexpected:
        allowed = ", ".join(error.name for error in action.answers)
        raise StepError(f"the {_who_answers(action)} answered {text}, allowed: {allowed}")
    has_changed = any(error is ErrorCode.NONE for error, _ in answers)
    return actions.Outcome(took_effect=has_changed, affected=has_changed, seen=text)


def _who_answers(action: actions.Administration) -> str:
    return "leader" if isinstance(action, actions.DeleteRecords) else "controller"


async def _answers(
    target: Target, request: messages.Request, action: actions.Administration
) -> Sequence[tuple[ErrorCode, str]]:
    for _ in range(_TRIES):
        if isinstance(request, messages.DeleteRecordsRequest):
            answers = await _leader_answers(target, request)
        else:
            answers = errors_of(await target.ask_controller(request)) or _SUCCESS
        errors = {error for error, _ in answers}
        if not errors <= _ELSEWHERE or errors <= set(action.answers):
            break
        await target.pause(duration_ms=_RETRY_MS)
    return answers


async def _leader_answers(target: Target, request: messages.DeleteRecordsRequest) -> Sequence[tuple[ErrorCode, str]]:
    (asked,) = request.partitions
    state = target.image.partitions.get(TopicPartition(asked.topic, asked.partition))
    if state is None:
        return ((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),)
    if state.leader is None:
        return ((ErrorCode.LEADER_NOT_AVAILABLE, ""),)
    answer = await target.ask_broker(state.leader, request)
    return ((ErrorCode.NETWORK_EXCEPTION, ""),) if answer is None else errors_of(answer)
