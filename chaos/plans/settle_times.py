"""Lets a plan settle: between its actions time passes until nothing changes any more, with the same result.

A barrier can wait for a state that lasts; it cannot stop a cluster in the middle of a change. So a plan can be played
with barriers if it has the same result when the cluster settles after each action. Three things are made explicit, each
of which the simulator does at one moment: records are produced after the other actions of that moment, as they travel
then anyway; faults at the end are healed one by one, in an order that is found by trying; and the preferred-leader
sweep is off. The result of a plan is the set of violated outcome checks and lost records. If the result depends on the
time between two actions, the settled plan names the place.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final

import msgspec

from laststand.chaos.plans.lost_records import RecordName, lost_records
from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.actions import Action, HealAll, Produce, Resume, Start, Wait
from laststand.emulator.plan.lines import format_action
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.run.evidence import operations
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.run.writer import PRODUCERS
from laststand.emulator.simulator.search.explorer import merge_waits

QUIET_MS: Final = 1_000
"""Time without a change after which nothing changes any more: longer than session timeout and replica lag together."""

_LOOK_MS: Final = 50
_LIMIT_MS: Final = 15_000
_REPAIRS_MAX: Final = 4
_STEADY_LEADERS: Final = ("auto.leader.rebalance.enable", "false")


class PlanResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a plan."""

    checks: frozenset[str]
    lost: frozenset[RecordName]


class SettledPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that takes its time.

    Attributes:
        plan: the same plan, with its waits long enough and its repairs explicit.
        result: of both.
        timed: descriptions of the places where the result depends on time; such a plan cannot be played with barriers.
    """

    plan: Plan
    result: PlanResult
    timed: tuple[str, ...]


class _Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Actions, and the time after each: in ms, or ``None`` for as long as anything changes."""

    actions: tuple[Action, ...]
    pauses: tuple[int | None, ...]


class _Played(msgspec.Struct, frozen=True, kw_only=True):
    actions: tuple[Action, ...]
    result: PlanResult
    repairs: tuple[Action, ...]


def result_of(plan: Plan) -> PlanResult:
    """Plays a plan unchanged, and returns its result."""
    return _play(plan, _Schedule(actions=plan.actions, pauses=(0,) * len(plan.actions))).result


def settle(plan: Plan) -> SettledPlan:
    """Returns the plan with as many waits as possible without changing its result."""
    result = result_of(plan)
    steady = msgspec.structs.replace(plan, properties=(*_without_rebalance(plan), _STEADY_LEADERS))
    schedule = _produce_last(_schedule(plan.actions))
    settled = msgspec.structs.replace(schedule, pauses=(None,) * len(schedule.pauses))
    played = _play(steady, settled)
    timed: tuple[str, ...] = ()
    if played.result != result:
        schedule, timed = _least_timed(steady, schedule, result)
        played = _play(steady, schedule)
    explicit, is_found = _with_repairs(steady, played, result)
    if not is_found:
        timed = (*timed, "at the end, where everything is mended at once")
    return SettledPlan(plan=steady.with_actions(merge_waits(list(explicit))), result=result, timed=timed)


def _without_rebalance(plan: Plan) -> Iterator[tuple[str, str]]:
    return (entry for entry in plan.properties if entry[0] != _STEADY_LEADERS[0])


def _schedule(actions: Sequence[Action]) -> _Schedule:
    doings: list[Action] = []
    pauses: list[int | None] = []
    for action in actions:
        if isinstance(action, Wait) and pauses:
            pauses[-1] = (pauses[-1] or 0) + action.duration_ms
        else:
            doings.append(action)
            pauses.append(0)
    return _Schedule(actions=tuple(doings), pauses=tuple(pauses))


def _produce_last(schedule: _Schedule) -> _Schedule:
    """Moves produce actions behind all others at the same moment."""
    actions: list[Action] = []
    moment: list[Action] = []
    for action, pause in zip(schedule.actions, schedule.pauses, strict=True):
        moment.append(action)
        if pause:
            actions += sorted(moment, key=lambda each: isinstance(each, Produce))
            moment = []
    actions += sorted(moment, key=lambda each: isinstance(each, Produce))
    return msgspec.structs.replace(schedule, actions=tuple(actions))


