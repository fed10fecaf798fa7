"""Clusters that somebody else runs are found by a broker's answers, and refused before anything is broken."""

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from kio.schema.api_versions.v3 import response as versions_response
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import response as metadata_response
from kio.schema.types import BrokerId as KioBrokerId
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta
from kio.static.protocol import Entity

from laststand.emulator.cluster.cluster_finder import find_cluster
from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.kafka.api_names import API_KEYS
from laststand.emulator.kafka.connection import KafkaConnection
from tests.certificates import Authority

CLUSTER_ID: Final = "theirs"
OF_KAFKA_39: Final = {"Produce": 11, "Fetch": 16, "ListOffsets": 7, "Metadata": 12, "InitProducerId": 4}
NO_TIME: Final = i32Timedelta.parse(timedelta(0))
_API_VERSIONS: Final = 18
_FLEXIBLE_HEADER: Final = b"\0"
"""An answer to ApiVersions has none."""


def _versions(newest: Mapping[str, int]) -> versions_response.ApiVersionsResponse:
    return versions_response.ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            versions_response.ApiVersion(api_key=i16(API_KEYS[name]), min_version=i16(0), max_version=i16(version))
            for name, version in newest.items()
        ),
        throttle_time=NO_TIME,
        finalized_features=(
            versions_response.FinalizedFeatureKey(
                name="metadata.version", max_version_level=i16(21), min_version_level=i16(21)
            ),
        ),
    )


def _metadata(hosts: Mapping[int, str]) -> metadata_response.MetadataResponse:
    return metadata_response.MetadataResponse(
        throttle_time=NO_TIME,
        brokers=tuple(
            metadata_response.MetadataResponseBroker(node_id=KioBrokerId(broker_id), host=host, port=i32(9092))
            for broker_id, host in hosts.items()
        ),
        cluster_id=CLUSTER_ID,
        topics=(),
    )


def _written(entity: Entity) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


@asynccontextmanager
async def broker(*, newest: Mapping[str, int] = OF_KAFKA_39, hosts: Mapping[int, str]) -> AsyncIterator[str]:
    """Yields the address of a server that answers ApiVersions, and anything else as Metadata."""
    versions = _written(_versions(newest))
    metadata = _FLEXIBLE_HEADER + _written(_metadata(hosts))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                is_greeting = int.from_bytes(request[:2], "big") == _API_VERSIONS
                answer = request[4:8] + (versions if is_greeting else metadata)
                writer.write(len(answer).to_bytes(4, "big") + answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield _address(server)


def _address(server: asyncio.Server) -> str:
    return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _free_address() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{bound.getsockname()[1]}"


def found(
    hosts: Mapping[int, str], *, owned: str | None = None, newest: Mapping[str, int] = OF_KAFKA_39
) -> ExternalCluster:
    async def find() -> ExternalCluster:
        async with broker(newest=newest, hosts=hosts) as address:
            return await find_cluster([_free_address(), address], option="--upstream", owned=owned)

    return asyncio.run(find())


@pytest.mark.parametrize("owned", [None, CLUSTER_ID])
def test_the_first_address_that_answers_describes_the_cluster(owned: str | None) -> None:
    assert found({0: "127.0.0.1", 1: "10.1.2.3"}, owned=owned) == ExternalCluster(
        cluster_id=CLUSTER_ID,
        addresses={BrokerId(NodeId(0)): "127.0.0.1:9092", BrokerId(NodeId(1)): "10.1.2.3:9092"},
        features={"metadata.version": 21},
    )


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("8.8.8.8:9092", "8.8.8.8 is neither"),
        ("100.64.0.1:9092", "100.64.0.1 is neither"),
        ("[2001:4860:4860::8888]:9092", "is neither"),
        ("127.0.0.1", "expected host:port"),
    ],
)
def test_nothing_is_dialled_unless_every_address_may_be(
    address: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dial(address: str, **_: object) -> KafkaConnection:
        raise AssertionError(address)

    monkeypatch.setattr(KafkaConnection, "dial", dial)
    with pytest.raises(ConfigError, match=reason) as raised:
        asyncio.run(find_cluster(["127.0.0.1:9092", address], option="--upstream", owned=None))
    assert raised.value.key == "--upstream"


@pytest.mark.parametrize("count", [0, 17])
def test_there_are_some_addresses_and_not_many(count: int) -> None:
    with pytest.raises(ConfigError, match=r"--upstream=.* 1 to 16 addresses"):
        asyncio.run(find_cluster(["127.0.0.1:9092"] * count, option="--upstream", owned=None))


def test_a_broker_that_advertises_a_public_address_is_refused_unless_the_user_owns_the_cluster() -> None:
    with pytest.raises(ConfigError, match=r"a broker's advertised address=8\.8\.8\.8:9092"):
        found({0: "127.0.0.1", 1: "8.8.8.8"})
    assert len(found({0: "127.0.0.1", 1: "8.8.8.8"}, owned=CLUSTER_ID).addresses) == 2


def test_the_cluster_must_be_the_one_that_the_user_owns() -> None:
    with pytest.raises(ConfigError, match=f"the id of that cluster, which is '{CLUSTER_ID}'") as raised:
        found({0: "127.0.0.1"}, owned="mine")
    assert raised.value.key == "--i-own-this-cluster"


def test_a_cluster_has_brokers() -> None:
    with pytest.raises(ConfigError, match=r"--upstream=.* a cluster whose brokers are alive"):
        found({})


def test_brokers_that_are_too_old_or_without_idempotence_are_refused() -> None:
    newest = {name: version for name, version in OF_KAFKA_39.items() if name != "InitProducerId"} | {"Fetch": 12}
    with pytest.raises(ConfigError, match="Fetch up to version 12, needed 16; InitProducerId up to version none"):
        found({0: "127.0.0.1"}, newest=newest)


def test_nobody_listens() -> None:
    address = _free_address()
    with pytest.raises(ConfigError, match=f"--upstream=.* nobody listens at {address}"):
        asyncio.run(find_cluster([address], option="--upstream", owned=None))


def _refusal_of(serve: bytes, *, context: ssl.SSLContext | None = None) -> str:
    """Returns the refusal of a server that sends the same to everybody, and hangs up."""

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(serve)
        writer.close()

    async def find() -> None:
        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
        async with server:
            await find_cluster([_address(server)], option="--upstream", owned=None)

    with pytest.raises(ConfigError) as raised:
        asyncio.run(find())
    return str(raised.value)


def test_a_listener_with_tls_is_named_as_such(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path).issue("broker"))
    assert "speaks TLS, and Laststand speaks plaintext only" in _refusal_of(b"", context=context)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", (4).to_bytes(4, "big") + bytes(4)])
def test_what_does_not_answer_as_kafka_does_is_refused(said: bytes) -> None:
    assert "does not answer ApiVersions and Metadata as Kafka does" in _refusal_of(said)
