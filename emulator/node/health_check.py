"""``python -m laststand.emulator.node.health_check``: exit code 0 if the node of this container is SERVING, else 1.

It asks the gRPC health service (``grpc.health.v1``) at ``LASTSTAND_PORT`` with the token in ``LASTSTAND_TOKEN_FILE``;
the image's HEALTHCHECK runs it.
"""

import os
import sys
from typing import Final

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.types import NodeId
from laststand.emulator.node.environment import PREFIX, TOKEN_FILE
from laststand.emulator.rpc.run_token import RunToken

_TIMEOUT_S: Final = 3.0


def main() -> int:
    """Asks once, and returns the exit code."""
    try:
        name = node_name(NodeId(int(os.environ.get(f"{PREFIX}NODE_ID", "0"))))
        token = RunToken.read(os.environ.get(PREFIX + TOKEN_FILE, ""), name=name)
        opened = _channel(f"127.0.0.1:{os.environ.get(f'{PREFIX}PORT', '9092')}", token)
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    with opened as channel:
        try:
            answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=_TIMEOUT_S, metadata=token.metadata)
        except grpc.RpcError as error:
            sys.stderr.write(f"no answer: {error.code().name}\n")
            return 1
    sys.stdout.write(HealthCheckResponse.ServingStatus.Name(answer.status) + "\n")
    return 0 if answer.status == HealthCheckResponse.SERVING else 1


def _channel(address: str, token: RunToken) -> grpc.Channel:
    if token.certificates is None:
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, token.certificates.channel_credentials())


if __name__ == "__main__":
    sys.exit(main())
