"""Every table: its name, its columns, and how it is filled from a run."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.analysis.fault_rows import fault_rows
from laststand.emulator.analysis.history_rows import history_rows
from laststand.emulator.analysis.outcome_rows import lost_record_rows, replica_batch_rows, run_rows, verdict_rows
from laststand.emulator.analysis.partition_rows import availability_rows, high_watermark_rows, partition_change_rows
from laststand.emulator.analysis.run_source import RunSource
from laststand.emulator.analysis.schema import Column, Nanoseconds, columns_of
from laststand.emulator.analysis.tables import (
    AvailabilityRow,
    Envelope,
    EventRow,
    FaultRow,
    HighWatermarkRow,
    HistoryRow,
    Identity,
    LostRecordRow,
    Moment,
    PartitionChangeRow,
    ReplicaBatchRow,
    RunRow,
    VerdictRow,
)
from laststand.emulator.core import events
from laststand.emulator.verification.tables.vocabulary import EVENT_TYPES, tag

Fill: TypeAlias = Callable[[RunSource], Iterator[tuple[Nanoseconds, msgspec.Struct]]]
"""Yields the rows of a run, each with its time."""

ALL_EVENTS: Final = "events"
"""The table with every event of every type."""

FILLED: Final[Mapping[str, tuple[type[msgspec.Struct], Fill]]] = {
    "runs": (RunRow, run_rows),
    "history": (HistoryRow, history_rows),
    "replica_batches": (ReplicaBatchRow, replica_batch_rows),
    "faults": (FaultRow, fault_rows),
    "partition_changes": (PartitionChangeRow, partition_change_rows),
    "high_watermarks": (HighWatermarkRow, high_watermark_rows),
    "verdicts": (VerdictRow, verdict_rows),
    "lost_records": (LostRecordRow, lost_record_rows),
    "availability": (AvailabilityRow, availability_rows),
}
"""The row struct of each table, and the function that yields its rows, by name."""


def _table_name(kind: type[events.Event]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tag(kind)).lower()


EVENT_TABLES: Final[Mapping[str, type[events.Event]]] = {_table_name(kind): kind for kind in EVENT_TYPES}
"""The event type of each table, by name."""

TABLE_NAMES: Final[tuple[str, ...]] = (*FILLED, ALL_EVENTS, *EVENT_TABLES)


def own_columns(name: str) -> tuple[Column, ...]:
    """Returns a table's own columns, without those that all tables have."""
    if name in FILLED:
        return columns_of(FILLED[name][0])
    return columns_of(Envelope) + columns_of(EVENT_TABLES.get(name, EventRow))


def table_columns(name: str) -> tuple[Column, ...]:
    """Returns all columns of a table, in their order."""
    return columns_of(Identity) + columns_of(Moment) + own_columns(name)
