"""Lost records by name: acknowledged with acks=all, and missing from the final read.

A record's name is its partition, its producer and its number at that producer, as in its value. It is the same on every
driver that plays the same operations, whatever the offsets and times are.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from laststand.emulator.client.config import FINAL_CONSUMER
from laststand.emulator.client.history import history_of, read_history
from laststand.emulator.core.history import HistoryLine, OperationType, PollOperation, SendOperation
from laststand.emulator.core.types import Acks


class RecordName(NamedTuple):
    """One record that a client sent."""

    topic: str
    partition: int
    producer: str
    record_id: int


def lost_records(operations: Iterable[HistoryLine]) -> frozenset[RecordName]:
    """Returns the lost records of a whole history, which ends with the final read."""
    acked: set[RecordName] = set()
    read: set[RecordName] = set()
    for operation in operations:
        match operation:
            case SendOperation(type=OperationType.OK) if operation.acks == Acks.ALL:
                acked.update(
                    RecordName(operation.topic, operation.partition, operation.process, record_id)
                    for record_id in _ids(operation.first_record_id, operation.record_count)
                )
            case PollOperation() if operation.process == FINAL_CONSUMER:
                read.update(
                    RecordName(operation.topic, operation.partition, batch.producer, record_id)
                    for batch in operation.batches
                    for record_id in _ids(batch.first_record_id, batch.record_count)
                )
    return frozenset(acked - read)


def _ids(first: int, count: int) -> range:
    return range(first, first + count)


def lost_records_of(run: Path) -> frozenset[RecordName]:
    """Returns the lost records of a run directory.

    Raises:
        OSError: the run has no history that can be read.
        msgspec.MsgspecError: a line of the history is malformed.
    """
    return lost_records(read_history(history_of(run)))
