"""The narrow lanes of a picture: faults, the leader, acknowledgements."""

from bisect import bisect_left
from collections.abc import Collection
from typing import Final

import numpy as np

from laststand.emulator.report.crowded import CROWDED, drawn_apart, too_close
from laststand.emulator.report.curves import curve
from laststand.emulator.report.labels import block_label
from laststand.emulator.report.markup import boxes, element, rect, text, title
from laststand.emulator.report.picture import Box, PartitionPicture
from laststand.emulator.report.words import ACKS_ALL, election_words, faults_and_repairs, members, seconds
from laststand.emulator.verification.story.run import StateChange

_FAULT_ROW: Final = 12.5
_FAULT_ROWS: Final = 3
_FAULT_CHARACTER: Final = 6.5
_DISC: Final = 13.0
_BUCKET: Final = 7.0
_BUCKET_GAP: Final = 1.0
_ACKS: Final = ((ACKS_ALL, "acked-all"), (1, "acked-one"))


def faults_lane(picture: PartitionPicture, top: float) -> tuple[list[str], float]:
    """Draws faults and heals, each label if there is room; returns the lane's height, too."""
    ends = [0.0] * _FAULT_ROWS
    parts, rows = [], 1
    for time_us, words, more in faults_and_repairs(picture.story):
        if not 0 <= time_us <= picture.story.end_us:
            continue
        x = picture.time.x(time_us)
        row = next((row for row, end in enumerate(ends) if x >= end), None)
        if row is None:
            continue
        ends[row] = x + len(words) * _FAULT_CHARACTER + 8
        rows = max(rows, row + 1)
        said = f"{seconds(time_us)}: {words}{f' ({more})' if more else ''}"
        place = top + 10 + row * _FAULT_ROW
        parts.append(element("g", title(said), text(words, x, place, "fault")))
    return parts, rows * _FAULT_ROW


def leader_lane(picture: PartitionPicture, box: Box, *, marked: Collection[int]) -> list[str]:
    """Draws a block for each committed state.

    Args:
        picture: of the partition.
        box: place of the lane.
        marked: times at which the number of a step stands in the lane.
    """
    changes, time = picture.changes, picture.time
    edges = [*(time.x(max(change.time_us, 0)) for change in changes), time.x(picture.story.end_us)]
    parts = []
    for places in drawn_apart(edges, kept=_kept(picture, marked)):
        x, right, change = edges[places.start], edges[places.stop], changes[places.start]
        if len(places) > 1:
            said = f"{seconds(change.time_us)}: {too_close(len(places))}, up to {_leader_words(changes[places[-1]])[0]}"
            parts.append(rect(x, box.top, right - x, box.height, f"leader {CROWDED}", title(said)))
            continue
        class_ = "leader none" if change.leader is None else "leader few" if _is_few(change) else "leader"
        said = f"{seconds(change.time_us)}: {_leader_words(change)[0]}; min ISR {change.min_isr}; {why(change)}"
        recovering = " recovering" if change.is_recovering else ""
        parts.append(rect(x, box.top, right - x, box.height, class_ + recovering, title(said)))
        indent = _DISC if change.time_us in marked else 5.0
        label = "leader-label inverse" if change.leader is None else "leader-label"
        words = _leader_words(change)
        parts.append(block_label(words, x, right, box.top + 14, label, indent=indent, character=5.9))
    return parts


def _kept(picture: PartitionPicture, marked: Collection[int]) -> set[int]:
    """The places of changes that a story numbers, and of the first change after each action."""
    times = [change.time_us for change in picture.changes]
    after = {bisect_left(times, time_us) for time_us, _, _ in faults_and_repairs(picture.story)}
    return after | {place for place, time_us in enumerate(times) if time_us in marked}


def _is_few(change: StateChange) -> bool:
    return len(change.isr) < change.min_isr


def why(change: StateChange) -> str:
    """Returns the cause of a committed change, and how its leader was chosen."""
    about = "" if change.broker is None else f" {change.broker}"
    how = election_words(change.election)
    return f"{change.reason}{about}{f'; elected {how}' if how else ''}{_written(change)}"


