"""Stories that are as long as verification lets them be: for what a page costs at the most."""

from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.verification.story.causes import CAUSES_MAX, EVENTS_MAX
from laststand.emulator.verification.story.partition import CHANGES_MAX
from laststand.emulator.verification.story.run import (
    Acknowledged,
    Cause,
    CausedEvent,
    FinalRecords,
    Flushed,
    HeldRecords,
    Leadership,
    PartitionStory,
    Point,
    Promised,
    StateChange,
)
from laststand.emulator.verification.story.thinning import POINTS_MAX
from laststand.emulator.verification.tables.timeline import EventPlace
from laststand.emulator.verification.verdict.report import RecordCounts

END_US: Final = 600_000_000
_RECORDS: Final = 1_000_000
_RATE_POINTS: Final = 400
_REPLICAS: Final = (0, 1, 2)
_TOPIC: Final = "topic-id"


def at_all_caps(run: ReportedRun, *, partitions: int, epochs: int) -> ReportedRun:
    """Returns a run of a million records whose leader changes as often as a story tells.

    Args:
        run: whose verdict, faults and processes it has.
        partitions: how many it has, all of them like that.
        epochs: of the changes of leader, those after which records were written.
    """
    told = _partition(run.story.partitions[0], epochs)
    many = tuple(msgspec.structs.replace(told, partition=number) for number in range(partitions))
    counts = (RecordCounts(acks=-1, sent=_RECORDS, acked=_RECORDS, lost=100, never_acked=0),)
    return ReportedRun(
        directory=run.directory,
        verdict=msgspec.structs.replace(run.verdict, counts=counts, partitions=()),
        story=msgspec.structs.replace(run.story, partitions=many, end_us=END_US),
        plan=run.plan,
    )


def _partition(like: PartitionStory, epochs: int) -> PartitionStory:
    changes = tuple(_change(epoch) for epoch in range(CHANGES_MAX))
    written = [epoch * CHANGES_MAX // epochs for epoch in range(epochs)]
    ends = [_RECORDS * (place + 1) // epochs for place in range(epochs)]
    firsts = [0, *ends[:-1]]
    lasts = [*written[1:], CHANGES_MAX]
    curves = [
        _rising(epoch, last, first, end) for epoch, last, first, end in zip(written, lasts, firsts, ends, strict=True)
    ]
    return msgspec.structs.replace(
        like,
        changes=changes,
        leaderships=tuple(
            Leadership(
                node=node,
                time_us=_time_us(epoch) + 1000,
                topic_id=_TOPIC,
                leader_epoch=epoch,
                is_leading=node == epoch % 3,
                event=_event(node, 3 * epoch),
            )
            for node in _REPLICAS
            for epoch in range(CHANGES_MAX)
        ),
        held=tuple(
            HeldRecords(node=node, topic_id=_TOPIC, leader_epoch=epoch, first=first, ends=curve)
            for node in _REPLICAS
            for epoch, first, curve in zip(written, firsts, curves, strict=True)
        ),
        cuts=(),
        final=tuple(
            FinalRecords(node=node, topic_id=_TOPIC, leader_epoch=epoch, first=first, last=end - 1)
            for node in _REPLICAS
            for epoch, first, end in zip(written, firsts, ends, strict=True)
        ),
        promised=tuple(
            Promised(topic_id=_TOPIC, leader_epoch=epoch, ends=curve)
            for epoch, curve in zip(written, curves, strict=True)
        ),
        acknowledged=(
            Acknowledged(
                acks=-1,
                records=tuple(
                    Point(END_US * place // _RATE_POINTS, _RECORDS * place // _RATE_POINTS)
                    for place in range(1, _RATE_POINTS)
                ),
                pauses=(),
            ),
        ),
        named_events=(),
        flushed=tuple(
            Flushed(
                node=node,
                topic_id=_TOPIC,
                points=tuple(
                    Point(END_US * place // POINTS_MAX, _RECORDS * place // POINTS_MAX) for place in range(POINTS_MAX)
                ),
            )
            for node in _REPLICAS
        ),
        causes=tuple(
            Cause(
                cause_id=f"send-{cause}",
                events=tuple(
                    CausedEvent(node=number % 3, time_us=number, text="x" * 200, event=_event(0, 10 * cause + number))
                    for number in range(EVENTS_MAX)
                ),
            )
            for cause in range(CAUSES_MAX)
        ),
    )


def _change(epoch: int) -> StateChange:
    leader = epoch % 3
    return StateChange(
        time_us=_time_us(epoch),
        metadata_offset=epoch,
        topic_id=_TOPIC,
        reason="broker fenced",
        broker=(leader + 1) % 3,
        election=events.Election.ISR,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=epoch,
        replicas=_REPLICAS,
        isr=(leader, (leader + 2) % 3),
        elr=(),
        min_isr=2,
        is_recovering=False,
        event=_event(100, epoch),
    )


def _time_us(epoch: int) -> int:
    return END_US * epoch // CHANGES_MAX


def _event(node: int, sequence: int) -> EventPlace:
    return EventPlace(file=f"events/{node}-0.packed", sequence=sequence)


def _rising(epoch: int, last: int, first: int, end: int) -> tuple[Point, ...]:
    points = min(POINTS_MAX, end - first)
    begin_us, until_us = _time_us(epoch), _time_us(last)
    return tuple(
        Point(begin_us + (until_us - begin_us) * place // points, first + (end - first) * place // points)
        for place in range(1, points)
    )
