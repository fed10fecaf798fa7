"""Draws the number of copies of each record: the k-th largest of the logs' ends of each epoch, light to dark."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from laststand.emulator.report.axes import EpochSpan, Floats
from laststand.emulator.report.gone import GoneRecords
from laststand.emulator.report.markup import area, boxes, element, line, polyline, rect, text
from laststand.emulator.report.numbers import number
from laststand.emulator.report.picture import Box, PartitionPicture

SHADES: Final = 3
_NEAR: Final = 0.4
"""Heights that are nearer than this are drawn as one."""

_LABEL_MIN: Final = 13.0
_EPOCH_GAP: Final = 2.5
_TOUCH: Final = 0.01


def copies_lane(picture: PartitionPicture, box: Box) -> list[str]:
    """Draws the lane of all logs, with the final logs beside it."""
    return [*copies_shapes(picture, box), *_gone_labels(picture, box)]


def copies_shapes(picture: PartitionPicture, box: Box) -> list[str]:
    """Draws the same shapes without text."""
    parts = [rect(box.left, box.top, picture.final_right - box.left, box.height, "frame")]
    final: list[tuple[float, float, str]] = []
    for span in picture.records.spans:
        parts += _copies(picture, span, box, final)
    final.sort(key=lambda each: each[2])  # Shades lie on each other, the one of most copies on top.
    parts += final_rects(picture, final)
    parts += [element("path", d=gone_path(picture, box, picture.gone), class_="gone")] if picture.gone else []
    parts += epoch_lines(picture, box)
    parts += promise_line(picture, box)
    parts.append(line(box.right, box.top, box.right, box.bottom, "cut-line"))
    return parts


def final_rects(picture: PartitionPicture, found: Iterable[tuple[float, float, str]]) -> list[str]:
    """Draws parts of final logs, from below; adjacent parts of one class are joined.

    Args:
        picture: of the partition.
        found: top, bottom and class of each.
    """
    whole: list[tuple[float, float, str]] = []
    for top, bottom, class_ in found:
        if whole and whole[-1][2] == class_ and abs(whole[-1][0] - bottom) < _TOUCH:
            whole[-1] = (top, whole[-1][1], class_)
        else:
            whole.append((top, bottom, class_))
    width = picture.final_right - picture.final_left
    return [rect(picture.final_left, top, width, bottom - top, class_) for top, bottom, class_ in whole]


def _copies(picture: PartitionPicture, span: EpochSpan, box: Box, final: list[tuple[float, float, str]]) -> list[str]:
    """Draws an epoch over time; its records in final logs are added to ``final``."""
    curves = picture.held.get(span.key, {})
    if not curves:
        return []
    times = np.unique(np.concatenate([curve.times for curve in curves.values()]))
    # Largest first: in row k is what at least k + 1 logs hold.
    ends = -np.sort(-np.array([curve.at(times) for curve in curves.values()]), axis=0)
    finals = sorted(picture.final_ends(span.key).values(), reverse=True)
    xs, bottoms = picture.time.xs(times), np.full(len(times), box.y(span.low))
    parts = _left_behind(picture, span, times, ends[0], box)
    for shade in range(min(SHADES, len(ends))):
        row = ends[_needed(shade + 1, len(picture.brokers)) - 1] if shade else ends[0]
        parts.append(
            element(
                "path", d=area(xs, box.ys(picture.records.heights(span, row)), bottoms), class_=f"copies-{shade + 1}"
            )
        )
    for shade in range(min(SHADES, len(finals))):
        needed = _needed(shade + 1, len(picture.brokers))
        if needed <= len(finals):
            top = box.y(picture.records.height(span, finals[needed - 1]))
            final.append((top, box.y(span.low), f"copies-{shade + 1}"))
    return parts


def _left_behind(picture: PartitionPicture, span: EpochSpan, times: Floats, most: Floats, box: Box) -> list[str]:
    """Draws records that some log had and no log has any more; lost records are drawn over them."""
    peak = np.maximum.accumulate(most)
    promised = min(max(picture.promised_end(span.key), span.first), span.end)
    parts = []
    for low, high, class_ in ((span.first, promised, "lost"), (promised, span.end, "cut")):
        top, bottom = np.clip(peak, low, high), np.clip(most, low, high)
        if high > low and np.any(top > bottom):
            heights = picture.records.heights
            d = area(picture.time.xs(times), box.ys(heights(span, top)), box.ys(heights(span, bottom)))
            parts.append(element("path", d=d, class_=class_))
            kept = float(max(picture.final_ends(span.key).values(), default=span.first))
            low_y, high_y = (box.y(picture.records.height(span, np.clip(each, low, high))) for each in (kept, peak[-1]))
            parts.append(
                rect(picture.final_left, high_y, picture.final_right - picture.final_left, low_y - high_y, class_)
            )
    return parts


def _needed(shade: int, replicas: int) -> int:
    """Returns the number of copies that a shade stands for: one, two or more, all."""
    return {1: 1, 2: 2}.get(shade, max(replicas, 3) if replicas <= SHADES else SHADES)


def gone_path(picture: PartitionPicture, box: Box, gone: tuple[GoneRecords, ...]) -> str:
    """Returns the records that are gone everywhere as a path, from the time of their loss to the end."""
    found: list[tuple[float, float, float, float]] = []
    for each in gone:
        left = picture.time.x(each.since_us)
        top = box.y(picture.records.height(each.span, each.last + 1))
        bottom = box.y(picture.records.height(each.span, each.first))
        if found and found[-1][0] == left and abs(found[-1][1] - bottom) < _NEAR:
            found[-1] = (left, top, picture.final_right, found[-1][3])
        else:
            found.append((left, top, picture.final_right, bottom))
    return boxes(found)


def epoch_lines(picture: PartitionPicture, box: Box) -> list[str]:
    """Draws the borders of epochs; only some of them if all would make a grey area."""
    ys: list[float] = []
    for span in picture.records.spans[1:]:
        y = box.y(span.low)
        if not ys or ys[-1] - y >= _EPOCH_GAP:
            ys.append(y)
    return [line(box.left, y, box.right, y, "epoch") for y in ys]


def promise_line(picture: PartitionPicture, box: Box) -> list[str]:
    """Draws the highest record that had been acknowledged with acks=all by any time."""
    times, heights = picture.promise
    if not len(times):
        return []
    stepped, levels = _steps(times, heights)
    xs = np.append(picture.time.xs(stepped), picture.final_right)
    return [element("path", d=polyline(xs, box.ys(np.append(levels, levels[-1]))), class_="promise")]


def _steps(times: Floats, heights: Floats) -> tuple[Floats, Floats]:
    """Draws the line level, not as a slope, if nothing is acknowledged for long."""
    long = (times[-1] - times[0]) / 48 if len(times) > 1 else 0.0
    stepped, levels = [times[0]], [heights[0]]
    for time, height in zip(times[1:], heights[1:], strict=True):
        if time - stepped[-1] > long:
            stepped.append(time)
            levels.append(levels[-1])
        stepped.append(time)
        levels.append(height)
    return np.array(stepped), np.array(levels)


def _gone_labels(picture: PartitionPicture, box: Box) -> list[str]:
    found: dict[tuple[str, int], list[GoneRecords]] = {}
    for each in picture.gone:
        found.setdefault(each.span.key, []).append(each)
    middle = (picture.final_left + picture.final_right) / 2
    parts, below = [], box.bottom + _LABEL_MIN
    for own in found.values():
        span = own[0].span
        top = box.y(picture.records.height(span, max(each.last for each in own) + 1))
        bottom = box.y(picture.records.height(span, min(each.first for each in own)))
        y = (top + bottom) / 2 + 4
        if below - y >= _LABEL_MIN:
            count = sum(each.last - each.first + 1 for each in own)
            parts.append(text(f"{number(count)} gone", middle, y, "gone-label", anchor="middle"))
            below = y
    return parts
