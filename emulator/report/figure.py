"""The picture of a partition as SVG: faults, the leader, all logs, a lane for each replica, acknowledgements, and time.

::

    faults       what was broken and mended
    controller   with ZooKeeper: blocks of who was controller in which epoch
    leader       blocks: leader, epoch, ISR, ELR
    all logs     how many copies of each record there are            | in the end
    broker 0     its role; its log                                   | its final log
    ...
    acked        records per time, acks=all above, acks=1 below
    time
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from laststand.emulator.report.axes import RecordAxis, TimeAxis
from laststand.emulator.report.copies_lane import copies_lane
from laststand.emulator.report.curves import flushed_steps, held_curves
from laststand.emulator.report.gone import counts_of, gone_records
from laststand.emulator.report.lanes import acks_lane, controller_lane, faults_lane, leader_lane
from laststand.emulator.report.log_lane import broker_lane
from laststand.emulator.report.markup import element, line, text, title
from laststand.emulator.report.picture import Box, PartitionPicture
from laststand.emulator.report.spans import changes_until, replicas_of
from laststand.emulator.report.steps import StoryStep, story_steps
from laststand.emulator.report.words import dashed, faults_and_repairs
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.verdict.report import VerdictReport

WIDTH: Final = 985.0
_LEFT: Final = 92.0
_RIGHT: Final = 812.0
_FINAL_WIDTH: Final = 98.0
_STRIP: Final = 11.0
_LANES_HEIGHT: Final = 292.0
"""The height of all log lanes together, where they have room."""

_LANE_MAX: Final = 76.0
_LANE_MIN: Final = 34.0
_COPIES_MAX: Final = 108.0
_BRACE_MIN: Final = 11.0
_BRACE_LEAST: Final = 2.5


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture, the steps that are numbered in it, its data, and the places of its lanes."""

    svg: str
    steps: tuple[StoryStep, ...]
    height: float
    picture: PartitionPicture
    boxes: dict[str, Box]


def picture_of(
    verdict: VerdictReport | None,
    partition: PartitionStory,
    story: RunStory,
    *,
    left: float = _LEFT,
    right: float = _RIGHT,
    final_width: float = _FINAL_WIDTH,
) -> PartitionPicture:
    """Returns the data of all lanes of a partition's picture.

    Args:
        verdict: of the run; ``None`` while it is under way: then no loss is known, and logs are shown as they are now.
        partition: to draw.
        story: of the run.
        left: place of time 0.
        right: the right edge of the lanes.
        final_width: width of the final logs.
    """
    held = held_curves(partition, end_us=story.end_us)
    records = RecordAxis(partition)
    return PartitionPicture(
        story=story,
        partition=partition,
        brokers=tuple(replicas_of(partition, story.end_us)),
        changes=tuple(changes_until(partition, story.end_us)),
        time=TimeAxis(_happenings(partition, story), end_us=story.end_us, left=left, right=right),
        records=records,
        held=held,
        flushed=flushed_steps(partition),
        gone=tuple(gone_records(counts_of(verdict, partition), records, held)),
        final_left=right,
        final_right=right + final_width,
    )


