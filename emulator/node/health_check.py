"""``python -m emulator.node.health_check``: exit code 0 if the node of this container is SERVING, else 1.

It asks the gRPC health service (``grpc.health.v1``) at ``LASTSTAND_PORT``; the image's HEALTHCHECK runs it.
"""

import os
import sys
from typing import Final

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from emulator.node.environment import PREFIX

_TIMEOUT_S: Final = 3.0


def main() -> int:
    """Asks once, and returns the exit code."""
    with grpc.insecure_channel(f"127.0.0.1:{os.environ.get(f'{PREFIX}PORT', '9092')}") as channel:
        try:
            answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            sys.stderr.write(f"no answer: {error.code().name}\n")
            return 1
    sys.stdout.write(HealthCheckResponse.ServingStatus.Name(answer.status) + "\n")
    return 0 if answer.status == HealthCheckResponse.SERVING else 1


if __name__ == "__main__":
    sys.exit(main())
