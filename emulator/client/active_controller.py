"""Finds the active one of several controllers: asks them in turn until one does not refuse."""

import asyncio
from collections.abc import Sequence
from typing import Final

from laststand.emulator.client.admin import Ask
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import messages
from laststand.emulator.core.authorizer.request_guard import is_inactive
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum.messages import DescribeQuorumResponse, VoterChangeResponse
from laststand.emulator.core.types import NodeId

_FAILOVER_S: Final = 15.0
"""Several of Kafka's election timeouts: votes may be split."""

_RETRY_S: Final = 0.1
_LEADS_NOT: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE}
)


class ActiveController:
    """Sends requests to nodes; a request to any controller goes to the active one.

    An unanswered request is sent again, as by Kafka's ``AdminClient``: it may be executed twice.

    Args:
        ask: sends a request and returns the answer.
        controller_ids: all controllers.
    """

    def __init__(self, ask: Ask, controller_ids: Sequence[NodeId]) -> None:
        self._ask = ask
        self._controller_ids = list(controller_ids)

    async def ask(self, node_id: NodeId, request: messages.Request) -> messages.Response:
        """Returns an answer of a broker, or of the active controller.

        Raises:
            AdminError: no answer came; with NOT_CONTROLLER, no controller became active in time.
        """
        if node_id not in self._controller_ids or len(self._controller_ids) == 1:
            return await self._ask(node_id, request)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FAILOVER_S
        while True:
            failure = AdminError(api=type(request).__name__, error=ErrorCode.NOT_CONTROLLER, reason="none is active")
            for controller_id in tuple(self._controller_ids):
                try:
                    response = await self._ask(controller_id, request)
                except AdminError as error:
                    failure = error
                else:
                    if not _is_refused(request, response):
                        return response
                self._controller_ids.remove(controller_id)
                self._controller_ids.append(controller_id)
            if loop.time() > deadline:
                raise failure
            await asyncio.sleep(_RETRY_S)


def _is_refused(
    request: messages.Request, response: messages.Response | DescribeQuorumResponse | VoterChangeResponse
) -> bool:
    if isinstance(response, DescribeQuorumResponse | VoterChangeResponse):
        return response.error in _LEADS_NOT
    return is_inactive(request, response)
