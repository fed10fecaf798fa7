"""The state of each broker at any time: its role by the controller and by itself; down, or cut off."""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.report.words import NodeNames, channel_of, listed
from laststand.emulator.verification.story.run import Fault, PartitionStory, RunStory, StateChange

_CUTTING: Final = frozenset({"cut", "hold", "lose_responses"})
"""Faults of a link that keep messages from passing."""

_ENDS: Final = {
    events.IncarnationEnd.POWER_LOST: "no power",
    events.IncarnationEnd.KILLED: "killed",
    events.IncarnationEnd.STOPPED: "stopped",
    events.IncarnationEnd.UNEXPECTED: "died",
}


class Role(Enum):
    """The role of a replica by the controller's state; the value is its letter in text."""

    LEADER = "L"
    ISR = "i"
    ELR = "e"
    OUT = "."


class RoleSpan(NamedTuple):
    """A role, from one time to another; ``words`` has more details if there are any."""

    begin_us: int
    end_us: int
    role: Role


class Span(NamedTuple):
    """A period, in words; ``kind`` decides how it is drawn."""

    begin_us: int
    end_us: int
    kind: str
    words: str


def changes_until(partition: PartitionStory, end_us: int) -> list[StateChange]:
    """Returns the committed states before the end of the run: the shutdown is not shown."""
    return [change for change in partition.changes if change.time_us <= end_us]


def replicas_of(partition: PartitionStory, end_us: int) -> list[int]:
    """Returns the brokers that were ever replicas, by id."""
    assigned = {broker for change in changes_until(partition, end_us) for broker in change.replicas}
    return sorted(assigned | {held.node for held in partition.held})


def role_in(change: StateChange, broker: int) -> Role:
    """Returns a broker's role in a committed state."""
    if change.leader == broker:
        return Role.LEADER
    if broker in change.isr:
        return Role.ISR
    return Role.ELR if broker in change.elr else Role.OUT


def role_spans(partition: PartitionStory, broker: int, end_us: int) -> list[RoleSpan]:
    """Returns the roles of a broker since the partition was created, one after the other."""
    spans: list[RoleSpan] = []
    changes = changes_until(partition, end_us)
    ends = [*(change.time_us for change in changes[1:]), end_us][: len(changes)]
    for change, until in zip(changes, ends, strict=True):
        begin, role = max(change.time_us, 0), role_in(change, broker)
        if spans and spans[-1].role is role:
            spans[-1] = spans[-1]._replace(end_us=until)
        else:
            spans.append(RoleSpan(begin, until, role))
    return [span for span in spans if span.end_us > span.begin_us]


def leader_at(partition: PartitionStory, time_us: int) -> int | None:
    """Returns the leader by the controller's word."""
    led = [change.leader for change in partition.changes if change.time_us <= time_us]
    return led[-1] if led else None


def mistaken_spans(partition: PartitionStory, story: RunStory, broker: int) -> Iterator[Span]:
    """Yields when a broker took itself for the leader and the controller did not."""
    own = [each for each in partition.leaderships if each.node == broker]
    ends = [*(each.time_us for each in own[1:]), story.end_us][: len(own)]
    stops = sorted(each.ended_us for each in story.processes if each.node == broker and each.ended_us is not None)
    for each, until in zip(own, ends, strict=True):
        if not each.is_leading:
            continue
        until = min([until, story.end_us, *(stop for stop in stops if stop > each.time_us)])
        inner = [c.time_us for c in partition.changes if each.time_us < c.time_us < until]
        for begin, end in zip([each.time_us, *inner], [*inner, until], strict=True):
            if end > begin and leader_at(partition, begin) != broker:
                yield Span(begin, end, "mistaken", f"out, but thinks it leads epoch {each.leader_epoch}")


def joined(spans: Iterator[Span]) -> list[Span]:
    """Joins consecutive spans with the same text."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1].words == span.words and found[-1].end_us >= span.begin_us:
            found[-1] = found[-1]._replace(end_us=max(found[-1].end_us, span.end_us))
        else:
            found.append(span)
    return found


def absent_spans(story: RunStory, broker: int) -> Iterator[Span]:
    """Yields when a broker did not run, or had not yet begun its work, or stood still."""
    own = sorted((each for each in story.processes if each.node == broker), key=lambda each: each.incarnation)
    starts = [*(each.started_us for each in own[1:]), story.end_us][: len(own)]
    for place, (process, next_us) in enumerate(zip(own, starts, strict=True)):
        if place and process.running_us is not None and process.running_us > process.started_us:
            yield Span(process.started_us, min(process.running_us, story.end_us), "starts", "starts")
        if process.ended_us is not None and process.end is not None and process.ended_us < min(next_us, story.end_us):
            yield Span(process.ended_us, min(next_us, story.end_us), "down", _ENDS[process.end])
    for fault in story.faults:
        if fault.fault == "pause" and broker in fault.nodes:
            yield Span(fault.begun_us, _healed(fault, story), "paused", "paused")


def cut_off_spans(story: RunStory, broker: int) -> Iterator[Span]:
    """Yields the periods in which a broker was cut off, and from which nodes."""
    names = NodeNames(story)
    links: dict[tuple[int, int, bool], list[str]] = {}
    for fault in story.faults:
        if fault.fault == "isolate" and broker in fault.nodes:
            yield Span(fault.begun_us, _healed(fault, story), "cut-off", "cut off from every node")
        elif fault.fault in _CUTTING:
            channel = channel_of(fault)
            for link in fault.links:
                if broker in (link.source, link.target):
                    other = link.target if link.source == broker else link.source
                    words = f"no {channel} with {names.name(other)}" if channel else names.name(other)
                    links.setdefault((fault.begun_us, _healed(fault, story), bool(channel)), []).append(words)
    for (begin_us, end_us, is_partly), others in links.items():
        words = listed(list(dict.fromkeys(others)))
        yield Span(begin_us, end_us, "cut-off", words if is_partly else f"cut off from {words}")


def _healed(fault: Fault, story: RunStory) -> int:
    return story.end_us if fault.healed_us is None else min(fault.healed_us, story.end_us)
