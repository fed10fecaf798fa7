"""The edges of a picture: the places where something begins, ends or changes, with the event that records it.

A script shows the edge that is nearest to the pointer, and the other events of the same cause.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.report.lanes import why
from laststand.emulator.report.numbers import number
from laststand.emulator.report.picture import Box, PartitionPicture
from laststand.emulator.report.words import NodeNames, members
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.story.run import Cause, Cut, StateChange
from laststand.emulator.verification.tables.timeline import EventPlace

EDGES_MAX: Final = 400
"""Edges of a picture that a page lists; where there are more, those between are left out."""

_ENDS: Final = {
    events.IncarnationEnd.POWER_LOST: "loses power",
    events.IncarnationEnd.KILLED: "is killed",
    events.IncarnationEnd.STOPPED: "is stopped",
    events.IncarnationEnd.UNEXPECTED: "dies",
}
_ANSWER: Final = "ProduceAnswered"


class Edge(NamedTuple):
    """The place of an event in a picture; ``cause`` is the index of its cause among the picture's causes, or -1."""

    time_us: int
    x: float
    top: float
    bottom: float
    words: str
    event: str
    cause: int


class DescribedEvent(NamedTuple):
    """An event of a cause, in words."""

    time_us: int
    who: str
    text: str
    event: str


class _Found(NamedTuple):
    time_us: int
    lane: str
    words: str
    event: EventPlace


def line_of(place: EventPlace) -> str:
    """Returns the place of an event: a file and the number of a line, from 1."""
    return f"{place.file}:{place.sequence + 1}"


def edges_of(picture: PartitionPicture, boxes: Mapping[str, Box]) -> list[Edge]:
    """Returns the edges in the order of time.

    Args:
        picture: of a partition.
        boxes: the places of its lanes.
    """
    causes = {
        (caused.event.file, caused.event.sequence): place
        for place, cause in reversed(list(enumerate(picture.partition.causes)))
        for caused in cause.events
    }
    found = [each for each in _found(picture) if 0 <= each.time_us <= picture.story.end_us and each.lane in boxes]
    found.sort(key=lambda each: each.time_us)
    if len(found) > EDGES_MAX:
        step = len(found) / EDGES_MAX
        found = [found[int(place * step)] for place in range(EDGES_MAX)]
    return [
        Edge(
            each.time_us,
            round(picture.time.x(each.time_us), 1),
            round(boxes[each.lane].top, 1),
            round(boxes[each.lane].bottom, 1),
            each.words,
            line_of(each.event),
            causes.get((each.event.file, each.event.sequence), -1),
        )
        for each in found
    ]


def causes_of(picture: PartitionPicture) -> list[tuple[str, int, list[DescribedEvent]]]:
    """Returns the causes of a picture: name, how many events are left out, events."""
    names = NodeNames(picture.story)
    return [(cause.cause_id, cause.left_out, _events_of_cause(cause, names)) for cause in picture.partition.causes]


def _events_of_cause(cause: Cause, names: NodeNames) -> list[DescribedEvent]:
    return [
        DescribedEvent(each.time_us, names.name(each.node), each.text, line_of(each.event)) for each in cause.events
    ]


def _found(picture: PartitionPicture) -> Iterator[_Found]:
    names, partition, story = NodeNames(picture.story), picture.partition, picture.story
    for fault in story.faults:
        yield _Found(
            fault.begun_us, "faults", f"{names.fault_label(fault)}: {fault.effect or 'no effect'}", fault.event
        )
        for node in fault.nodes:
            yield _Found(fault.begun_us, f"broker {node}", names.fault_label(fault), fault.event)
    for heal in story.heals:
        yield _Found(heal.begun_us, "faults", names.heal_label(heal), heal.event)
    for process in story.processes:
        lane, name = f"broker {process.node}", names.name(process.node)
        if process.started_event is not None and process.incarnation > 0:
            yield _Found(process.started_us, lane, f"{name} starts again", process.started_event)
        if process.ended_us is not None and process.end is not None and process.ended_event is not None:
            yield _Found(process.ended_us, lane, f"{name} {_ENDS[process.end]}", process.ended_event)
    for registered in story.registrations:
        if not registered.is_first:
            how = "after a clean shutdown" if registered.is_clean else "without proof of a clean shutdown"
            words = f"broker {registered.broker} is registered again, {how}"
            yield _Found(registered.time_us, f"broker {registered.broker}", words, registered.event)
    for change in picture.changes:
        yield _Found(change.time_us, "leader", _change_words(change), change.event)
    for role in partition.leaderships:
        what = "leads" if role.is_leading else "follows"
        words = f"broker {role.node} {what} from now on, as far as it knows, epoch {role.leader_epoch}"
        yield _Found(role.time_us, f"broker {role.node}", words, role.event)
    for cut in partition.cuts:
        yield _Found(cut.time_us, f"broker {cut.node}", _cut_words(cut), cut.event)
    for cause in partition.causes:
        for caused in cause.events:
            if caused.text.startswith(_ANSWER):
                yield _Found(caused.time_us, "copies", f"{names.name(caused.node)} acknowledges", caused.event)


def _change_words(change: StateChange) -> str:
    leader = "no leader" if change.leader is None else f"broker {change.leader} leads"
    elr = f", ELR {members(change.elr)}" if change.elr else ""
    return f"{leader}, epoch {change.leader_epoch}; ISR {members(change.isr)}{elr}: {why(change)}"


def _cut_words(cut: Cut) -> str:
    what = {
        CopyFate.POWER_LOST: "loses what was not flushed",
        CopyFate.TRUNCATED: "cuts its log",
        CopyFate.LOG_DELETED: "deletes its log",
    }.get(cut.became, "starts with less")
    leader = "" if cut.leader is None else f" to follow broker {cut.leader} in epoch {cut.leader_epoch}"
    return f"broker {cut.node} {what}{leader}: {number(cut.old_end)} to {number(cut.new_end)}"
