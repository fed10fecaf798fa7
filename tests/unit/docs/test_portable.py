"""The catalogue of failures: a page for each that is known here, in words that every system has."""

import re
from pathlib import Path

import pytest

from docs.portable import CATALOGUE, read_story, stories
from docs.site.build import failures
from docs.site.pages import ROOT

OURS = re.compile(
    r"laststand|\bera\b|\bswitch\b|oracle|scenario|simulator|\bELR\b|\bISR\b|KIP|Kafka|ZooKeeper", re.IGNORECASE
)


def test_each_failure_has_a_page_and_each_page_a_failure() -> None:
    quorum = set(re.findall(r"\bQ\d\d\b", (ROOT / "docs" / "quorum.md").read_text(encoding="utf-8")))
    assert stories().keys() == {failure.id for failure in failures()} | quorum


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("[stzq]*.md")), ids=lambda path: path.stem)
def test_a_page_is_for_any_system(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    story = read_story(text)
    assert OURS.findall(text) == []
    assert path.stem == story.id.lower()
    assert 1 <= len(story.steps) <= 10
    assert all((story.preconditions, story.must_hold, story.by_hand))


def test_a_page_with_other_headings_is_refused() -> None:
    with pytest.raises(ValueError, match="not \\['Story'\\]"):
        read_story("# S01: x\n\n## Story\n\n1. y\n")