def draw(
    verdict: VerdictReport | None,
    partition: PartitionStory,
    story: RunStory,
    *,
    prefix: str,
    scale: float = 1.0,
) -> Figure:
    """Draws a partition.

    Args:
        verdict: of the run; ``None`` while it is under way: then no loss is known, and logs are shown as they are now.
        partition: to draw.
        story: of the run.
        prefix: of all ids in the picture, which are unique in the page.
        scale: of the lanes' heights.
    """
    picture = picture_of(verdict, partition, story)
    lane_height = min(_LANE_MAX, max(_LANE_MIN, _LANES_HEIGHT / max(len(picture.brokers), 1) - _STRIP)) * scale
    steps = tuple(story_steps(verdict, partition, story, picture.records))
    parts: list[str] = []
    y = 4.0
    faults, height = faults_lane(picture, y)
    faults_box = Box(_LEFT, y, _RIGHT, y + height)
    parts += [_label("faults", y + 11), *faults]
    y += height + 4
    if story.controllers:
        parts += [_label("controller", y + 14), *controller_lane(picture, Box(_LEFT, y, _RIGHT, y + 20))]
        y += 24
    leader = Box(_LEFT, y, _RIGHT, y + 20)
    parts += [
        _label("leader", y + 14),
        *leader_lane(picture, leader, marked={step.time_us for step in steps if step.place.lane == "leader"}),
    ]
    final_words = "now" if verdict is None else "in the end"
    parts.append(text(final_words, (picture.final_left + picture.final_right) / 2, y + 14, "head", anchor="middle"))
    y += 28
    copies = Box(_LEFT, y, _RIGHT, y + min(_COPIES_MAX, lane_height * 1.45))
    parts += [_label("all logs", y + 12), text("copies of", 80, y + 26, "side", anchor="end")]
    parts.append(text("each record", 80, y + 39, "side", anchor="end"))
    parts += [*copies_lane(picture, copies), *_braces(picture, copies)]
    y = copies.bottom + 9
    boxes = {"faults": faults_box, "leader": leader, "copies": copies}
    for broker in picture.brokers:
        box = Box(_LEFT, y + _STRIP + 1, _RIGHT, y + _STRIP + 1 + lane_height)
        parts.append(_label(f"broker {broker}", box.top + 12))
        parts += broker_lane(picture, broker, box, strip=_STRIP, prefix=prefix)
        boxes[f"broker {broker}"] = box
        y = box.bottom + 8
    acks = Box(_LEFT, y, _RIGHT, y + 30)
    parts += acks_lane(picture, acks)
    y = acks.bottom + 6
    parts.append(_time_axis(picture.time, y))
    y += 18
    hairlines = [
        line(picture.time.x(time_us), 18, picture.time.x(time_us), acks.bottom, "hairline")
        for time_us in sorted({time_us for time_us, _, _ in faults_and_repairs(story) if 0 <= time_us <= story.end_us})
    ]
    name = f"{partition.topic}-{partition.partition}"
    svg = element(
        "svg",
        title(f"What became of the records of {name}, over time"),
        *parts,
        element("g", *hairlines, class_="hairlines"),
        element("g", *_discs(steps, picture.time, boxes, prefix), class_="discs"),
        element("line", class_="cursor", y1=18.0, y2=acks.bottom),
        viewBox=f"0 0 {WIDTH:.0f} {y:.0f}",
        class_="figure",
        id=f"{prefix}figure",
        role="group",
        aria_label=f"Picture of {name}. The numbered story beside it tells the same.",
        tabindex="0",
        data_left=_LEFT,
        data_right=_RIGHT,
    )
    return Figure(svg=svg, steps=steps, height=y, picture=picture, boxes=boxes)


def _happenings(partition: PartitionStory, story: RunStory) -> list[int]:
    times = [step.time_us for step in story.steps]
    times += [change.time_us for change in partition.changes]
    times += [cut.time_us for cut in partition.cuts]
    times += [time_us for time_us, _, _ in faults_and_repairs(story)]
    return [time_us for time_us in times if 0 < time_us < story.end_us]


def _label(words: str, y: float) -> str:
    return text(words, 80, y, "label", anchor="end")


def _braces(picture: PartitionPicture, box: Box) -> list[str]:
    parts = []
    x = picture.final_right + 5
    for span in picture.records.spans:
        top, bottom = box.y(span.high), box.y(span.low)
        if bottom - top < _BRACE_LEAST:
            continue
        parts.append(element("path", d=f"M{x - 3:.1f} {top + 1:.1f}h4V{bottom - 1:.1f}h-4", class_="brace"))
        middle = (top + bottom) / 2
        offsets = dashed(span.first, max(span.end - 1, span.first))
        if bottom - top >= 2 * _BRACE_MIN + 2:
            parts.append(text(f"epoch {span.leader_epoch}", x + 5, middle - 2, "note"))
            parts.append(text(offsets, x + 5, middle + 10, "note small"))
        elif bottom - top >= _BRACE_MIN - 3:
            parts.append(text(f"epoch {span.leader_epoch}", x + 5, middle + 4, "note"))
    return parts


def _time_axis(axis: TimeAxis, y: float) -> str:
    parts = (
        part
        for x, words in axis.ticks()
        for part in (line(x, y - 4, x, y, "tick"), text(words, x, y + 11, "note", anchor="middle"))
    )
    return element("g", *parts, class_="ticks", data_y=y)


def _discs(steps: Sequence[StoryStep], axis: TimeAxis, boxes: dict[str, Box], prefix: str) -> list[str]:
    parts, taken = [], list[tuple[float, float]]()
    for place, step in enumerate(steps, start=1):
        box = boxes.get(step.place.lane, boxes["copies"])
        at, y = axis.x(step.time_us), float(np.clip(box.y(step.place.height), box.top + 9, box.bottom - 9))
        aside = 0.0
        while any(abs(at + aside - other_x) < 18 and abs(y - other_y) < 16 for other_x, other_y in taken):
            aside += 19
        taken.append((at + aside, y))
        parts.append(
            element(
                "a",
                title(f"{place}. {step.title}"),
                element("circle", cx=at, cy=y, r=9.0),
                element("text", escape(str(place)), x=at, y=y + 3.8, text_anchor="middle"),
                href=f"#{prefix}step-{place}",
                id=f"{prefix}disc-{place}",
                class_=f"disc {step.tone.value}",
                data_step=f"{prefix}step-{place}",
                aria_label=f"Step {place}: {step.title}",
                data_aside=aside or None,
                transform=f"translate({aside:.0f} 0)" if aside else None,
            )
        )
    return parts
