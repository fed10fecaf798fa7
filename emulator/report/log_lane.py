"""A replica's lane: its log, filled by its role, its truncated and lost records, and when it was cut off or down."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from laststand.emulator.report.axes import EpochSpan
from laststand.emulator.report.copies_lane import epoch_lines, final_rects, gone_path, promise_line
from laststand.emulator.report.crowded import APART_MAX, CROWDED, drawn_apart, too_close
from laststand.emulator.report.curves import Curve
from laststand.emulator.report.gone import GoneRecords
from laststand.emulator.report.labels import CHARACTER, block_label, fits
from laststand.emulator.report.markup import area, element, line, rect, title
from laststand.emulator.report.picture import Box, PartitionPicture
from laststand.emulator.report.spans import (
    Role,
    RoleSpan,
    Span,
    absent_spans,
    cut_off_spans,
    joined,
    mistaken_spans,
    role_spans,
)
from laststand.emulator.report.words import seconds

_ROLE_WORDS: Final = {Role.LEADER: "LEADER", Role.ISR: "in ISR", Role.ELR: "in ELR", Role.OUT: ""}
_HELD_WORDS: Final = {Role.OUT: "has them, may not lead", Role.ELR: "has them, and may lead"}
_HELD_MIN: Final = 11.0
_ABSENT_LABEL: Final = 14.0
"""Below the top of a lane: what keeps its broker from working."""

_LINE: Final = 13.0
_SMALL_CHARACTER: Final = 5.2


def broker_lane(picture: PartitionPicture, broker: int, box: Box, *, strip: float, prefix: str) -> list[str]:
    """Draws a replica's lane, with the strip of its roles above, and its final log on the right."""
    roles = role_spans(picture.partition, broker, picture.story.end_us)
    clip = f"{prefix}held-{broker}"
    curves = [(span, own) for span in picture.records.spans if (own := picture.held.get(span.key, {}).get(broker))]
    parts = [rect(box.left, box.top, picture.final_right - box.left, box.height, "frame")]
    parts += _lost(picture, curves, box)
    parts.append(element("clipPath", element("path", d=_silhouette(picture, curves, box)), id=clip))
    parts.append(element("g", *_role_fills(picture, roles, box), clip_path=f"url(#{clip})"))
    parts += _unflushed(picture, broker, curves, box)
    parts += _final(picture, broker, curves, roles, box)
    parts += _gone(picture, curves, box)
    parts += epoch_lines(picture, box)
    parts += _overlays(picture, broker, box)
    parts += promise_line(picture, box)
    parts += _held_words(picture, broker, curves, roles, box)
    parts.append(line(box.right, box.top, box.right, box.bottom, "cut-line"))
    return [*parts, *_strip(picture, broker, roles, box, strip)]


_Held = list[tuple[EpochSpan, Curve]]


def _silhouette(picture: PartitionPicture, curves: _Held, box: Box) -> str:
    return "".join(
        area(
            picture.time.xs(curve.times),
            box.ys(picture.records.heights(span, curve.values)),
            np.full(len(curve.times), box.y(span.low)),
        )
        for span, curve in curves
    )


def _role_fills(picture: PartitionPicture, roles: list[RoleSpan], box: Box) -> list[str]:
    """Yields the role colours of a log; the first role begins with the picture."""
    edges = [box.left, *_edges(picture, roles)[1:]]
    return [
        rect(edges[places.start], box.top, edges[places.stop] - edges[places.start], box.height, f"role-{role}")
        for places in drawn_apart(edges)
        for role in (_longest(roles[places.start : places.stop]).name.lower(),)
    ]


def _edges(picture: PartitionPicture, spans: Sequence[Span | RoleSpan]) -> list[float]:
    """Returns the beginnings of consecutive spans, and the end of the last one."""
    return [picture.time.x(each.begin_us) for each in spans] + [picture.time.x(each.end_us) for each in spans[-1:]]


def _longest(roles: Sequence[RoleSpan]) -> Role:
    """Returns the role that a broker had for the most of a time."""
    lasted: Counter[Role] = Counter()
    for span in roles:
        lasted[span.role] += span.end_us - span.begin_us
    return lasted.most_common(1)[0][0]


def _unflushed(picture: PartitionPicture, broker: int, curves: _Held, box: Box) -> Iterator[str]:
    """Yields the part of the log that is only in the page cache: a power loss would remove it."""
    for span, curve in curves:
        flushed = picture.flushed.get((span.topic_id, broker))
        if flushed is None:
            continue
        inner = flushed.times[(flushed.times > curve.times[0]) & (flushed.times <= curve.times[-1])]
        times = np.unique(np.concatenate([curve.times, inner - 1.0, inner]))
        tops = curve.at(times)
        bottoms = np.clip(flushed.at(times), span.first, tops)
        if np.any(tops > bottoms):
            heights = picture.records.heights
            d = area(picture.time.xs(times), box.ys(heights(span, tops)), box.ys(heights(span, bottoms)))
            yield element("path", d=d, class_="unflushed")


def _lost(picture: PartitionPicture, curves: _Held, box: Box) -> Iterator[str]:
    """Yields the records that the log lost: those acknowledged with acks=all, and those that never were."""
    for span, curve in curves:
        promised = min(max(picture.promised_end(span.key), span.first), span.end)
        for low, high, class_ in ((span.first, promised, "lost"), (promised, span.end, "cut")):
            within = curve.clamped(low, high)
            if high > low and np.any(within.peak > within.values):
                d = area(
                    picture.time.xs(within.times),
                    box.ys(picture.records.heights(span, within.peak)),
                    box.ys(picture.records.heights(span, within.values)),
                )
                yield element("path", d=d, class_=class_)


