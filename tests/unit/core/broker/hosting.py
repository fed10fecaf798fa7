"""A hosted partition on its own, with followers 1 and 2 registered, for tests of one rule."""

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.isr_changes import maybe_expand_isr
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.image import BrokerRegistration, MetadataImage, PartitionState
from laststand.emulator.core.properties import NodeProperties, topic_properties
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

NAME = TopicPartition("orders", 0)
TOPIC_ID = TopicId("id-of-orders")
LAG_MS = 30_000
OWN, FIRST, SECOND = (BrokerId(NodeId(number)) for number in range(3))


def batch(base_offset: int, leader_epoch: int, *, count: int = 1) -> BatchDescriptor:
    return BatchDescriptor(
        base_offset=Offset(base_offset),
        last_offset=Offset(base_offset + count - 1),
        leader_epoch=LeaderEpoch(leader_epoch),
        crc=base_offset,
        size=100,
        record_count=count,
    )


def found_log(topic_id: TopicId | None = TOPIC_ID, *, is_clean: bool = False) -> inputs.LoadedLog:
    """An empty log that a broker finds when it starts."""
    return inputs.LoadedLog(
        partition=NAME,
        topic_id=topic_id,
        is_clean=is_clean,
        batches=(),
        log_start_offset=Offset(0),
        log_end_offset=Offset(0),
        epochs=(),
        log_start_checkpoint=Offset(0),
        high_watermark_checkpoint=Offset(0),
        recovery_point=Offset(0),
    )


def events_of(turn: Turn) -> list[events.Event]:
    return [effect.event for effect in turn.effects() if isinstance(effect, effects.RecordEvent)]


class Hosting:
    """One partition of broker 0, its metadata cache and a clock."""

    def __init__(self, *, min_insync_replicas: int = 1, records: int = 0, switches: Switches | None = None) -> None:
        properties = NodeProperties(min_insync_replicas=min_insync_replicas, replica_lag_time_max_ms=LAG_MS)
        self.config = BrokerConfig(
            broker_id=OWN,
            controller_ids=(NodeId(100),),
            cluster_id="unit",
            incarnation_id=IncarnationId("incarnation"),
            properties=properties,
            switches=switches or Switches(),
        )
        self.now_ms = 1_000_000
        self.image = MetadataImage()
        for broker_id in (OWN, FIRST, SECOND):
            self.register(broker_id)
        log = ReplicaLog(NAME, TOPIC_ID)
        self.partition = Partition(
            log,
            config=self.config,
            registrations=self.image.brokers,
            topic_properties=topic_properties(properties, {}),
        )
        for offset in range(records):
            log.epochs.assign(LeaderEpoch(0), Offset(offset))
            log.append(batch(offset, 0), now_ms=0)
        self.hosted = HostedPartitions(self.image)
        self.hosted.is_serving = True
        self.hosted.add(self.partition)

    def register(
        self, broker_id: BrokerId, *, fenced: bool = False, broker_epoch: int | None = None, rack: str = ""
    ) -> None:
        self.image.brokers[broker_id] = BrokerRegistration(
            broker_id=broker_id,
            incarnation_id=IncarnationId(f"incarnation-{broker_id}"),
            broker_epoch=BrokerEpoch(100 + broker_id if broker_epoch is None else broker_epoch),
            log_dirs=(),
            fenced=fenced,
            in_controlled_shutdown=False,
            registration_offset=MetadataOffset(0),
            rack=rack,
        )

    def another(self, name: TopicPartition) -> Partition:
        """Returns a second partition of the broker, which it hosts as soon as somebody adds it."""
        return Partition(
            ReplicaLog(name, TOPIC_ID),
            config=self.config,
            registrations=self.image.brokers,
            topic_properties=topic_properties(self.config.properties, {}),
        )

    def turn(self) -> Turn:
        return Turn(now_ms=self.now_ms, cause_id=CauseId("unit"))

    def state(
        self, *, leader: BrokerId | None, isr: tuple[BrokerId, ...], leader_epoch: int, partition_epoch: int
    ) -> PartitionState:
        return PartitionState(
            topic_id=TOPIC_ID,
            replicas=(OWN, FIRST, SECOND),
            isr=isr,
            leader=leader,
            leader_epoch=LeaderEpoch(leader_epoch),
            partition_epoch=PartitionEpoch(partition_epoch),
        )

    def lead(self, *isr: BrokerId, leader_epoch: int = 1, partition_epoch: int = 1) -> Turn:
        turn = self.turn()
        state = self.state(leader=OWN, isr=isr, leader_epoch=leader_epoch, partition_epoch=partition_epoch)
        self.partition.become_leader(turn, state)
        return turn

    def follow(self, leader: BrokerId, *, leader_epoch: int = 1, partition_epoch: int = 1) -> Turn:
        turn = self.turn()
        state = self.state(leader=leader, isr=(leader, OWN), leader_epoch=leader_epoch, partition_epoch=partition_epoch)
        self.partition.become_follower(turn, state)
        return turn

    def append(self, *, count: int = 1) -> Turn:
        turn = self.turn()
        end_offset = self.partition.log.log_end_offset
        self.partition.append_as_leader(turn, batch(end_offset, self.partition.leader_epoch, count=count))
        return turn

    def fetch(self, broker_id: BrokerId, offset: int) -> Turn:
        turn = self.turn()
        self.partition.note_fetch(
            turn,
            broker_id,
            fetch_offset=Offset(offset),
            log_start_offset=Offset(0),
            broker_epoch=self.image.brokers[broker_id].broker_epoch,
        )
        maybe_expand_isr(turn, self.partition, broker_id)
        return turn

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark
