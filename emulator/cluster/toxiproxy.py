"""Links between processes that can be cut: a real toxiproxy-server with one proxy per ordered pair.

The link ``a -> b`` carries the connections that *a* dials to *b*. Its proxy listens on a loopback port, which *a* finds
in its address book, and forwards to the port of *b*::

            dials                          dials
    a  ---------------->  listener 0->1  ---------->  b
          upstream: requests a to b, downstream: responses b to a

A cut puts Toxiproxy's ``timeout`` toxic with limit 0 on both byte directions. Established connections stay open and
swallow every byte; new ones are accepted and are as silent. A close still gets through. Removing a toxic closes the
connections that it applied to: a heal looks like a reset.

Laststand's server (``toxiproxy_server.go``) answers only callers that have the cluster's token.

Only this module imports ``toxiproxy-python``. That library supports one server per interpreter, opens a connection per
call, waits without a deadline, and heeds proxy settings of the environment. All its calls go through one class, which
this module replaces by a class without these properties.
"""

import asyncio
import enum
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, Self, TypeAlias, TypeVar

import msgspec
import requests
import toxiproxy.proxy
import toxiproxy.server
from toxiproxy.api import validate_response
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from laststand.emulator.cluster.child import ProcessEnd, ProcessSpec
from laststand.emulator.cluster.kafka_probe import KafkaProbeConnection
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.probe import ProbeConnection, ProbeOutcome, probe
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.channels import Link as LinkOf
from laststand.emulator.plan.nodes import CLIENT, is_kafka_client
from laststand.emulator.rpc.run_token import RunToken

PROCESS_NAME = "toxiproxy"
"""The server's name among the children of its supervisor."""

TOKEN_FILE_VARIABLE: Final = "LASTSTAND_TOKEN_FILE"
"""The variable by which our toxiproxy-server finds the token of its API; another one ignores it."""

_CALL_TIMEOUT_S = 10.0
_START_TIMEOUT_S = 20.0
_POLL_INTERVAL_S = 0.005

Link: TypeAlias = LinkOf[NodeId]
"""The connections that one node, or the client process, dials to a node."""

_Json: TypeAlias = bool | int | str | Sequence["_Json"] | Mapping[str, "_Json"] | None
ResultT = TypeVar("ResultT")


class ToxiproxyError(EmulatorError):
    """A request to the toxiproxy server failed.

    Attributes:
        request: method and path.
        reason: the cause in words.
    """

    def __init__(self, *, request: str, reason: str) -> None:
        super().__init__(f"toxiproxy-server, {request}: {reason}")
        self.request = request
        self.reason = reason


class Stream(enum.Enum):
    """A byte direction of a link, in Toxiproxy's words."""

    UPSTREAM = "upstream"
    """From source to target: requests."""

    DOWNSTREAM = "downstream"
    """From target to source: responses."""


class Toxic(msgspec.Struct, frozen=True, kw_only=True):
    """A disturbance of one byte direction of a link.

    Attributes:
        kind: Toxiproxy's type: ``timeout``, ``latency``, ``bandwidth``, ``reset_peer``, ...
        stream: the byte direction.
        attributes: of that type, by Toxiproxy's names.
    """

    kind: str
    stream: Stream
    attributes: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """Name of the toxic on a proxy, which has at most one toxic of a type in each direction."""
        return f"{self.kind}_{self.stream.value}"

    def __str__(self) -> str:
        return " ".join([self.kind, self.stream.value, *(f"{key}={value}" for key, value in self.attributes)])


def both_ways(kind: str, **attributes: int) -> tuple[Toxic, Toxic]:
    """Returns the same toxic for both byte directions."""
    upstream, downstream = (Toxic(kind=kind, stream=stream, attributes=tuple(attributes.items())) for stream in Stream)
    return upstream, downstream


_BLOCKED: Final = both_ways("timeout", timeout=0)
"""Swallow every byte, and keep connections open."""


class _Connection:
    """One kept HTTP connection to one server."""

    def __init__(self, address: str, token: RunToken) -> None:
        self._url = f"http://{address}"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update(token.metadata)

    def call(self, method: str, path: str, *, body: _Json = None) -> requests.Response:
        request = f"{method} {path}"
        try:
            response = self._session.request(method, self._url + path, json=body, timeout=_CALL_TIMEOUT_S)
            validate_response(response)
        except requests.RequestException as error:
            raise ToxiproxyError(request=request, reason=type(error).__name__) from error
        except (InvalidToxic, NotFound, ProxyExists) as error:
            raise ToxiproxyError(request=request, reason=str(error)) from error
        if not response.ok:
            raise ToxiproxyError(request=request, reason=f"{response.status_code} {response.text}")
        return response

    def close(self) -> None:
        self._session.close()


