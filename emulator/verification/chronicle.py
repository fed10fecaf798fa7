"""The small part of a run that is told event by event: what controller and harness decided, and what logs lost.

Batches, acknowledgements and high watermarks stay in Spark, however many there are. What remains (elections,
registrations, fencings, ends of processes, faults, truncations) is collected in one query for all runs and decoded into
the vocabulary's own structs.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from emulator.core.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    Event,
    FaultHealed,
    FaultInjected,
    IncarnationEnded,
    IncarnationStarted,
    LogTruncated,
    NodeStarted,
    PartitionChanged,
    PowerLost,
    RunEnded,
    TopicDeleted,
)
from emulator.verification.vocabulary import CORRUPT, EVENT_TYPES, struct_columns, tag, wide_columns

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

TOLD: Final[tuple[type[Event], ...]] = (
    NodeStarted,
    IncarnationStarted,
    IncarnationEnded,
    FaultInjected,
    FaultHealed,
    PowerLost,
    RunEnded,
    BrokerRegistered,
    BrokerFenced,
    BrokerUnfenced,
    TopicDeleted,
    PartitionChanged,
    LogTruncated,
)
"""Event types that are collected."""

_Told = TypeVar("_Told", bound=Event)


class ToldEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event and its place in its node's file."""

    node: int
    incarnation: int
    sequence: int
    event: Event


class Chronicle(msgspec.Struct, frozen=True, kw_only=True):
    """The told events of one run, ordered by node, incarnation and sequence: never across nodes."""

    events: tuple[ToldEvent, ...]

    def of(self, kind: type[_Told]) -> Iterator[_Told]:
        """The events of one type, in each node's order."""
        return (told.event for told in self.events if isinstance(told.event, kind))

    def switches(self) -> Mapping[str, str]:
        """The rules of the run, by the controller's first line; empty if there is none."""
        for started in self.of(NodeStarted):
            if started.role == "controller":
                return started.switches
        return {}

    def incarnation_of(self, incarnation_id: str) -> int | None:
        """The number of the incarnation that registered under this id; ``None`` if its first line is missing."""
        for told in self.events:
            if isinstance(told.event, NodeStarted) and told.event.incarnation_id == incarnation_id:
                return told.incarnation
        return None


def read_chronicles(spark: "SparkSession", *, runs: int) -> tuple[Chronicle, ...]:
    """Collects the chronicles of runs 0 to ``runs`` - 1."""
    wide = wide_columns(TOLD)
    as_text = {name for name, kind in wide_columns(EVENT_TYPES).items() if kind == "STRING"}
    names = ", ".join(f"'{tag(kind)}'" for kind in TOLD)
    rows = (
        spark.table("event_line")
        .where(f"{CORRUPT} IS NULL AND type IN ({names})")
        .select("run", "node", "incarnation", "sequence", "type", *wide)
        .collect()
    )
    decoded: list[list[ToldEvent]] = [[] for _ in range(runs)]
    for run, told in _decoded(rows, as_text):
        decoded[run].append(told)
    return tuple(
        Chronicle(events=tuple(sorted(told, key=lambda t: (t.node, t.incarnation, t.sequence)))) for told in decoded
    )


def _decoded(rows: Iterable["Row"], as_text: set[str]) -> Iterator[tuple[int, ToldEvent]]:
    structs = {tag(kind): kind for kind in TOLD}
    columns = {name: struct_columns(kind) for name, kind in structs.items()}
    for row in rows:
        values = row.asDict(recursive=True)
        fields: dict[str, object] = {}
        for name, kind in columns[values["type"]].items():
            value = values[name]
            if isinstance(value, str) and name in as_text and kind != "STRING":
                value = msgspec.json.decode(value)
            fields[name] = value
        try:
            event = msgspec.convert({"type": values["type"], **fields}, structs[values["type"]])
        except msgspec.ValidationError:
            continue  # An event with missing or impossible fields: ``evidence`` counts those.
        yield (
            values["run"],
            ToldEvent(node=values["node"], incarnation=values["incarnation"], sequence=values["sequence"], event=event),
        )
