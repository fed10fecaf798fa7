"""The catalogue of failures for other systems, ``docs/catalogue``: one page each, without words of Laststand.

The pages are written by hand. The gallery shows them beside the runs, and the site adds what Laststand has of each.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from docs.failures_table import Failure
from docs.rule_tables import table

CATALOGUE: Final = Path(__file__).parent / "catalogue"
SECTIONS: Final = ("Preconditions", "Story", "What must hold", "By hand")
_TITLE: Final = re.compile(r"^# ([STZQ]\d\d): (.+)$", re.MULTILINE)
_SECTION: Final = re.compile(r"^## (.+)\n\n", re.MULTILINE)
_STEP: Final = re.compile(r"^\d+\. ", re.MULTILINE)
_FAMILIES: Final = {
    "S": "Replicas, their leader, and a controller",
    "T": "Transactions",
    "Z": "The same with a store: the leader or the controller writes the in-sync set there",
    "Q": "The controllers' own log, by majority",
}
_INTRODUCTION: Final = """\
<!-- Written by `make docs` from the pages. -->
# How replicated logs lose data: a suite for any system

One page for each failure: what a protocol must have for it to be possible, the story, what must hold instead, and how
to play it by hand. The pages use no word of Laststand, so that they can be played on any log with a leader, followers
and a set of replicas in sync. [failures.md](../failures.md) has, for the same ids, the rule that prevents each here,
its place in the code, and what became of it on Apache Kafka; [quorum.md](../quorum.md) has those of Q; `make gallery`
draws runs.

What playing by hand takes, in every case: a way to block a link in one direction and to hold a message and release it
later (a proxy between each pair of nodes), to stop a process and to resume it (SIGSTOP, SIGCONT), to end it
(SIGKILL), and to take its power: to end it and to put back the files as they were last synced (a copy of its
directory, or a snapshot of its volume). *Acknowledged by all* is what the system promises to keep: by all replicas
that are in sync, and at least the minimum.
"""


class Story(NamedTuple):
    """One page: a failure in protocol terms.

    Attributes:
        steps: of the story, in order.
    """

    id: str
    title: str
    preconditions: str
    steps: tuple[str, ...]
    must_hold: str
    by_hand: str


def stories() -> dict[str, Story]:
    """Returns every page of the catalogue by its id, in order of the families."""
    found = [read_story(path.read_text(encoding="utf-8")) for path in CATALOGUE.glob("[stzq]*.md")]
    order = list(_FAMILIES)
    return {story.id: story for story in sorted(found, key=lambda story: (order.index(story.id[0]), story.id))}


def read_story(text: str) -> Story:
    """Returns the parts of a page.

    Raises:
        ValueError: it has other headings.
    """
    title = _TITLE.match(text)
    _, *parts = _SECTION.split(text)
    if title is None or tuple(parts[::2]) != SECTIONS:
        raise ValueError(f"a page has a title and {SECTIONS}, not {parts[::2]}: {text[:40]}")
    preconditions, story, must_hold, by_hand = (part.strip() for part in parts[1::2])
    steps = tuple(" ".join(step.split()) for step in _STEP.split(story)[1:])
    return Story(title[1], title[2], preconditions, steps, must_hold, by_hand)


def catalogue_page() -> str:
    """Returns the index of the catalogue."""
    parts = [_INTRODUCTION]
    for letter, heading in _FAMILIES.items():
        rows = (
            (f"[{story.id}]({story.id.lower()}.md)", story.title)
            for story in stories().values()
            if story.id[0] == letter
        )
        parts.append(f"\n## {heading}\n\n{table(('Id', 'Failure'), rows)}")
    return "".join(parts)


def pages_with_rules(failures: list[Failure], drawn: list[Failure], gallery: str) -> Iterator[tuple[str, str]]:
    """Yields path and text of each failure's page for the site, with what Laststand has of it.

    Args:
        failures: rows of the tables.
        drawn: those that the gallery has.
        gallery: path of the gallery's index, from a page.
    """
    for failure in failures:
        path = CATALOGUE / f"{failure.id.lower()}.md"
        rule = f"## Here\n\n- Source: {failure.source}\n- Rule: {failure.rule}\n"
        if failure.named:
            rule += f"- Without it: {failure.switch}\n"
        if failure in drawn:
            rule += f"- Runs: [gallery]({gallery}#{failure.id})\n"
        yield f"docs/catalogue/{path.name}", f"{path.read_text(encoding='utf-8')}\n{rule}"
