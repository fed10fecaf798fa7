"""The scenarios that documents show, as a reader would paste them into a file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chaos.scenario.scenario import Scenario
from chaos.scenario.scenario_file import read_scenario

ROOT: Final = Path(__file__).parents[1]

STEP_CATALOGUE: Final = "my/scenario"
"""Of chaos/README.md: it shows every step there is, one after the other, and is not meant to be played."""


def documented_scenarios() -> dict[str, Scenario]:
    """Returns every scenario of README and docs, by its name."""
    return {scenario.name: scenario for scenario in _scenarios()}


def _scenarios() -> Iterator[Scenario]:
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("chaos/**/*.md")):
        for block in re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL):
            if re.search(r"^steps:", block, flags=re.MULTILINE):
                yield read_scenario(path, block)


def documented_commands(document: str, first: str) -> str:
    """Returns the block of a document that begins with a command, as a reader would paste it into a shell."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if block.startswith(first))
    return block
