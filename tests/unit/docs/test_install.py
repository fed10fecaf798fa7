"""The page about installation names every extra that a package index offers."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_extra_has_a_row() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (ROOT / "docs/install.md").read_text()
    table = page[page.index("| Extra |") : page.index("| Program |")]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == set(extras)
