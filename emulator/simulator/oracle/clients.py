"""Checks of clients: every record was sent, none is duplicated, reordered or lost.

D10: every stored or read record was sent. D11: a send that certainly failed is in no log. D12, D13: below the high
watermark sequence numbers occur once, and in order. D14: a send that was invoked after an acknowledgement has a higher
offset. D16: only committed records are read. C1: a consumer's offsets have no gaps. C2: a reader of the whole partition
gets every acknowledged record. C3, on consumers: no consumer is sent back to an earlier end of the log.
"""

from collections.abc import Mapping, Sequence

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client.steps import FinalReadRecorded, PollRecorded, SendRecorded
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from laststand.emulator.core.types import Acks, CauseId, Offset, ProducerEpoch, ProducerId, TopicPartition
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.truth import PartitionTruth, PromisedBatch


class _Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A send that was invoked: its first record id, and its partition."""

    first_record_id: int
    partition: TopicPartition


class ClientChecks:
    """Checks of one run's clients.

    Attributes:
        accepted: operations that a producer knows to have succeeded, with any acks.
    """

    def __init__(self, alarm_log: AlarmLog, truths: Mapping[TopicPartition, PartitionTruth]) -> None:
        self._alarm_log = alarm_log
        self._truths = truths
        self.accepted: set[CauseId] = set()
        self._acked_end: dict[TopicPartition, Offset] = {}
        self._floor: dict[CauseId, tuple[TopicPartition, Offset]] = {}
        self._failed: dict[TopicPartition, set[int]] = {}
        self._attempted: dict[TopicPartition, set[int]] = {}
        self._sent: dict[tuple[str, int], _Sent] = {}
        self._position: dict[tuple[str, TopicPartition], Offset] = {}
        self._markers: set[int] = set()
        self._observed: dict[TopicPartition, set[tuple[Offset, Offset, int]]] = {}  # first and last offset, CRC

    def forget(self, name: TopicPartition) -> None:
        """Notes that a partition was deleted; a later one of the same name starts without records."""
        for by_name in (self._acked_end, self._failed, self._attempted, self._observed):
            by_name.pop(name, None)
        for operation_id in [each for each, (partition, _) in self._floor.items() if partition == name]:
            del self._floor[operation_id]
        for key in [key for key in self._position if key[1] == name]:
            del self._position[key]

    # --- Producers --------------------------------------------------------------------------------------------------

    def sent(self, client: str, record: SendRecorded, *, acks: Acks) -> None:
        """A send was invoked or completed: D14, which is about acks=all alone."""
        name = record.partition
        if record.type is OperationType.INVOKE:
            last_record_id = record.first_record_id + record.record_count - 1
            self._sent[client, last_record_id] = _Sent(first_record_id=record.first_record_id, partition=name)
            self._floor[record.operation_id] = (name, self._acked_end.get(name, Offset(0)))
            return
        self.attempted(record)
        _, floor = self._floor.pop(record.operation_id, (name, Offset(0)))
        if record.type is OperationType.FAIL:
            self._failed.setdefault(name, set()).update(attempt.crc for attempt in record.attempts)
        elif record.type is OperationType.OK and record.base_offset is not None and acks is Acks.ALL:
            if record.base_offset < floor:
                sentence = f"{name} {record.operation_id} is at {record.base_offset}, sent after {floor} was acked"
                self._alarm_log.report("D14", name, sentence)
            end = Offset(record.base_offset + record.record_count)
            self._acked_end[name] = max(end, self._acked_end.get(name, Offset(0)))

    def attempted(self, record: SendRecorded) -> None:
        """A batch was sent, and may be in a log: D10. Its success is remembered for L5, after healing."""
        if record.type is OperationType.OK:
            self.accepted.add(record.operation_id)
        self._attempted.setdefault(record.partition, set()).update(attempt.crc for attempt in record.attempts)

    def ended(self, crc: int) -> None:
        """A transaction marker was appended: it is fetched like records, though no client sent it."""
        self._markers.add(crc)

    def check_stored(self, name: TopicPartition, logs: Sequence[Sequence[BatchDescriptor]]) -> None:
        """D10, D11 on all replicas of a partition, once no send is under way any more."""
        if name.topic in INTERNAL_TOPICS:
            return
        failed, attempted = self._failed.get(name, set()), self._attempted.get(name, set())
        for log in logs:
            for batch in log:
                if batch.crc in failed:
                    sentence = f"{name} {batch.base_offset} is batch {batch.crc}, whose producer was told of failure"
                    self._alarm_log.report("D11", name, sentence)
                elif batch.crc not in attempted and not batch.is_control:
                    sentence = f"{name} {batch.base_offset} is batch {batch.crc}, which no producer sent there"
                    self._alarm_log.report("D10", name, sentence)

    def check_sequences(self, name: TopicPartition, log: Sequence[BatchDescriptor], high_watermark: Offset) -> None:
        """D12, D13 on the leader's log."""
        seen: dict[tuple[int, int, int], Offset] = {}
        last: dict[ProducerId, tuple[ProducerEpoch, int]] = {}
        for batch in log:
            if batch.producer_id is None or batch.is_control or name.topic == OFFSETS_TOPIC:
                continue
            key = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            if key in seen:
                if batch.last_offset < high_watermark:
                    sentence = f"{name} has sequence {key} at {seen[key]} and at {batch.base_offset}"
                    self._alarm_log.report("D12", name, sentence)
                continue
            seen[key] = batch.base_offset
            number = (batch.producer_epoch, batch.base_sequence)
            before = last.get(batch.producer_id)
            if before is not None and number < before:
                sentence = f"{name} has {number} of producer {batch.producer_id} at {batch.base_offset}, after {before}"
                self._alarm_log.report("D13", name, sentence)
            last[batch.producer_id] = number

    # --- Consumers --------------------------------------------------------------------------------------------------

    def polled(self, client: str, record: PollRecorded) -> None:
        """A consumer was answered: D10, D16, C1, C3."""
        name = record.partition
        key = (client, name)
        expected = self._position.get(key)
        self._check_position(client, record, expected)
        if expected is None and not record.seek and not record.batches:
            return  # it is where it was in the topic that had this name before, and has not noticed yet
        position = record.position
        observed = self._observed.setdefault(name, set())
        for batch in record.batches:
            if batch.base_offset != position:
                sentence = f"{client} at {position} of {name} was given offset {batch.base_offset}"
                self._alarm_log.report("C1", name, sentence)
            position = Offset(batch.last_offset + 1)
            observed.add((batch.base_offset, batch.last_offset, batch.crc))
            self._check_batch(client, name, batch, record.high_watermark)
        self._position[key] = position

    def refused(self, client: str, record: PollRecorded) -> None:
        """A consumer's fetch failed: C3 on the offset to which it had been reset before."""
        key = (client, record.partition)
        expected = self._position.get(key)
        if record.seek and expected is not None:
            self._check_position(client, record, expected)
            self._position[key] = record.position

    def _check_position(self, client: str, record: PollRecorded, expected: Offset | None) -> None:
        name = record.partition
        if expected is None or record.position == expected:
            return
        if not record.seek:
            sentence = f"{client} went from {expected} to {record.position} of {name}"
            self._alarm_log.report("C1", name, sentence)
        elif record.position < expected and not self._is_deleted(name, Offset(expected - 1)):
            sentence = f"{client} had read {name} up to {expected} and was sent back to {record.position}"
            self._alarm_log.report("C3", name, sentence)

    def _is_deleted(self, name: TopicPartition, last_offset: Offset) -> bool:
        """Returns whether the last record that a consumer had read was deleted by an administrator or by retention."""
        read = (
            PromisedBatch(base_offset=last, last_offset=last, crc=crc, moment=0, leader_epoch=None)
            for _, last, crc in self._observed.get(name, ())
            if last == last_offset
        )
        return PROMISES["C3"].leaves_out(Exemption.DELETED_RECORDS) and any(
            self._truths[name].is_deleted(batch, last_offset) for batch in read
        )

    def went_astray(self, client: str, record: PollRecorded) -> None:
        """A consumer fetched from the former topic of this name.

        Its next position comes from that topic, unless the fetch returned nothing and did not move the position.
        """
        key = (client, record.partition)
        if record.batches or record.position != self._position.get(key):
            self._position.pop(key, None)

    def _check_batch(
        self, client: str, name: TopicPartition, batch: PolledBatch, high_watermark: Offset | None
    ) -> None:
        sent = self._sent.get((batch.producer, batch.first_record_id + batch.record_count - 1))
        is_sent = sent is not None and sent.partition == name and sent.first_record_id <= batch.first_record_id
        if not is_sent and batch.crc not in self._markers and name.topic not in INTERNAL_TOPICS:
            self._alarm_log.report("D10", name, f"{client} was given {batch} of {name}, which no producer sent there")
        committed = self._truths[name].committed.get(batch.last_offset)
        if committed != (batch.leader_epoch, batch.crc) or (
            high_watermark is not None and batch.last_offset >= high_watermark
        ):
            sentence = f"{client} was given {batch.base_offset}..{batch.last_offset} (batch {batch.crc}) of {name}"
            known = f"the high watermark was {high_watermark}, committed is batch {committed}"
            self._alarm_log.report("D16", name, f"{sentence}; {known}")

    def finished(self, client: str, record: FinalReadRecorded) -> None:
        """The final consumer has read a partition to its end: C2."""
        if record.start_offset is None or record.end_offset is None:
            return
        name = record.partition
        observed = self._observed.get(name, set())
        truth = self._truths[name]
        for promise in truth.ever_acked.values():
            is_passed = record.start_offset <= promise.base_offset and promise.last_offset < record.end_offset
            if is_passed and (promise.base_offset, promise.last_offset, promise.crc) not in observed:
                sentence = f"{name} {promise.base_offset}..{promise.last_offset} (batch {promise.crc}) was acknowledged"
                read = f"{client} read {record.start_offset}..{record.end_offset}, and no consumer was given it"
                self._alarm_log.report("C2", name, f"{sentence}; {read}", since=truth.counts_since(promise))
