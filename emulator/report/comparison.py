"""Two runs of one scenario, decision by decision: where they first differ, in one sentence."""

from itertools import zip_longest
from typing import Final, NamedTuple

from laststand.emulator.report.beside import name_beside
from laststand.emulator.report.lanes import why
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.report.spans import changes_until
from laststand.emulator.report.words import DASH, members, seconds
from laststand.emulator.verification.story.run import StateChange

_ROWS_MAX: Final = 200
_ROWS_BEFORE: Final = 50
"""Least number of these rows before the first that differs, where there are as many."""


class ComparedRow(NamedTuple):
    """A decision of each run, in order; empty if one of them made no more."""

    left_time: str
    left: str
    right_time: str
    right: str
    is_alike: bool
    is_first: bool


class Comparison(NamedTuple):
    """The difference between the decisions of two runs.

    Attributes:
        left, right: the runs' eras, or what distinguishes them.
        sentence: the first decision that differs.
        rows: decisions side by side; if there are too many, those around the first difference.
        before, after: numbers of rows left out before and after these.
        other: the second run.
        switches: that differ, with the rule of each run.

    """

    left: str
    right: str
    sentence: str
    rows: list[ComparedRow]
    before: int
    after: int
    switches: list[tuple[str, str, str]]
    other: ReportedRun


def compare_decisions(left: ReportedRun, right: ReportedRun) -> Comparison:
    """Compares the committed decisions of two runs' controllers, partition by partition, in order."""
    names = name_beside(left, right), name_beside(right, left)
    rows: list[ComparedRow] = []
    sentence = ""
    for name in sorted({*_partitions(left), *_partitions(right)}):
        pairs = zip_longest(_decisions(left, name), _decisions(right, name))
        for one, other in pairs:
            is_alike = one is not None and other is not None and _state(one) == _state(other)
            is_first = not is_alike and not sentence
            if is_first:
                sentence = _sentence(names, one, other)
            rows.append(
                ComparedRow(
                    "" if one is None else seconds(one.time_us),
                    "" if one is None else _words(one),
                    "" if other is None else seconds(other.time_us),
                    "" if other is None else _words(other),
                    is_alike,
                    is_first,
                )
            )
    before = _left_out_before(rows)
    rules, others = left.verdict.switches, right.verdict.switches
    return Comparison(
        left=names[0],
        right=names[1],
        sentence=sentence or "The two clusters decide alike to the end.",
        rows=rows[before : before + _ROWS_MAX],
        before=before,
        after=max(0, len(rows) - before - _ROWS_MAX),
        switches=[
            (rule, rules.get(rule, DASH), others.get(rule, DASH))
            for rule in sorted({*rules, *others})
            if rules.get(rule) != others.get(rule)
        ],
        other=right,
    )


def _left_out_before(rows: list[ComparedRow]) -> int:
    first = next((place for place, row in enumerate(rows) if row.is_first), 0)
    return max(0, min(first - _ROWS_BEFORE, len(rows) - _ROWS_MAX))


_PartitionName = tuple[str, int]


def _partitions(run: ReportedRun) -> list[_PartitionName]:
    return [(each.topic, each.partition) for each in run.story.partitions]


def _decisions(run: ReportedRun, name: _PartitionName) -> list[StateChange]:
    return [
        change
        for partition in run.story.partitions
        if (partition.topic, partition.partition) == name
        for change in changes_until(partition, run.story.end_us)
    ]


def _state(change: StateChange) -> tuple[object, ...]:
    return change.leader, change.leader_epoch, frozenset(change.isr), frozenset(change.elr), change.is_recovering


def _words(change: StateChange) -> str:
    leader = "no leader" if change.leader is None else f"broker {change.leader}"
    return f"{leader}, epoch {change.leader_epoch}, {_members(change)} ({why(change)})"


def _members(change: StateChange) -> str:
    elr = f", ELR {members(change.elr)}" if change.elr else ""
    return f"ISR {members(change.isr)}{elr}"


def _sentence(names: tuple[str, str], one: StateChange | None, other: StateChange | None) -> str:
    first = one or other
    assert first is not None
    time = seconds(min(each.time_us for each in (one, other) if each is not None))
    if one is None or other is None:
        who, rest = (names[1], other) if one is None else (names[0], one)
        assert rest is not None
        return f"The two clusters decide alike until {time}; then only {who} decides more: {_words(rest)}."
    left, right = _members(one), _members(other)
    if one.leader != other.leader:
        left, right = (
            f"{'no leader' if each.leader is None else f'leader {each.leader}'}, {_members(each)}"
            for each in (one, other)
        )
    elif left == right:
        left, right = _words(one), _words(other)
    return f"The two clusters decide alike until {time}. Then {names[0]} commits {left}, and {names[1]} {right}."
