"""Mutants that no test noticed, and why some of them may live.

A mutant is named by its file, its function and the lines that it changes, without their indentation, so an explanation
outlives edits elsewhere in the function. ``explained.txt`` has the form in which survivors are printed::

    # Why the mutants below behave as the code does, or why nothing may depend on the difference.
    emulator/core/broker/replicas/epoch_cache.py LeaderEpochCache.assign
    - if epoch > self.latest_epoch:
    + if epoch >= self.latest_epoch:

A reason holds for all mutants up to the next one. A line ``~ PATTERN`` explains a class of them: those whose lines are
the same before and after, but for what the regular expression matches.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec


class Change(msgspec.Struct, frozen=True, order=True):
    """The change that a mutant makes to one function.

    Attributes:
        file: the path of the source.
        function: its name, that of its class before it.
        removed: the lines that are replaced.
        added: the lines that replace them.
    """

    file: str
    function: str
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def describe(self) -> str:
        """Returns the form that ``explained.txt`` has."""
        removed = [f"- {line}" for line in self.removed]
        return "\n".join([f"{self.file} {self.function}", *removed, *(f"+ {line}" for line in self.added)])


class ExplanationError(Exception):
    """A line of the list of explanations that has none of its forms, or explains nothing."""


def change_between(file: str, function: str, original: str, mutant: str) -> Change:
    """Returns what turns one source of a function, less its first line, into the other."""
    before, after = ([line.strip() for line in source.splitlines()] for source in (original, mutant))
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    return Change(
        file=file,
        function=function,
        removed=tuple(line[1:] for line in lines if line.startswith("-")),
        added=tuple(line[1:] for line in lines if line.startswith("+")),
    )


class Explanations:
    """The mutants that may live.

    Attributes:
        reasons: by mutant.
        patterns: of classes of mutants.
    """

    def __init__(self, reasons: dict[Change, str], patterns: Sequence[re.Pattern[str]]) -> None:
        self.reasons = reasons
        self.patterns = patterns

    def explain(self, change: Change) -> bool:
        """Returns whether a mutant may live."""
        return change in self.reasons or any(_is_all_that_differs(pattern, change) for pattern in self.patterns)


def _is_all_that_differs(pattern: re.Pattern[str], change: Change) -> bool:
    removed, added = (pattern.sub("", "\n".join(lines)) for lines in (change.removed, change.added))
    return removed == added


def read_explained(path: Path) -> Explanations:
    """Returns what explains survivors.

    Raises:
        ExplanationError: a mutant or pattern has no reason, a mutant has two, or a form is wrong, or a pattern.
    """
    reasons: dict[Change, str] = {}
    patterns: list[re.Pattern[str]] = []
    for number, reason, block in _blocks(path.read_text().splitlines()):
        if not reason:
            raise ExplanationError(f"{path}:{number}: no reason is given")
        if block[0].startswith("~ "):
            try:
                patterns += [re.compile(line.removeprefix("~ ")) for line in block]
            except re.error as error:
                raise ExplanationError(f"{path}:{number}: no pattern: {error}") from error
            continue
        change = _change(path, number, block)
        if change in reasons:
            raise ExplanationError(f"{path}:{number}: explained before")
        reasons[change] = reason
    return Explanations(reasons, patterns)


def _change(path: Path, number: int, block: Sequence[str]) -> Change:
    file, _, function = block[0].partition(" ")
    removed = tuple(line[2:] for line in block[1:] if line.startswith("- "))
    added = tuple(line[2:] for line in block[1:] if line.startswith("+ "))
    if not function or len(removed) + len(added) != len(block) - 1 or len(block) == 1:
        raise ExplanationError(f"{path}:{number}: not a file, a function and the lines that change")
    return Change(file=file, function=function, removed=removed, added=added)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yields line number, reason and lines of each mutant or list of patterns."""
    reason: list[str] = []
    is_used = False
    block: list[str] = []
    begun = 0
    for number, line in enumerate([*lines, ""], start=1):
        if block and not line.startswith(("- ", "+ ", "~ ")):
            yield begun, " ".join(reason), block
            block, is_used = [], True
        if line.startswith("#"):
            reason = [*([] if is_used else reason), line[1:].strip()]
            is_used = False
        elif line:
            begun = begun if block else number
            block.append(line)
