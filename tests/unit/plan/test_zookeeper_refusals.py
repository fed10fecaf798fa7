"""Actions that cannot be done to a real ZooKeeper server."""

from pathlib import Path

import pytest

from laststand.chaos.scenario.step_reader import read_step
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.yaml_cursor import open_document
from laststand.emulator.plan.zookeeper_refusals import NO_ZOOKEEPER, server_refusal

NAMES = Names(brokers=3, partitions=())


def refused(
    step: str, *, kind: ClusterKind = ClusterKind.ZOOKEEPER, driver: DriverName = DriverName.PROCESS
) -> str | None:
    action = read_step(open_document(Path("step"), f"{{{step}}}"), NAMES, text=step).action
    # No condition is among them.
    return server_refusal(action, kind=kind, driver=driver)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "step",
    [
        "power_loss: {node: zookeeper, keep: none}",
        "kill: {node: zookeeper}",
        "lose: {responses: SetData, from: 1, to: zookeeper, count: 1}",
        "hold: {requests: Execute, from: 1, to: zookeeper}",
        "hold: {requests: LeaderAndIsr, from: 1, to: 2}",
        "duplicate: {requests: StopReplica, from: 1, to: 2}",
    ],
)
def test_what_can_be_done(step: str) -> None:
    assert refused(step) is None


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("slow_disk: {node: zookeeper, delay: 10 ms}", "uses the machine's disk as it is"),
        ("hold: {requests: Execute, from: zookeeper, to: 1}", "a ZooKeeper server calls nobody"),
        ("hold: {requests: AlterPartition, from: 1, to: zookeeper}", "brokers ask a ZooKeeper server for CloseSession"),
        ("duplicate: {requests: Execute, from: 1, to: zookeeper}", "carries each message once, and in order"),
    ],
)
def test_what_cannot(step: str, reason: str) -> None:
    assert reason in (refused(step) or "")


def test_there_may_be_none() -> None:
    for step in ("expire_session: {node: 1}", "start: {node: 1, inter.broker.protocol.version: 2.7}"):
        assert refused(step, kind=ClusterKind.KRAFT) == NO_ZOOKEEPER
    assert refused("start: {node: 1}", kind=ClusterKind.KRAFT) is None


def test_a_container_keeps_no_record_of_what_its_server_syncs() -> None:
    reason = "it is not recorded what a ZooKeeper server in a container syncs"
    assert refused("power_loss: {node: zookeeper, keep: none}", driver=DriverName.DOCKER) == reason
    assert refused("power_loss: {node: 1, keep: none}", driver=DriverName.DOCKER) is None
    assert refused("kill: {node: zookeeper}", driver=DriverName.DOCKER) is None


def test_apache_kafka_and_external_clusters_are_played_without_zookeeper_only() -> None:
    without = [driver for driver in DriverName if not driver.plays(ClusterKind.ZOOKEEPER)]
    assert without == [DriverName.KAFKA, DriverName.EXTERNAL]
    assert all(driver.plays(ClusterKind.KRAFT) for driver in DriverName)
