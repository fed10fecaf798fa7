"""``python -m benchmarks.zookeeper_launcher DIRECTORY``: as ``boot_launcher``, around a ZooKeeper server."""

import asyncio
import signal
import sys
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from benchmarks.boot_launcher import SESSION_TIMEOUT_MS
from benchmarks.cluster import BROKER_IDS, CONTROLLER_ID, MIN_ISR, REPLICAS, TOPIC
from laststand.chaos.play.topics import create_topics
from laststand.chaos.play.zookeeper_server import zookeeper_for
from laststand.chaos.zookeeper.harness_client import harness_client
from laststand.chaos.zookeeper.messages import server_messages
from laststand.chaos.zookeeper.server_events import ServerEvents
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.zookeeper_cluster import ZooKeeperCluster
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.eras import ZooKeeperSwitches, era_rules
from laststand.emulator.core.zookeeper.administration import write_topic
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.topics import PlannedTopic

ERA: Final = "kafka-3.9-zk"
_LOOK_S: Final = 0.02


async def _launch(directory: Path) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    program, rules = zookeeper_for((ERA,), DriverName.PROCESS), era_rules(ERA)
    assert program is not None
    assert isinstance(rules, ZooKeeperSwitches)
    layout = ClusterLayout(
        run=directory.name,
        directory=directory,
        controller_ids=(CONTROLLER_ID,),
        broker_ids=BROKER_IDS,
        switches=rules,
        properties=(("broker.session.timeout.ms", str(SESSION_TIMEOUT_MS)),),
        toxiproxy=None,
    )
    events = ServerEvents(layout, has_sync_ledger=False)
    cluster = ZooKeeperCluster(
        layout,
        zookeeper=program,
        messages=server_messages((), record=events.intercepted),
        on_start=lambda node_id, incarnation, _rules: events.started(node_id, incarnation),
        on_server_end=lambda _incarnation, end: events.ended(end.cause),
        on_unexpected_end=lambda _name, _end: over.set(),
    )
    async with cluster:
        sys.stdout.buffer.write(msgspec.json.encode(cluster.direct_addresses()) + b"\n")
        sys.stdout.flush()
        await cluster.start()
        address = cluster.direct_addresses()[CONTROLLER_ID]
        async with harness_client(address, timeout_ms=SESSION_TIMEOUT_MS) as client:

            async def ask(request: messages.Request) -> messages.Response:
                assert isinstance(request, admin_messages.CreateTopicsRequest)
                written = [
                    await client.run(write_topic(topic, rules.zookeeper, rules.protocol)) for topic in request.topics
                ]
                return admin_messages.CreateTopicsResponse(topics=tuple(written))

            while len(events.image.brokers) < len(BROKER_IDS):
                events.read()
                await asyncio.sleep(_LOOK_S)
            plan = PlannedTopic(name=TOPIC, replicas=REPLICAS, properties=(("min.insync.replicas", str(MIN_ISR)),))
            await create_topics(ask, (plan,), chance=Random(0))
            await over.wait()
    events.close()


if __name__ == "__main__":
    asyncio.run(_launch(Path(sys.argv[1])))
