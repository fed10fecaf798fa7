"""Reads the tables of ``docs/failures.md``, and which rows have no run that shows them."""

import re
from pathlib import Path
from typing import Final, NamedTuple

DOCUMENT: Final = Path(__file__).parent / "failures.md"

_QUOTED: Final = re.compile(r"`([^`]+)`")
_REASON: Final = re.compile(r"- ([SZ]\d\d): (.+)")


class Failure(NamedTuple):
    """One row: a failure, in the words of the document."""

    id: str
    source: str
    failure: str
    rule: str
    where: str
    switch: str

    @property
    def named(self) -> list[str]:
        """What its last column names: switches, scenarios and plans."""
        return _QUOTED.findall(self.switch)


def failures_of(document: str) -> list[Failure]:
    """Returns the rows of the first table, in order: failures that a KRaft cluster can have."""
    return _rows(document, "S")


def zookeeper_failures_of(document: str) -> list[Failure]:
    """Returns the rows of the second one: those that need ZooKeeper."""
    return _rows(document, "Z")


def reasons_of(document: str) -> dict[str, str]:
    """Returns why rows have no page in the gallery, by their ids."""
    return {found[1]: found[2] for line in document.splitlines() if (found := _REASON.match(line))}


def _rows(document: str, letter: str) -> list[Failure]:
    lines = [line for line in document.splitlines() if line.startswith(f"| {letter}")]
    return [Failure(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]
