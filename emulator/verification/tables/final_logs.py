"""Final logs: the replicas' logs at the end of a run, by the headers of their batches."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from laststand.emulator.verification.tables.client_history import ReceivedBatch
from laststand.emulator.verification.tables.columns import NONE, Table
from laststand.emulator.verification.tables.matching import groups_of

_CONTROL_BIT: Final = 0x20
_TRANSACTIONAL_BIT: Final = 0x10

Headers = NDArray[np.void]
"""Headers of batches, with the names and types of Kafka's fields; ``marker`` is the type of a control record, or -1."""


class FinalBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One batch in a final log. Offsets inclusive; ``producer_id`` is ``None`` without idempotence.

    A marker that ends a transaction has ``control_type`` 0 for an abort or 1 for a commit, and the
    ``coordinator_epoch`` of the coordinator that wrote it.
    """

    node: int
    topic: str
    partition: int
    topic_id: str | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    record_count: int
    producer_id: int | None
    producer_epoch: int
    base_sequence: int
    is_control: bool
    is_transactional: bool
    control_type: int | None
    coordinator_epoch: int | None


class FinalLog(msgspec.Struct, frozen=True, kw_only=True):
    """One final log: its bounds (end exclusive), and why reading ended early, if it did.

    Attributes:
        damaged_crc: the computed CRC of the batch at which reading ended, if the header has another one.
    """

    node: int
    topic: str
    partition: int
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    is_clean: bool
    problem: str | None
    damaged_crc: int | None = None


class ReadLog(NamedTuple):
    """A log as it was read, and the headers of its batches."""

    log: FinalLog
    headers: Headers

    def batches(self) -> Table[FinalBatch]:
        """Returns the log's batches."""
        log, headers = self.log, self.headers
        count = len(headers)
        bases, producer_ids = headers["base_offset"].astype(np.int64), headers["producer_id"].astype(np.int64)
        columns = {
            "node": np.full(count, log.node),
            "topic": np.zeros(count, np.int64),
            "partition": np.full(count, log.partition),
            "topic_id": np.zeros(count, np.int64),
            "base_offset": bases,
            "last_offset": bases + headers["last_offset_delta"],
            "producer_id": np.where(producer_ids < 0, NONE, producer_ids),
            "is_control": (headers["attributes"] & _CONTROL_BIT != 0).astype(np.int64),
            "is_transactional": (headers["attributes"] & _TRANSACTIONAL_BIT != 0).astype(np.int64),
            **{
                name: np.where(headers[field] < 0, NONE, headers[field].astype(np.int64))
                for name, field in (("control_type", "marker"), ("coordinator_epoch", "coordinator_epoch"))
            },
            **{
                name: headers[name].astype(np.int64)
                for name in ("leader_epoch", "crc", "record_count", "producer_epoch", "base_sequence")
            },
        }
        return Table.built(FinalBatch, columns, {"topic": {log.topic: 0}, "topic_id": {log.topic_id: 0}})


def batches_read(log: FinalLog, given: Table[ReceivedBatch]) -> Table[FinalBatch]:
    """Returns a log's batches as a consumer received them: without their producers, and without control batches."""
    count = len(given)
    none = np.full(count, NONE)
    columns = {
        "node": np.full(count, log.node),
        "topic": np.zeros(count, np.int64),
        "partition": np.full(count, log.partition),
        "topic_id": np.zeros(count, np.int64),
        "producer_id": none,
        "producer_epoch": none,
        "base_sequence": none,
        "is_control": np.zeros(count, np.int64),
        "is_transactional": np.zeros(count, np.int64),
        "control_type": none,
        "coordinator_epoch": none,
        **{name: given[name] for name in ("base_offset", "last_offset", "leader_epoch", "crc", "record_count")},
    }
    return Table.built(FinalBatch, columns, {"topic": {log.topic: 0}, "topic_id": {log.topic_id: 0}})


def successive(batches: Table[FinalBatch]) -> Iterator[tuple[Table[FinalBatch], Table[FinalBatch]]]:
    """Yields, for each log, all batches but the last one, and the batch after each of them."""
    for places in groups_of(batches["node"], batches["topic_id"]):
        yield batches.only(places[:-1]), batches.only(places[1:])
