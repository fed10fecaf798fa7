"""Effects of a core, carried out by a node's process."""

import asyncio
import json
import time
from collections.abc import Iterable
from pathlib import Path

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import IncarnationId, NodeId, TopicId, TopicPartition
from laststand.emulator.core.zookeeper import exchange
from laststand.emulator.node.broker_shell import BrokerShell
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.node.controller_shell import ControllerShell
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.rpc.run_token import RunToken
from tests.memory_filesystem import CrashPoint, FaultOutcome, MemoryFileSystem


class WritingShell(BrokerShell):
    """Its core wants a log made, and would then end in order."""

    def _step(
        self, incoming: inputs.BrokerInput | exchange.ZooKeeperInput, *, now_ms: int
    ) -> Iterable[effects.BrokerEffect]:
        return [
            effects.CreateLog(partition=TopicPartition("orders", 0), topic_id=TopicId("AAAAAAAAAAAAAAAAAAAAAQ")),
            effects.StopNode(proven_epoch=None),
        ]


class TellingShell(BrokerShell):
    """Its core tells of a peer, and would then end in order."""

    def _step(
        self, incoming: inputs.BrokerInput | exchange.ZooKeeperInput, *, now_ms: int
    ) -> Iterable[effects.BrokerEffect]:
        return [
            effects.RecordEvent(event=events.PeerReachable(cause_id=incoming.cause_id, peer=NodeId(100))),
            effects.StopNode(proven_epoch=None),
        ]


def config_of(path: Path, *, node_id: int) -> NodeConfig:
    RunToken.read_or_draw(path / "token")
    return NodeConfig(
        run="unit",
        node_id=NodeId(node_id),
        incarnation=0,
        cluster_id="unit",
        controller_ids=(NodeId(100),),
        data_dirs=("/data",),
        ledger_dir="/ledger",
        event_file=str(path / "0-0.jsonl"),
        token_file=str(path / "token"),
    )


def paused_writer(config: NodeConfig) -> EventWriter:
    """Returns a writer of a process that stands still, for an hour, before it comes to write anything."""
    later_ns = time.monotonic_ns() + 3_600_000_000_000
    return EventWriter(
        config.event_file,
        run=config.run,
        node_id=config.node_id,
        incarnation=config.incarnation,
        clock=lambda: later_ns,
    )


def times_of(config: NodeConfig) -> list[int]:
    return [json.loads(line)["time_ns"] for line in Path(config.event_file).read_text().splitlines()]


async def test_what_a_broker_decides_bears_the_time_of_its_turn(tmp_path: Path) -> None:
    config = config_of(tmp_path, node_id=0)
    events, began_ns = paused_writer(config), time.monotonic_ns()
    await TellingShell(config, events, IncarnationId("incarnation"), MemoryFileSystem()).run()
    [time_ns] = times_of(config)
    assert began_ns <= time_ns <= time.monotonic_ns()


async def test_what_a_controller_decides_bears_the_time_of_its_turn(tmp_path: Path) -> None:
    config = config_of(tmp_path, node_id=100)
    events, began_ns = paused_writer(config), time.monotonic_ns()
    shell = ControllerShell(config, events, MemoryFileSystem())
    shell.request_shutdown()
    await shell.run()
    told = times_of(config)
    assert told
    assert began_ns <= min(told) <= max(told) <= time.monotonic_ns()


async def test_after_a_write_that_failed_nothing_else_is_done(tmp_path: Path) -> None:
    # KAFKA-10778 (S31). The process ends by the loop's handler of exceptions (``laststand.emulator.node``).
    loop = asyncio.get_running_loop()
    failed = loop.create_future()
    loop.set_exception_handler(lambda _, context: failed.set_result(context["exception"]))
    config = config_of(tmp_path, node_id=0)
    events = EventWriter(config.event_file, run=config.run, node_id=config.node_id, incarnation=config.incarnation)
    filesystem = MemoryFileSystem()
    shell = WritingShell(config, events, IncarnationId("incarnation"), filesystem)
    filesystem.restart(crash_at=CrashPoint(operation=1, outcome=FaultOutcome.FAILED))
    running = asyncio.create_task(shell.run())
    await asyncio.wait((running, failed), return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert not running.done()
    assert isinstance(failed.result(), StorageError)
    running.cancel()
    await asyncio.wait((running,))
