"""The scenarios that documents show, as a reader would paste them into a file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import read_scenario

ROOT: Final = Path(__file__).parents[1]

STEP_CATALOGUE: Final = "my/scenario"
"""Of chaos/README.md: it shows every step there is, one after the other, and is not meant to be played."""


_NOT_OURS: Final = ("build", "mutants", "store")
"""Folders of the root that commands fill."""


def documents() -> list[Path]:
    """Returns every document; hidden folders of the root are not looked into: tools fill and empty them meanwhile."""
    folders = (each for each in ROOT.iterdir() if each.is_dir() and each.name not in _NOT_OURS)
    inside = (path for folder in folders if not folder.name.startswith(".") for path in folder.rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *inside])


def documented_scenarios() -> dict[str, Scenario]:
    """Returns every scenario of README and docs, by its name."""
    return {scenario.name: scenario for scenario in _scenarios()}


def _scenarios() -> Iterator[Scenario]:
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("chaos/**/*.md")):
        for block in re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL):
            if re.search(r"^steps:", block, flags=re.MULTILINE):
                yield read_scenario(path, block)


def documented_blocks(document: str, first: str) -> list[str]:
    """Returns the code blocks of a document that begin with a text, as a reader would copy them."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [block for block in blocks if block.startswith(first)]


def documented_commands_beside_kafkas(document: str) -> list[str]:
    """Returns the commands of laststand in the tables of a document, whose rows begin with what is done in Kafka."""
    text = (ROOT / document).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `k")]
    return [command for row in rows for command in re.findall(r"`(laststand [a-z][^`]*)`", row)]
