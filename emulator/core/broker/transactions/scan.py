"""Finds and ends open transactions of a log that no coordinator will end, because its own log lost their records.

An uncleanly elected coordinator cannot know which transactions it lost. So the leaders of all logs ask the
coordinators, whenever a coordinator or the leader itself was elected. No broker has to remember that an election was
unclean.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions.inquiry import RETRY_MS, TransactionInquiry, open_transactions
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import TransactionMarkers
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import LeaderEpoch, TopicPartition

WriteMarkers: TypeAlias = Callable[[Turn, TopicPartition, tuple[TransactionMarkers, ...]], None]
"""Writes markers into a partition that this broker leads."""

_Epochs: TypeAlias = tuple[LeaderEpoch, ...]


class OpenTransactionScans:
    """Asks coordinators about open transactions, and ends those that no coordinator knows.

    Args:
        config: of the broker.
        hosted: the partitions that the broker hosts.
        inquiry: asks coordinators.
        write: appends markers as a coordinator's request does.

    Attributes:
        timers: when a log whose markers could not be written is checked again.
    """

    def __init__(
        self, config: BrokerConfig, hosted: HostedPartitions, inquiry: TransactionInquiry, write: WriteMarkers
    ) -> None:
        self._is_on = config.switches.txn_recovery_scan
        self._hosted = hosted
        self._inquiry = inquiry
        self._write = write
        self._coordinators: _Epochs = ()
        self._asked: dict[TopicPartition, tuple[LeaderEpoch, _Epochs]] = {}
        self._has_news = False
        self.timers: TimerQueue[TopicPartition] = TimerQueue()

    def note_coordinators(self) -> None:
        """Checks new metadata for elected coordinators, which may know less than their predecessors."""
        image = self._hosted.image
        names = [
            TopicPartition(TRANSACTIONS_TOPIC, number)
            for number in range(image.partition_counts.get(TRANSACTIONS_TOPIC, 0))
        ]
        epochs = tuple([image.partitions[name].leader_epoch for name in names])
        self._has_news = self._has_news or epochs != self._coordinators
        self._coordinators = epochs

    def settle(self, turn: Turn) -> None:
        """Asks coordinators about logs whose leader, or whose coordinator, changed in this step."""
        if not self._is_on or not (self._has_news or turn.turned):
            return
        names = [partition.name for partition in self._hosted] if self._has_news else list(turn.turned)
        self._has_news = False
        for name in names:
            partition = self._hosted.get(name)
            if partition is None or not partition.is_leader or partition.is_recovering:
                continue
            asked = (partition.leader_epoch, self._coordinators)
            if self._asked.get(name) != asked:
                self._asked[name] = asked
                self._ask(turn, name)

    def retry(self, turn: Turn, name: TopicPartition) -> None:
        """Schedules another check of a partition whose markers could not be written."""
        self.timers.set(name, at_ms=turn.now_ms + RETRY_MS)

    def handle_timer(self, turn: Turn) -> None:
        """Asks again about partitions whose retry is due."""
        for name in self.timers.pop_due(now_ms=turn.now_ms):
            self._ask(turn, name)

    def _ask(self, turn: Turn, name: TopicPartition) -> None:
        partition = self._hosted.get(name)
        if partition is None or not partition.is_leader or partition.is_recovering or not open_transactions(partition):
            return

        def done(turn: Turn, ends: Sequence[TransactionEnded]) -> None:
            if ends:
                self._write(turn, name, tuple([self._markers(name, end) for end in ends]))

        self._inquiry.ask(turn, partition, done)

    def _markers(self, name: TopicPartition, end: TransactionEnded) -> TransactionMarkers:
        return TransactionMarkers(
            producer_id=end.producer_id,
            producer_epoch=end.producer_epoch,
            result=end.marker.result,
            coordinator_epoch=end.marker.coordinator_epoch,
            raises_epoch=False,
            partitions=(name,),
        )
