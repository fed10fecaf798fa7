r"""The recovery step of a leader that was elected uncleanly (KIP-704).

One per partition that this broker leads while metadata says RECOVERING, and per leader epoch::

    SCANNING --log read through, and the least duration over--> REPORTING --answer or metadata says RECOVERED--> (gone)
         \___________________\__ another leader epoch, another leader, the partition gone __/

SCANNING reads the log from its recovery point on and rebuilds what is known of producers; a bad batch ends the log.
Transactions that are still open then are aborted: the end of one may have been lost with the records that the election
lost, and its coordinator, which wrote that end, writes it no more (KAFKA-20716).
REPORTING proposes the ISR of one with RECOVERED, and again after each refusal: an answer may be lost with the
controller that gave it, or the queue may hold an older change. No request is served before the controller has committed
it. A process that dies meanwhile finds RECOVERING in the metadata and begins again. Kafka has none of this: there the
state is stored, and cleared by the leader's next AlterPartition.
"""

from typing import Final

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.batch import Marker, TransactionResult
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.isr_changes import propose_recovered
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import EncodeRecords
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import LeaderEpoch, ProducerEpoch, TopicPartition

RETRY_MS: Final = 100
"""Between checks whether RECOVERED has to be proposed again."""


class _Recovery:
    """One step under way: ``found`` once the log is read, ``is_reporting`` once it is over on this side."""

    __slots__ = ("found", "is_reporting", "leader_epoch", "partition", "started_ms")

    def __init__(self, partition: Partition, *, now_ms: int) -> None:
        self.partition = partition
        self.leader_epoch: LeaderEpoch = partition.leader_epoch
        self.started_ms = now_ms
        self.found: inputs.LogRecovered | None = None
        self.is_reporting = False


class LeaderRecovery:
    """All recovery steps of a broker.

    Attributes:
        timers: when a least duration is over, or RECOVERED may have to be proposed again.
    """

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, encode: EncodeRecords | None = None) -> None:
        self._config = config
        self._hosted = hosted
        self._encode = encode
        self._steps: dict[TopicPartition, _Recovery] = {}
        self.timers: TimerQueue[TopicPartition] = TimerQueue()

    def check(self, turn: Turn, name: TopicPartition) -> None:
        """Starts, goes on with, or forgets a step, after a partition's role, epochs or ISR changed."""
        partition = self._hosted.get(name)
        step = self._steps.get(name)
        if partition is None or not partition.is_leader or not partition.is_recovering:
            if step is not None:
                self._forget(name)
        elif step is None or step.partition is not partition or step.leader_epoch != partition.leader_epoch:
            self._start(turn, partition)
        elif step.is_reporting:
            # Other metadata came, which ended the change that was under way.
            self._report(turn, step)

    def _forget(self, name: TopicPartition) -> None:
        del self._steps[name]
        self.timers.cancel(name)

    def _start(self, turn: Turn, partition: Partition) -> None:
        self.timers.cancel(partition.name)
        self._steps[partition.name] = _Recovery(partition, now_ms=turn.now_ms)
        turn.write(effects.RecoverLog(partition=partition.name, leader_epoch=partition.leader_epoch))
        turn.record(
            events.RecoveryStarted(
                cause_id=turn.cause_id,
                topic=partition.name.topic,
                partition=partition.name.partition,
                topic_id=partition.log.topic_id,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                log_start_offset=partition.log.log_start_offset,
                log_end_offset=partition.log.log_end_offset,
            )
        )

    def handle_recovered(self, turn: Turn, found: inputs.LogRecovered) -> None:
        """Takes the result of reading the log, unless it is of an earlier epoch or the log is led no more."""
        step = self._steps.get(found.partition)
        if step is None or step.leader_epoch != found.leader_epoch or step.found is not None:
            return
        step.found = found
        self._finish_if_due(turn, step, found)

    def handle_timer(self, turn: Turn) -> None:
        """Ends steps whose least duration is over, and proposes RECOVERED again where that is needed."""
        for name in self.timers.pop_due(now_ms=turn.now_ms):
            step = self._steps[name]
            if step.is_reporting:
                self._report(turn, step)
            elif step.found is not None:
                self._finish_if_due(turn, step, step.found)

    def _finish_if_due(self, turn: Turn, step: _Recovery, found: inputs.LogRecovered) -> None:
        end_ms = step.started_ms + self._config.properties.leader_recovery_min_ms
        if turn.now_ms < end_ms:
            self.timers.set(found.partition, at_ms=end_ms)
            return
        partition = step.partition
        old_end_offset = partition.log.log_end_offset
        if found.bad_offset is not None:
            partition.cut_corrupt(turn, found.bad_offset)
        producer_count = partition.log.rebuild_producers(now_ms=turn.now_ms)
        turn.record(
            events.RecoveryFinished(
                cause_id=turn.cause_id,
                topic=partition.name.topic,
                partition=partition.name.partition,
                topic_id=partition.log.topic_id,
                leader_epoch=partition.leader_epoch,
                scanned_from=found.scanned_from,
                batch_count=found.batch_count,
                producer_count=producer_count,
                old_end_offset=old_end_offset,
                log_end_offset=partition.log.log_end_offset,
                duration_ms=turn.now_ms - step.started_ms,
            )
        )
        if self._encode is not None and self._config.switches.recovery_aborts_transactions:
            self._abort_transactions(turn, partition, self._encode)
        step.is_reporting = True
        self._report(turn, step)

    def _abort_transactions(self, turn: Turn, partition: Partition, encode: EncodeRecords) -> None:
        """Ends what is open in the log: the markers may be lost, and then nobody would write them again.

        They are appended in the new leader epoch, and commit as all records do. Their epochs are those of the
        coordinator's own markers, so that a later marker of it is taken, and changes nothing.
        """
        raises_epoch = self._config.transaction_version >= 2
        for producer_id, entry in partition.log.producers.entries():
            if entry.transaction_first_offset is not None:
                epoch = ProducerEpoch(entry.producer_epoch + raises_epoch)
                marker = Marker(result=TransactionResult.ABORT, coordinator_epoch=max(entry.coordinator_epoch, 0))
                ended = TransactionEnded(producer_id=producer_id, producer_epoch=epoch, marker=marker)
                partition.append_own(turn, encode((ended,)))

    def _report(self, turn: Turn, step: _Recovery) -> None:
        propose_recovered(turn, step.partition)
        self.timers.set(step.partition.name, at_ms=turn.now_ms + RETRY_MS)
