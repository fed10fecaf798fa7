"""Orders of the harness to a node, at the node's own port, past all proxies."""

from collections.abc import Callable
from typing import Final

import grpc.aio

from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.rpc.apis import method_path
from laststand.emulator.rpc.channel import keepalive_for, open_channel

_CAUSE: Final = CauseId("harness")
_ANSWER_TIMEOUT_S: Final = 5.0
_KEEPALIVE: Final = keepalive_for(session_timeout_ms=int(_ANSWER_TIMEOUT_S * 1000))


async def send_order(
    cluster: ProcessCluster,
    node_id: NodeId,
    order: bytes,
    *,
    service: str,
    method: str,
    note: Callable[[events.OrderGiven], None],
) -> bytes | None:
    """Records an order, sends it to a node, and returns the node's report; ``None`` if the node did not answer."""
    note(events.OrderGiven(cause_id=_CAUSE, given_to=node_id, api=method, order=order.decode()))
    channel = open_channel(cluster.direct_addresses()[node_id], _KEEPALIVE, token=cluster.token, peer=node_id)
    try:
        return await channel.unary(method_path(service, method))(order, _ANSWER_TIMEOUT_S)
    except grpc.aio.AioRpcError:
        return None
    finally:
        await channel.close()
