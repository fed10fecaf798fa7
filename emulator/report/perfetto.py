"""A run as a trace for Perfetto, in the Trace Event Format: nodes as processes, roles and faults as slices.

A node has a thread for each of its processes and for each partition; counters are its log ends. Faults of a node
overlap, which slices of a thread may not, so they are written as pairs of asynchronous events. Times are microseconds.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import TypedDict

from laststand.emulator.report.curves import held_curves
from laststand.emulator.report.spans import (
    Role,
    Span,
    absent_spans,
    cut_off_spans,
    joined,
    mistaken_spans,
    replicas_of,
    role_spans,
)
from laststand.emulator.report.words import NodeNames
from laststand.emulator.verification.story.run import PartitionStory, RunStory


class TraceEvent(TypedDict, total=False):
    """An event of a trace, by the names of its format."""

    ph: str
    name: str
    pid: int
    tid: int
    ts: int
    dur: int
    s: str
    cat: str
    id: str
    args: dict[str, str | int]


class _Thread(IntEnum):
    PROCESS = 1
    FAULTS = 2
    FIRST_PARTITION = 10


_ROLES = {Role.LEADER: "leader", Role.ISR: "in ISR", Role.ELR: "in ELR", Role.OUT: "out"}


def trace_events(story: RunStory) -> Iterator[TraceEvent]:
    """Yields the events of a run's trace."""
    names = NodeNames(story)
    for node in sorted({each.node for each in story.processes}):
        yield _name("process_name", node, 0, names.name(node))
        yield _name("thread_name", node, _Thread.PROCESS, "process")
        yield from _of_node(story, node)
    for place, partition in enumerate(story.partitions):
        for broker in replicas_of(partition, story.end_us):
            yield from _of_replica(story, partition, broker, _Thread.FIRST_PARTITION + place)


def _name(kind: str, node: int, thread: int, name: str) -> TraceEvent:
    return TraceEvent(ph="M", name=kind, pid=node, tid=thread, args={"name": name})


def _slice(name: str, node: int, thread: int, begin_us: int, end_us: int, **more: str | int) -> TraceEvent:
    return TraceEvent(
        ph="X", name=name, pid=node, tid=thread, ts=begin_us, dur=max(end_us - begin_us, 1), args=dict(more)
    )


def _lasting(span: Span, node: int, **more: str) -> Iterator[TraceEvent]:
    own_id = f"{node} {span.words} {span.begin_us} {more.get('partition', '')}"
    shared = TraceEvent(name=span.words, cat="fault", id=own_id, pid=node, tid=_Thread.FAULTS)
    yield TraceEvent(**shared, ph="b", ts=span.begin_us, args=dict(more))
    yield TraceEvent(**shared, ph="e", ts=max(span.end_us, span.begin_us + 1))


def _of_node(story: RunStory, node: int) -> Iterator[TraceEvent]:
    for process in story.processes:
        if process.node == node:
            end_us = story.end_us if process.ended_us is None else process.ended_us
            end = "unknown" if process.end is None else process.end.value
            yield _slice(f"process {process.incarnation}", node, _Thread.PROCESS, process.started_us, end_us, end=end)
    for span in (*joined(cut_off_spans(story, node)), *absent_spans(story, node)):
        yield from _lasting(span, node)


def _of_replica(story: RunStory, partition: PartitionStory, broker: int, thread: int) -> Iterator[TraceEvent]:
    name = f"{partition.topic}-{partition.partition}"
    yield _name("thread_name", broker, thread, name)
    for role in role_spans(partition, broker, story.end_us):
        yield _slice(_ROLES[role.role], broker, thread, role.begin_us, role.end_us, partition=name)
    for span in joined(mistaken_spans(partition, story, broker)):
        yield from _lasting(span, broker, partition=name)
    for cut in partition.cuts:
        if cut.node == broker:
            yield TraceEvent(
                ph="i",
                name=f"{cut.became.value}: {cut.old_end} to {cut.new_end}",
                pid=broker,
                tid=thread,
                ts=cut.time_us,
                s="t",
                args={"file": cut.event.file, "sequence": cut.event.sequence},
            )
    for (_, leader_epoch), curves in held_curves(partition, end_us=story.end_us).items():
        if broker in curves:
            for time, value in zip(*curves[broker], strict=True):
                yield TraceEvent(
                    ph="C",
                    name=f"{name} log end, epoch {leader_epoch}",
                    pid=broker,
                    ts=int(time),
                    args={"offset": int(value)},
                )
