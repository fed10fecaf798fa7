"""Plays a plan again and writes its run to disk, as a directory of the form that real processes leave.

Beside the evidence there are ``plan.yaml``, ``scenario.yaml`` and ``cluster.yaml``. The plan is played with batches of
real bytes, and every node is stopped in order at the end.
"""

from pathlib import Path
from typing import Final

import yaml

from laststand.emulator.core.eras import changes, era_rules, rule_texts
from laststand.emulator.core.types import Acks
from laststand.emulator.plan.fields import PRODUCER_ALL, PRODUCER_LEADER
from laststand.emulator.plan.plan import Plan
from laststand.emulator.plan.plan_yaml import format_plan_yaml
from laststand.emulator.simulator.nodes.batch_registry import BatchRegistry
from laststand.emulator.simulator.run.evidence import BatchBytes, write_evidence
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation


class _ProducerAcks(dict[str, Acks]):
    """The acks of producers, by name; a transactional producer, whatever its name, has acks=all."""

    def __missing__(self, name: str) -> Acks:
        return Acks.ALL


PRODUCERS: Final = _ProducerAcks({PRODUCER_ALL: Acks.ALL, PRODUCER_LEADER: Acks.LEADER})
"""Producers of a simulated run, and their acks."""


def write_run(plan: Plan, directory: Path, *, name: str, seed: int | None = None) -> Simulation:
    """Plays a plan (drawn with ``seed``, if given) and writes its run into a new directory; returns the stopped run.

    Raises:
        OSError: the directory exists, or cannot be written.
    """
    journal, content = Journal(), BatchBytes({})
    simulation = play_and_stop(plan, journal=journal, batches=BatchRegistry(content.encode))
    directory.mkdir(parents=True)
    (directory / "plan.yaml").write_text(format_plan_yaml(plan, name=name))
    cluster: dict[str, object] = {
        "run": directory.name,
        "scenario": name,
        "era": plan.era,
        "changed": list(changes(plan.rules(), era_rules(plan.era))),
        "driver": "simulator",
        "switches": rule_texts(plan.rules()),
    }
    if seed is not None:
        cluster["seed"] = seed
    (directory / "cluster.yaml").write_text(yaml.safe_dump(cluster, sort_keys=False))
    (directory / "scenario.yaml").write_text(yaml.safe_dump({"name": name, "missed_step": "end"}))
    write_evidence(directory, simulation.cluster, journal, content, acks=PRODUCERS, problem=_problem(simulation))
    return simulation


def play_and_stop(plan: Plan, *, journal: Journal | None = None, batches: BatchRegistry | None = None) -> Simulation:
    """Plays a plan to its end and stops every node in order; the simulation can then be judged."""
    simulation = Simulation(plan, journal=journal, batches=batches)
    simulation.play_plan()
    simulation.stop()
    return simulation


def _problem(simulation: Simulation) -> str | None:
    return "the core raised an exception" if simulation.has_crashed else None
