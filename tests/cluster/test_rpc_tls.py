"""TLS between nodes: who is let in, as whom, who is not, and certificates that are renewed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.requester import Requester, node_name
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.node.batch_bytes import parse_produced
from laststand.emulator.rpc.apis import api_of
from laststand.emulator.rpc.authority import Authority, certify
from laststand.emulator.rpc.certificates import FOLDER, HARNESS, Certificates
from laststand.emulator.rpc.channel import keepalive_for, open_channel
from laststand.emulator.rpc.inbound import NodeServer, Responder
from laststand.emulator.rpc.interception import Interceptor
from laststand.emulator.rpc.run_token import RunToken
from tests.certificates import Authority as OtherAuthority

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

KEEPALIVE = keepalive_for(session_timeout_ms=2000)
SERVER, DIALLER, OTHER = NodeId(0), NodeId(1), NodeId(2)
CLIENT_NAME = "client"
ANSWER_WITHIN_S = 10


class Cluster:
    """Certificates of a few processes, and a node that answers Metadata and notes who asked."""

    def __init__(self, directory: Path) -> None:
        self.token_file = directory / "token"
        names = (*map(node_name, (SERVER, DIALLER, OTHER)), HARNESS, CLIENT_NAME)
        self.folder = directory / FOLDER
        certify(self.folder, names)
        self.authority = Authority.read_or_make(self.folder)
        RunToken.read_or_draw(self.token_file)
        self.asked: list[Requester | None] = []
        self.port = 0

    def token(self, name: str) -> RunToken:
        return RunToken.read(self.token_file, name=name)

    def certificates(self, name: str) -> Certificates:
        return Certificates(self.folder, name)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        def answer(
            _request: messages.Request, cause_id: CauseId, _attachments: tuple[bytes, ...], responder: Responder
        ) -> None:
            self.asked.append(responder.requester)
            response = messages.MetadataResponse(brokers=(), controller_id=None, topics=())
            responder.answer(response, cause_id=cause_id, attachments=())

        server = NodeServer(
            keepalive=KEEPALIVE,
            on_request=answer,
            interceptor=Interceptor(SERVER, record=lambda _: None),
            token=self.token(node_name(SERVER)),
            on_order=lambda _: None,
            on_refusal=lambda _: None,
        )
        server.add_broker(parse_produced)
        self.port = await server.start("127.0.0.1:0")
        try:
            yield
        finally:
            await server.stop(grace_s=0.1)

    async def ask(self, token: RunToken, *, peer: NodeId = SERVER, dialler: NodeId | None = DIALLER) -> str:
        """Returns the outcome of a request: OK, or the reason."""
        channel = open_channel(f"127.0.0.1:{self.port}", KEEPALIVE, token=token, peer=peer, dialler=dialler)
        try:
            return await self.outcome(channel.unary)
        finally:
            await channel.close()

    async def outcome(self, unary: object) -> str:
        request = messages.MetadataRequest(topics=())
        api = api_of(request, SERVER)
        assert callable(unary)
        try:
            await unary(api.path)(api.encode_request(request, cause_id=CauseId("test")), ANSWER_WITHIN_S)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name} {error.details()}"
        return "OK"

    async def certificate_shown(self) -> bytes:
        context = self.certificates(HARNESS).dialling_context()
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return certificate


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


async def test_the_certificate_decides_the_principal_of_a_caller(cluster: Cluster) -> None:
    async with cluster.serving():
        for name, dialler in ((node_name(DIALLER), DIALLER), (node_name(DIALLER), OTHER), (CLIENT_NAME, None)):
            assert await cluster.ask(cluster.token(name), dialler=dialler) == "OK"
        assert await cluster.ask(cluster.token(HARNESS), dialler=OTHER) == "OK"
    assert [None if each is None else each.principal for each in cluster.asked] == [
        "User:CN=broker-1",
        "User:CN=broker-1",
        "User:CN=client",
        None,
    ]


async def test_a_client_without_a_certificate_is_refused_and_others_are_served(
    cluster: Cluster, tmp_path: Path
) -> None:
    shown = cluster.token(node_name(DIALLER))
    client = cluster.certificates(node_name(DIALLER)).client
    outside = tmp_path / "outside"
    outside.mkdir()
    foreign = OtherAuthority(outside, "foreign")
    own = (outside / "foreign.pem").read_text() + (outside / "foreign.key").read_text()
    mixed = client.read_text().partition("-----BEGIN PRIVATE")[0] + own[own.index("-----BEGIN PRIVATE") :]
    async with cluster.serving():
        assert (await cluster.ask(shown, peer=OTHER)).startswith("UNAVAILABLE")  # another node at the address
        assert (await cluster.ask(RunToken(shown.text))).startswith("UNAVAILABLE")  # no TLS at all
        of_servers = cluster.certificates(node_name(DIALLER)).server.read_text()
        for text in (own, foreign.issue("broker-1").read_text(), mixed, of_servers):
            client.write_text(text)
            assert (await cluster.ask(cluster.token(node_name(DIALLER)))).startswith("UNAVAILABLE")
        cluster.authority.issue_expired(node_name(DIALLER))
        assert (await cluster.ask(cluster.token(node_name(DIALLER)))).startswith("UNAVAILABLE")
        assert cluster.asked == []
        assert await cluster.ask(cluster.token(node_name(OTHER))) == "OK"


async def test_certificates_that_are_renewed_are_shown_by_new_connections(cluster: Cluster) -> None:
    token = cluster.token(node_name(DIALLER))
    async with cluster.serving(), asyncio.timeout(30):
        channel = open_channel(f"127.0.0.1:{cluster.port}", KEEPALIVE, token=token, peer=SERVER, dialler=DIALLER)
        assert await cluster.outcome(channel.unary) == "OK"
        cluster.authority.issue_expired(node_name(DIALLER))
        assert (await cluster.outcome(channel.unary)).startswith("UNAVAILABLE")
        cluster.authority.issue(node_name(DIALLER))
        assert await cluster.outcome(channel.unary) == "OK"
        before = await cluster.certificate_shown()
        assert await cluster.certificate_shown() == before
        cluster.authority.issue(node_name(SERVER))
        assert await cluster.certificate_shown() != before
        assert await cluster.outcome(channel.unary) == "OK"
        await channel.close()


async def test_a_renewed_certificate_is_shown_by_what_is_no_grpc_too(cluster: Cluster) -> None:
    files = cluster.certificates(node_name(SERVER))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=files.dialled_context())
    async with server, asyncio.timeout(30):
        cluster.port = server.sockets[0].getsockname()[1]
        before = await cluster.certificate_shown()
        assert await cluster.certificate_shown() == before
        cluster.authority.issue(node_name(SERVER))
        renewed = await cluster.certificate_shown()
        assert renewed != before
        assert await cluster.certificate_shown() == renewed


def test_certificates_that_do_not_fit_are_a_mistake_at_the_start(cluster: Cluster) -> None:
    files = cluster.certificates(node_name(SERVER))
    files.check()
    assert {path.stat().st_mode & 0o777 for path in cluster.folder.iterdir()} == {0o600}
    assert cluster.folder.stat().st_mode & 0o777 == 0o700
    other = cluster.certificates(node_name(OTHER)).client.read_text()
    own = files.client.read_text()
    mixed = own.partition("-----BEGIN PRIVATE")[0] + other[other.index("-----BEGIN PRIVATE") :]
    for content, reason in ((mixed, "KEY_VALUES_MISMATCH"), ("nonsense", "PEM")):
        files.client.write_text(content)
        with pytest.raises(ConfigError, match=reason):
            files.check()
    (cluster.folder / "authority.key").write_text("nonsense")
    with pytest.raises(ConfigError, match="an authority's folder"):
        certify(cluster.folder, ())
