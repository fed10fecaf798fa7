"""``docs/fsync.md``: each of its plans comes to the verdict that stands below it."""

import re

import pytest

from docs.playground.session import play
from docs.site.pages import ROOT

TEXT = (ROOT / "docs" / "fsync.md").read_text(encoding="utf-8")
PLANS = re.findall(r"^```plan\n(.*?)^```\n\nVerdict: (.+?)\.$", TEXT, re.MULTILINE | re.DOTALL)


def test_each_plan_has_a_verdict() -> None:
    assert len(PLANS) == TEXT.count("```plan\n") == 8


@pytest.mark.parametrize(("plan", "verdict"), PLANS)
def test_a_plan_comes_to_its_verdict(plan: str, verdict: str) -> None:
    assert play(plan).verdict == verdict
