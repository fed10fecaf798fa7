"""Data for the pointer of a page's script: the committed state and each broker's log end at any time."""

from typing import NamedTuple

import msgspec
import numpy as np

from laststand.emulator.report.edges import DescribedEvent, Edge, causes_of, edges_of
from laststand.emulator.report.figure import Figure
from laststand.emulator.report.picture import PartitionPicture
from laststand.emulator.report.spans import absent_spans, cut_off_spans, mistaken_spans
from laststand.emulator.report.words import members

_ENDS_MAX = 160


class BrokerMoments(msgspec.Struct, frozen=True, kw_only=True):
    """A broker over time: its log end, its flushed offset (nothing if that is unknown), and its role."""

    id: int
    ends: list[tuple[int, int]]
    flushed: list[tuple[int, int]]
    spans: list[tuple[int, int, str]]


class State(NamedTuple):
    """A committed state in words, and since when."""

    time_us: int
    words: str


class Moments(msgspec.Struct, frozen=True, kw_only=True):
    """The data of one picture: its id, its time axis, committed states, brokers, edges, and events by cause."""

    figure: str
    knots: list[tuple[int, float]]
    states: list[State]
    brokers: list[BrokerMoments]
    edges: list[Edge]
    causes: list[tuple[str, int, list[DescribedEvent]]]


def moments_of(drawn: Figure, *, figure: str) -> Moments:
    """Returns the data of a picture by the id of its element."""
    picture = drawn.picture
    return Moments(
        figure=figure,
        knots=[(time_us, round(x, 1)) for time_us, x in picture.time.knots],
        states=[
            State(
                change.time_us,
                f"{'no leader' if change.leader is None else f'broker {change.leader} leads'}, epoch "
                f"{change.leader_epoch}; ISR {members(change.isr)}, ELR {members(change.elr)}, "
                f"min ISR {change.min_isr}",
            )
            for change in picture.changes
        ],
        brokers=[
            BrokerMoments(
                id=broker,
                ends=_ends(picture, broker),
                flushed=_flushed(picture, broker),
                spans=[
                    (span.begin_us, span.end_us, span.words)
                    for spans in (
                        cut_off_spans(picture.story, broker),
                        absent_spans(picture.story, broker),
                        mistaken_spans(picture.partition, picture.story, broker),
                    )
                    for span in spans
                ],
            )
            for broker in picture.brokers
        ],
        edges=edges_of(picture, drawn.boxes),
        causes=causes_of(picture),
    )


def _ends(picture: PartitionPicture, broker: int) -> list[tuple[int, int]]:
    """Returns the log's end over time: the end of the last epoch of which it holds records."""
    curves = [
        (span, own[broker]) for span in picture.records.spans if broker in (own := picture.held.get(span.key, {}))
    ]
    if not curves:
        return []
    times = np.unique(np.concatenate([curve.times for _, curve in curves]))
    ends = np.zeros(len(times))
    for span, curve in curves:
        values = curve.at(times)
        ends = np.where(values > span.first, values, ends)
    if len(times) > _ENDS_MAX:
        falls = np.flatnonzero(np.diff(ends) < 0)
        kept = np.unique(np.concatenate([np.linspace(0, len(times) - 1, _ENDS_MAX).astype(np.int64), falls, falls + 1]))
        times, ends = times[kept], ends[kept]
    return [(int(time), int(end)) for time, end in zip(times, ends, strict=True)]


def _flushed(picture: PartitionPicture, broker: int) -> list[tuple[int, int]]:
    """Returns the flushed offsets of the newest topic, if there were several with its name."""
    own = [steps for (_, node), steps in picture.flushed.items() if node == broker]
    return [(int(time), int(value)) for time, value in zip(*own[-1], strict=True)] if own else []