def _written(change: StateChange) -> str:
    if change.writer is None:
        return ""
    role = "the leader itself" if change.controller_epoch is None else f"controller in epoch {change.controller_epoch}"
    return f"; written by broker {change.writer}, {role}"


def controller_lane(picture: PartitionPicture, box: Box) -> list[str]:
    """Draws a block for each term of a controller that ZooKeeper knew."""
    parts = []
    for term in picture.story.controllers:
        end_us = picture.story.end_us if term.ended_us is None else min(term.ended_us, picture.story.end_us)
        x = picture.time.x(max(term.begun_us, 0))
        width = picture.time.x(max(end_us, 0)) - x
        if width <= 0:
            continue
        who = "unknown" if term.broker is None else f"broker {term.broker}"
        said = f"{seconds(term.begun_us)}: {who} is elected controller, controller epoch {term.controller_epoch}"
        parts.append(rect(x, box.top, width, box.height, "leader", title(said)))
        words = (f"{who} · controller epoch {term.controller_epoch}", f"{who} · {term.controller_epoch}", who[-1:])
        parts.append(block_label(words, x, x + width, box.top + 14, "leader-label", character=5.9))
    return parts


def _leader_words(change: StateChange) -> list[str]:
    """Returns the words of a block, shorter and shorter."""
    elr = f" · ELR {members(change.elr)}" if change.elr else ""
    isr = f"ISR {members(change.isr)}"
    if change.leader is None:
        return [f"no leader · {isr}{elr}", f"no leader{elr}", "no leader", "none"]
    return [
        f"broker {change.leader} · epoch {change.leader_epoch} · {isr}{elr}",
        f"broker {change.leader} · {isr}{elr}",
        f"{change.leader} · {isr}{elr}",
        f"{change.leader} · {isr}",
        isr,
        f"{change.leader}",
    ]


def acks_lane(picture: PartitionPicture, box: Box) -> list[str]:
    """Draws the numbers of acknowledged records in intervals of equal width: acks=all upwards, acks=1 downwards."""
    parts = [
        text("acked", 80, box.top + 11, "label", anchor="end"),
        element(
            "text",
            element("tspan", "acks=all", class_="word-all"),
            ", ",
            element("tspan", "1", class_="word-one"),
            x=80.0,
            y=box.top + 24,
            text_anchor="end",
            class_="side",
        ),
    ]
    parts += _pauses(picture, box)
    edges = np.arange(picture.time.left, picture.time.right + _BUCKET / 2, _BUCKET)
    times = picture.time.times(edges)
    middle = box.top + 19
    rates = {}
    for acked in picture.partition.acknowledged:
        if acked.records[0].time_us <= picture.story.end_us:
            own = curve(acked.records, start=0.0, end_us=picture.story.end_us).at(times)
            rates[acked.acks] = np.diff(own) / np.maximum(np.diff(times), 1.0)
    highest = max((float(rate.max()) for rate in rates.values()), default=0.0)
    for acks, class_ in _ACKS:
        if acks in rates and highest > 0:
            heights = np.sqrt(rates[acks] / highest) * (19.0 if acks == ACKS_ALL else 11.0)
            found = [
                (x, middle - height, x + _BUCKET - _BUCKET_GAP, middle)
                if acks == ACKS_ALL
                else (x, middle, x + _BUCKET - _BUCKET_GAP, middle + height)
                for x, height in zip(edges[:-1].tolist(), heights.tolist(), strict=True)
                if height >= 0.5
            ]
            parts.append(element("path", d=boxes(found), class_=class_))
    return parts


def _pauses(picture: PartitionPicture, box: Box) -> list[str]:
    parts = []
    for acked in picture.partition.acknowledged:
        for pause in acked.pauses if acked.acks == ACKS_ALL else ():
            x = picture.time.x(pause.time_us)
            width = picture.time.x(pause.time_us + pause.value) - x
            words = f"none for {seconds(pause.value)}"
            parts.append(rect(x, box.top, width, 19, "pause", title(f"acks=all: {words}")))
            parts.append(block_label([words], x, x + width, box.top + 13, "note", indent=7))
    return parts
