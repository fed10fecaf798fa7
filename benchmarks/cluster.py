"""The cluster that benchmarks run on: 3 brokers, RF 3, min ISR 2, the event log on, no proxies, 1 or more controllers.

What speaks gRPC is imported when the nodes are on their way: that takes as long here as it takes them.
"""

import asyncio
import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.messages import Request, Response
from laststand.emulator.core.switches import DEFAULT_ERA, Switches, era_switches
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan.nodes import controller_ids

if TYPE_CHECKING:
    from laststand.chaos.process.metadata_observer import MetadataObserver

BROKER_IDS: Final = (BrokerId(NodeId(0)), BrokerId(NodeId(1)), BrokerId(NodeId(2)))
CONTROLLER_ID: Final = NodeId(100)
TOPIC: Final = "bench"
PARTITIONS: Final = (TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1), TopicPartition(TOPIC, 2))

REPLICATION_FACTOR: Final = 3
MIN_ISR: Final = 2

# Leaders are three brokers: replica i of partition p is broker p + i.
REPLICAS: Final = tuple(
    tuple(BROKER_IDS[(partition + replica) % len(BROKER_IDS)] for replica in range(REPLICATION_FACTOR))
    for partition in range(len(PARTITIONS))
)
_STATE_TIMEOUT_S: Final = 30.0
_SWITCHES: Final = era_switches(DEFAULT_ERA)


class BenchmarkError(Exception):
    """A benchmark could not be played: what was measured means nothing."""


class BenchmarkCluster(AbstractAsyncContextManager["BenchmarkCluster"]):
    """Processes, and a watch on what their controller commits. Leaving it kills what still runs.

    Attributes:
        processes: the nodes, and the supervisor of anything else that runs beside them.
        unexpected: ends that nobody asked for, in words.
    """

    def __init__(
        self,
        directory: Path,
        *,
        session_timeout_ms: int,
        properties: tuple[tuple[str, str], ...],
        kafka_clients: tuple[str, ...] = (),
        switches: Switches = _SWITCHES,
        controllers: int = 1,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.unexpected: list[str] = []
        self.processes = ProcessCluster(
            ClusterLayout(
                run=directory.name,
                directory=directory,
                controller_ids=controller_ids(controllers),
                broker_ids=BROKER_IDS,
                switches=switches,
                properties=(("broker.session.timeout.ms", str(session_timeout_ms)), *properties),
                toxiproxy=None,
                kafka_clients=kafka_clients,
            ),
            on_start=lambda _node, _incarnation, _rules: None,
            on_unexpected_end=self._ended,
        )
        self._watch: MetadataObserver
        self._watching: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Owns no process yet."""
        await self.processes.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kills what still runs."""
        if self._watching is not None:
            self._watching.cancel()
        await self.processes.__aexit__(kind, error, trace)

    async def start(self) -> None:
        """Starts all nodes and creates the topic once every broker may lead.

        Raises:
            BenchmarkError: that took too long, or a node died.
        """
        nodes = asyncio.create_task(self.processes.start())
        for module in ("laststand.chaos.process.controller_requests", "laststand.chaos.process.metadata_observer"):
            await asyncio.to_thread(importlib.import_module, module)
        from laststand.chaos.process.metadata_observer import MetadataObserver
        from laststand.emulator.rpc.channel import keepalive_for

        addresses, token = self.processes.direct_addresses(), self.processes.token
        controllers = {node_id: addresses[node_id] for node_id in self.processes.layout.controller_ids}
        keepalive = keepalive_for(session_timeout_ms=self.session_timeout_ms)
        self._watch = MetadataObserver(controllers, keepalive=keepalive, token=token, on_change=self._changed.set)
        await nodes
        self._watching = asyncio.create_task(self._watch.run())
        await self.wait_until(are_all_active, what="three active brokers")
        await self.create_topic(TOPIC, REPLICAS)

    async def create_topic(self, name: str, replicas: tuple[tuple[BrokerId, ...], ...]) -> None:
        """Creates a topic with the replicas of each partition; asks on until a controller is active."""
        from laststand.chaos.play.topics import create_topics
        from laststand.chaos.process.controller_requests import ask
        from laststand.emulator.client.active_controller import ActiveController
        from laststand.emulator.plan.topics import PlannedTopic
        from laststand.emulator.rpc.channel import keepalive_for

        addresses, token = self.processes.direct_addresses(), self.processes.token
        keepalive = keepalive_for(session_timeout_ms=self.session_timeout_ms)

        async def ask_node(node_id: NodeId, request: Request) -> Response:
            return await ask(addresses[node_id], request, keepalive=keepalive, token=token, node_id=node_id)

        active = ActiveController(ask_node, self.processes.layout.controller_ids)
        plan = PlannedTopic(name=name, replicas=replicas, properties=(("min.insync.replicas", str(MIN_ISR)),))
        await create_topics(lambda request: active.ask(CONTROLLER_ID, request), (plan,), chance=Random(name))

    async def wait_until(
        self, condition: Callable[[MetadataImage], bool], *, what: str, timeout_s: float = _STATE_TIMEOUT_S
    ) -> None:
        """Waits for the controller's committed state.

        Raises:
            BenchmarkError: it did not come, or a node died.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while not condition(self._watch.image):
                    self.check()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise BenchmarkError(f"no {what} within {timeout_s} s") from None
        self.check()

    def check(self) -> None:
        """Makes sure that every node still lives that should.

        Raises:
            BenchmarkError: one died.
        """
        if self.unexpected:
            raise BenchmarkError("\n  ".join(["a process ended unasked", *self.unexpected]))

    def partition(self, partition: TopicPartition) -> PartitionState:
        """Returns a partition as last committed."""
        return self._watch.image.partitions[partition]

    @property
    def active_controller(self) -> NodeId:
        """The controller that is active as last committed."""
        return self._watch.image.controller_id or CONTROLLER_ID

    def pid(self, node_id: NodeId) -> int:
        """Returns a running node's process id."""
        return self.processes.supervisor.children[str(node_id)].pid

    def _ended(self, name: str, end: ProcessEnd) -> None:
        self.unexpected.append(f"{name}: exit code {end.exit_code}, signal {end.signal_number}")
        self._changed.set()


def are_all_active(image: MetadataImage) -> bool:
    """Returns whether the controller lets every broker lead."""
    return all(broker in image.brokers and image.brokers[broker].is_active for broker in BROKER_IDS)


def are_isrs_full(image: MetadataImage) -> bool:
    """Returns whether every partition has all its replicas in the ISR, and a leader."""
    return all(
        partition in image.partitions
        and len(image.partitions[partition].isr) == REPLICATION_FACTOR
        and image.partitions[partition].leader is not None
        for partition in PARTITIONS
    )
