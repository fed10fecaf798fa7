"""Administrators' requests to a standing cluster, past all proxies. Its supervisor records them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from laststand.chaos.standing.link import SupervisorLostError, ask, status_of
from laststand.chaos.standing.messages import (
    AnnounceOrder,
    AskController,
    ControllerAnswered,
    ControllerRefused,
    RecordRequest,
    Refused,
)
from laststand.chaos.standing.status import StatusReport
from laststand.emulator.client.active_controller import ActiveController
from laststand.emulator.client.admin import AdminClient, Ask
from laststand.emulator.client.admin_connection import AdminConnection
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.cluster.layout import token_file
from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.plan.requests import actions_of, described_answers, errors_of
from laststand.emulator.rpc.apis import api_of
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.orders import is_order, order_given
from laststand.emulator.rpc.run_token import RunToken

_CAUSE: Final = CauseId("admin")

_Result = TypeVar("_Result")


async def administer(directory: Path, work: Callable[[AdminClient], Awaitable[_Result]]) -> _Result:
    """Runs an administrator's request on the cluster in a directory, and returns its result.

    Raises:
        NoClusterError: no supervisor listens there.
        SupervisorLostError: the supervisor ended meanwhile.
        AdminError: a node refused or did not answer.
    """
    report = await asyncio.to_thread(status_of, directory)
    async with AdminConnection(
        {node.node_id: node.address for node in report.nodes},
        keepalive=keepalive_for(session_timeout_ms=report.session_timeout_ms),
        token=RunToken.read(token_file(directory)),
        cause_id=_CAUSE,
    ) as connection:
        ask_node = _announced(directory, connection.ask)
        if report.zookeeper is not None:
            ask_node = _by_supervisor(directory, report, ask_node)
        active = ActiveController(ask_node, report.controller_ids)
        return await work(AdminClient(_recorded(directory, active.ask), controller_id=report.controller_id))


def _announced(directory: Path, ask_node: Ask) -> Ask:
    """Returns a way to ask nodes; the supervisor records each order before it is sent."""

    async def announce_and_ask(node_id: NodeId, request: messages.Request) -> messages.Response:
        if is_order(request):
            given = order_given(request, to=node_id, cause_id=_CAUSE)
            for answer in await asyncio.to_thread(list, ask(directory, AnnounceOrder(given=given))):
                if isinstance(answer, Refused):
                    raise AdminError(api=given.api, error=ErrorCode.NETWORK_EXCEPTION, reason=answer.reason)
        return await ask_node(node_id, request)

    return announce_and_ask


def _by_supervisor(directory: Path, report: StatusReport, ask_broker: Ask) -> Ask:
    """Returns a function that asks nodes; the supervisor answers for a controller that is in no single node.

    Kafka's tools write some requests into ZooKeeper and send others to the broker that is elected; the supervisor has
    the session for the former and knows whom the latter are for.
    """

    async def ask_node(node_id: NodeId, request: messages.Request) -> messages.Response:
        if node_id != report.controller_id:
            return await ask_broker(node_id, request)
        api = api_of(request, node_id)
        payload = api.encode_request(request, cause_id=_CAUSE)
        command = AskController(api=api.name, request=payload)
        for answer in await asyncio.to_thread(list, ask(directory, command)):
            match answer:
                case ControllerAnswered(response=answered):
                    response, _ = api.decode_response(answered)
                    return response
                case ControllerRefused():
                    raise AdminError(
                        api=answer.api, error=ErrorCode[answer.error], subject=answer.subject, reason=answer.reason
                    )
                case _:
                    pass
        raise SupervisorLostError(directory)

    return ask_node


def _recorded(directory: Path, ask_node: Ask) -> Ask:
    """Returns a function that asks nodes; the supervisor records each request to the controller afterwards."""

    async def ask_and_record(node_id: NodeId, request: messages.Request) -> messages.Response:
        response = await ask_node(node_id, request)
        actions = tuple(actions_of(request))
        if actions:
            answers = described_answers(errors_of(response)) or "NONE"
            await asyncio.to_thread(list, ask(directory, RecordRequest(actions=actions, seen=answers)))
        return response

    return ask_and_record
