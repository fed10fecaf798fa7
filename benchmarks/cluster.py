"""The cluster that benchmarks run on: 1 controller, 3 brokers, RF 3, min ISR 2, the event log on, no proxies."""

import asyncio
import base64
import os
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from chaos.metadata_watch import MetadataWatch
from emulator.cluster.child import ProcessEnd
from emulator.cluster.process_cluster import ClusterLayout, ProcessCluster
from emulator.core.image import MetadataImage, PartitionState
from emulator.core.messages import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from emulator.core.switches import DEFAULT_ERA, era_switches
from emulator.core.types import BrokerId, CauseId, NodeId, TopicId, TopicPartition
from emulator.rpc.apis import CONTROLLER_API_OF
from emulator.rpc.channel import as_is, keepalive_for, open_channel

BROKER_IDS: Final = (BrokerId(NodeId(0)), BrokerId(NodeId(1)), BrokerId(NodeId(2)))
CONTROLLER_ID: Final = NodeId(100)
TOPIC: Final = "bench"
PARTITIONS: Final = (TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1), TopicPartition(TOPIC, 2))

REPLICATION_FACTOR: Final = 3
MIN_ISR: Final = 2

_STATE_TIMEOUT_S: Final = 30.0


class BenchmarkError(Exception):
    """A benchmark could not be played: what was measured means nothing."""


class BenchmarkCluster(AbstractAsyncContextManager["BenchmarkCluster"]):
    """Processes, and a watch on what their controller commits. Leaving it kills what still runs.

    Attributes:
        processes: the nodes, and the supervisor of anything else that runs beside them.
        unexpected: ends that nobody asked for.
    """

    def __init__(self, directory: Path, *, session_timeout_ms: int, properties: tuple[tuple[str, str], ...]) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.unexpected: list[ProcessEnd] = []
        self.processes = ProcessCluster(
            ClusterLayout(
                run=directory.name,
                directory=directory,
                controller_id=CONTROLLER_ID,
                broker_ids=BROKER_IDS,
                switches=era_switches(DEFAULT_ERA),
                properties=(("broker.session.timeout.ms", str(session_timeout_ms)), *properties),
                toxiproxy=None,
            ),
            on_start=lambda _node, _incarnation: None,
            on_unexpected_end=lambda _name, end: self.unexpected.append(end),
        )
        self._watch: MetadataWatch
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
        address = self.processes.direct_addresses()[CONTROLLER_ID]
        keepalive = keepalive_for(session_timeout_ms=self.session_timeout_ms)
        self._watch = MetadataWatch(address, keepalive=keepalive, on_change=self._changed.set)
        self._watching = asyncio.create_task(self._watch.run())
        await nodes
        await self.wait_until(_are_all_active, what="three active brokers")
        await self._create_topic(address)

    async def wait_until(self, condition: Callable[[MetadataImage], bool], *, what: str) -> None:
        """Waits for the controller's committed state.

        Raises:
            BenchmarkError: it did not come, or a node died.
        """
        try:
            async with asyncio.timeout(_STATE_TIMEOUT_S):
                while not condition(self._watch.image):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise BenchmarkError(f"no {what} within {_STATE_TIMEOUT_S} s; ends: {self.unexpected}") from None
        self.check()

    def check(self) -> None:
        """Makes sure that every node still lives that should.

        Raises:
            BenchmarkError: one died.
        """
        if self.unexpected:
            raise BenchmarkError(f"a process ended unasked: {self.unexpected}")

    def partition(self, partition: TopicPartition) -> PartitionState:
        """Returns a partition as last committed."""
        return self._watch.image.partitions[partition]

    def pid(self, node_id: NodeId) -> int:
        """Returns a running node's process id."""
        return self.processes.supervisor.children[str(node_id)].pid

    async def _create_topic(self, address: str) -> None:
        request = CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=TOPIC,
                    topic_id=TopicId(base64.urlsafe_b64encode(uuid.UUID(bytes=os.urandom(16)).bytes).decode()[:22]),
                    num_partitions=len(PARTITIONS),
                    replication_factor=REPLICATION_FACTOR,
                    configs=(("min.insync.replicas", str(MIN_ISR)),),
                ),
            )
        )
        api = CONTROLLER_API_OF[CreateTopicsRequest]
        channel = open_channel(address, keepalive_for(session_timeout_ms=self.session_timeout_ms))
        try:
            method = channel.unary_unary(api.path, request_serializer=as_is, response_deserializer=as_is)
            payload = await method(api.encode_request(request, cause_id=CauseId("benchmark")), timeout=_STATE_TIMEOUT_S)
            response, _ = api.decode_response(payload)
        finally:
            await channel.close(None)
        if not isinstance(response, CreateTopicsResponse) or response.topics[0].error:
            raise BenchmarkError(f"the topic was not created: {response}")


def _are_all_active(image: MetadataImage) -> bool:
    return all(broker in image.brokers and image.brokers[broker].is_active for broker in BROKER_IDS)


def are_isrs_full(image: MetadataImage) -> bool:
    """Whether every partition has all its replicas in the ISR, and a leader."""
    return all(
        partition in image.partitions
        and len(image.partitions[partition].isr) == REPLICATION_FACTOR
        and image.partitions[partition].leader is not None
        for partition in PARTITIONS
    )
