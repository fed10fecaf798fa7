"""Brokers that come back: one that is elected uncleanly recovers first (KIP-704), one finds strays (KIP-550)."""

import asyncio
from pathlib import Path

import pytest

from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.core import admin_messages, inputs, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, LeaderRecoveryState, RequestFailure, TopicPartition
from laststand.emulator.node.batch_bytes import parse_produced
from laststand.emulator.storage.record_codec import RecordContent, build_batch
from tests.cluster.test_node_processes import BROKERS, CONTROLLER, Client, create, read_events, running

pytestmark = pytest.mark.cluster

ORDERS = TopicPartition("orders", 0)
PROPERTIES = (
    ("broker.heartbeat.interval.ms", "250"),
    ("broker.session.timeout.ms", "4000"),
    ("unclean.leader.election.enable", "true"),
    ("leader.recovery.min.ms", "600"),
    ("stray.delete.delay.ms", "0"),
)


async def produce(client: Client, broker: BrokerId) -> ErrorCode | RequestFailure:
    content = build_batch([RecordContent(value=b"value", timestamp_ms=0)])
    partition = messages.ProducePartition(topic="orders", partition=0, batch=parse_produced(content))
    request = messages.ProduceRequest(acks=-1, timeout_ms=5000, partitions=(partition,))
    outcome = await client.call(broker, request, content)
    if isinstance(outcome, inputs.RequestFailed):
        return outcome.failure
    assert isinstance(outcome.response, messages.ProduceResponse)
    return outcome.response.partitions[0].error


async def produce_until_acknowledged(client: Client, broker: BrokerId) -> None:
    """A connection may be given up where a process does not get to run in time; how many batches there are is open."""
    async with asyncio.timeout(30):
        while await produce(client, broker) is not ErrorCode.NONE:
            pass


def leader(image: MetadataImage) -> BrokerId | None:
    state = image.partitions.get(ORDERS)
    return None if state is None else state.leader


async def test_an_unclean_leader_recovers_and_a_late_replica_is_a_stray(tmp_path: Path) -> None:
    first, second, *_ = BROKERS
    unexpected: list[ProcessEnd] = []
    async with running(tmp_path, first, second, unexpected=unexpected, properties=PROPERTIES) as (
        cluster,
        client,
        watch,
    ):
        await watch.until(lambda image: sum(broker.is_active for broker in image.brokers.values()) == 2)
        await client.call(CONTROLLER, create("orders", replicas=(first, second)))
        await watch.until(lambda image: leader(image) == first)
        await produce_until_acknowledged(client, first)
        await cluster.kill_node(second)
        await watch.until(lambda image: image.partitions[ORDERS].isr == (first,))
        await produce_until_acknowledged(client, first)
        await cluster.stop_node(first)
        await watch.until(lambda image: leader(image) is None)

        await cluster.start_node(second)
        await watch.until(lambda image: leader(image) == second)
        state = watch.image.partitions[ORDERS]
        assert (state.isr, state.leader_recovery_state) == ((second,), LeaderRecoveryState.RECOVERING)
        assert await produce(client, second) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await watch.until(lambda image: image.partitions[ORDERS].leader_recovery_state is LeaderRecoveryState.RECOVERED)
        await produce_until_acknowledged(client, second)

        await client.call(CONTROLLER, admin_messages.DeleteTopicsRequest(topics=("orders",)))
        await cluster.start_node(first)
        await watch.until(lambda image: image.brokers[first].is_active)
        for node in (first, second, CONTROLLER):
            await cluster.stop_node(node)

    assert unexpected == []
    events = read_events(tmp_path / "events" / f"{second}-0.packed")
    followed = sum(event["type"] == "BatchAppended" for event in events)
    events = read_events(tmp_path / "events" / f"{second}-1.packed")
    (finished,) = [event for event in events if event["type"] == "RecoveryFinished"]
    assert followed > 0
    assert (finished["batch_count"], finished["log_end_offset"]) == (followed, followed)
    assert isinstance(finished["duration_ms"], int)
    assert finished["duration_ms"] >= 600
    events = read_events(tmp_path / "events" / f"{first}-1.packed")
    about = [(event["type"], event.get("reason")) for event in events if str(event["type"]).startswith("Stray")]
    assert about == [("StrayDetected", "unknown_topic"), ("StrayDeleted", None)]
    assert not [path for path in (tmp_path / "nodes" / str(first) / "data").iterdir() if path.is_dir()]
