"""A broker's listener for clients that speak Kafka's protocol."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from laststand.emulator.kafka.fields import FieldError, FieldReader
from laststand.emulator.kafka_listener.administration import ADMINISTRATION
from laststand.emulator.kafka_listener.api_versions import API_VERSIONS, api_versions, unsupported_version
from laststand.emulator.kafka_listener.connection import KafkaConnection, RefusedError
from laststand.emulator.kafka_listener.data_plane import DATA_PLANE
from laststand.emulator.kafka_listener.inspection import INSPECTION
from laststand.emulator.kafka_listener.message_codec import Buffers, Writer, request_codec, response_codec
from laststand.emulator.kafka_listener.messages import Message, all_apis
from laststand.emulator.kafka_listener.metadata import METADATA
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served
from laststand.emulator.kafka_listener.sasl import SASL

_HANDLERS: Final[Mapping[int, Handler]] = {**DATA_PLANE, **METADATA, **ADMINISTRATION, **INSPECTION, **SASL}
_HEADER_BYTES: Final = 8


class KafkaListener:
    """Serves clients once it is open; until then, whoever connects is turned away.

    Args:
        max_bytes: of a request (``socket.request.max.bytes``).
    """

    def __init__(self, *, max_bytes: int = 100 << 20) -> None:
        self._max_bytes = max_bytes
        self._connections: dict[int, KafkaConnection] = {}
        self._count = 0
        self._served: Served | None = None
        self._server: asyncio.Server | None = None

    @property
    def is_open(self) -> bool:
        """Requests of clients are answered."""
        return self._served is not None

    async def start(self, host: str, port: int) -> None:
        """Listens.

        Raises:
            OSError: somebody else has the port.
        """
        self._server = await asyncio.get_running_loop().create_server(self._connection, host, port)

    def open(self, served: Served) -> None:
        """Serves clients of this broker from now on."""
        self._served = served

    async def close(self) -> None:
        """Accepts nothing more, and closes all connections."""
        if self._server is not None:
            self._server.close()
        for connection in [*self._connections.values()]:
            connection.close()
        if self._served is not None:
            await self._served.controller.close()
            self._served.history.close()

    def _connection(self) -> KafkaConnection:
        self._count += 1
        connection = KafkaConnection(
            number=self._count,
            max_bytes=self._max_bytes,
            handle=None if self._served is None else partial(self._handle, self._served),
            on_end=self._forget,
        )
        self._connections[connection.number] = connection
        return connection

    def _forget(self, connection: KafkaConnection) -> None:
        self._connections.pop(connection.number, None)

    async def _handle(self, served: Served, connection: KafkaConnection, frame: bytes) -> Buffers | None:
        if len(frame) < _HEADER_BYTES:
            raise RefusedError(f"a request of {len(frame)} bytes has no header")
        key, version = int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big", signed=True)
        correlation_id = frame[4:8]
        api = all_apis().get(key)
        if api is None or (key not in _HANDLERS and key != API_VERSIONS):
            raise RefusedError(f"API {key if api is None else api.name} is not served")
        if version not in api.versions:
            if key == API_VERSIONS:
                return [correlation_id, *_encoded(unsupported_version(), key, 0)]
            raise RefusedError(f"{api.name} has no version {version}")
        reader = FieldReader(frame)
        reader.position = _HEADER_BYTES
        try:
            connection.client_id = _client_id(reader, is_flexible=version in api.flexible)
            body = request_codec(key, version).read(reader)
        except FieldError as error:
            raise RefusedError(f"{api.name} version {version}: {error}") from None
        request = ClientRequest(key, version, body, connection)
        if key == API_VERSIONS:
            return [correlation_id, *_encoded(api_versions(served, request, _HANDLERS), key, version)]
        answer = await _HANDLERS[key](served, request)
        if answer is None:
            return None
        return [correlation_id + (b"\0" if version in api.flexible else b""), *_encoded(answer, key, version)]


def _client_id(reader: FieldReader, *, is_flexible: bool) -> str:
    size = reader.int16()
    client_id = "" if size < 0 else reader.take(size).decode(errors="replace")
    if is_flexible:
        reader.tagged()
    return client_id


def _encoded(message: Message, key: int, version: int) -> Buffers:
    writer = Writer()
    response_codec(key, version).write(message, writer)
    return writer.buffers()
