"""A cluster on slow lines: whatever one process sends to another takes 300 ms to get there."""

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.topics import create_topics
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.play.workload import client_config
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.controller_requests import ask
from laststand.chaos.process.metadata_observer import MetadataObserver
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.client.history import HISTORY_FILE
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.cluster.toxiproxy import both_ways
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.events import AnyEvent, BrokerFenced, PeerUnreachable
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.storage.line_file import read_lines

pytestmark = pytest.mark.cluster

LATENCY_MS = 300
DEADLINE_S = 60.0
RECORDS = 40
"""With five batches under way, which cross the line four times each, they take longer than it takes a silent peer to be
given up: half of a session timeout of 9 s."""

SCENARIO = """\
name: test/slow-lines
cluster: {brokers: 2}
topics: [{name: orders, replicas: [[0, 1]], min.insync.replicas: 2}]
workload: {producers: [{acks: all, rate: 100}], consumers: [{}]}
steps: [{until: {acked: 1, acks: all}}]
"""


def read_events(directory: Path) -> list[AnyEvent]:
    """Returns the events that nodes have written so far; the last line of a file may not be whole yet."""
    decoder = msgspec.json.Decoder(AnyEvent)
    return [decoder.decode(line) for path in directory.iterdir() for line in read_lines(path).splitlines()]


async def test_a_cluster_runs_over_300_ms_of_one_way_latency(tmp_path: Path) -> None:
    scenario = read_scenario(tmp_path / "scenario.yaml", SCENARIO)
    session_timeout_ms = node_properties({}).broker_session_timeout_ms
    keepalive = keepalive_for(session_timeout_ms=session_timeout_ms)
    layout = ClusterLayout(
        run="slow",
        directory=tmp_path,
        controller_ids=(CONTROLLER,),
        broker_ids=scenario.broker_ids,
        switches=Switches(),
        properties=(),
        toxiproxy=find_toxiproxy(),
    )
    unexpected: list[str] = []
    lookout = ChangeSignal()
    client = ClientLink(on_counts=lookout.change)
    async with (
        ProcessCluster(
            layout,
            on_start=lambda _node, _incarnation, _rules: None,
            on_unexpected_end=lambda name, _end: unexpected.append(name),
        ) as cluster,
        asyncio.TaskGroup() as tasks,
    ):
        await cluster.start_proxies(find_toxiproxy())
        assert cluster.toxiproxy is not None
        await cluster.toxiproxy.apply(cluster.toxiproxy.links, both_ways("latency", latency=LATENCY_MS))
        # The controller first: a node that is not up yet is unreachable, too.
        for node_id in layout.node_ids:
            await cluster.start_node(node_id)
        direct = cluster.direct_addresses()[CONTROLLER]
        watch = MetadataObserver(
            {CONTROLLER: direct}, keepalive=keepalive, token=cluster.token, on_change=lookout.change
        )
        watching = tasks.create_task(watch.run())

        def active() -> Observation:
            count = sum(broker.is_active for broker in watch.image.brokers.values())
            return Observation(reached=count == len(scenario.broker_ids), text=f"{count} active brokers")

        def acked() -> Observation:
            count = sum(each.records for each in client.counts.acked)
            return Observation(reached=count >= RECORDS and client.counts.consumed >= RECORDS, text=f"{client.counts}")

        await lookout.wait(active, timeout_s=DEADLINE_S)
        await create_topics(
            lambda request: ask(direct, request, keepalive=keepalive, token=cluster.token),
            scenario.topics,
            chance=Random(0),
        )
        config = client_config(
            scenario,
            history_path=tmp_path / HISTORY_FILE,
            control_port=await client.listen(cluster.token),
            token_file=layout.token_file,
            session_timeout_ms=session_timeout_ms,
            switches=Switches(),
        )
        await client.launch(cluster.supervisor, config, directory=tmp_path)
        client.start_work(cluster.addresses_for(CLIENT))
        await lookout.wait(acked, timeout_s=DEADLINE_S)
        assert all(broker.is_active for broker in watch.image.brokers.values())
        events = read_events(tmp_path / "events")
        watching.cancel()
        await client.close()
    assert unexpected == []
    assert [event for event in events if isinstance(event, PeerUnreachable)] == []
    assert [event for event in events if isinstance(event, BrokerFenced) and event.reason == "session_expired"] == []
