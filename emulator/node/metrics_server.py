"""``GET /metrics`` of one process, on its event loop: values are those between two turns.

Prometheus' text format, or OpenMetrics for clients that accept it. One response per connection; other paths get a 404.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from laststand.emulator.core import events

PATH: Final = "/metrics"
_REQUEST_TIMEOUT_S: Final = 5.0
_REQUEST_BYTES_MAX: Final = 16 << 10


class NodeMetrics(Protocol):
    """The metrics of a broker, or of a controller."""

    def count(self, event: events.Event) -> None:
        """Counts an event that the node writes."""

    def collect(self) -> Iterable[Metric]:
        """Yields every metric as it is now."""
        ...


class ServedMetrics:
    """Serves a node's metrics, and the process's own memory, time and descriptors.

    Args:
        metrics: collected at each scrape, on the event loop.
    """

    def __init__(self, metrics: NodeMetrics) -> None:
        self.count = metrics.count
        """Counts an event that the node writes."""
        self._registry = CollectorRegistry()
        self._registry.register(_Collected(metrics))
        ProcessCollector(registry=self._registry)
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Listens on an address, port 0 for any, and returns the port.

        Args:
            host: interface to listen on.
            port: the server's port.
            context: of TLS; ``None`` without TLS.

        Raises:
            OSError: the address is taken.
        """
        self._server = await asyncio.start_server(self._serve, host, port, limit=_REQUEST_BYTES_MAX, ssl=context)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def close(self) -> None:
        """Accepts no more connections."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.decode("latin-1")))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # The caller is gone, or speaks something else.
        finally:
            writer.close()

    def _answer(self, head: str) -> bytes:
        request_line, *lines = head.split("\r\n")
        method, _, rest = request_line.partition(" ")
        if method != "GET" or rest.split(" ")[0].split("?")[0] != PATH:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        encode, content_type = choose_encoder(headers.get("accept", ""))
        body = encode(self._registry)
        return (
            f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        ).encode("latin-1") + body


class _Collected(Collector):
    def __init__(self, metrics: NodeMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics.collect()
