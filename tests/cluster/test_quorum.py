"""Three controllers as processes: whoever leads them is taken away, and another takes over what was committed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.voters import VoterError, add_voter, remove_voter
from laststand.chaos.process.ending import stop_nodes
from laststand.chaos.process.faults import execute
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.client.active_controller import ActiveController
from laststand.emulator.client.admin import AdminClient
from laststand.emulator.client.admin_connection import AdminConnection
from laststand.emulator.core import admin_messages
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.types import BrokerId, CauseId, NodeId
from laststand.emulator.node.metadata_journal import DIRECTORY
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.storage.metadata_log import MetadataLog
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.quorum_state import read_quorum_state
from tests.cluster.fault_targets import ONE, fault_target

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

FAILOVER_S = 30
CONTROLLERS = (NodeId(100), NodeId(101), NodeId(102))


async def successor(target: ProcessTarget, of: NodeId) -> NodeId:
    """Waits until another controller leads and has answered; returns it."""

    def succeeded() -> Observation:
        active = target.image.controller_id
        return Observation(reached=active not in (None, of), text=f"controller {active} is active")

    await target.wait(succeeded, timeout_s=FAILOVER_S)
    described = await target.ask_controller(admin_messages.DescribeClusterRequest())
    assert isinstance(described, admin_messages.DescribeClusterResponse)
    assert described.error is ErrorCode.NONE
    assert described.controller_id != of
    return described.controller_id


def log_of(directory: Path, node_id: NodeId) -> list[QuorumBatch]:
    filesystem = OsFileSystem(ledger_folder=str(directory / "ledger"))
    metadata = str(directory / "nodes" / str(node_id) / "data" / DIRECTORY)
    assert read_quorum_state(filesystem, metadata) is not None
    log = MetadataLog(filesystem, metadata)
    try:
        return list(log.pop_recovered())
    finally:
        log.close()


async def test_another_controller_takes_over_after_each_fault(tmp_path: Path) -> None:
    async with fault_target(tmp_path, controllers=3) as target:
        first = target.image.controller_id
        assert first is not None

        assert (await execute(target, actions.Isolate(nodes=(first,)))).affected
        second = await successor(target, first)
        assert (await execute(target, actions.HealNodes(nodes=(first,)))).affected

        assert (await execute(target, actions.Pause(nodes=(second,)))).affected
        third = await successor(target, second)
        assert (await execute(target, actions.Resume(nodes=(second,)))).affected

        assert (await execute(target, actions.Kill(nodes=(third,)))).affected
        fourth = await successor(target, third)
        await execute(target, actions.Start(nodes=(third,)))

        deaf = next(node_id for node_id in CONTROLLERS if node_id != fourth)
        assert (await execute(target, actions.Cut(link=Link(deaf, fourth)))).affected, "it fetches from nobody"
        committed = await target.committed_end()
        loss = actions.PowerLoss(nodes=CONTROLLERS, loss=DiskLoss(keep=Keep.NONE))
        assert (await execute(target, loss)).affected
        await execute(target, actions.Start(nodes=CONTROLLERS))
        fifth = await successor(target, NodeId(-1))
        assert await target.committed_end() > committed, "a leader's first record follows all that was committed"
        assert fifth in CONTROLLERS
        epochs = {broker_id: each.broker_epoch for broker_id, each in target.image.brokers.items()}
        assert all(epoch < committed for epoch in epochs.values()), "no broker has registered again"
        committed = await target.committed_end()

    logs = [log_of(tmp_path, node_id) for node_id in CONTROLLERS]
    committed_logs = [[batch for batch in log if batch.end_offset <= committed] for log in logs]
    longest = max(committed_logs, key=len)
    assert sum(log == longest for log in committed_logs) >= 2, "a majority has what was committed"
    assert all(log == longest[: len(log)] for log in committed_logs)


async def test_a_voter_is_removed_and_added_while_it_runs_and_after_it_was_down(tmp_path: Path) -> None:
    async with fault_target(tmp_path, controllers=3) as target, admin_of(target) as admin:
        leader = (await admin.describe_quorum()).leader_id
        assert leader is not None
        removed = await remove_voter(admin, leader)
        found = await admin.describe_quorum()
        assert found.leader_id != leader, "a leader that is no voter resigns"
        assert removed not in [voter.key for voter in found.voters]
        assert (await execute(target, actions.Kill(nodes=(leader,)))).affected
        await execute(target, actions.Start(nodes=(leader,)))
        assert await add_voter(admin, leader) == removed, "it is the same disk"
        found = await admin.describe_quorum()
        assert [voter.key.node_id for voter in found.voters] == list(CONTROLLERS)
        with pytest.raises(VoterError, match="no voter"):
            await add_voter(admin, leader)

        assert (await execute(target, actions.ReplaceDisk(nodes=(leader,)))).affected
        await execute(target, actions.Start(nodes=(leader,)))
        assert await remove_voter(admin, leader, removed.directory_id) == removed
        added = await add_voter(admin, leader)
        assert added.directory_id != removed.directory_id, "it is another disk"
        with pytest.raises(VoterError, match="expected a voter"):
            await remove_voter(admin, leader, "another-disk")


async def test_a_controller_that_was_not_there_takes_the_place_of_one_that_is_gone(tmp_path: Path) -> None:
    gone, added = NodeId(102), NodeId(103)
    async with fault_target(tmp_path, controllers=3, standby_controllers=1) as target, admin_of(target) as admin:
        assert target.cluster.is_awaited(added)
        assert target.in_force() == (), "nobody misses it"
        assert (await execute(target, actions.Kill(nodes=(gone,)))).affected
        await remove_voter(admin, gone)
        await execute(target, actions.Start(nodes=(added,)))
        key = await add_voter(admin, added)
        found = await admin.describe_quorum()
        assert [voter.key.node_id for voter in found.voters] == [100, 101, 103]
        first = target.image.controller_id
        assert first is not None
        assert (await execute(target, actions.Kill(nodes=(first,)))).affected
        await successor(target, first)
        committed = await target.committed_end()

    kept = [batch for batch in log_of(tmp_path, added) if batch.end_offset <= committed]
    assert kept[-1].end_offset == committed, "one of two voters that are left has everything, and so the other"
    assert key.directory_id == initial_directory_id(target.cluster.cluster_id, added)


async def test_a_broker_and_a_controller_share_the_fate_of_their_process(tmp_path: Path) -> None:
    both = (NodeId(0), NodeId(100))
    async with fault_target(tmp_path, combined=True) as target:
        cluster = target.cluster
        assert cluster.process_of(both[0]) is cluster.process_of(both[1])
        assert (await execute(target, actions.Pause(nodes=(both[1],)))).affected
        assert cluster.is_paused(both[0])
        assert (await execute(target, actions.Resume(nodes=(both[0],)))).affected
        assert not cluster.is_paused(both[1])

        assert cluster.toxiproxy is not None
        assert (await target.perform(actions.Isolate(nodes=(both[0],), clients=actions.Clients.CONNECTED))).affected
        outward = {(source, ONE) for source in both} | {(ONE, node_id) for node_id in both}
        assert {tuple(link) for link in cluster.toxiproxy.broken} == outward, "a machine has one network"
        assert (await target.perform(actions.HealNodes(nodes=(both[1],)))).affected
        assert not cluster.toxiproxy.broken
        cut = await target.perform(actions.Cut(link=Link(ONE, both[0])))
        assert (cut.affected, cut.seen.count("1 of 1 links silent")) == (True, 2), cut.seen
        assert {tuple(link) for link in cluster.toxiproxy.broken} == {(ONE, node_id) for node_id in both}
        assert (await target.perform(actions.HealAll())).affected

        ends: tuple[actions.Action, ...] = (
            actions.Kill(nodes=(both[1],)),
            actions.Stop(nodes=(both[0],)),
            actions.PowerLoss(nodes=(both[0],), loss=DiskLoss(keep=Keep.NONE)),
        )
        for number, end in enumerate(ends, start=1):
            assert (await target.perform(end)).affected
            assert not any(map(cluster.is_running, both))
            assert target.in_force() != ()
            assert (await target.perform(actions.Start(nodes=(both[1],)))).affected
            assert all(map(cluster.is_running, both))
            assert [cluster.incarnation(node_id) for node_id in both] == [number, number]

        def unfenced() -> Observation:
            registered = target.image.brokers.values()
            return Observation(reached=all(each.is_active for each in registered), text="a broker is fenced")

        await target.wait(unfenced, timeout_s=FAILOVER_S)

        def has_left() -> Observation:
            return Observation(reached=target.image.brokers[BrokerId(both[0])].fenced, text="the broker has not left")

        cluster.end_broker(BrokerId(both[0]))
        await target.wait(has_left, timeout_s=FAILOVER_S)
        described = await target.ask_controller(admin_messages.DescribeClusterRequest())
        assert isinstance(described, admin_messages.DescribeClusterResponse), "its controller goes on"
        await stop_nodes(target)
    ended = [event for event in harness_events(tmp_path) if event["type"] == "IncarnationEnded"]
    assert {(event["ended_node"], event["ended_incarnation"], event["end"]) for event in ended} >= {
        *((node_id, 0, "killed") for node_id in both),
        *((node_id, 1, "stopped") for node_id in both),
        *((node_id, 2, "power_lost") for node_id in both),
        *((node_id, 3, "stopped") for node_id in both),
    }
    assert len({(event["ended_node"], event["ended_incarnation"]) for event in ended}) == len(ended), "each once"


def harness_events(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "events" / "harness-0.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@asynccontextmanager
async def admin_of(target: ProcessTarget) -> AsyncIterator[AdminClient]:
    """An administrator who asks the active controller, past all proxies."""
    cluster = target.cluster
    async with AdminConnection(
        {NodeId(node_id): address for node_id, address in cluster.direct_addresses().items()},
        keepalive=keepalive_for(session_timeout_ms=9_000),
        token=cluster.token,
        cause_id=CauseId("admin"),
    ) as connection:
        active = ActiveController(connection.ask, CONTROLLERS)
        yield AdminClient(active.ask, controller_id=CONTROLLERS[0])
