"""Faults of a plan that would begin on nodes that are down.

In the simulator they take effect when the node is back. On processes nobody is there to show that they did, and a fault
that showed no effect makes a verdict ``unknown``.
"""

from collections.abc import Iterator

from chaos.plans.scenario_of_plan import Missing
from emulator.core.types import NodeId
from emulator.plan.actions import Action, Cut, Isolate, Kill, Pause, Stop
from emulator.plan.lines import format_action
from emulator.plan.plan import Plan
from emulator.simulator.simulation import Simulation
from emulator.simulator.targets import find_process

_WHY = "a node is down there, so that no effect could be seen"


def unprovable(plan: Plan) -> Iterator[Missing]:
    """Yields these faults in order; plays the plan to find out which nodes run."""
    simulation = Simulation(plan)
    simulation.begin()
    for action in plan.actions:
        processes = [find_process(simulation.cluster, node) for node in _needed(action)]
        if any(process is not None and process.core is None for process in processes):
            yield Missing(what=format_action(action), why=_WHY)
        simulation.play(action)


def _needed(action: Action) -> tuple[NodeId, ...]:
    """Returns the nodes that have to run for a fault to show."""
    match action:
        case Cut(link=link):
            return (link.source, link.target)
        case Isolate(nodes=nodes) | Kill(nodes=nodes) | Stop(nodes=nodes) | Pause(nodes=nodes):
            return nodes
        case _:
            return ()
