"""Requests to one of several controllers: another is asked where that one is not active, or gives no answer."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from laststand.emulator.core import admin_messages, inputs, messages
from laststand.emulator.core.authorizer.request_guard import refusal
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, CorrelationId, NodeId, RequestFailure
from laststand.emulator.kafka_listener import gateway
from laststand.emulator.kafka_listener.gateway import ControllerGateway
from laststand.emulator.rpc.outbound import Outbound

CONTROLLERS = (NodeId(100), NodeId(101), NodeId(102))
REQUEST = admin_messages.DescribeClusterRequest()
INACTIVE = refusal(REQUEST, ErrorCode.NOT_CONTROLLER)
ACTIVE = refusal(REQUEST, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class Controllers:
    """Answers by destination; ``None`` is a connection that fails."""

    def __init__(self, answers: dict[NodeId, messages.Response | None]) -> None:
        self.answers = answers
        self.asked: list[NodeId] = []
        self.elects_after = 1_000_000

    def make(
        self, receive: Callable[[inputs.ResponseReceived | inputs.RequestFailed, tuple[bytes, ...]], None]
    ) -> Outbound:
        self._receive = receive
        return cast(Outbound, self)

    def send(self, *, destination: NodeId, correlation_id: CorrelationId, cause_id: CauseId, **_: Any) -> None:
        self.asked.append(destination)
        answer = ACTIVE if len(self.asked) > self.elects_after else self.answers[destination]
        outcome: inputs.ResponseReceived | inputs.RequestFailed
        if answer is None:
            failure = RequestFailure.DISCONNECTED
            outcome = inputs.RequestFailed(cause_id=cause_id, correlation_id=correlation_id, failure=failure)
        else:
            outcome = inputs.ResponseReceived(cause_id=cause_id, correlation_id=correlation_id, response=answer)
        asyncio.get_running_loop().call_soon(self._receive, outcome, ())


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "_RETRY_S", 0)


async def test_the_active_one_is_found_behind_one_that_is_deposed_and_one_that_is_gone() -> None:
    controllers = Controllers({CONTROLLERS[0]: INACTIVE, CONTROLLERS[1]: None, CONTROLLERS[2]: ACTIVE})
    forward = ControllerGateway(controllers.make, CONTROLLERS)
    assert await forward.ask(CONTROLLERS[0], REQUEST, timeout_ms=60_000) == ACTIVE
    assert controllers.asked == list(CONTROLLERS)


async def test_a_request_waits_until_one_is_elected() -> None:
    controllers = Controllers(dict.fromkeys(CONTROLLERS, INACTIVE))
    forward = ControllerGateway(controllers.make, CONTROLLERS)
    controllers.elects_after = 4
    assert await forward.ask(CONTROLLERS[1], REQUEST, timeout_ms=60_000) == ACTIVE
    assert len(controllers.asked) > 4
    assert controllers.asked[0] == CONTROLLERS[1]


async def test_no_controller_is_active_in_time() -> None:
    controllers = Controllers(dict.fromkeys(CONTROLLERS, INACTIVE))
    forward = ControllerGateway(controllers.make, CONTROLLERS)
    assert await forward.ask(CONTROLLERS[0], REQUEST, timeout_ms=1) is None


async def test_what_a_single_controller_says_is_the_answer() -> None:
    controllers = Controllers({CONTROLLERS[0]: INACTIVE})
    forward = ControllerGateway(controllers.make, CONTROLLERS[:1])
    assert await forward.ask(CONTROLLERS[0], REQUEST, timeout_ms=1) == INACTIVE
