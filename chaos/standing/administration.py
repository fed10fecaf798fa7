"""What administrators do with a standing cluster, past all proxies. Its supervisor records what they asked for."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from chaos.standing.link import ask, status_of
from chaos.standing.messages import RecordRequest
from emulator.client.admin import AdminClient, Ask
from emulator.client.admin_connection import AdminConnection
from emulator.core.messages import Request, Response
from emulator.core.types import CauseId, NodeId
from emulator.plan.requests import actions_of, errors_of
from emulator.rpc.channel import keepalive_for

_Result = TypeVar("_Result")


async def administer(directory: Path, work: Callable[[AdminClient], Awaitable[_Result]]) -> _Result:
    """Runs what an administrator does with the cluster in a directory, and returns its result.

    Raises:
        NoClusterError: no supervisor listens there.
        SupervisorLostError: it ended meanwhile.
        AdminError: a node refused or did not answer.
    """
    report = await asyncio.to_thread(status_of, directory)
    [controller_id] = [node.node_id for node in report.nodes if node.role == "controller"]
    async with AdminConnection(
        {node.node_id: node.address for node in report.nodes},
        keepalive=keepalive_for(session_timeout_ms=report.session_timeout_ms),
        cause_id=CauseId("admin"),
    ) as connection:
        return await work(AdminClient(_recorded(directory, connection.ask), controller_id=controller_id))


def _recorded(directory: Path, ask_node: Ask) -> Ask:
    """Returns a way to ask nodes after which the supervisor has on record what was asked of the controller."""

    async def ask_and_record(node_id: NodeId, request: Request) -> Response:
        response = await ask_node(node_id, request)
        actions = tuple(actions_of(request))
        if actions:
            answers = ", ".join(error.name for error, _ in errors_of(response)) or "NONE"
            await asyncio.to_thread(list, ask(directory, RecordRequest(actions=actions, seen=answers)))
        return response

    return ask_and_record
