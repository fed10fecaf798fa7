"""The picture of a partition as text, for terminals, step summaries and issues.

::

    leader    000000111111222....222      digits are brokers, . is no leader; with ZooKeeper above it the controller
    broker 0  LLLLLL..............ii      L leads, i in ISR, e in ELR, . out, x no process
    no ack          ######                the longest time in which no send was acknowledged
    copies 0  333333222222111111000       copies of the records of epoch 0

Each column is a moment; moments are as far apart as in the picture.
"""

from typing import Final

import numpy as np

from laststand.emulator.report.axes import TimeAxis
from laststand.emulator.report.figure import picture_of
from laststand.emulator.report.numbers import plural
from laststand.emulator.report.picture import PartitionPicture
from laststand.emulator.report.spans import absent_spans, changes_until, leader_at, role_in, role_spans
from laststand.emulator.report.words import faults_and_repairs, seconds
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.verdict.report import VerdictReport

COLUMNS: Final = 72
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_COPIES_ROWS_MAX: Final = 8
PAUSE_S: Final = 0.5
"""A time in seconds without an acknowledgement that is worth a mention."""

_NS_PER_US: Final = 1_000
_US_PER_S: Final = 1_000_000


def text_picture(verdict: VerdictReport, partition: PartitionStory, story: RunStory) -> str:
    """Returns the picture of a partition as lines.

    The last column shows the state that was committed at the very end, if one was: an imported run ends with the last
    record of its metadata log, and how long that state lasted is not known.
    """
    picture = picture_of(verdict, partition, story)
    axis = TimeAxis(
        [time_us for time_us, _ in picture.time.knots[1:-1]], end_us=story.end_us, left=0.0, right=float(COLUMNS)
    )
    moments = axis.times(np.arange(COLUMNS, dtype=np.float64) + 0.5)
    marks, legend = _marks(axis, story)
    rows = [("faults", marks)]
    if story.controllers:
        rows.append(("controller", "".join(_controller(story, time) for time in moments)))
    moments[-1] = max(moments[-1], max((each.time_us for each in changes_until(partition, story.end_us)), default=0))
    rows += [("leader", "".join(_leader(partition, time) for time in moments))]
    rows += [(f"broker {broker}", _roles(picture, broker, moments)) for broker in picture.brokers]
    waiting = _without_ack(verdict, partition, story, moments)
    if "#" in waiting:
        rows.append(("no ack", waiting))
    copies = _copies(picture, moments)
    rows += copies[:_COPIES_ROWS_MAX]
    if len(copies) > _COPIES_ROWS_MAX:
        legend.append(f"copies of {plural(len(copies) - _COPIES_ROWS_MAX, 'more epoch')} are not shown")
    rows.append(("seconds", _seconds(axis)))
    width = max(len(name) for name, _ in rows)
    return "\n".join([*(f"{name:<{width}}  {row}".rstrip() for name, row in rows), *legend])


def _marks(axis: TimeAxis, story: RunStory) -> tuple[str, list[str]]:
    row, legend = [" "] * COLUMNS, list[str]()
    found = [each for each in faults_and_repairs(story) if 0 <= each[0] <= story.end_us]
    for letter, (time_us, words, _) in zip(_LETTERS, found, strict=False):
        place = min(int(axis.x(time_us)), COLUMNS - 1)
        while place < COLUMNS - 1 and row[place] != " ":
            place += 1
        row[place] = letter
        legend.append(f"{letter} {words} at {seconds(time_us)}")
    if len(found) > len(_LETTERS):
        legend.append(f"{plural(len(found) - len(_LETTERS), 'later action')} not marked")
    return "".join(row), legend


def _controller(story: RunStory, time_us: float) -> str:
    terms = [term for term in story.controllers if term.begun_us <= time_us]
    if not terms or terms[-1].broker is None or time_us >= (terms[-1].ended_us or story.end_us + 1):
        return "."
    return str(terms[-1].broker % 10)


def _leader(partition: PartitionStory, time_us: float) -> str:
    leader = leader_at(partition, int(time_us))
    return "." if leader is None else str(leader % 10)


def _roles(picture: PartitionPicture, broker: int, moments: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    roles = role_spans(picture.partition, broker, picture.story.end_us)
    absent = [span for span in absent_spans(picture.story, broker) if span.kind == "down"]
    letters = []
    changes = changes_until(picture.partition, picture.story.end_us)
    for time in moments:
        role = next((span.role.value for span in roles if span.begin_us <= time < span.end_us), ".")
        if changes and time >= picture.story.end_us:
            role = role_in(changes[-1], broker).value
        is_absent = any(span.begin_us <= time < span.end_us for span in absent)
        letters.append("x" if is_absent else role)
    return "".join(letters)


def _without_ack(
    verdict: VerdictReport,
    partition: PartitionStory,
    story: RunStory,
    moments: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> str:
    waits = [
        ((each.longest_begun_ns - story.origin_ns) / _NS_PER_US, each.longest_without_ack_s * _US_PER_S)
        for of in verdict.availability
        if (of.topic, of.partition) == (partition.topic, partition.partition)
        for each in of.workloads
        if each.longest_begun_ns is not None and each.longest_without_ack_s > PAUSE_S
    ]
    return "".join("#" if any(begun <= time < begun + wait for begun, wait in waits) else " " for time in moments)


def _copies(picture: PartitionPicture, moments: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[tuple[str, str]]:
    """Returns the number of logs with the last lost record of an epoch, or else its last acknowledged one."""
    gone = {each.span.key: each.last for each in picture.gone}
    rows = []
    for span in picture.records.spans:
        promised = picture.promised_end(span.key)
        curves = picture.held.get(span.key, {})
        if not promised or not curves or (gone and span.key not in gone):
            continue
        last = gone.get(span.key, promised - 1)
        held = np.sum([curve.at(moments) > last for curve in curves.values()], axis=0)
        begun = np.maximum.accumulate(held) > 0
        row = "".join(str(min(int(count), 9)) if was else " " for count, was in zip(held, begun, strict=True))
        if row.strip():
            rows.append((f"copies {span.leader_epoch}", row))
    return rows


def _seconds(axis: TimeAxis) -> str:
    row = [" "] * (COLUMNS + 4)
    last = -3
    for number in range(int(axis.end_us / 1_000_000) + 1):
        place = int(axis.x(number * 1_000_000))
        words = str(number)
        if place - last >= len(words) + 2:
            row[place : place + len(words)] = words
            last = place + len(words) - 1
    return "".join(row)
