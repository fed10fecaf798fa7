"""The run directory of a tap: there is none of a tap that did not start, and one that failed says why."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from laststand.chaos.external.tap_run import run_tap
from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.cluster.kafka_tap import KafkaTap, Listen
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.storage.line_file import line_files, read_lines

CLUSTER = ExternalCluster(cluster_id="theirs", addresses={BrokerId(NodeId(0)): "127.0.0.1:1"}, features={})
ANY_PORT = Listen("127.0.0.1", 0, "127.0.0.1")


async def run(directory: Path, on_open: Callable[[KafkaTap], Awaitable[None]], *, listen: Listen = ANY_PORT) -> None:
    await run_tap(CLUSTER, listen, directory=directory, era="kafka-3.9", has_keys=False, on_open=on_open)


async def never_opened(tap: KafkaTap) -> None:
    raise AssertionError(tap.bootstrap)


async def test_a_tap_that_cannot_listen_leaves_no_directory(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = Listen("127.0.0.1", taken.getsockname()[1], "127.0.0.1")
        with pytest.raises(ConfigError, match="an address that is free"):
            await run(tmp_path / "run", never_opened, listen=listen)
    assert not (tmp_path / "run").exists()


async def test_a_directory_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a new directory"):
        await run(tmp_path, never_opened)


async def test_a_tap_that_fails_ends_by_itself(tmp_path: Path) -> None:
    async def fail(tap: KafkaTap) -> None:
        tap.fail("history: No space left on device")
        await asyncio.Event().wait()

    async with asyncio.timeout(10):
        await run(tmp_path / "run", fail)
    [events] = line_files(tmp_path / "run" / "events")
    assert b'"problem":"history: No space left on device"' in read_lines(events)


async def test_errors_beside_a_tap_are_raised(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"127\.0\.0\.1:"):
        await run(tmp_path / "run", never_opened)
    [events] = line_files(tmp_path / "run" / "events")
    assert b'"problem":"the tap did not reach its end"' in read_lines(events)
