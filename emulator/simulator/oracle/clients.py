"""What clients must see: no definite failure in a log, real-time order, no duplicates, no skips.

D11: a send that certainly failed is in no log. D12: a sequence number is once below the high watermark. D14: what was
invoked after an acknowledgement lies behind it. C1: a consumer's positions have no holes.
"""

from collections.abc import Callable, Mapping, Sequence

from emulator.core.batch import BatchDescriptor
from emulator.core.client.steps import PollRecorded, SendRecorded
from emulator.core.events import OperationType
from emulator.core.types import CauseId, Offset, TopicPartition


class ClientChecks:
    """Checks of one run's clients; ``alarm`` takes check, partition and sentence."""

    def __init__(self, alarm: Callable[[str, TopicPartition, str], None]) -> None:
        self._alarm = alarm
        self._acked_end: dict[TopicPartition, Offset] = {}
        self._floor: dict[CauseId, Offset] = {}
        self._failed: dict[TopicPartition, set[int]] = {}
        self._position: dict[tuple[str, TopicPartition], Offset] = {}

    def sent(self, client: str, record: SendRecorded) -> None:
        """A send was invoked or completed."""
        name = record.partition
        match record.type:
            case OperationType.INVOKE:
                self._floor[record.operation_id] = self._acked_end.get(name, Offset(0))
            case OperationType.OK if record.base_offset is not None and client == "producer-all":
                floor = self._floor.pop(record.operation_id, Offset(0))
                if record.base_offset < floor:
                    self._alarm(
                        "D14",
                        name,
                        f"{name} {record.operation_id} is at {record.base_offset}, sent after {floor} was acked",
                    )
                end = Offset(record.base_offset + record.record_count)
                self._acked_end[name] = max(end, self._acked_end.get(name, Offset(0)))
            case OperationType.FAIL:
                self._failed.setdefault(name, set()).update(attempt.crc for attempt in record.attempts)
            case _:
                pass

    def polled(self, client: str, record: PollRecorded) -> None:
        """A consumer was answered."""
        key = (client, record.partition)
        expected = self._position.get(key)
        if expected is not None and not record.seek and record.position != expected:
            self._alarm(
                "C1", record.partition, f"{client} went from {expected} to {record.position} of {record.partition}"
            )
        position = record.position
        for batch in record.batches:
            if batch.base_offset < position:
                self._alarm(
                    "C1", record.partition, f"{client} at {position} was given offset {batch.base_offset} again"
                )
            position = Offset(batch.last_offset + 1)
        self._position[key] = position

    def check_stored(self, name: TopicPartition, logs: Sequence[Mapping[Offset, int]]) -> None:
        """D11 on all replicas of a partition."""
        failed = self._failed.get(name, set())
        for log in logs:
            for offset, crc in log.items():
                if crc in failed:
                    self._alarm("D11", name, f"{name} {offset} is batch {crc}, whose producer was told that it failed")
                    return

    def check_duplicates(self, name: TopicPartition, log: Sequence[BatchDescriptor], high_watermark: Offset) -> None:
        """D12 on the leader's log."""
        seen: dict[tuple[int, int, int], Offset] = {}
        for batch in log:
            if batch.producer_id is None or batch.last_offset >= high_watermark:
                continue
            key = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            if key in seen:
                self._alarm("D12", name, f"{name} has sequence {key} at {seen[key]} and at {batch.base_offset}")
                return
            seen[key] = batch.base_offset
