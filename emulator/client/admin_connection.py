"""Opens an administrator's gRPC channels to nodes, each when it is first used."""

from collections.abc import Mapping
from types import TracebackType
from typing import Final

import grpc
import grpc.aio

from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.rpc.apis import UnaryApi, api_of
from laststand.emulator.rpc.channel import Channel, Keepalive, open_channel
from laststand.emulator.rpc.run_token import RunToken

_TIMEOUT_S: Final = 10.0


class AdminConnection:
    """Asks nodes and awaits their answers; an asynchronous context manager that closes its channels.

    Args:
        addresses: ``host:port`` of each node that may be asked.
        keepalive: settings after which a silent node is given up.
        token: of the cluster.
        cause_id: cause id of all requests.
        timeout_s: time limit for an answer. The answer to ElectLeaders has none, as long as the connection holds: it
            may have to wait for an unclean recovery, which has a time limit of its own.
    """

    def __init__(
        self,
        addresses: Mapping[NodeId, str],
        *,
        keepalive: Keepalive,
        token: RunToken,
        cause_id: CauseId,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._addresses = dict(addresses)
        self._keepalive = keepalive
        self._token = token
        self._cause_id = cause_id
        self._timeout_s = timeout_s
        self._channels: dict[NodeId, Channel] = {}

    async def __aenter__(self) -> "AdminConnection":
        """Returns itself; nothing is connected yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the channels."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    async def ask(self, node_id: NodeId, request: messages.Request) -> messages.Response:
        """Returns a node's answer.

        Raises:
            AdminError: no answer came, or the cluster has no such node.
        """
        api = api_of(request, node_id)
        method = self._channel(node_id, api).unary(api.path)
        timeout_s = None if isinstance(request, admin_messages.ElectLeadersRequest) else self._timeout_s
        try:
            payload = await method(api.encode_request(request, cause_id=self._cause_id), timeout_s)
        except grpc.aio.AioRpcError as failure:
            is_late = failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            error = ErrorCode.REQUEST_TIMED_OUT if is_late else ErrorCode.NETWORK_EXCEPTION
            reason = f"node {node_id} at {self._addresses[node_id]}: {failure.code().name}"
            raise AdminError(api=api.name, error=error, reason=reason) from failure
        response, _ = api.decode_response(payload)
        return response

    def _channel(self, node_id: NodeId, api: UnaryApi) -> Channel:
        if node_id not in self._addresses:
            reason = f"the address of node {node_id} is not known"
            raise AdminError(api=api.name, error=ErrorCode.NETWORK_EXCEPTION, reason=reason)
        if node_id not in self._channels:
            self._channels[node_id] = open_channel(
                self._addresses[node_id], self._keepalive, token=self._token, peer=node_id
            )
        return self._channels[node_id]
