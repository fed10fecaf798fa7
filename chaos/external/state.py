"""The state of another party's cluster, as its brokers describe it.

Each broker is asked, one request at a time, and the one whose copy of the metadata log reaches furthest
(DescribeQuorum) is believed: others may be cut off, and describe an older state. If no broker describes that log, each
partition is taken from the brokers that know its latest epoch, its leader first.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from laststand.emulator.core.image import BrokerRegistration, MetadataImage, PartitionState
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    MetadataOffset,
    NodeId,
    TopicPartition,
)
from laststand.emulator.kafka.admin_calls import QUORUM_RESPONSE, fetched_ends, quorum_request
from laststand.emulator.kafka.broker_numbers import SAME_NUMBERS, BrokerNumbers
from laststand.emulator.kafka.connection import KafkaConnection
from laststand.emulator.kafka.description_calls import BrokersWord, describe_cluster

_ANSWERS_WITHIN_S: Final = 2.0
_READ_INTERVAL_S: Final = 0.25
_DESCRIBE_QUORUM: Final = 55


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The last answer of a broker, and the finalized features that it reported when it was dialled."""

    word: BrokersWord
    features: Mapping[str, int]


class ExternalState:
    """Asks brokers until cancelled.

    Args:
        addresses: of brokers.
        topics: returns the topics that count.
        on_change: called after each answer.
        numbers: of the cluster's brokers.

    Attributes:
        image: the committed metadata, as far as brokers describe it; it has no metadata offsets.
    """

    def __init__(
        self,
        addresses: Mapping[BrokerId, str],
        *,
        topics: Callable[[], Sequence[str]],
        on_change: Callable[[], None],
        numbers: BrokerNumbers = SAME_NUMBERS,
    ) -> None:
        self.image = MetadataImage()
        self._addresses = addresses
        self._topics = topics
        self._on_change = on_change
        self._numbers = numbers
        self._answers: dict[BrokerId, _Answer] = {}
        self._ends: dict[NodeId, MetadataOffset] = {}
        self._connections: dict[BrokerId, KafkaConnection] = {}
        self._reading = {broker_id: asyncio.Lock() for broker_id in addresses}

    @property
    def believed(self) -> BrokerId | None:
        """The broker that is believed; ``None`` while none answers."""
        return next(iter(self._by_credit()), None)

    @property
    def controller(self) -> BrokerId | None:
        """The controller that the believed broker names."""
        believed = self.believed
        return None if believed is None else self._answers[believed].word.controller

    async def run(self) -> None:
        """Asks every broker again and again until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for broker_id in self._addresses:
                    tasks.create_task(self._watch(broker_id))
        finally:
            await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            await connection.close()

    async def refresh(self) -> None:
        """Asks every broker once more."""
        await asyncio.gather(*(self._read(broker_id) for broker_id in self._addresses))

    async def _watch(self, broker_id: BrokerId) -> None:
        while True:
            await self._read(broker_id)
            await asyncio.sleep(_READ_INTERVAL_S)

    async def _read(self, broker_id: BrokerId) -> None:
        async with self._reading[broker_id]:
            try:
                async with asyncio.timeout(_ANSWERS_WITHIN_S):
                    connection = await self._connection(broker_id)
                    word = await describe_cluster(connection, self._topics())
                self._answers[broker_id] = _Answer(word=word, features=connection.features)
                if _DESCRIBE_QUORUM in connection.versions:
                    with contextlib.suppress(TimeoutError):  # a broker that is cut off waits for the controller
                        async with asyncio.timeout(_ANSWERS_WITHIN_S):
                            ends = fetched_ends(await connection.ask(quorum_request(), QUORUM_RESPONSE))
                            self._ends |= {node: max(end, self._ends.get(node, end)) for node, end in ends.items()}
            except (OSError, TimeoutError):
                self._answers.pop(broker_id, None)
                broken = self._connections.pop(broker_id, None)
                if broken is not None:
                    await broken.close()
        self._fold()
        self._on_change()

    async def _connection(self, broker_id: BrokerId) -> KafkaConnection:
        found = self._connections.get(broker_id)
        if found is None or not found.is_open:
            found = self._connections[broker_id] = await KafkaConnection.dial(
                self._addresses[broker_id], keepalive=None, numbers=self._numbers
            )
        return found

    def _by_credit(self) -> list[BrokerId]:
        """Returns the brokers that answer; those whose copy of the metadata log reaches furthest come first."""
        return sorted(self._answers, key=lambda broker_id: (-self._ends.get(broker_id, -1), broker_id))

    def _fold(self) -> None:
        ordered = self._by_credit()
        image = MetadataImage()
        if not ordered:
            image = self._unanswered()
        else:
            first = self._answers[ordered[0]]
            alive = first.word.addresses
            image.features = dict(first.features)
            image.partitions = dict(first.word.partitions if self._ends else self._by_epoch())
            image.topics = {name.topic: state.topic_id for name, state in image.partitions.items()}
            image.topic_names = {topic_id: name for name, topic_id in image.topics.items()}
            for name in image.partitions:
                image.partition_counts[name.topic] = max(image.partition_counts.get(name.topic, 0), name.partition + 1)
            for broker_id in self._addresses:
                image.brokers[broker_id] = BrokerRegistration(
                    broker_id=broker_id,
                    incarnation_id=IncarnationId(f"external-{broker_id}"),
                    broker_epoch=BrokerEpoch(0),
                    log_dirs=(),
                    fenced=broker_id not in alive,
                    in_controlled_shutdown=False,
                    registration_offset=MetadataOffset(0),
                    rack=first.word.racks.get(broker_id, ""),
                )
        self.image = image

    def _unanswered(self) -> MetadataImage:
        """Returns the image while no broker answers: partitions have no leader, and brokers are fenced."""
        image = self.image
        image.partitions = {
            name: msgspec.structs.replace(state, leader=None) for name, state in image.partitions.items()
        }
        image.brokers = {
            broker_id: msgspec.structs.replace(each, fenced=True) for broker_id, each in image.brokers.items()
        }
        return image

    def _by_epoch(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Yields each partition by its latest leader epoch; of several brokers that know it, the leader is believed."""
        reported: dict[TopicPartition, list[tuple[int, bool, BrokerId]]] = {}
        for broker_id, answer in self._answers.items():
            for name, state in answer.word.partitions.items():
                reported.setdefault(name, []).append((state.leader_epoch, state.leader == broker_id, broker_id))
        for name, candidates in reported.items():
            yield name, self._answers[max(candidates)[2]].word.partitions[name]
