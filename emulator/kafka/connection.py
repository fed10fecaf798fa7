"""One connection to a node of Apache Kafka: requests are sent at once, responses arrive in the order of the requests.

::

    int32 size | header: api key, version, correlation id, client id | fields

A connection begins with ApiVersions, and if the node requires authentication, with a login by SASL/PLAIN (RFC 4616,
KIP-43). Silence is noticed as pings do on Laststand's own channels: while a request is unanswered, another connection
is opened at intervals, and if nothing arrives there in time, this one is given up.
"""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Mapping
from typing import Final, NamedTuple, cast

from kio.schema.api_versions.v3 import request as api_versions
from kio.schema.api_versions.v3 import response as versions_response
from kio.schema.errors import ErrorCode as KafkaError
from kio.schema.sasl_authenticate.v2 import request as sasl_authenticate
from kio.schema.sasl_authenticate.v2 import response as authenticated
from kio.schema.sasl_handshake.v1 import request as sasl_handshake
from kio.schema.sasl_handshake.v1 import response as hands_shaken
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i32
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from laststand.emulator.core.address import host_and_port
from laststand.emulator.kafka.broker_numbers import SAME_NUMBERS, BrokerNumbers, renumbered
from laststand.emulator.kafka.calls import Versions
from laststand.emulator.rpc.channel import Keepalive

_CLIENT: Final = "laststand"
_MECHANISM: Final = "PLAIN"
_SIZE_BYTES: Final = 4
_DIAL_TIMEOUT_S: Final = 5.0
_ANSWER_BYTES_MAX: Final = 1 << 28
"""More than any fetch asks for; what another protocol sends is mostly a larger number."""


class Login(NamedTuple):
    """A name, and the password that proves it."""

    name: str
    password: str


@contextlib.asynccontextmanager
async def connected(
    address: str, login: Login | None = None, *, numbers: BrokerNumbers = SAME_NUMBERS
) -> AsyncIterator["KafkaConnection"]:
    """Connects to a node for some requests, without keepalive; arguments as in ``dial``.

    Raises:
        OSError: there is no connection.
    """
    connection = await KafkaConnection.dial(address, keepalive=None, login=login, numbers=numbers)
    try:
        yield connection
    finally:
        await connection.close()


