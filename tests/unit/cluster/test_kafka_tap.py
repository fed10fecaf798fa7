"""The proxies of a tap: their ports, and the brokers behind them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.cluster.kafka_tap import KafkaTap, Listen
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import BrokerId, NodeId

FIRST, SECOND = BrokerId(NodeId(0)), BrokerId(NodeId(1))
LAST_PORT = 65_535


@asynccontextmanager
async def open_tap(folder: Path, *, addresses: dict[BrokerId, str], port: int = 0) -> AsyncIterator[KafkaTap]:
    tap = KafkaTap(
        ExternalCluster(cluster_id="theirs", addresses=addresses, features={}),
        Listen("127.0.0.1", port, "tap"),
        history_file=lambda broker_id: folder / f"{broker_id}.packed",
        key_file=lambda _: None,
    )
    try:
        await tap.open()
        yield tap
    finally:
        await tap.close()


async def test_a_broker_that_comes_back_elsewhere_is_reached_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        broker.settimeout(10)
        address = f"127.0.0.1:{broker.getsockname()[1]}"
        async with open_tap(tmp_path, addresses={FIRST: "127.0.0.1:1"}) as tap:
            place = await tap.place_of(FIRST, address)
            assert place == await tap.place_of(FIRST, address)
            assert tap.addresses == {FIRST: address}
            _, writer = await asyncio.open_connection("127.0.0.1", place[1])
            accepted, _ = await asyncio.to_thread(broker.accept)
            accepted.close()
            writer.close()


async def test_a_broker_for_whom_there_is_no_port_is_refused(tmp_path: Path) -> None:
    async with open_tap(tmp_path, addresses={FIRST: "127.0.0.1:1"}, port=LAST_PORT) as tap:
        with pytest.raises(ConfigError, match=r"--listen=127\.0\.0\.1:65536 .* port must be 0-65535"):
            await tap.place_of(SECOND, "127.0.0.1:2")
