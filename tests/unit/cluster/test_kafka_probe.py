"""Probes of a node of Apache Kafka for a sign of life, against a server that counts requests."""

import asyncio
from contextlib import suppress

import pytest

from laststand.emulator.cluster.kafka_probe import KafkaProbeConnection

ANSWERS = 2
"""The greeting, and the round trip."""


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_reset: bool) -> None:
    """Answers as ApiVersions is answered; closes the connection at a request after that, as Toxiproxy does."""
    with suppress(asyncio.IncompleteReadError):
        for answered in range(ANSWERS + 1):
            size = int.from_bytes(await reader.readexactly(4), "big")
            request = await reader.readexactly(size)
            if answered == ANSWERS and is_reset:
                break
            writer.write((4).to_bytes(4, "big") + request[4:8])
        else:
            await reader.read()
    writer.close()


async def _ends(*, is_reset: bool) -> None:
    server = await asyncio.start_server(lambda r, w: _serve(r, w, is_reset=is_reset), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, KafkaProbeConnection(f"127.0.0.1:{port}") as connection:
        await connection.round_trip()
        await connection.await_end(timeout_s=30.0 if is_reset else 0.2)


def test_an_idle_connection_that_is_reset_by_the_next_byte_ends() -> None:
    asyncio.run(_ends(is_reset=True))


def test_one_that_is_answered_does_not_end() -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(_ends(is_reset=False))
