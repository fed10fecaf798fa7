"""The progress of a run's clients so far, for barriers and the progress line."""

from collections import Counter

from laststand.emulator.client.control import AckedCount, ClientCounts, ErrorCount
from laststand.emulator.core.client.steps import PollRecorded, SendRecorded
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import Acks, TopicPartition


class Counters:
    """Sums over all clients. ``version`` rises with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._acked: Counter[tuple[Acks, TopicPartition]] = Counter()
        self._failed = 0
        self._unknown = 0
        self._consumed = 0
        self._errors: Counter[str] = Counter()
        self._counted: tuple[int, ClientCounts] | None = None

    def add_send(self, recorded: SendRecorded, acks: Acks) -> None:
        """Counts an operation's outcome, and the response to each of its attempts."""
        match recorded.type:
            case OperationType.INVOKE:
                return
            case OperationType.OK:
                self._acked[acks, recorded.partition] += recorded.record_count
            case OperationType.FAIL:
                self._failed += recorded.record_count
            case OperationType.INFO:
                self._unknown += recorded.record_count
        self._errors.update(attempt.outcome for attempt in recorded.attempts if attempt.outcome != ErrorCode.NONE.name)
        self.version += 1

    def add_poll(self, recorded: PollRecorded) -> None:
        """Counts consumed records, or the reason why there were none."""
        if recorded.error is not None:
            self._errors[recorded.error] += 1
            self.version += 1
        if recorded.batches:
            self._consumed += sum(batch.record_count for batch in recorded.batches)
            self.version += 1

    def counts(self) -> ClientCounts:
        """Returns all counts."""
        if self._counted is None or self._counted[0] != self.version:
            self._counted = (self.version, self._count())
        return self._counted[1]

    def _count(self) -> ClientCounts:
        return ClientCounts(
            acked=tuple(
                AckedCount(acks=int(acks), topic=partition.topic, partition=partition.partition, records=records)
                for (acks, partition), records in sorted(self._acked.items())
            ),
            failed=self._failed,
            unknown=self._unknown,
            consumed=self._consumed,
            errors=tuple(ErrorCount(error=error, count=count) for error, count in sorted(self._errors.items())),
        )
