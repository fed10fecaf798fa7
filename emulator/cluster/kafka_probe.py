"""Ask a node of Apache Kafka for a sign of life: ApiVersions, which every node answers to everyone.

::

    int32 size | int16 api key 18 | int16 version | int32 correlation id | int16 length, client id | no tagged fields

The request has a version that no node supports. If a login is required, a node answers UNSUPPORTED_VERSION to it as
often as it is asked, but answers a supported version only once (``SaslServerAuthenticator``).
"""

import asyncio
import struct
from collections.abc import Callable
from typing import Final

from laststand.emulator.cluster.probe import ProbeConnection, ProbeOutcome, probe

_API_VERSIONS: Final = 18
_UNSUPPORTED: Final = 0x7FFF
_CLIENT_ID_MAX: Final = 32_000
_GREETING_ID: Final = 0
_BALLAST_ID: Final = 1
_PROBE_ID: Final = 2
_ANSWER_WITHIN_S: Final = 2.0
_DIAL_AGAIN_S: Final = 0.05


def _api_versions(correlation_id: int, *, client_id_bytes: int = 0) -> bytes:
    client_id = b"." * client_id_bytes
    fields = struct.pack(
        f">hhih{client_id_bytes}sx", _API_VERSIONS, _UNSUPPORTED, correlation_id, client_id_bytes, client_id
    )
    return len(fields).to_bytes(4, "big") + fields


class KafkaProbeConnection(ProbeConnection):
    """``ProbeConnection`` to a node of Apache Kafka."""

    greeting = _api_versions(_GREETING_ID)

    async def _exchange(self, writer: asyncio.StreamWriter, ballast_bytes: int) -> None:
        """Sends a request after others with long client ids, and awaits its answer; the node answers in that order."""
        for at in range(0, ballast_bytes, _CLIENT_ID_MAX):
            writer.write(_api_versions(_BALLAST_ID, client_id_bytes=min(_CLIENT_ID_MAX, ballast_bytes - at)))
        writer.write(_api_versions(_PROBE_ID))
        correlation_id = None
        while correlation_id != _PROBE_ID:
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            correlation_id = int.from_bytes((await self.reader.readexactly(size))[:4], "big")

    async def await_end(self, *, timeout_s: float) -> None:
        """Sends another request, and waits until the other end has closed or reset the connection.

        Toxiproxy resets a connection only when a byte passes, and Kafka sends none on an idle connection.

        Raises:
            TimeoutError: neither has happened in time.
        """
        assert self._writer is not None
        self._writer.write(_api_versions(_BALLAST_ID))
        await super().await_end(timeout_s=timeout_s)


async def await_kafka(address: str, *, has_ended: Callable[[], bool], timeout_s: float) -> bool:
    """Dials a node again and again until it answers; returns whether it did.

    Args:
        address: address of the node.
        has_ended: returns whether the node's process has ended, so that it will not answer.
        timeout_s: how long to try.
    """
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not await _answers(address):
        if has_ended() or asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_DIAL_AGAIN_S)
    return True


async def _answers(address: str) -> bool:
    outcome = await probe(address, timeout_s=_ANSWER_WITHIN_S, probe_connection=KafkaProbeConnection)
    return outcome is ProbeOutcome.PASSES