def _final(picture: PartitionPicture, broker: int, curves: _Held, roles: list[RoleSpan], box: Box) -> list[str]:
    role = roles[-1].role if roles else Role.OUT
    found: list[tuple[float, float, str]] = []
    peaks = {span.key: float(curve.peak[-1]) for span, curve in curves}
    for span in picture.records.spans:
        end = float(picture.final_ends(span.key).get(broker, span.first))
        had = max(peaks.get(span.key, span.first), end)
        promised = min(max(picture.promised_end(span.key), span.first), had)
        for low, high, class_ in (
            (span.first, end, f"role-{role.name.lower()}"),
            (min(end, promised), promised, "lost"),
            (max(end, promised), had, "cut"),
        ):
            if high > low:
                top, bottom = (box.y(picture.records.height(span, each)) for each in (high, low))
                found.append((top, bottom, class_))
    return final_rects(picture, found)


def _gone(picture: PartitionPicture, curves: _Held, box: Box) -> Iterator[str]:
    """Yields this log's records that are gone everywhere."""
    peaks = {span.key: int(curve.peak[-1]) for span, curve in curves}
    own: list[GoneRecords] = [
        each._replace(last=min(each.last, peaks[each.span.key] - 1))
        for each in picture.gone
        if peaks.get(each.span.key, 0) > each.first
    ]
    if own:
        yield element("path", d=gone_path(picture, box, tuple(own)), class_="gone")


def _overlays(picture: PartitionPicture, broker: int, box: Box) -> Iterator[str]:
    labels: list[tuple[float, float]] = []
    for span in joined(cut_off_spans(picture.story, broker)):
        x, width = _place(picture, span)
        yield rect(x, box.top, width, box.height, "cut-off", title(f"{span.words}, {_times(span)}"))
        yield rect(x, box.top, width, 2, "cut-off-bar")
        if fits(span.words, width):
            labels.append((x, x + len(span.words) * CHARACTER + 8))
        yield block_label([span.words], x, x + width, box.top + 14, "cut-off-label", indent=6)
    for span in absent_spans(picture.story, broker):
        x, width = _place(picture, span)
        yield rect(x, box.top, width, box.height, span.kind, title(f"{span.words}, {_times(span)}"))
        is_taken = any(begin < x + len(span.words) * CHARACTER and x < end for begin, end in labels)
        y = box.top + _ABSENT_LABEL + (_LINE if is_taken else 0.0)
        yield block_label([span.words], x, x + width, y, "absent-label")


def _held_words(
    picture: PartitionPicture, broker: int, curves: _Held, roles: list[RoleSpan], box: Box
) -> Iterator[str]:
    for span in roles:
        words = _HELD_WORDS.get(span.role)
        if words is None or not fits(words, picture.time.x(span.end_us) - picture.time.x(span.begin_us)):
            continue
        middle = np.array([span.begin_us + 2.0, (span.begin_us + span.end_us) / 2])
        tallest, height = 0.0, 0.0
        for epoch, curve in curves:
            tops = box.ys(picture.records.heights(epoch, curve.at(middle)))
            free = float(np.min(box.y(epoch.low) - tops))
            if free > tallest:
                tallest, height = free, box.y(epoch.low) - free / 2
        if tallest >= _HELD_MIN:
            left, right, y = picture.time.x(span.begin_us), picture.time.x(span.end_us), height + 4
            label_y = box.top + _ABSENT_LABEL
            is_taken = any(
                begin < left + len(words) * CHARACTER and left < begin + len(each.words) * CHARACTER + 2
                for each in absent_spans(picture.story, broker)
                for begin, width in (_place(picture, each),)
                if fits(each.words, width)
            )
            if is_taken and abs(y - label_y) < _LINE:
                y = label_y + _LINE
            if y < box.bottom - 2:
                yield block_label([words], left, right, y, "held-label", indent=6)


def _strip(picture: PartitionPicture, broker: int, roles: list[RoleSpan], box: Box, strip: float) -> Iterator[str]:
    top = box.top - strip - 1
    mistaken = joined(mistaken_spans(picture.partition, picture.story, broker))
    edges = _edges(picture, roles)
    for places in drawn_apart(edges):
        x, right, span = edges[places.start], edges[places.stop], roles[places.start]
        if len(places) > 1:
            whole = span._replace(end_us=roles[places[-1]].end_us)
            said = f"{too_close(len(places))}, {_times(whole)}"
            yield rect(x, top, right - x, strip, f"strip {CROWDED}", title(said))
            continue
        role = span.role.name.lower()
        words = _ROLE_WORDS[span.role]
        yield rect(
            x, top, right - x, strip, f"strip strip-{role}", title(f"{words or 'out of the ISR'}, {_times(span)}")
        )
        if words:
            y, class_ = top + strip - 2.4, f"strip-label on-{role}"
            yield block_label([words], x, right, y, class_, indent=4, character=_SMALL_CHARACTER)
    # More than those are lost in a strip that is crowded.
    for own in sorted(sorted(mistaken, key=lambda each: each.begin_us - each.end_us)[:APART_MAX]):
        x, width = _place(picture, own)
        yield rect(x, top, width, strip, "mistaken", title(f"{own.words}, {_times(own)}"))
        shorter, y = (own.words, "thinks it leads"), top + strip - 2.4
        yield block_label(shorter, x, x + width, y, "strip-label mistaken-label", indent=4, character=_SMALL_CHARACTER)


def _place(picture: PartitionPicture, span: Span) -> tuple[float, float]:
    x = picture.time.x(span.begin_us)
    return x, picture.time.x(span.end_us) - x


def _times(span: Span | RoleSpan) -> str:
    return f"{seconds(span.begin_us)} to {seconds(span.end_us)}"
