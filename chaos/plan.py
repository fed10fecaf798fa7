"""What was really done, as a scenario file of its own: ``plan.yaml``.

Roles and names are replaced by the ids of the nodes that they stood for, and random choices by their seeds, so that the
file can be played again. What each step saw stands beside it as a comment. Everything but the steps is the scenario's
own text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, kw_only=True)
class PlayedStep:
    """One step as it was played.

    Attributes:
        text: the step, flow style, with nodes and seeds filled in.
        seen: what it waited for or did, as it was seen.
    """

    text: str
    seen: str


def fill_in(text: str, nodes: Mapping[str, int], *, seed: int | None) -> str:
    """Returns a step's text with ids in place of roles and names, and a power loss's seed.

    Args:
        text: flow style, as the scenario has it.
        nodes: ids by the role or name that the step used.
        seed: of a power loss.
    """
    ((verb, argument),) = yaml.safe_load(text).items()
    filled = _replace(argument, nodes)
    if isinstance(filled, dict):
        filled.pop("as", None)
        if seed is not None:
            filled["seed"] = seed
    return yaml.safe_dump({verb: filled}, default_flow_style=True, sort_keys=False, width=10_000).strip()


def _replace(value: object, nodes: Mapping[str, int]) -> object:
    match value:
        case dict():
            return {key: each if key == "as" else _replace(each, nodes) for key, each in value.items()}
        case list():
            return [_replace(each, nodes) for each in value]
        case str() if value in nodes:
            return nodes[value]
        case str() if "->" in value:
            return " -> ".join(str(_replace(end.strip(), nodes)) for end in value.split("->"))
        case _:
            return value


def write_plan(path: Path, *, scenario_text: str, steps: list[PlayedStep], seed: int) -> None:
    """Writes the plan: the scenario with its steps replaced by those played, and the seed."""
    document = yaml.safe_load(scenario_text)
    document["seed"] = seed
    del document["steps"]
    head = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    lines = [f"  - {step.text} # {re.sub('[^ -~]', ' ', step.seen)}\n" for step in steps]
    path.write_text(f"{head}steps:\n{''.join(lines)}" if lines else f"{head}steps: []\n", encoding="utf-8")
