"""Finds plans whose run on processes would be unknown, though every action can be played.

A fault that begins on a node that is down takes effect in the simulator when the node is back. On processes nothing can
show that effect; a paused node does not show a fault of its links either, nor does a link that is silent already. A
fault without an observed effect makes a verdict ``unknown``, and so does a partition that no replica may lead at the
end, because its acknowledged records cannot be read.
"""

from collections.abc import Iterator

from laststand.chaos.plans.scenario_of_plan import Missing
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import format_action
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.actions.targets import find_process
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.oracle.liveness import excused
from laststand.emulator.simulator.run.simulation import Simulation

_DOWN = "a node is down there, so that no effect could be seen"
_SILENT = "a node is paused there, or the link is silent already, so that no effect could be seen"
_UNLED = "nobody may lead it, so that what was acknowledged could not be read"


def unprovable(plan: Plan) -> Iterator[Missing]:
    """Yields a plan's faults without provable effect, in order, and partitions left leaderless; plays the plan."""
    simulation = Simulation(plan)
    simulation.begin()
    for action in plan.actions:
        why = _why(simulation.cluster, action)
        if why is not None:
            yield Missing(what=format_action(action), why=why)
        simulation.play(action)
    simulation.finish()
    for partition in excused(simulation.cluster):
        yield Missing(what=f"{partition} in the end", why=_UNLED)


def _why(cluster: SimulatedCluster, action: actions.Action) -> str | None:
    processes = [process for node in _needed(action) if (process := find_process(cluster, node)) is not None]
    if any(process.core is None for process in processes):
        return _DOWN
    is_of_links = isinstance(action, actions.Cut | actions.Isolate)
    if is_of_links and any(process.is_paused for process in processes):
        return _SILENT
    if isinstance(action, actions.Cut) and cluster.network.is_blocked(action.link):
        return _SILENT
    return None


def _needed(action: actions.Action) -> tuple[NodeId, ...]:
    """Returns the nodes that have to run for a fault to have an observable effect."""
    match action:
        case actions.Cut(link=link):
            return (link.source, link.target)
        case (
            actions.Isolate()
            | actions.Kill()
            | actions.Stop()
            | actions.Pause()
            | actions.ClockRate()
            | actions.ClockJump()
        ):
            return action.nodes
        case _:
            return ()
