"""What a broker's process does with the effects of its core."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from laststand.emulator.core.effects import BrokerEffect, CreateLog, StopNode
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.inputs import BrokerInput
from laststand.emulator.core.types import IncarnationId, NodeId, TopicId, TopicPartition
from laststand.emulator.core.zookeeper.exchange import ZooKeeperInput
from laststand.emulator.node.broker_shell import BrokerShell
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.rpc.run_token import RunToken
from laststand.emulator.storage.memory_filesystem import CrashPoint, FaultOutcome, MemoryFileSystem


class WritingShell(BrokerShell):
    """Its core wants a log made, and would then end in order."""

    def _step(self, incoming: BrokerInput | ZooKeeperInput, *, now_ms: int) -> Iterable[BrokerEffect]:
        return [
            CreateLog(partition=TopicPartition("orders", 0), topic_id=TopicId("AAAAAAAAAAAAAAAAAAAAAQ")),
            StopNode(proven_epoch=None),
        ]


async def test_after_a_write_that_failed_nothing_else_is_done(tmp_path: Path) -> None:
    # KAFKA-10778 (S31). The process ends by the loop's handler of exceptions (``laststand.emulator.node``).
    loop = asyncio.get_running_loop()
    failed = loop.create_future()
    loop.set_exception_handler(lambda _, context: failed.set_result(context["exception"]))
    config = NodeConfig(
        run="unit",
        node_id=NodeId(0),
        incarnation=0,
        cluster_id="unit",
        controller_id=NodeId(100),
        data_dirs=("/data",),
        ledger_dir="/ledger",
        event_file=str(tmp_path / "0-0.jsonl"),
        token_file=str(tmp_path / "token"),
    )
    RunToken.read_or_draw(tmp_path / "token")
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