def _least_timed(plan: Plan, schedule: _Schedule, result: PlanResult) -> tuple[_Schedule, tuple[str, ...]]:
    """Returns the schedule with a wait after each action if that does not change the result, and the other places."""
    timed: list[str] = []
    for index, action in enumerate(schedule.actions):
        pauses = (*schedule.pauses[:index], None, *schedule.pauses[index + 1 :])
        settled = msgspec.structs.replace(schedule, pauses=pauses)
        if _play(plan, settled).result == result:
            schedule = settled
        else:
            timed.append(f"after '{format_action(action)}'")
    return schedule, tuple(timed)


def _with_repairs(plan: Plan, played: _Played, result: PlanResult) -> tuple[tuple[Action, ...], bool]:
    """Appends repairs of all faults, in an order that does not change the result; returns whether there is one."""
    if len(played.repairs) > _REPAIRS_MAX:
        return played.actions, False
    for repairs in permutations(played.repairs):
        schedule = _Schedule(
            actions=(*played.actions, *repairs), pauses=(*(0 for _ in played.actions), *(None for _ in repairs))
        )
        again = _play(plan, schedule)
        if again.result == result:
            return again.actions, True
    return played.actions, False


def _play(plan: Plan, schedule: _Schedule) -> _Played:
    journal = Journal()
    simulation = Simulation(plan, journal=journal)
    simulation.begin()
    actions: list[Action] = []
    for action, pause in zip(schedule.actions, schedule.pauses, strict=True):
        if simulation.play(action):
            actions.append(action)
        wait = Wait(duration_ms=_until_quiet(simulation) if pause is None else pause)
        if wait.duration_ms and pause is not None:
            simulation.play(wait)
        if wait.duration_ms:
            actions.append(wait)
    repairs = tuple(_repairs(simulation.cluster))
    simulation.finish()
    fired = simulation.outcome().findings
    return _Played(
        actions=tuple(actions),
        result=PlanResult(
            checks=frozenset(alarm.check_id for alarm in fired if alarm.kind is PromiseKind.OUTCOME),
            lost=lost_records(operations(journal, PRODUCERS)),
        ),
        repairs=repairs,
    )


def _until_quiet(simulation: Simulation) -> int:
    """Advances time until nothing has changed for a while; returns the time passed."""
    cluster = simulation.cluster
    started_ms = changed_ms = cluster.now_ms
    state = _state(cluster)
    while cluster.now_ms - changed_ms < QUIET_MS and cluster.now_ms - started_ms < _LIMIT_MS:
        if not simulation.play(Wait(duration_ms=_LOOK_MS)):
            break
        if (now := _state(cluster)) != state:
            state, changed_ms = now, cluster.now_ms
    return cluster.now_ms - started_ms


def _state(cluster: SimulatedCluster) -> tuple[object, ...]:
    logs = tuple(
        (node.node_id, name, log.log_end_offset)
        for node in cluster.nodes.values()
        for name, log in node.disk.logs.items()
    )
    unfinished = tuple(producer.producer.unfinished_records for producer in cluster.clients.producers.values())
    return (cluster.controller.committed_end_offset, logs, unfinished)


def _repairs(cluster: SimulatedCluster) -> Iterator[Action]:
    if not cluster.network.is_whole:
        yield HealAll()
    controller = cluster.controller_node
    down: list[NodeId] = [controller.node_id] if controller.core is None else []
    paused: list[NodeId] = [controller.node_id] if controller.is_paused else []
    down += [node.node_id for node in cluster.nodes.values() if node.core is None]
    paused += [node.node_id for node in cluster.nodes.values() if node.is_paused]
    for node_id in paused:
        yield Resume(nodes=(node_id,))
    for node_id in down:
        yield Start(nodes=(node_id,))
