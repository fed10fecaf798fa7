"""A run's rare events as a log for ShiViz: each with a vector clock, which says what it may have been caused by.

::

    broker-1 {"broker-1": 7, "controller-100": 3}
    BecameLeader orders-0 epoch_start_offset=0 ...

``READ_BY`` is the regular expression to read it with. Earlier events of a node are causes of its later events. So are,
on another node, the first event of the same cause id, and for acted-on metadata the events that recorded its records.
Appends, acknowledgements and high watermarks are left out: there are as many as batches.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.verification.tables.event_lines import FREQUENT
from laststand.emulator.verification.tables.vocabulary import COMMITTED

READ_BY: Final = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
"""The expression by which ShiViz reads such a log."""

_LEFT_OUT: Final[tuple[type[events.Event], ...]] = (*FREQUENT, events.FileSealed, events.FileVouched)


class LoggedEvent(NamedTuple):
    """An event, and its place and time."""

    time_ns: int
    node: int
    incarnation: int
    sequence: int
    event: events.AnyEvent


_Clock = dict[str, int]


def shiviz_lines(events: Iterable[LoggedEvent]) -> Iterator[str]:
    """Yields the lines of a log, two for each event, in the order of time."""
    drawn = sorted(each for each in events if not isinstance(each.event, _LEFT_OUT))
    hosts = _hosts(drawn)
    clocks: dict[str, _Clock] = {}
    first_of_cause: dict[str, _Clock] = {}
    committed: dict[int, _Clock] = {}
    for each in drawn:
        host = hosts[each.node]
        clock = dict(clocks.get(host, {}))
        for cause in _causes(each.event, first_of_cause, committed):
            for other, count in cause.items():
                clock[other] = max(clock.get(other, 0), count)
        clock[host] = clocks.get(host, {}).get(host, 0) + 1
        clocks[host] = clock
        first_of_cause.setdefault(each.event.cause_id, clock)
        metadata_offset = _recorded_offset(each.event)
        if metadata_offset is not None:
            committed.setdefault(metadata_offset, clock)
        yield f"{host} {json.dumps(clock)}"
        yield " ".join(each.event.describe().split())


def _hosts(drawn: Iterable[LoggedEvent]) -> dict[int, str]:
    roles = {each.node: each.event.role.value for each in drawn if isinstance(each.event, events.NodeStarted)}
    return {each.node: f"{roles.get(each.node, 'node')}-{each.node}" for each in drawn}


def _causes(
    event: events.AnyEvent, first_of_cause: dict[str, _Clock], committed: dict[int, _Clock]
) -> Iterator[_Clock]:
    if event.cause_id in first_of_cause:
        yield first_of_cause[event.cause_id]
    if isinstance(event, events.MetadataApplied):
        for metadata_offset in range(event.start_offset, event.end_offset):
            if metadata_offset in committed:
                yield committed[metadata_offset]


def _recorded_offset(event: events.AnyEvent) -> int | None:
    """The metadata record that a controller records."""
    return getattr(event, "metadata_offset", None) if isinstance(event, COMMITTED) else None
