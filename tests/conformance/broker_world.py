"""Parts that broker kinds share: replicas by letter, logs prefilled one record per batch, a partition on its own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.image import BrokerRegistration, MetadataImage, PartitionState
from laststand.emulator.core.properties import field_name, is_node_property, node_properties, topic_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from tests.conformance.harness import Fields

NAME: Final = TopicPartition("topic", 0)
TOPIC_ID: Final = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")
LETTERS: Final = ("L", "F1", "F2", "F3", "F4", "F5", "X", "Z", "A", "B", "C", "D", "E")
CONTROLLER: Final = NodeId(100)
RECORD_SIZE: Final = 100


def broker_id(letter: str) -> BrokerId:
    """Returns the id that stands for ``L``, ``F1`` and so on."""
    return BrokerId(NodeId(LETTERS.index(letter)))


def broker_ids(letters: Iterable[str]) -> tuple[BrokerId, ...]:
    """Returns ids in the same order."""
    return tuple(broker_id(letter) for letter in letters)


def letters(ids: Iterable[BrokerId]) -> list[str]:
    """Returns the letters of ids, ascending: vectors write sets as lists."""
    return [LETTERS[one] for one in sorted(ids)]


def optional(value: int | None) -> int | None:
    """Returns ``None`` where a vector says -1 or null."""
    return None if value is None or value < 0 else value


def shown(value: int | None) -> int:
    """Returns -1 where there is nothing, as vectors do."""
    return -1 if value is None else value


def leader_epoch(value: int | None) -> LeaderEpoch | None:
    """Returns a leader epoch, or ``None`` for -1 or null."""
    return None if value is None or value < 0 else LeaderEpoch(value)


def broker_epoch(value: int | None) -> BrokerEpoch | None:
    """Returns a broker epoch, or ``None`` for -1 or null."""
    return None if value is None or value < 0 else BrokerEpoch(value)


def record(offset: int, epoch: int, *, count: int = 1, crc: int = 0, timestamp_ms: int = 0) -> BatchDescriptor:
    """Returns a batch of ``count`` records."""
    return BatchDescriptor(
        base_offset=Offset(offset),
        last_offset=Offset(offset + count - 1),
        leader_epoch=LeaderEpoch(epoch),
        crc=crc,
        size=RECORD_SIZE * count,
        record_count=count,
        max_timestamp_ms=timestamp_ms,
    )


def entries(pairs: Sequence[Sequence[int]]) -> tuple[EpochEntry, ...]:
    """Returns epoch entries from ``[epoch, start]`` pairs."""
    return tuple(EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in pairs)


def pairs(epochs: LeaderEpochCache) -> list[list[int]]:
    """Returns ``[epoch, start]`` pairs."""
    return [[entry.leader_epoch, entry.start_offset] for entry in epochs.entries]


def epoch_of(offset: int, epochs: Sequence[Sequence[int]]) -> int:
    """Returns the epoch that a record at ``offset`` has by the pairs; 0 below the first."""
    return max((epoch for epoch, start in epochs if start <= offset), default=0)


def make_log(described: Fields) -> ReplicaLog:
    """Returns a log with one record per batch, by ``start``, ``leo``, ``hw`` and ``epochs``."""
    start, end = described.get("start") or 0, described.get("leo") or 0
    epochs = described.get("epochs") or []
    timestamps = described.get("timestamps") or []
    batches = [
        record(offset, epoch_of(offset, epochs), timestamp_ms=timestamps[index] if index < len(timestamps) else 0)
        for index, offset in enumerate(range(start, end))
    ]
    log = ReplicaLog(NAME, TOPIC_ID)
    log.load(
        batches,
        log_start_offset=Offset(start),
        log_end_offset=Offset(end),
        producers=(),
        producers_offset=Offset(0),
        now_ms=0,
    )
    log.epochs = LeaderEpochCache(entries(epochs))
    log.high_watermark = Offset(max(described.get("hw") or 0, start))
    return log


def loaded_log(described: Fields, *, high_watermark_checkpoint: int) -> inputs.LoadedLog:
    """Returns what storage would report of a log."""
    log = make_log(described)
    epochs = described.get("epochs") or []
    return inputs.LoadedLog(
        partition=NAME,
        topic_id=TOPIC_ID,
        is_clean=bool(described.get("clean", False)),
        batches=tuple(
            record(offset, epoch_of(offset, epochs)) for offset in range(log.log_start_offset, log.log_end_offset)
        ),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        epochs=log.epochs.entries,
        log_start_checkpoint=Offset(0),
        high_watermark_checkpoint=Offset(high_watermark_checkpoint),
        recovery_point=Offset(0),
    )


def registration(id_: BrokerId, fields: Fields) -> BrokerRegistration:
    """Returns a broker as the metadata cache has it."""
    return BrokerRegistration(
        broker_id=id_,
        incarnation_id=IncarnationId(f"incarnation-{id_}"),
        broker_epoch=BrokerEpoch(fields.get("epoch", 100 + id_)),
        log_dirs=(),
        fenced=bool(fields.get("fenced", False)),
        in_controlled_shutdown=bool(fields.get("shutting_down", False)),
        registration_offset=MetadataOffset(0),
    )


def configured(config: Fields, switches: Switches, *, own: str = "L") -> BrokerConfig:
    """Returns a broker's configuration from a vector's, whose unknown keys are the vector's own."""
    given = {name: str(value) for name, value in config.items() if is_node_property(name)}
    return BrokerConfig(
        broker_id=broker_id(own),
        controller_ids=(CONTROLLER,),
        cluster_id="cluster",
        incarnation_id=IncarnationId("incarnation"),
        properties=node_properties(given),
        switches=switches,
    )


