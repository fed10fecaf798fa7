"""The active controller is found among several: by who does not refuse, and whoever does not answer is passed over."""

from typing import cast

import pytest

from laststand.emulator.client.active_controller import ActiveController
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.authorizer.request_guard import refusal
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum.messages import DescribeQuorumRequest, DescribeQuorumResponse
from laststand.emulator.core.types import NodeId

DOWN, STANDBY, ACTIVE, BROKER = (NodeId(node_id) for node_id in (100, 101, 102, 0))
CONTROLLERS = (DOWN, STANDBY, ACTIVE)
ANSWER = admin_messages.DescribeFeaturesResponse(error=ErrorCode.NONE)


async def ask(node_id: NodeId, request: messages.Request) -> messages.Response:
    if node_id == DOWN:
        raise AdminError(api="DescribeFeatures", error=ErrorCode.NETWORK_EXCEPTION)
    return refusal(request, ErrorCode.NOT_CONTROLLER) if node_id == STANDBY else ANSWER


async def test_brokers_that_refuse_or_are_down_are_passed_over() -> None:
    asked = ActiveController(ask, CONTROLLERS).ask(DOWN, admin_messages.DescribeFeaturesRequest())
    assert await asked is ANSWER


async def test_a_broker_and_an_only_controller_are_asked_themselves() -> None:
    assert await ActiveController(ask, CONTROLLERS).ask(BROKER, admin_messages.DescribeFeaturesRequest()) is ANSWER
    with pytest.raises(AdminError, match="NETWORK_EXCEPTION"):
        await ActiveController(ask, (DOWN,)).ask(DOWN, admin_messages.DescribeFeaturesRequest())


async def test_an_answer_to_nothing_is_nobodys_refusal() -> None:
    nothing = admin_messages.DescribeConfigsRequest(resources=())
    answer = admin_messages.DescribeConfigsResponse(resources=())

    async def answer_all(_: NodeId, __: messages.Request) -> messages.Response:
        return answer

    assert await ActiveController(answer_all, CONTROLLERS).ask(ACTIVE, nothing) is answer


async def test_a_client_that_may_not_describe_the_quorum_gets_an_error() -> None:
    denied = DescribeQuorumResponse(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    async def deny(_: NodeId, __: messages.Request) -> messages.Response:
        return cast(messages.Response, denied)

    request = cast(messages.Request, DescribeQuorumRequest())
    answer = cast(object, await ActiveController(deny, CONTROLLERS).ask(ACTIVE, request))
    assert answer is denied
