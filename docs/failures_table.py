"""Reads the tables of ``docs/failures.md``, and which rows have no run that shows them."""

import re
from pathlib import Path
from typing import Final, NamedTuple

DOCUMENT: Final = Path(__file__).parent / "failures.md"

_QUOTED: Final = re.compile(r"`([^`]+)`")
_KAFKA_HEADING: Final = "## On Apache Kafka\n"
_REASON: Final = re.compile(r"- ([QSTZ]\d\d): (.+)")


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
        """The names in its last column: switches, scenarios and plans."""
        return _QUOTED.findall(self.switch)


class KafkaResult(NamedTuple):
    """The result of a failure on two versions of Apache Kafka, and what shows it, or why nothing does."""

    id: str
    played: str
    newest: str
    how: str


def failures_of(document: str) -> list[Failure]:
    """Returns the rows of the first table, in order: failures that a KRaft cluster can have."""
    return _rows(document, "S")


def transaction_failures_of(document: str) -> list[Failure]:
    """Returns the rows about transactions, which either kind of cluster can have."""
    return _rows(document, "T")


def all_failures_of(document: str) -> list[Failure]:
    """Returns the rows of all tables."""
    return [
        *failures_of(document),
        *transaction_failures_of(document),
        *zookeeper_failures_of(document),
        *quorum_failures_of(document),
    ]


def zookeeper_failures_of(document: str) -> list[Failure]:
    """Returns the rows of the second one: those that need ZooKeeper."""
    return _rows(document, "Z")


def quorum_failures_of(document: str) -> list[Failure]:
    """Returns the rows about the controllers' own log."""
    return _rows(document, "Q")


def reasons_of(document: str) -> dict[str, str]:
    """Returns why rows have no page in the gallery, by their ids."""
    return {found[1]: found[2] for line in document.splitlines() if (found := _REASON.match(line))}


def kafka_results_of(document: str) -> list[KafkaResult]:
    """Returns the rows about Apache Kafka, in order."""
    return [KafkaResult(*cells) for cells in _cells(_on_kafka(document), "S")]


def _rows(document: str, letter: str) -> list[Failure]:
    return [Failure(*cells) for cells in _cells(document.replace(_on_kafka(document), ""), letter)]


def _on_kafka(document: str) -> str:
    _, heading, section = document.partition(_KAFKA_HEADING)
    return heading + section.partition("\n## ")[0]


def _cells(text: str, letter: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith(f"| {letter}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
