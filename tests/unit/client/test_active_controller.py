"""The active controller is found among several: by who does not refuse, and whoever does not answer is passed over."""

import pytest

from laststand.emulator.client.active_controller import ActiveController
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.authorizer.request_guard import refusal
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import NodeId

DOWN, STANDBY, ACTIVE, BROKER = (NodeId(node_id) for node_id in (100, 101, 102, 0))
CONTROLLERS = (DOWN, STANDBY, ACTIVE)
ANSWER = admin_messages.DescribeFeaturesResponse(error=ErrorCode.NONE)


async def ask(node_id: NodeId, request: messages.Request) -> messages.Response:
    if node_id == DOWN:
        raise AdminError(api="DescribeFeatures", error=ErrorCode.NETWORK_EXCEPTION)
    return refusal(request, ErrorCode.NOT_CONTROLLER) if node_id == STANDBY else ANSWER


async def test_whoever_refuses_or_is_down_is_passed_over() -> None:
    asked = ActiveController(ask, CONTROLLERS).ask(DOWN, admin_messages.DescribeFeaturesRequest())
    assert await asked is ANSWER


async def test_a_broker_and_an_only_controller_are_asked_themselves() -> None:
    assert await ActiveController(ask, CONTROLLERS).ask(BROKER, admin_messages.DescribeFeaturesRequest()) is ANSWER
    with pytest.raises(AdminError, match="NETWORK_EXCEPTION"):
        await ActiveController(ask, (DOWN,)).ask(DOWN, admin_messages.DescribeFeaturesRequest())
