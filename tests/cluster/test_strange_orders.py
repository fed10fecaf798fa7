"""Orders that somebody else gives nodes while a run is played: on record at the nodes, and a doubt in the verdict."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from laststand.chaos.play.runner import Run
from laststand.chaos.process.controller_requests import ask
from laststand.chaos.process.node_orders import send_order
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.types import BrokerId, ConfigResource, NodeId, Offset, Way
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.clock_orders import CLOCK_METHOD, CLOCK_ORDERS, CLOCK_SERVICE, ClockOrder
from laststand.emulator.rpc.interception import (
    INTERCEPTION_METHOD,
    INTERCEPTION_ORDERS,
    INTERCEPTION_SERVICE,
    InterceptionOrder,
    Intervention,
    MessageKind,
)
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import Verdict
from tests.cluster.test_run import HEAD, run_of

pytestmark = pytest.mark.cluster

BROKER: Final = BrokerId(NodeId(0))
FETCHES: Final = MessageKind(NodeId(1), "Fetch", Way.REQUEST)
KEEPALIVE: Final = keepalive_for(session_timeout_ms=2000)


async def give_strange_orders(run: Run) -> None:
    """The harness notes none of them: a clock, messages, a broker, a property, records, and a question to end with."""
    assert isinstance(run.target, ProcessTarget)
    cluster = run.target.cluster
    jump = CLOCK_ORDERS.encode(ClockOrder(jump_ms=5))
    await send_order(cluster, BROKER, jump, service=CLOCK_SERVICE, method=CLOCK_METHOD, note=lambda _: None)
    for intervention in (Intervention.HOLD, Intervention.RELEASE):
        order = INTERCEPTION_ORDERS.encode(InterceptionOrder(intervention=intervention, kind=FETCHES))
        service, method = INTERCEPTION_SERVICE, INTERCEPTION_METHOD
        await send_order(cluster, BROKER, order, service=service, method=method, note=lambda _: None)
    config = admin_messages.AlterableConfig(
        name="retention.ms", operation=admin_messages.ConfigOperation.SET, value="1000000"
    )
    resource = admin_messages.AlterConfigsResource(
        resource=ConfigResource.TOPIC, resource_name="orders", configs=(config,)
    )
    records = messages.DeleteRecordsTarget(topic="orders", partition=0, offset=Offset(0))
    requests: list[tuple[NodeId, messages.Request]] = [
        (CONTROLLER, admin_messages.UnregisterBrokerRequest(broker_id=BrokerId(NodeId(7)))),
        (CONTROLLER, admin_messages.IncrementalAlterConfigsRequest(resources=(resource,))),
        (BROKER, messages.DeleteRecordsRequest(partitions=(records,), timeout_ms=1000)),
        (CONTROLLER, admin_messages.DescribeClusterRequest()),
    ]
    for node_id, request in requests:
        await ask(
            cluster.direct_addresses()[node_id], request, keepalive=KEEPALIVE, token=cluster.token, node_id=node_id
        )


async def test_an_order_that_the_harness_did_not_give_is_a_doubt(tmp_path: Path) -> None:
    steps = (
        "  - clock_jump: {node: 1, by: 5 ms}\n"
        "  - until: {acked: 50, acks: all, per: partition}\n"
        "  - until: {partition: orders-1, leader: 0}\n"
    )
    is_waiting = asyncio.Event()
    run = run_of(tmp_path, steps, on_status=lambda status: is_waiting.set() if status.step == 3 else None)
    [kill] = read_scenario(tmp_path / "asked.yaml", f"{HEAD}steps: [{{kill: {{node: 1}}}}]\n").steps
    playing = asyncio.create_task(run.play())
    async with asyncio.timeout(60):
        await is_waiting.wait()
        await give_strange_orders(run)
        await run.play_beside(kill)
        await playing
    assert run.problem is None
    report = judge(plan_run(0, open_run_directory(run.order.directory))).report
    got = [doubt.sentence for doubt in report.doubts]
    assert report.verdict is Verdict.UNKNOWN
    assert [each.partition(", from ")[0] for each in got] == [
        *(f"node {BROKER} got an order that the harness did not give" for _ in range(4)),
        *(f"node {CONTROLLER} got an order that the harness did not give" for _ in range(2)),
    ]
    assert [each.split(": ")[1].split()[0] for each in got] == [
        "Change",
        "DeleteRecords",
        "Intercept",
        "Intercept",
        "IncrementalAlterConfigs",
        "UnregisterBroker",
    ]
