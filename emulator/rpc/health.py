"""The standard health service (``grpc.health.v1``) of a node: SERVING while it can do its work.

The library's own servicer keeps a state that is set at each change; here the node is asked, so that no state is kept
twice.
"""

from collections.abc import Callable
from typing import Final

import grpc
from grpc_health.v1.health_pb2 import HealthCheckResponse

from laststand.emulator.rpc.channel import as_is

SERVICE: Final = "grpc.health.v1.Health"
METHOD: Final = "Check"


def health_handlers(is_serving: Callable[[], bool]) -> "dict[str, grpc.RpcMethodHandler[bytes, bytes]]":
    """Returns the service's handlers; ``is_serving`` is called for each check."""

    async def check(_request: bytes, _context: object) -> bytes:
        status = HealthCheckResponse.SERVING if is_serving() else HealthCheckResponse.NOT_SERVING
        answer: bytes = HealthCheckResponse(status=status).SerializeToString()
        return answer

    return {METHOD: grpc.unary_unary_rpc_method_handler(check, request_deserializer=as_is, response_serializer=as_is)}