class KafkaConnection:
    """An open connection; ``dial`` makes one.

    Attributes:
        versions: the newest version of each API that the node has.
        features: finalized levels, by name.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, address: str, numbers: BrokerNumbers
    ) -> None:
        self.versions: Versions = {}
        self.features: Mapping[str, int] = {}
        self._reader = reader
        self._writer = writer
        self._address = address
        self._numbers = numbers
        self._our_numbers = {theirs: ours for ours, theirs in numbers.items()}
        self._last_id = 0
        self._unanswered: dict[int, tuple[type[ResponsePayload], asyncio.Future[Entity]]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def dial(
        cls,
        address: str,
        *,
        keepalive: Keepalive | None,
        login: Login | None = None,
        numbers: BrokerNumbers = SAME_NUMBERS,
    ) -> "KafkaConnection":
        """Opens a connection to ``host:port``.

        Args:
            address: of the node, or of a proxy in front of it.
            keepalive: settings after which a silent node is given up; ``None`` if the caller has its own deadline.
            login: the dialler's; ``None`` if the node requires none, or only ApiVersions is sent.
            numbers: of the cluster's brokers.

        Raises:
            OSError: nothing answers there, or the login is refused.
        """
        try:
            async with asyncio.timeout(_DIAL_TIMEOUT_S if keepalive is None else keepalive.timeout_ms / 1000):
                reader, writer = await asyncio.open_connection(*host_and_port(address))
                connection = cls(reader, writer, address=address, numbers=numbers)
                try:
                    await connection._begin()
                    if login is not None:
                        await connection._log_in(login)
                except BaseException:
                    await connection.close()
                    raise
        except TimeoutError:
            raise ConnectionError(f"{address} does not answer") from None
        if keepalive is not None:
            connection._tasks.append(asyncio.create_task(connection._watch(keepalive)))
        return connection

    @property
    def is_open(self) -> bool:
        """Requests can be sent."""
        return not self._writer.is_closing()

    def send(self, request: RequestPayload) -> int:
        """Sends a request and returns its correlation id, without waiting for an answer."""
        self._last_id += 1
        header = request.__header_schema__(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=i32(self._last_id),
            client_id=_CLIENT,
        )
        buffer = io.BytesIO(bytes(_SIZE_BYTES))
        buffer.seek(_SIZE_BYTES)
        entity_writer(type(header))(buffer, header)
        entity_writer(type(request))(buffer, renumbered(request, self._numbers))
        frame = buffer.getbuffer()
        frame[:_SIZE_BYTES] = (len(frame) - _SIZE_BYTES).to_bytes(_SIZE_BYTES, "big")
        self._writer.write(frame)
        return self._last_id

    async def ask(self, request: RequestPayload, response: type[ResponsePayload]) -> Entity:
        """Sends a request and returns its answer.

        Raises:
            OSError: the connection broke first.
        """
        if not self.is_open:
            raise ConnectionError(f"{self._address} is closed")
        answer: asyncio.Future[Entity] = asyncio.get_running_loop().create_future()
        self._unanswered[self.send(request)] = (response, answer)
        return await answer

    async def close(self) -> None:
        """Closes the connection; waiting requests fail."""
        for task in self._tasks:
            task.cancel()
        self._give_up()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _give_up(self) -> None:
        self._writer.close()
        unanswered, self._unanswered = self._unanswered, {}
        for _, answer in unanswered.values():
            if not answer.done():
                answer.set_exception(ConnectionError(f"{self._address}: the connection broke"))

    async def _begin(self) -> None:
        self._tasks.append(asyncio.create_task(self._read()))
        request = api_versions.ApiVersionsRequest(client_software_name=_CLIENT, client_software_version="1")
        response = await self.ask(request, versions_response.ApiVersionsResponse)
        assert isinstance(response, versions_response.ApiVersionsResponse)
        self.versions = {int(each.api_key): int(each.max_version) for each in response.api_keys}
        self.features = {each.name: int(each.max_version_level) for each in response.finalized_features}

    async def _log_in(self, login: Login) -> None:
        shaken = cast(
            hands_shaken.SaslHandshakeResponse,
            await self.ask(
                sasl_handshake.SaslHandshakeRequest(mechanism=_MECHANISM), hands_shaken.SaslHandshakeResponse
            ),
        )
        self._check_login(shaken.error_code, f"it has {', '.join(shaken.mechanisms)}")
        proof = f"\0{login.name}\0{login.password}".encode()
        answer = cast(
            authenticated.SaslAuthenticateResponse,
            await self.ask(
                sasl_authenticate.SaslAuthenticateRequest(auth_bytes=proof), authenticated.SaslAuthenticateResponse
            ),
        )
        self._check_login(answer.error_code, answer.error_message or "")

    def _check_login(self, error: KafkaError, message: str) -> None:
        if error is not KafkaError.none:
            raise ConnectionError(f"{self._address} refuses the login: {error.name} ({message})")

    async def _read(self) -> None:
        try:
            while True:
                size = int.from_bytes(await self._reader.readexactly(_SIZE_BYTES), "big")
                if size > _ANSWER_BYTES_MAX:
                    raise ConnectionError(f"{self._address} sent no answer of Kafka")
                self._answer(await self._reader.readexactly(size))
        except (OSError, asyncio.IncompleteReadError, SerialError, KeyError):
            self._give_up()

    def _answer(self, frame: bytes) -> None:
        correlation_id = int.from_bytes(frame[:_SIZE_BYTES], "big")
        response, answer = self._unanswered.pop(correlation_id)
        _, header_size = entity_reader(response.__header_schema__)(frame, 0)
        entity, _ = entity_reader(response)(frame, header_size)
        if not answer.done():
            answer.set_result(renumbered(entity, self._our_numbers))

    async def _watch(self, keepalive: Keepalive) -> None:
        """Gives the connection up when nothing answers at its address while a request is unanswered."""
        while self.is_open:
            await asyncio.sleep(keepalive.interval_ms / 1000)
            if not self._unanswered:
                continue
            try:
                async with asyncio.timeout(keepalive.timeout_ms / 1000):
                    probe = await KafkaConnection.dial(self._address, keepalive=None)
                await probe.close()
            except OSError:  # a timeout is one
                self._give_up()
