"""``report.html``: one file with everything in it, which needs no network.

Every value from a run is escaped: by the template, by ``markup``, and, in the data for the script, by JSON in which
``<`` and ``&`` are written as code points.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

from laststand.emulator.report.assets import asset, digest, template
from laststand.emulator.report.axes import RecordAxis
from laststand.emulator.report.comparison import Comparison, compare_decisions
from laststand.emulator.report.crowded import APART_MAX, CROWDED
from laststand.emulator.report.edges import EDGES_MAX
from laststand.emulator.report.figure import draw
from laststand.emulator.report.gone import counts_of, lost_of
from laststand.emulator.report.headline import Headline, headline
from laststand.emulator.report.lanes import why
from laststand.emulator.report.moments import Moments, moments_of
from laststand.emulator.report.numbers import number, plural
from laststand.emulator.report.run_files import ReportedRun, read_reported_run
from laststand.emulator.report.spans import changes_until
from laststand.emulator.report.steps import StoryStep, story_steps
from laststand.emulator.report.text_picture import text_picture
from laststand.emulator.report.thumbnail import thumbnail
from laststand.emulator.report.words import ACKS_ALL, DASH, members, seconds
from laststand.emulator.report.worst_first import worst_first
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.story.causes import CAUSES_MAX
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.tables.timeline import EventPlace
from laststand.emulator.verification.verdict.forms import write_whole
from laststand.emulator.verification.verdict.report import CheckResult, CheckStatus, Verdict, VerdictReport

REPORT_FILE: Final = "report.html"
PAGE_BYTES_MAX: Final = 3_000_000
"""The size up to which partitions are added to a page: first the others in small, then some of them in large."""

DRAWN_MAX: Final = 6
"""Partitions that are drawn in large, the worst first. The worst always is."""

SMALL_MAX: Final = 200
"""Most partitions that are drawn in small."""

LISTED_MAX: Final = 5_000
"""Most partitions that are lines of a table, where there are more than are drawn."""

_OTHER_PREFIX: Final = "other-"
_OTHER_SCALE: Final = 0.7
_STEP_MARKUP: Final = 400
_SMALL_MARKUP: Final = 600
_LISTED_MARKUP: Final = 140
_PICTURE_MARKUP: Final = 1500
_LOSSES_MAX: Final = 200
_DECISIONS_MAX: Final = 400
_BAR: Final = 212.0
_GLYPHS: Final = {Verdict.VALID: "✓", Verdict.VIOLATION: "✕", Verdict.UNKNOWN: "?"}
_GROUPS: Final = (
    (CheckStatus.VIOLATED, "Violated", "violated"),
    (CheckStatus.OK, "Held", "ok"),
    (CheckStatus.EXEMPT, "Exempt: all that they found is what their promises leave out", "exempt"),
    (CheckStatus.UNKNOWN, "Unknown: evidence is missing", "unknown"),
    (CheckStatus.NOT_ASKED, "Not asked: nothing in the run is what they look at", "other"),
    (CheckStatus.NOT_PROMISED, "Not promised by this era", "other"),
)


class _Part(NamedTuple):
    id: str
    name: str


class _Bar(NamedTuple):
    acks: str
    kind: str
    kept: float
    lost: int
    lost_text: str
    acked_text: str


class _CheckGroup(NamedTuple):
    name: str
    kind: str
    checks: tuple[CheckResult, ...]

    @property
    def has_reasons(self) -> bool:
        """True if a check has a reason why it is neither held nor violated."""
        return any(check.not_asked_because or check.unknown_because or check.exempted for check in self.checks)


class _Decision(NamedTuple):
    time: str
    metadata_offset: int
    partition: str
    leader: str
    leader_epoch: int
    isr: str
    elr: str
    why: str
    is_few: bool
    event: EventPlace


class _Small(NamedTuple):
    name: str
    sums: str
    svg: Markup
    steps: list[StoryStep]
    text: str

    @property
    def size(self) -> int:
        """The approximate number of bytes in a page."""
        return len(self.svg.encode()) + len(self.text.encode()) + _words_size(self.steps) + _SMALL_MARKUP


class _Listed(NamedTuple):
    """A partition that is not drawn, as a line of a table."""

    name: str
    acked: str
    lost: str
    changes: str
    leader: str
    isr: str
    leaderless: str
    longest_without_ack: str

    @property
    def size(self) -> int:
        """The approximate number of bytes in a page."""
        return sum(map(len, self)) + _LISTED_MARKUP


@dataclass(frozen=True, kw_only=True)
class _Picture:
    name: str
    sums: str
    prefix: str
    svg: Markup
    steps: tuple[StoryStep, ...]
    moments: Moments
    has_flush_state: bool
    is_crowded: bool

    @property
    def size(self) -> int:
        """The approximate number of bytes in a page."""
        moments = len(script_data(self.moments).encode())
        return len(self.svg.encode()) + moments + _words_size(self.steps) + _PICTURE_MARKUP


def _words_size(steps: Iterable[StoryStep]) -> int:
    return sum(len(step.title) + len(step.text) + _STEP_MARKUP for step in steps)


@dataclass(frozen=True, kw_only=True)
class _OtherRun:
    """The run to compare with; ``picture`` is ``None`` if nothing can be drawn."""

    verdict: VerdictReport
    glyph: str
    tone: str
    head: Headline
    picture: _Picture | None


def render(run: ReportedRun, *, against: Comparison | None = None) -> str:
    """Returns the report on a run as HTML.

    Args:
        run: the run.
        against: the run to compare with, if any.
    """
    partitions = worst_first(run.verdict, run.story)
    content = _content(run, partitions, against)
    drawn = [_picture(run.verdict, each, run.story, prefix="p0-", scale=1.0) for each in partitions[:1]]
    room = PAGE_BYTES_MAX - len(_page(content, drawn, [], [], 0).encode())
    listed = _listed(run.verdict, partitions) if len(partitions) > DRAWN_MAX + SMALL_MAX else []
    room -= sum(each.size for each in listed)
    others: list[_Small] = []
    for partition in partitions[1 : DRAWN_MAX + SMALL_MAX]:
        small = _small(run.verdict, partition, run.story)
        room -= small.size
        if room < 0:
            break
        others.append(small)
    while others and len(drawn) < DRAWN_MAX:
        partition = partitions[len(drawn)]
        picture = _picture(run.verdict, partition, run.story, prefix=f"p{len(drawn)}-", scale=_OTHER_SCALE)
        room += others[0].size - picture.size
        if room < 0:
            break
        drawn.append(picture)
        del others[0]
    others = others[:SMALL_MAX]
    shown = len(drawn) + len(others)
    return _page(content, drawn, others, listed[shown:], len(partitions) - max(shown, len(listed)))


def _page(
    content: Mapping[str, object], drawn: list[_Picture], others: list[_Small], listed: list[_Listed], left_out: int
) -> str:
    """Returns a page with some partitions drawn large, others small, and others in a table."""
    moments = [picture.moments for picture in drawn]
    other = content["other"]
    if isinstance(other, _OtherRun) and other.picture is not None:
        moments.append(other.picture.moments)
    return template("page.html.j2").render(
        content, pictures=drawn, others=others, listed=listed, left_out=left_out, moments=Markup(script_data(moments))
    )


def _content(run: ReportedRun, partitions: list[PartitionStory], against: Comparison | None) -> dict[str, object]:
    """Returns the content of a page without its pictures."""
    verdict, story = run.verdict, run.story
    style, script = asset("report.css"), asset("theme.js") + asset("picture.js") + asset("report.js")
    decisions = _decisions(story)
    return {
        "verdict": verdict,
        "head": headline(verdict, partitions, story),
        "tone": tone_of(verdict),
        "glyph": _GLYPHS[verdict.verdict],
        "bars": _bars(verdict),
        "problem": story.problem,
        "losses": verdict.losses[:_LOSSES_MAX],
        "losses_left_out": max(0, len(verdict.losses) - _LOSSES_MAX),
        "sources": {check.check_id: check.source for check in CHECKS},
        "check_groups": _groups(verdict),
        "check_sum": _check_sum(verdict),
        "decisions": decisions[:_DECISIONS_MAX],
        "decisions_left_out": max(0, len(decisions) - _DECISIONS_MAX) + sum(p.changes_left_out for p in partitions),
        "decisions_at_end": sum(len(p.changes) for p in partitions) - len(decisions),
        "as_text": text_picture(verdict, partitions[0], story) if partitions else None,
        "plan": run.plan,
        "rejections": None if run.traces is None else [each for each in run.traces if each is not None],
        "trace_count": 0 if run.traces is None else len(run.traces),
        "steps": story.steps,
        "apart_max": APART_MAX,
        "edges_max": EDGES_MAX,
        "causes_max": CAUSES_MAX,
        "comparison": against,
        "other": None if against is None else _other_run(against.other, like=next(iter(partitions), None)),
        "parts": _parts(verdict, story, run, against),
        "patterns": Markup(asset("patterns.svg")),
        "style": Markup(style),
        "style_digest": digest(style),
        "script": Markup(script),
        "script_digest": digest(script),
    }


def write_report(directory: Path, target: Path, *, against: Path | None = None) -> None:
    """Writes the report on a judged run, whole or not at all.

    Args:
        directory: of the run.
        target: the file.
        against: directory of the run to compare with.

    Raises:
        ConfigError: one of the runs was not judged, or by another version of Laststand.
        OSError: the file cannot be written.
    """
    run = read_reported_run(directory)
    compared = None if against is None else compare_decisions(run, read_reported_run(against))
    write_whole(target, render(run, against=compared).encode())


def _other_run(run: ReportedRun, *, like: PartitionStory | None) -> _OtherRun:
    """Returns the picture of the other run: of the same partition."""
    partitions = worst_first(run.verdict, run.story)
    same = [each for each in partitions if like is not None and _name_of(each) == _name_of(like)]
    chosen = next(iter(same or partitions), None)
    return _OtherRun(
        verdict=run.verdict,
        glyph=_GLYPHS[run.verdict.verdict],
        tone=tone_of(run.verdict),
        head=headline(run.verdict, partitions, run.story),
        picture=None
        if chosen is None
        else _picture(run.verdict, chosen, run.story, prefix=_OTHER_PREFIX, scale=_OTHER_SCALE),
    )


def _name_of(partition: PartitionStory) -> str:
    return f"{partition.topic}-{partition.partition}"


def script_data(value: object) -> str:
    """Returns data for a script as JSON that is safe within an element."""
    text = msgspec.json.encode(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("'", "\\u0027")


def tone_of(verdict: VerdictReport) -> str:
    """Returns the color class of a verdict: kept, lost, exceeded or doubtful."""
    if verdict.guarantee is Guarantee.EXCEEDED:
        return "exceeded"
    return {Verdict.VALID: "kept", Verdict.VIOLATION: "lost", Verdict.UNKNOWN: "doubtful"}[verdict.verdict]


def _bars(verdict: VerdictReport) -> list[_Bar]:
    return [
        _Bar(
            acks="all" if counts.acks == ACKS_ALL else str(counts.acks),
            kind="all" if counts.acks == ACKS_ALL else "one",
            kept=round(_BAR * (1 - counts.lost / counts.acked), 1),
            lost=counts.lost,
            lost_text=number(counts.lost),
            acked_text=number(counts.acked),
        )
        for counts in verdict.counts
        if counts.acked and counts.acks != 0
    ]


def _small(verdict: VerdictReport, partition: PartitionStory, story: RunStory) -> _Small:
    acked, lost = lost_of(counts_of(verdict, partition), ACKS_ALL)
    return _Small(
        _name_of(partition),
        f"{number(lost)} of {number(acked)} lost",
        thumbnail(verdict, partition, story),
        story_steps(verdict, partition, story, RecordAxis(partition)),
        text_picture(verdict, partition, story),
    )


def _listed(verdict: VerdictReport, partitions: list[PartitionStory]) -> list[_Listed]:
    """Returns the lines of a table of partitions, in their order."""
    counts = {(each.topic, each.partition): each for each in verdict.partitions}
    waits = {(each.topic, each.partition): each for each in verdict.availability}
    lines = []
    for partition in partitions[:LISTED_MAX]:
        place = partition.topic, partition.partition
        acked, lost = lost_of(counts.get(place), ACKS_ALL)
        wait, last = waits.get(place), partition.changes[-1] if partition.changes else None
        longest = [each.longest_without_ack_s for each in wait.workloads if each.acks == ACKS_ALL] if wait else []
        lines.append(
            _Listed(
                name=_name_of(partition),
                acked=number(acked),
                lost=number(lost),
                changes=number(len(partition.changes) + partition.changes_left_out),
                leader=DASH if last is None or last.leader is None else str(last.leader),
                isr=DASH if last is None else members(last.isr),
                leaderless=DASH if wait is None or wait.leaderless_s is None else f"{wait.leaderless_s:.1f} s",
                longest_without_ack=f"{longest[0]:.1f} s" if longest else DASH,
            )
        )
    return lines


def _picture(
    verdict: VerdictReport, partition: PartitionStory, story: RunStory, *, prefix: str, scale: float
) -> _Picture:
    figure = draw(verdict, partition, story, prefix=prefix, scale=scale)
    acked, lost = lost_of(counts_of(verdict, partition), ACKS_ALL)
    return _Picture(
        name=_name_of(partition),
        sums=f"{number(lost)} of {number(acked)} lost",
        prefix=prefix,
        svg=Markup(figure.svg),
        steps=figure.steps,
        moments=moments_of(figure, figure=f"{prefix}figure"),
        has_flush_state=bool(figure.picture.flushed),
        is_crowded=CROWDED in figure.svg,
    )


def _groups(verdict: VerdictReport) -> list[_CheckGroup]:
    groups = [
        _CheckGroup(name, kind, tuple(check for check in verdict.checks if check.status is status))
        for status, name, kind in _GROUPS
    ]
    return [group for group in groups if group.checks]


def _check_sum(verdict: VerdictReport) -> str:
    violated, asked = len(verdict.violated()), len(verdict.checks)
    return f"{plural(asked, 'check')}, {violated} violated."


def _decisions(story: RunStory) -> list[_Decision]:
    """Returns the committed states up to the end of the pictures, without the later shutdown."""
    found = [(partition, change) for partition in story.partitions for change in changes_until(partition, story.end_us)]
    return [
        _Decision(
            time=seconds(change.time_us),
            metadata_offset=change.metadata_offset,
            partition=f"{partition.topic}-{partition.partition}",
            leader="none" if change.leader is None else f"broker {change.leader}",
            leader_epoch=change.leader_epoch,
            isr=members(change.isr),
            elr=members(change.elr) if change.elr else DASH,
            why=why(change),
            is_few=len(change.isr) < change.min_isr,
            event=change.event,
        )
        for partition, change in sorted(found, key=lambda each: each[1].metadata_offset)
    ]


def _parts(verdict: VerdictReport, story: RunStory, run: ReportedRun, against: Comparison | None) -> list[_Part]:
    parts = [_Part("against", f"Against {against.right}")] if against is not None else []
    if verdict.losses:
        parts.append(_Part("lost", "Lost records"))
    if verdict.doubts:
        parts.append(_Part("doubts", "Doubts"))
    parts.append(_Part("checks", "Checks"))
    if story.partitions:
        parts += [_Part("decisions", "Decisions"), _Part("text", "As text")]
    if run.traces is not None:
        parts.append(_Part("specification", "Specification"))
    if run.plan is not None:
        parts.append(_Part("plan", "Plan"))
    return [*parts, _Part("rules", "Rules"), _Part("files", "Files")]
