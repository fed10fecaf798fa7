"""The steps as they were played, as a separate scenario file: ``plan.yaml``.

Roles and names are replaced by the node ids that they stood for, and random choices by their seeds, so that the file
can be played again. The observation of each step is a comment beside it. The rest is the scenario's own text, and the
rules in force.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import yaml

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.conditions_yaml import until_entry
from laststand.emulator.core import events
from laststand.emulator.core.eras import rule_texts
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import CauseId
from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import plain
from laststand.emulator.plan.steps import action_text, flow_text
from laststand.emulator.user_files import read_text
from laststand.emulator.user_yaml import load_yaml

_STEPS: Final = "steps:\n"


@dataclass(frozen=True, kw_only=True)
class PlayedStep:
    """One step as it was played: with resolved nodes and drawn seeds, and its outcome."""

    action: conditions.Until | actions.ActionTemplate
    outcome: actions.Outcome

    @property
    def performed(self) -> actions.Action | None:
        """The action with its nodes resolved; ``None`` for a barrier, and if nothing was done."""
        if isinstance(self.action, conditions.Until) or any(
            not isinstance(node, int) for node in actions.nodes_of(self.action)
        ):
            return None
        return cast(actions.Action, self.action)

    def reached(self, step: int, *, cause_id: CauseId) -> events.StepReached:
        """Returns the event that this step, with number ``step`` in the plan, is done."""
        elections = self.action.unclean_elections if isinstance(self.action, actions.ElectLeaders) else ()
        return events.StepReached(
            cause_id=cause_id,
            step=step,
            text=self.text,
            seen=self.outcome.seen,
            unclean_elections=tuple(map(str, elections)),
            deletions=self.action.deletions if isinstance(self.action, actions.DeleteRecords) else (),
        )

    @property
    def text(self) -> str:
        """The step in the form of a scenario file, on one line."""
        if isinstance(self.action, conditions.Until):
            return flow_text(until_entry(self.action))
        return action_text(self.action)


def write_plan(
    path: Path,
    *,
    scenario_text: str,
    steps: Sequence[PlayedStep],
    era: str,
    switches: Switches,
    properties: tuple[tuple[str, str], ...],
    seed: int,
    earlier: str = "",
) -> None:
    """Writes the plan: the scenario with the steps that were played, the rules, the properties and the seed.

    Args:
        path: the file.
        scenario_text: the scenario file.
        steps: that were played.
        era: the run's era.
        switches: in force.
        properties: of every node.
        seed: of random choices.
        earlier: earlier steps, from ``recorded_steps``.
    """
    document = load_yaml(scenario_text)
    document.pop("steps", None)
    document["cluster"]["properties"] = {name: plain(value) for name, value in properties}
    document["era"] = era
    document["switches"] = rule_texts(switches)
    document["seed"] = seed
    head = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    lines = [f"  - {step.text} # {re.sub('[^ -~]', ' ', step.outcome.seen)}\n" for step in steps]
    listed = earlier + "".join(lines)
    path.write_text(f"{head}{_STEPS}{listed}" if listed else f"{head}steps: []\n", encoding="utf-8")


def recorded_steps(path: Path) -> str:
    """Returns the steps of a recorded plan as in the file; none if the file is missing."""
    try:
        return read_text(path).partition(_STEPS)[2]
    except FileNotFoundError:
        return ""
