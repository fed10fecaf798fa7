r"""The recovery step of a leader that was elected uncleanly (KIP-704).

There is one recovery step per leader epoch of a partition that this broker leads and metadata calls RECOVERING::

    SCANNING --log read through, and the least duration over--> ENDING --open transactions ended-->
        MENDING --what a coordinator's log needs is appended--> REPORTING --answer or metadata says RECOVERED--> (gone)
    another leader epoch, another leader, the partition gone: (gone)

SCANNING reads the log from its recovery point on and rebuilds producer state; the log is truncated at a bad batch.
ENDING ends the transactions that are still open then: the election may have lost a transaction's marker, and the
coordinator, which has written the marker, does not write it again (KAFKA-20716).
MENDING is for coordinators' logs only, and reads the log again. Both append their records before RECOVERED is proposed,
so that the next leader has these records or starts a recovery of its own; they commit like all records.
REPORTING proposes the ISR of one with RECOVERED, and again after each refusal: an answer may be lost with the
controller that gave it, or the queue may hold an older change. No request is served before the controller has committed
it. A process that dies meanwhile finds RECOVERING in the metadata and begins again. Kafka has none of this: there the
state is stored, and cleared by the leader's next AlterPartition.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.isr_changes import propose_recovered
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodeRecords, LoadedRecord
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import LeaderEpoch, TopicPartition

RETRY_MS: Final = 100
"""Between checks whether RECOVERED has to be proposed again."""


class Mender(Protocol):
    """Supplies records for a log that may have lost some, so that coordinators and their clients can continue."""

    encode: EncodeRecords

    def find_ends(
        self, turn: Turn, partition: Partition, done: Callable[[Turn, Sequence[TransactionEnded]], None]
    ) -> None:
        """Finds the ends for the transactions that are open in a log; calls ``done`` with them, now or later."""

    def needs_records(self, name: TopicPartition) -> bool:
        """Returns whether ``missing`` may have records for a partition."""

    def missing(
        self, name: TopicPartition, records: Sequence[LoadedRecord], *, now_ms: int
    ) -> Sequence[CoordinatorRecord]:
        """Returns the records that a coordinator's log needs; each becomes a separate batch."""


class _Stage(Enum):
    SCANNING = "scanning"
    ENDING = "ending"
    MENDING = "mending"
    REPORTING = "reporting"


class _Recovery:
    """One step under way: ``found`` once the log is read."""

    __slots__ = ("found", "leader_epoch", "partition", "stage", "started_ms")

    def __init__(self, partition: Partition, *, now_ms: int) -> None:
        self.partition = partition
        self.leader_epoch: LeaderEpoch = partition.leader_epoch
        self.started_ms = now_ms
        self.found: inputs.LogRecovered | None = None
        self.stage = _Stage.SCANNING


class LeaderRecovery:
    """All recovery steps of a broker.

    Attributes:
        timers: when a least duration is over, or RECOVERED may have to be proposed again.
    """

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, mender: Mender | None = None) -> None:
        self._config = config
        self._hosted = hosted
        self._mender = mender
        self._steps: dict[TopicPartition, _Recovery] = {}
        self.timers: TimerQueue[TopicPartition] = TimerQueue()

    def check(self, turn: Turn, name: TopicPartition) -> None:
        """Starts, continues or drops a step, after a partition's role, epochs or ISR changed."""
        partition = self._hosted.get(name)
        step = self._steps.get(name)
        if partition is None or not partition.is_leader or not partition.is_recovering:
            if step is not None:
                self._forget(name)
        elif step is None or step.partition is not partition or step.leader_epoch != partition.leader_epoch:
            self._start(turn, partition)
        elif step.stage is _Stage.REPORTING:
            # Newer metadata has ended the pending change.
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
        """Handles the result of the log scan, unless it belongs to an earlier epoch or the leadership is lost."""
        step = self._steps.get(found.partition)
        if step is None or step.leader_epoch != found.leader_epoch or step.found is not None:
            return
        step.found = found
        self._finish_if_due(turn, step, found)

    def handle_timer(self, turn: Turn) -> None:
        """Ends steps whose least duration is over, and proposes RECOVERED again if necessary."""
        for name in self.timers.pop_due(now_ms=turn.now_ms):
            step = self._steps[name]
            if step.stage is _Stage.REPORTING:
                self._report(turn, step)
            elif step.stage is _Stage.SCANNING and step.found is not None:
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
        if self._mender is None:
            self._report(turn, step)
        else:
            self._end_transactions(turn, step, self._mender)

    def _end_transactions(self, turn: Turn, step: _Recovery, mender: Mender) -> None:
        step.stage = _Stage.ENDING

        def done(turn: Turn, ends: Sequence[TransactionEnded]) -> None:
            if self._steps.get(step.partition.name) is step:
                self._append(turn, step, mender, ends)
                self._mend(turn, step, mender)

        mender.find_ends(turn, step.partition, done)

    def _mend(self, turn: Turn, step: _Recovery, mender: Mender) -> None:
        name, log = step.partition.name, step.partition.log
        if not mender.needs_records(name):
            self._report(turn, step)
            return
        step.stage = _Stage.MENDING
        size = log.size_between(log.log_start_offset, log.log_end_offset)
        span = log.read(log.log_start_offset, upper_bound=log.log_end_offset, max_bytes=size)
        turn.write(effects.ReadRecords(partition=name, leader_epoch=step.leader_epoch, span=span))

    def handle_read(self, turn: Turn, read: inputs.RecordsRead) -> None:
        """Handles the records of a coordinator's log, if they were read for a recovery step."""
        step = self._steps.get(read.partition)
        if (
            step is not None
            and step.stage is _Stage.MENDING
            and step.leader_epoch == read.leader_epoch
            and self._mender is not None
        ):
            missing = self._mender.missing(read.partition, read.records, now_ms=turn.now_ms)
            self._append(turn, step, self._mender, missing)
            self._report(turn, step)

    @staticmethod
    def _append(turn: Turn, step: _Recovery, mender: Mender, records: Sequence[CoordinatorRecord]) -> None:
        for record in records:
            step.partition.append_own(turn, mender.encode((record,)))

    def _report(self, turn: Turn, step: _Recovery) -> None:
        step.stage = _Stage.REPORTING
        propose_recovered(turn, step.partition)
        self.timers.set(step.partition.name, at_ms=turn.now_ms + RETRY_MS)
