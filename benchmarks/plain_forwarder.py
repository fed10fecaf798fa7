"""``python -m benchmarks.plain_forwarder HOST:PORT``: forwards bytes, and prints its port."""

import asyncio
import sys

from laststand.emulator.core.address import host_and_port


class _End(asyncio.Protocol):
    other: "_End"
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.other.transport.close()


class _ClientEnd(_End):
    def __init__(self, target: str) -> None:
        self._target = target

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.pause_reading()
        self.other = _End()
        self.other.other = self
        self._dialling = asyncio.ensure_future(self._dial())

    async def _dial(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self.other, *host_and_port(self._target))
        self.transport.resume_reading()


async def forward(target: str) -> None:
    """Forwards connections to ``host:port`` until cancelled."""
    server = await asyncio.get_running_loop().create_server(lambda: _ClientEnd(target), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(forward(sys.argv[1]))
