"""The harness as an administrator: requests to the controller, or to a broker, bypassing all proxies."""

from typing import Final

from laststand.emulator.client.admin_connection import AdminConnection
from laststand.emulator.core import messages
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.rpc.channel import Keepalive
from laststand.emulator.rpc.run_token import RunToken

_CAUSE: Final = CauseId("harness")


async def ask(
    address: str, request: messages.Request, *, keepalive: Keepalive, token: RunToken, node_id: NodeId = CONTROLLER
) -> messages.Response:
    """Asks the controller, or another node, at an address.

    Raises:
        AdminError: the node did not answer.
    """
    async with AdminConnection({node_id: address}, keepalive=keepalive, token=token, cause_id=_CAUSE) as connection:
        return await connection.ask(node_id, request)
