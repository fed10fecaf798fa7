"""Two runs of one scenario, step by step: the committed state after each step, and the lost records at the end."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from laststand.emulator.report.beside import name_beside
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.report.spans import changes_until
from laststand.emulator.report.words import members
from laststand.emulator.verification.story.run import StateChange, Step

_ACKS: Final = {-1: "all", 0: "0", 1: "1"}
_SEED: Final = re.compile(r", seed: \d+")
"""The seed of a step: each run draws its own."""


class Difference(NamedTuple):
    """A difference between two runs.

    Attributes:
        step: number of the step after which they differ; ``None`` for a difference at the end.
        text: of the step.
        about: a partition, or a kind of acks.
        what: ``leader``, ``leader epoch``, ``ISR``, ``ELR``, ``last known ELR`` or ``lost``.
        left, right: of each run.
    """

    step: int | None
    text: str
    about: str
    what: str
    left: str
    right: str


class StepComparison(NamedTuple):
    """Two runs side by side.

    Attributes:
        left, right: names of the runs.
        steps: the steps that both reached, in order, up to the first one that differs.
        differences: in the committed states after these steps, then in the lost records.
    """

    left: str
    right: str
    steps: int
    differences: tuple[Difference, ...]

    @property
    def sentence(self) -> str:
        """The sentence that says where the runs first differ."""
        if not self.differences:
            return f"The two runs agree at all {self.steps} steps that both reached, and in what they lost."
        first = self.differences[0]
        if first.step is None:
            where = f"The two runs agree at all {self.steps} steps that both reached. In the end"
        else:
            where = f"The two runs part at step {first.step} {first.text}:"
        return f"{where} {first.about} has {first.what} {first.left} in {self.left}, and {first.right} in {self.right}."


def compare_steps(left: ReportedRun, right: ReportedRun) -> StepComparison:
    """Compares leader, order of leader epochs, ISR, ELR and last known ELR at each step, and lost records by acks.

    Leader epochs are compared by their order, for two clusters may count elections differently before a topic is
    there; the order of members never matters.
    """
    pairs = list(_common_steps(left, right))
    at_steps = (
        difference
        for one, other in pairs
        for partition in _common_partitions(left, right)
        for difference in _at_step(one, partition, _state(left, partition, one), _state(right, partition, other))
    )
    return StepComparison(
        left=name_beside(left, right),
        right=name_beside(right, left),
        steps=len(pairs),
        differences=(*at_steps, *_lost(left, right)),
    )


class _State(NamedTuple):
    leader: str
    leader_epoch: str
    isr: str
    elr: str
    last_known_elr: str


_WORDS = _State("leader", "leader epoch", "ISR", "ELR", "last known ELR")
_Partition = tuple[str, int]


def _common_steps(left: ReportedRun, right: ReportedRun) -> Iterator[tuple[Step, Step]]:
    for one, other in zip(left.story.steps, right.story.steps, strict=False):
        if (one.step, _SEED.sub("", one.text)) != (other.step, _SEED.sub("", other.text)):
            return
        yield one, other


def _common_partitions(left: ReportedRun, right: ReportedRun) -> list[_Partition]:
    found = [{(each.topic, each.partition) for each in run.story.partitions} for run in (left, right)]
    return sorted(found[0] & found[1])


def _state(run: ReportedRun, partition: _Partition, step: Step) -> _State | None:
    """Returns the committed state when a step was done; ``None`` if the partition did not exist."""
    changes = [
        change
        for each in run.story.partitions
        if (each.topic, each.partition) == partition
        for change in changes_until(each, step.time_us)
    ]
    if not changes:
        return None
    return _words_of(changes[-1], len({(change.topic_id, change.leader_epoch) for change in changes}))


def _words_of(change: StateChange, epochs: int) -> _State:
    return _State(
        "none" if change.leader is None else str(change.leader),
        f"number {epochs}",
        *(members(sorted(each)) for each in (change.isr, change.elr, change.last_known_elr)),
    )


def _at_step(step: Step, partition: _Partition, left: _State | None, right: _State | None) -> Iterator[Difference]:
    name = f"{partition[0]}-{partition[1]}"
    if left is None or right is None:
        if left is not right:
            states = ("not there" if each is None else "there" for each in (left, right))
            yield Difference(step.step, step.text, name, "partition", *states)
        return
    for what, one, other in zip(_WORDS, left, right, strict=True):
        if one != other:
            yield Difference(step.step, step.text, name, what, one, other)


def _lost(left: ReportedRun, right: ReportedRun) -> Iterator[Difference]:
    counts = [{count.acks: count.lost for count in run.verdict.counts} for run in (left, right)]
    for acks in sorted({*counts[0], *counts[1]}):
        one, other = (each.get(acks, 0) for each in counts)
        if one != other:
            yield Difference(None, "", f"acks={_ACKS[acks]}", "lost", f"{one} records", f"{other} records")