_connection: ContextVar[_Connection] = ContextVar("toxiproxy_connection")


class _Consumer:
    """The library's ``APIConsumer``, for the server of the current context."""

    @staticmethod
    def get(url: str) -> requests.Response:
        return _connection.get().call("GET", url)

    @staticmethod
    def post(url: str, json: _Json = None) -> requests.Response:
        return _connection.get().call("POST", url, body=json)

    @staticmethod
    def delete(url: str) -> requests.Response:
        return _connection.get().call("DELETE", url)


toxiproxy.proxy.APIConsumer = _Consumer
toxiproxy.server.APIConsumer = _Consumer


class ServerProcess(Protocol):
    """The process of a toxiproxy-server."""

    @property
    def end(self) -> ProcessEnd | None:
        """The end of the process; ``None`` while it lives."""
        ...

    async def stop(self) -> ProcessEnd:
        """Ends the server."""
        ...


class Toxiproxy:
    """One toxiproxy-server and the links that run through it."""

    def __init__(
        self,
        *,
        server: ServerProcess,
        address: str,
        token: RunToken,
        listen_host: str = LOOPBACK,
        probe_connection: type[ProbeConnection] = ProbeConnection,
        probes: Mapping[NodeId, type[ProbeConnection]] = MappingProxyType({}),
        context: ssl.SSLContext | None = None,
        kafka_context: ssl.SSLContext | None = None,
    ) -> None:
        """A server that was started already; ``await_answer`` waits until it can be used.

        Args:
            server: its process, which ends together with this object.
            address: ``host:port`` of its API; proxies are dialled at the same host.
            token: the token that its API requires.
            listen_host: the interface on which proxies listen, as the server sees it.
            probe_connection: the protocol for probing the nodes behind the links.
            probes: nodes that are asked in another way.
            context: of TLS, if nodes use it.
            kafka_context: TLS for the listeners of Kafka's clients.
        """
        self._server = server
        self._host = address.rpartition(":")[0]
        self._listen_host = listen_host
        self._probe_connection = probe_connection
        self._probes = probes
        self._context = context
        self._kafka_context = kafka_context
        self._listeners: dict[Link, str] = {}
        self._connection = _Connection(address, token)
        self._proxies: dict[Link, toxiproxy.proxy.Proxy] = {}
        self._toxics: dict[Link, dict[str, Toxic]] = {}
        self._one_call = asyncio.Lock()

    @classmethod
    async def start(
        cls,
        *,
        supervisor: Supervisor,
        program: Path,
        log_path: Path,
        token_file: Path,
        probe_connection: type[ProbeConnection] = ProbeConnection,
        probes: Mapping[NodeId, type[ProbeConnection]] = MappingProxyType({}),
        context: ssl.SSLContext | None = None,
        kafka_context: ssl.SSLContext | None = None,
    ) -> Self:
        """Start a server on a free loopback port and wait until it answers.

        Args:
            supervisor: ends the server when it ends itself.
            program: from ``toxiproxy_build.find_toxiproxy``.
            log_path: file for the server's output.
            token_file: file with the token that its API will require.
            probe_connection: the protocol for probing the nodes behind the links.
            probes: nodes that are asked in another way.
            context: of TLS, if nodes use it.
            kafka_context: TLS for the listeners of Kafka's clients.

        Raises:
            ToxiproxyError: the server ended, or did not answer within 20 s.
        """
        token, port = RunToken.read(token_file), ReservedPort()
        with port.lent():
            child = await supervisor.start(
                ProcessSpec(
                    name=PROCESS_NAME,
                    argv=(str(program), "-host", LOOPBACK, "-port", str(port.number)),
                    environment={"LOG_LEVEL": "warn", TOKEN_FILE_VARIABLE: str(token_file)},
                    stderr_path=log_path,
                )
            )
            server = cls(
                server=child,
                address=port.address,
                token=token,
                probe_connection=probe_connection,
                probes=probes,
                context=context,
                kafka_context=kafka_context,
            )
            try:
                await server.await_answer()
            except BaseException:
                await child.kill()
                raise
            finally:
                port.close()  # the server listens there, or nobody will
        return server

    @property
    def links(self) -> tuple[Link, ...]:
        """All links, sorted."""
        return tuple(sorted(self._toxics))

    def links_of(self, node_id: NodeId) -> tuple[Link, ...]:
        """Return the links to and from a node, sorted."""
        return tuple(link for link in self.links if node_id in link)

    def toxics(self, link: Link) -> tuple[Toxic, ...]:
        """Return the toxics of a link."""
        return tuple(self._toxics[link].values())

    def is_blocked(self, link: Link) -> bool:
        """Returns whether a byte direction of a link is blocked."""
        return any(toxic in _BLOCKED for toxic in self.toxics(link))

    @property
    def broken(self) -> tuple[Link, ...]:
        """The links that have toxics, sorted."""
        return tuple(link for link in self.links if self._toxics[link])

    def address(self, link: Link) -> str:
        """Return the ``host:port`` that ``link.source`` has to dial to reach ``link.target``."""
        return self._listeners.get(link) or f"{self._host}:{self._proxies[link].listen.rpartition(':')[2]}"

    async def create(
        self, upstreams: Mapping[Link, str], *, listeners: Mapping[Link, str] = MappingProxyType({})
    ) -> None:
        """Create links, all in one request; each keeps its address.

        Args:
            upstreams: for each link the ``host:port`` of its target. The target need not listen yet.
            listeners: listening addresses of links, by link; a link without an entry gets a free port.

        Raises:
            ToxiproxyError: the server refused, or one of the links exists.
        """
        existing = [link for link in upstreams if link in self._proxies]
        if existing:
            raise ToxiproxyError(request="POST /populate", reason=f"{existing[0]} exists")
        by_name = {str(link): link for link in upstreams}
        wanted: _Json = [
            {
                "name": name,
                "listen": listeners.get(link, f"{self._listen_host}:0"),
                "upstream": upstreams[link],
                "enabled": True,
            }
            for name, link in by_name.items()
        ]
        self._listeners.update(listeners)
        created = await self._in_thread(lambda: _Consumer.post("/populate", json=wanted).json()["proxies"])
        for description in created:
            link = by_name[description["name"]]
            self._proxies[link] = toxiproxy.proxy.Proxy(**description)
            self._toxics[link] = {}

    async def adopt(self) -> None:
        """Take over every proxy that the server has already, except those whose name is no link.

        Raises:
            ToxiproxyError: the server could not say.
        """
        listed = await self._in_thread(lambda: _Consumer.get("/proxies").json())
        for name, description in listed.items():
            link = _link_named(name)
            if link is not None:
                fields = ("name", "listen", "upstream", "enabled")
                self._proxies[link] = toxiproxy.proxy.Proxy(**{field: description[field] for field in fields})
                self._toxics[link] = {}

    async def cut(self, links: Iterable[Link]) -> tuple[Link, ...]:
        """Stop both byte directions of each link.

        Returns:
            The links that were not cut before.

        Raises:
            ToxiproxyError: the server could not.
        """
        return await self.apply(links, _BLOCKED)

    async def lose_responses(self, links: Iterable[Link]) -> tuple[Link, ...]:
        """Stop the bytes from target to source of each link; a link that is cut stays cut.

        Returns:
            The links that this changed.

        Raises:
            ToxiproxyError: the server could not.
        """
        return await self._block(links, Stream.DOWNSTREAM)

    async def lose_requests(self, links: Iterable[Link]) -> tuple[Link, ...]:
        """Stop the bytes from source to target of each link; a link that is cut stays cut.

        Returns:
            The links that this changed.

        Raises:
            ToxiproxyError: the server could not.
        """
        return await self._block(links, Stream.UPSTREAM)

    async def _block(self, links: Iterable[Link], stream: Stream) -> tuple[Link, ...]:
        passing = [link for link in links if not self.is_blocked(link)]
        return await self.apply(passing, [toxic for toxic in _BLOCKED if toxic.stream is stream])

    async def apply(self, links: Iterable[Link], toxics: Iterable[Toxic]) -> tuple[Link, ...]:
        """Put toxics on links, replacing toxics of the same type and direction.

        Returns:
            The links that this changed.

        Raises:
            ToxiproxyError: the server could not.
        """
        wanted = {toxic.name: toxic for toxic in toxics}
        changed = tuple(link for link in links if self._toxics[link] != self._toxics[link] | wanted)
        if changed:
            await self._in_thread(lambda: self._put(changed, wanted))
        return changed

    async def remove(self, links: Iterable[Link], toxics: Iterable[Toxic]) -> tuple[Link, ...]:
        """Take toxics away from links.

        Returns:
            The links that this changed.

        Raises:
            ToxiproxyError: the server could not.
        """
        names = {toxic.name for toxic in toxics}
        changed = tuple(link for link in links if names & self._toxics[link].keys())
        if changed:
            await self._in_thread(lambda: self._take_away(changed, names))
        return changed

    async def restore(self, links: Iterable[Link]) -> tuple[Link, ...]:
        """Take all toxics away from links. Connections that were blocked are closed.

        Returns:
            The links that this changed.

        Raises:
            ToxiproxyError: the server could not.
        """
        changed = tuple(link for link in links if self._toxics[link])
        every = {toxic for link in changed for toxic in self.toxics(link)}
        return await self.remove(changed, every)

    async def probe(self, link: Link, *, timeout_s: float) -> ProbeOutcome:
        """Find out whether bytes pass through a link, with a new connection to the node behind it."""
        return await probe(
            self.address(link),
            timeout_s=timeout_s,
            probe_connection=self._probe_of(link),
            context=self._context_of(link),
        )

    async def round_trip(self, link: Link, *, timeout_s: float, ballast_bytes: int = 0) -> float:
        """Return the seconds from sending a message through a link to its answer, on a new connection.

        Args:
            link: a link to a node.
            timeout_s: returned if there is no answer in that time, or no connection.
            ballast_bytes: sent before the message.
        """
        try:
            async with asyncio.timeout(timeout_s), self.open_probe(link) as connection:
                return await connection.round_trip(ballast_bytes=ballast_bytes)
        except (TimeoutError, OSError):
            return timeout_s

    def open_probe(self, link: Link) -> ProbeConnection:
        """Return a connection through a link to the node behind it; entering it dials."""
        return self._probe_of(link)(self.address(link), self._context_of(link))

    def _probe_of(self, link: Link) -> type[ProbeConnection]:
        if is_kafka_client(link.source):
            return KafkaProbeConnection
        return self._probes.get(link.target, self._probe_connection)

    def _context_of(self, link: Link) -> ssl.SSLContext | None:
        return self._kafka_context if is_kafka_client(link.source) else self._context

    async def stop(self) -> None:
        """End the server. All its connections are closed."""
        await self._server.stop()
        self._connection.close()

    def _put(self, links: Iterable[Link], wanted: Mapping[str, Toxic]) -> None:
        for link in links:
            proxy, present = self._proxies[link], self._toxics[link]
            for name, toxic in wanted.items():
                if present.get(name) == toxic:
                    continue
                if name in present:
                    proxy.destroy_toxic(name)
                proxy.add_toxic(
                    name=name, type=toxic.kind, stream=toxic.stream.value, attributes=dict(toxic.attributes)
                )
                present[name] = toxic

    def _take_away(self, links: Iterable[Link], names: Iterable[str]) -> None:
        for link in links:
            proxy, present = self._proxies[link], self._toxics[link]
            for name in names:
                if name in present:
                    proxy.destroy_toxic(name)
                    del present[name]

    async def await_answer(self) -> None:
        """Wait until the server answers.

        Raises:
            ToxiproxyError: the server ended, or did not answer within 20 s.
        """
        deadline = asyncio.get_running_loop().time() + _START_TIMEOUT_S
        while self._server.end is None:
            try:
                await self._in_thread(lambda: _Consumer.get("/version"))
            except ToxiproxyError:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(_POLL_INTERVAL_S)
            else:
                return
        raise ToxiproxyError(request="start", reason="\n".join(self._server.end.stderr_tail))

    async def _in_thread(self, call: Callable[[], ResultT]) -> ResultT:
        def with_connection() -> ResultT:
            _connection.set(self._connection)
            return call()

        async with self._one_call:
            return await asyncio.to_thread(with_connection)


def _link_named(name: str) -> Link | None:
    source, arrow, target = name.partition("->")
    if not arrow or not target.isdigit() or not (source.isdigit() or source == "client"):
        return None
    return Link(CLIENT if source == "client" else NodeId(int(source)), NodeId(int(target)))