class PartitionWorld:
    """One partition, the metadata cache beside it, and a clock."""

    def __init__(self, config: BrokerConfig, log: ReplicaLog, *, topic: Mapping[str, str | int] | None = None) -> None:
        self.config = config
        self.image = MetadataImage()
        self.hosted = HostedPartitions(self.image)
        self.hosted.is_serving = True
        self.now_ms = 1_000_000
        self.partition = self.host(log, topic or {})

    def host(self, log: ReplicaLog, topic: Mapping[str, str | int]) -> Partition:
        """Puts a log in the place of the one at hand."""
        self.partition = Partition(
            log,
            config=self.config,
            registrations=self.image.brokers,
            # Vectors use segments of a few bytes, which the parser of a configuration would refuse.
            topic_properties=msgspec.structs.replace(topic_properties(self.config.properties, {}), **topic),
        )
        self.hosted.add(self.partition)
        return self.partition

    def register(self, brokers: Fields) -> None:
        """Fills the metadata cache; a broker without an epoch is not registered."""
        for letter, fields in brokers.items():
            if fields.get("epoch", 0) is not None:
                self.image.brokers[broker_id(letter)] = registration(broker_id(letter), fields)

    def turn(self) -> Turn:
        """Starts a step."""
        return Turn(now_ms=self.now_ms, cause_id=CauseId("vector"))

    def lead(self, turn: Turn, fields: Fields) -> None:
        """Applies metadata that names this broker leader."""
        self.partition.become_leader(turn, self.state(fields, leader=self.config.broker_id))

    def follow(self, turn: Turn, fields: Fields, *, leader: BrokerId) -> bool:
        """Applies metadata that names another leader; returns whether the leader epoch rose."""
        return self.partition.become_follower(turn, self.state(fields, leader=leader))

    def state(self, fields: Fields, *, leader: BrokerId | None) -> PartitionState:
        """Returns the metadata that a step describes; what it leaves out stays."""
        partition = self.partition
        replicas = broker_ids(fields["replicas"]) if fields.get("replicas") else partition.replicas
        isr = broker_ids(fields["isr"]) if fields.get("isr") is not None else replicas
        return PartitionState(
            topic_id=TOPIC_ID,
            replicas=replicas,
            isr=isr,
            leader=leader,
            leader_epoch=LeaderEpoch(fields.get("leader_epoch", partition.leader_epoch)),
            partition_epoch=PartitionEpoch(fields.get("partition_epoch", partition.partition_epoch + 1)),
        )


def leading(config: Fields, switches: Switches, before: Fields, *, log: Fields, isr: Sequence[str]) -> PartitionWorld:
    """Returns a world in which L leads with an ISR; the high watermark is as the log says."""
    world = PartitionWorld(configured(config, switches), make_log(log), topic=topic_settings(config))
    world.register({letter: {} for letter in LETTERS} | dict(before.get("brokers") or {}))
    replicas = before.get("replicas") or list(dict.fromkeys([*isr, "L", "F1"]))
    epoch = before.get("leader_epoch")
    latest = world.partition.log.epochs.latest_epoch
    world.lead(
        world.turn(),
        {
            "replicas": replicas,
            "isr": isr,
            "leader_epoch": epoch if epoch is not None else (latest if latest is not None else 0),
            "partition_epoch": before.get("partition_epoch") or 0,
        },
    )
    if log.get("hw") is not None:
        world.partition.log.high_watermark = Offset(log["hw"])
    return world


def topic_settings(config: Fields) -> dict[str, str | int]:
    """Returns the fields of ``TopicProperties`` that a vector sets."""
    parsers: dict[str, type[str] | type[int]] = {"cleanup.policy": str, "max.message.bytes": int, "segment.bytes": int}
    return {field_name(name): parse(config[name]) for name, parse in parsers.items() if name in config}
