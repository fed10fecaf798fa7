"""Faults of a real ZooKeeper server and of its messages take effect, and do no more than that."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.play.zookeeper_server import recording_syncs, zookeeper_for
from laststand.chaos.process.annotations import Annotations
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.faults import execute
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.message_faults import MessageFaults
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.zookeeper import depose_controller as _depose_controller  # noqa: F401 - enters its executor
from laststand.chaos.zookeeper.messages import server_messages
from laststand.chaos.zookeeper.metadata import ZooKeeperMetadata
from laststand.chaos.zookeeper.server_events import ServerEvents
from laststand.emulator.cluster.child import EndCause
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.zookeeper_cluster import ZooKeeperCluster
from laststand.emulator.core import events
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.types import BrokerId, NodeId, Way
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.identifiers import NodeVersion
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.rpc.interception import InterceptionOrder, Intervention, MessageKind
from laststand.emulator.storage.power_loss import lose_power
from laststand.emulator.storage.sync_ledger import durable_prefixes
from laststand.emulator.zookeeper.transaction_log import LOG_FOLDER, TransactionLogReader
from tests.cluster.zookeeper_server import Client

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

ERA = "kafka-3.9-zk"
BROKER = NodeId(0)


class ServerAlone:
    """A cluster of which only the server is started.

    Attributes:
        directory: of the harness's events.
        touched: what was done to its messages.
        ends: how its processes ended.
        unasked: those that nobody asked to.
    """

    def __init__(self, directory: Path) -> None:
        program = recording_syncs(zookeeper_for((ERA,), DriverName.PROCESS))
        assert program is not None
        if program.sync_shim is None:
            pytest.skip("there is no compiler")
        self.touched: list[events.MessageIntercepted] = []
        self.ends: list[EndCause] = []
        self.unasked: asyncio.Queue[str] = asyncio.Queue()
        self.directory = directory / "events"
        self.directory.mkdir()
        self.layout = ClusterLayout(
            run="test",
            directory=directory,
            controller_ids=(CONTROLLER,),
            broker_ids=(BrokerId(BROKER),),
            switches=era_rules(ERA),
            properties=(("broker.session.timeout.ms", "4000"),),
            toxiproxy=None,
        )
        self.messages = server_messages((Link(BROKER, CONTROLLER),), record=self.touched.append)
        self.cluster = ZooKeeperCluster(
            self.layout,
            zookeeper=program,
            messages=self.messages,
            on_start=lambda _node, _incarnation, _rules: None,
            on_server_end=lambda _incarnation, end: self.ends.append(end.cause),
            on_unexpected_end=lambda name, _end: self.unasked.put_nowait(name),
        )
        self.address = ""

    async def start(self) -> None:
        await self.cluster.start_node(CONTROLLER)
        self.address = self.cluster.direct_addresses()[CONTROLLER]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerAlone]:
    alone = ServerAlone(tmp_path)
    async with alone.cluster:
        await alone.start()
        yield alone


async def test_a_server_that_loses_power_keeps_what_it_has_answered_and_loses_what_it_did_not_sync(
    server: ServerAlone,
) -> None:
    client = Client(server.address)
    await client.open()
    await client.execute(
        operations.Create(path="/a", data=b"1"), operations.SetData(path="/a", data=b"2", version=None)
    )
    await server.cluster.kill_node(CONTROLLER)
    data, ledger = (str(place(CONTROLLER)) for place in (server.layout.data_directory, server.layout.ledger_directory))
    [log] = (Path(data) / LOG_FOLDER).glob("log.*")
    assert durable_prefixes(ledger)[log.stat().st_ino] == log.stat().st_size
    with log.open("ab") as file:
        file.write(b"what was written and not synced")
    report = lose_power([data], ledger_folder=ledger, keep=Keep.NONE, seed=1)
    assert [Path(loss.path).name for loss in report.lost_bytes] == [log.name]
    assert [Path(loss.path).name for loss in report.lost_names] == ["snapshot.0"]
    await server.start()
    [read] = await client.execute(operations.GetData(path="/a"))
    assert isinstance(read, operations.DataRead)
    assert (read.data, read.stat.version) == (b"2", NodeVersion(1))
    await client.close()


async def test_a_server_that_dies_unasked_is_noticed(server: ServerAlone) -> None:
    process = server.cluster.process_of(CONTROLLER)
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        assert await server.unasked.get() == str(CONTROLLER)
    assert server.ends == [EndCause.UNEXPECTED]


async def test_what_could_still_be_lost_is_not_read(server: ServerAlone) -> None:
    client = Client(server.address)
    await client.open()
    await client.execute(operations.Create(path="/a"), operations.Create(path="/b"), operations.Create(path="/c"))
    await client.close()
    [log] = (server.layout.data_directory(CONTROLLER) / LOG_FOLDER).glob("log.*")
    size, inode = log.stat().st_size, log.stat().st_ino
    reader = TransactionLogReader(server.layout.data_directory(CONTROLLER))
    assert list(reader.read_new(synced=dict)) == []
    before = [each.zxid for each in reader.read_new(synced=lambda: {inode: size // 2})]
    after = [each.zxid for each in reader.read_new(synced=lambda: {inode: size})]
    assert before
    assert [*before, *after] == [1, 2, 3, 4, 5]


async def test_an_answer_that_is_lost_was_a_write_and_its_session_goes_on(server: ServerAlone) -> None:
    addresses = await server.messages.open(lambda _: server.address)
    broker, other = Client(addresses[Link(BROKER, CONTROLLER)]), Client(server.address)
    session_id = await broker.open()
    await other.open()
    await broker.execute(operations.Create(path="/state", data=b"1"))
    kind = MessageKind(BROKER, "SetData", Way.RESPONSE)
    order = InterceptionOrder(intervention=Intervention.LOSE_NEXT, kind=kind, count=1)
    assert server.messages.obey(CONTROLLER, order).is_changed
    asking = asyncio.ensure_future(broker.execute(operations.SetData(path="/state", data=b"2", version=NodeVersion(0))))
    await broker.wait(lambda: any(isinstance(told, exchange.ZooKeeperConnectionLost) for told in broker.told))
    [read] = await other.execute(operations.GetData(path="/state"))
    assert isinstance(read, operations.DataRead)
    assert (read.data, read.stat.version) == (b"2", NodeVersion(1))
    await broker.wait(lambda: any(isinstance(told, exchange.ZooKeeperReconnected) for told in broker.told))
    assert broker.session.session_id == session_id
    assert [str(event.channel) for event in server.touched] == ["0->100 SetData response"]
    asking.cancel()
    await broker.close()
    await other.close()


async def test_a_controller_is_deposed_while_its_session_goes_on(server: ServerAlone) -> None:
    events = ServerEvents(server.layout, has_sync_ledger=False)
    changes = ChangeSignal()
    metadata = ZooKeeperMetadata(events, on_change=changes.change)
    log = HarnessLog(server.directory, run="test", wall_time_ns=0, driver=DriverName.PROCESS, ending=None)
    target = ProcessTarget(
        cluster=server.cluster,
        metadata=metadata,
        log=log,
        changes=changes,
        session_timeout_ms=4000,
        messages=MessageFaults(server.cluster, note=log.note),
        client=ClientLink(on_counts=changes.change),
        annotations=Annotations(None),
        execute=execute,
    )
    controller = Client(server.address)
    session_id = await controller.open()
    following = asyncio.ensure_future(metadata.run())
    assert await execute(target, actions.DeposeController()) == actions.no_op("nobody is controller")
    await controller.execute(
        operations.Create(path="/controller", data=b'{"version":1,"brokerid":1}', kind=operations.NodeKind.EPHEMERAL)
    )
    outcome = await execute(target, actions.DeposeController())
    assert outcome.affected, outcome.seen
    assert await controller.execute(operations.Exists(path="/controller")) == (
        operations.OperationFailed(operations.ZooKeeperFailure.NO_NODE),
    )
    assert controller.session.session_id == session_id
    following.cancel()
    await controller.close()
