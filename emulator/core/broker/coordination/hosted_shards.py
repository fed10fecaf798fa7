"""The partitions of an internal topic that a broker leads, and a shard for each once its records are read.

::

    elected --(all that the log holds is committed)--> reading --RecordsRead--> coordinating --another leader--> (gone)

A broker is the coordinator exactly if it believes that it leads the partition. A deposed leader that does not know of
its successor still answers, and its appends never commit. A leader in recovery (KIP-704) does not coordinate yet.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.coordinator_records import LoadedRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicPartition


class Shard(Protocol):
    """The coordinator of one partition, from the broker's election as leader until it is no longer the leader."""

    partition: Partition
    leader_epoch: LeaderEpoch

    def settle(self, turn: Turn) -> None:
        """Acts on what the high watermark has committed by now."""

    def resign(self, turn: Turn) -> None:
        """Ends the shard: waiting requests get an error, although written records may still commit."""

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` is due."""

    def handle_timer(self, turn: Turn) -> None:
        """Handles each timer that is due."""


ShardT = TypeVar("ShardT", bound=Shard)


class _Loading(NamedTuple):
    """A partition that the broker leads, but does not coordinate yet; ``end_offset`` is the log end at election."""

    partition: Partition
    leader_epoch: LeaderEpoch
    end_offset: Offset
    is_reading: bool


class Loaded(NamedTuple):
    """A partition whose log was read.

    Attributes:
        partition: led by this broker.
        records: of its log.
    """

    partition: Partition
    records: Sequence[LoadedRecord]


class HostedShards(Generic[ShardT]):
    """Makes and drops shards as leaderships change.

    Args:
        topic: whose partitions they are.
        config: of the broker.
        hosted: the broker's partitions.
        make: makes the shard of a partition.
        on_resigned: hears of shards that are dropped.
    """

    def __init__(
        self,
        topic: str,
        config: BrokerConfig,
        hosted: HostedPartitions,
        make: Callable[[Turn, Loaded], ShardT],
        on_resigned: Callable[[ShardT], None] = lambda _shard: None,
    ) -> None:
        self._topic = topic
        self._awaits_commit = config.switches.coordinator_awaits_commit
        self._hosted = hosted
        self._make = make
        self._on_resigned = on_resigned
        self._shards: dict[TopicPartition, ShardT | _Loading] = {}

    @property
    def is_loading(self) -> bool:
        """The broker leads a partition that it does not coordinate yet."""
        return any(isinstance(shard, _Loading) for shard in self._shards.values())

    def active(self) -> list[ShardT]:
        """Returns the shards of all partitions that are coordinated here."""
        return [shard for shard in self._shards.values() if not isinstance(shard, _Loading)]

    def of_key(self, key: str) -> ShardT | ErrorCode:
        """Returns the shard of a key's partition; an error if this broker does not coordinate it, or not yet."""
        partition_count = self._hosted.image.partition_counts.get(self._topic, 0)
        if not partition_count:
            return ErrorCode.NOT_COORDINATOR
        return self.of_partition(partition_of(key, self._topic, partition_count))

    def of_partition(self, name: TopicPartition) -> ShardT | ErrorCode:
        """Returns the shard of a partition, or the same error as ``of_key``."""
        shard = self._shards.get(name)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if isinstance(shard, _Loading) else shard

    # --- Leaderships ----------------------------------------------------------------------------------------------

    def handle_read(self, turn: Turn, read: inputs.RecordsRead) -> None:
        """Begins to coordinate, unless the leadership is lost or the records were read in an earlier epoch."""
        loading = self._shards.get(read.partition)  # none, if the partition is another topic's
        if isinstance(loading, _Loading) and loading.leader_epoch == read.leader_epoch:
            self._shards[read.partition] = self._make(turn, Loaded(loading.partition, read.records))

    def settle(self, turn: Turn) -> None:
        """Follows the leaderships and high watermarks that this step changed."""
        for name in (*turn.turned, *turn.advanced):
            if name.topic == self._topic:
                self._check(turn, name)

    def _check(self, turn: Turn, name: TopicPartition) -> None:
        partition = self._hosted.get(name)
        is_led = partition is not None and partition.is_leader and not partition.is_recovering
        shard = self._shards.get(name)
        if shard is not None and not (
            is_led and shard.partition is partition and shard.leader_epoch == shard.partition.leader_epoch
        ):
            del self._shards[name]
            if not isinstance(shard, _Loading):
                shard.resign(turn)
                self._on_resigned(shard)
            shard = None
        if shard is None and partition is not None and is_led:
            end_offset = partition.log.log_end_offset
            shard = self._shards[name] = _Loading(partition, partition.leader_epoch, end_offset, is_reading=False)
        if isinstance(shard, _Loading):
            self._read_if_due(turn, name, shard)
        elif shard is not None:
            shard.settle(turn)

    def _read_if_due(self, turn: Turn, name: TopicPartition, loading: _Loading) -> None:
        log = loading.partition.log
        if loading.is_reading or (self._awaits_commit and log.high_watermark < loading.end_offset):
            return
        self._shards[name] = loading._replace(is_reading=True)
        size = log.size_between(log.log_start_offset, loading.end_offset)
        span = log.read(log.log_start_offset, upper_bound=loading.end_offset, max_bytes=size)
        turn.write(effects.ReadRecords(partition=name, leader_epoch=loading.leader_epoch, span=span))

    # --- Time -----------------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` is due, or ``None`` if nothing waits for the time."""
        if not self._shards:
            return None
        return earliest_of(shard.next_deadline_ms() for shard in self.active())

    def handle_timer(self, turn: Turn) -> None:
        """Handles each timer that is due."""
        for shard in self.active():
            shard.handle_timer(turn)
