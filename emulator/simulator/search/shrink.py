"""Shrinking: shortens a plan that leads to a finding, as long as it still does.

It removes all actions of a kind at once, applies delta debugging to the rest, then tries simpler arguments, fewer
partitions and brokers, and repeats until nothing helps or the trials are used up; the best plan so far is kept. A plan
*still does* if it leads to a finding of the same kind: any outcome check if the finding was an outcome check, else the
same check. A trial stops at the first such finding, and later actions are removed.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final, cast

import msgspec

from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import format_action
from laststand.emulator.plan.plan import Plan
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.simulator.oracle.finding import Alarm
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.search.explorer import merge_waits

TRIALS_MAX: Final = 1_000
"""A count and no time, so that each machine comes to the same plan; a hundred trials are usual."""

_WAITS_MS: Final = (0, 1, 5, 20, 100, 450)


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome that a shrunk plan must still have.

    Attributes:
        kind: kind of the check.
        check_id: id of the check; for an outcome check, any other outcome check is accepted.
        unless: outcome checks that are not accepted.
        is_beyond: whether losses outside of the guarantee count, too.
    """

    kind: PromiseKind
    check_id: str
    unless: frozenset[str] = frozenset()
    is_beyond: bool = False

    def is_met_by(self, alarm: Alarm) -> bool:
        """Returns whether a finding meets this goal."""
        if self.kind is PromiseKind.OUTCOME:
            return alarm.kind is PromiseKind.OUTCOME and alarm.check_id not in self.unless
        return alarm.check_id == self.check_id

    def first_met(self, simulation: Simulation) -> Alarm | None:
        """Returns the first alarm of a run that meets this goal."""
        alarms = simulation.oracle.alarms
        if alarms and not self.is_beyond:
            alarms = list(simulation.findings())
        return next(filter(self.is_met_by, alarms), None)


def goal_of(findings: tuple[Alarm, ...]) -> Goal:
    """Returns the goal of shrinking: the first finding of an outcome check, or else the first finding."""
    chosen = next((alarm for alarm in findings if alarm.kind is PromiseKind.OUTCOME), findings[0])
    return Goal(kind=chosen.kind, check_id=chosen.check_id)


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """The best plan found, the finding that it leads to, and the number of trials."""

    plan: Plan
    finding: Alarm
    trials: int
    seconds: float


def replay(plan: Plan, goal: Goal) -> tuple[Plan, Alarm] | None:
    """Plays a plan; returns the plan up to the first finding that meets the goal, or ``None`` if there is none."""
    simulation = Simulation(plan)
    simulation.begin()
    played: list[actions.Action] = []
    for action in plan.actions:
        if simulation.play(action):
            played.append(action)
        if (alarm := goal.first_met(simulation)) is not None:
            return plan.with_actions(played), alarm
        if simulation.has_crashed:
            return None
    simulation.finish()
    alarm = goal.first_met(simulation)
    return None if alarm is None else (plan.with_actions(played), alarm)


class Search:
    """A search for a better plan, with a limited number of trials.

    Attributes:
        plan: the best plan so far.
        trials: number of tried plans.
    """

    def __init__(
        self,
        plan: Plan,
        find: Callable[[Plan], Plan | None],
        *,
        trials_max: int,
        can_be_tried: Callable[[Plan], bool] = lambda _: True,
    ) -> None:
        """Begins with a plan.

        Args:
            plan: a plan that meets the goal.
            find: tries a plan; returns the part that is needed for the goal, or ``None`` if the plan does not meet it.
            trials_max: maximal number of plans to try.
            can_be_tried: returns whether a plan can be played; other plans are skipped and count as no trial.
        """
        self.plan = plan
        self.trials = 0
        self._find = find
        self._trials_max = trials_max
        self._can_be_tried = can_be_tried

    @property
    def is_over(self) -> bool:
        """All trials are used up."""
        return self.trials >= self._trials_max

    def accepts(self, candidate: Plan) -> bool:
        """Tries a plan, and keeps it if it still meets the goal."""
        if self.is_over or not self._can_be_tried(candidate):
            return False
        self.trials += 1
        found = self._find(candidate)
        if found is None:
            return False
        self.plan = found
        return True


def shrink(
    plan: Plan, goal: Goal, *, trials_max: int = TRIALS_MAX, is_allowed: Callable[[Plan], bool] = lambda _: True
) -> Shrunk | None:
    """Returns the shortest plan that was found within the limit; ``None`` if the plan does not lead to the goal.

    Args:
        plan: to begin with.
        goal: the finding that the plan must still lead to.
        trials_max: maximal number of plans to try after the first.
        is_allowed: a further condition for a plan; called only for plans that lead to the goal.

    Raises:
        InvariantError: the result does not lead to the goal when played again; a run is not deterministic.
    """
    started = time.monotonic()
    refused: set[Plan] = set()

    def find(candidate: Plan) -> Plan | None:
        if candidate in refused:  # once more at the end, when nothing else helps
            return None
        found = replay(candidate, goal)
        if found is not None and is_allowed(found[0]):
            return found[0]
        refused.add(candidate)
        return None

    first = find(plan)
    if first is None:
        return None
    search = Search(first, find, trials_max=trials_max)
    drop_kinds(search)
    while not search.is_over:
        before = search.plan
        drop_actions(search)
        _simplify_actions(search)
        _drop_topology(search)
        if search.plan == before:
            break
    last = replay(search.plan, goal)
    if last is None:
        raise InvariantError("a shrunk plan does not lead to its finding when it is played again")
    return Shrunk(plan=search.plan, finding=last[1], trials=search.trials, seconds=time.monotonic() - started)


def drop_kinds(search: Search) -> None:
    """Removes all actions of one kind: every cut, every power loss, every held message."""
    for kind in dict.fromkeys(map(_kind, search.plan.actions)):
        kept = [action for action in search.plan.actions if _kind(action) != kind]
        if len(kept) < len(search.plan.actions):
            search.accepts(search.plan.with_actions(merge_waits(kept)))


def _kind(action: actions.Action) -> str:
    return format_action(action).split()[0]


def drop_actions(search: Search) -> None:
    """Removes sequences of actions, half of all actions first and single ones last."""
    size = max(1, len(search.plan.actions) // 2)
    while True:
        start = 0
        while start < len(search.plan.actions) and not search.is_over:
            actions = search.plan.actions
            kept = [*actions[:start], *actions[start + size :]]
            if not search.accepts(search.plan.with_actions(merge_waits(kept))):
                start += size
        if size == 1 or search.is_over:
            return
        size //= 2


def _simplify_actions(search: Search) -> None:
    index = 0
    while index < len(search.plan.actions) and not search.is_over:
        for simpler in _simpler(search.plan.actions[index]):
            actions = list(search.plan.actions)
            if index >= len(actions) or actions[index] == simpler:
                continue
            actions[index] = simpler
            if search.accepts(search.plan.with_actions(actions)):
                break
        index += 1


def _simpler(action: actions.Action) -> Iterator[actions.Action]:
    match action:
        case actions.Wait(duration_ms=duration_ms):
            for shorter in _WAITS_MS:
                if shorter < duration_ms:
                    yield actions.Wait(duration_ms=shorter)
        case (
            actions.Produce(records=records) | actions.Transact(records=records) | actions.Consume(records=records)
        ) if records > 1:
            yield msgspec.structs.replace(action, records=1)
        case actions.PowerLoss(loss=loss):
            for simpler in _simpler_losses(loss):
                yield msgspec.structs.replace(action, loss=simpler)
            yield from _on_fewer(action)
        case actions.CrashWithin(nodes=nodes, after_effects=after_effects, loss=loss):
            yield actions.Kill(nodes=nodes)
            if loss is not None:
                yield actions.PowerLoss(nodes=nodes, loss=loss)
                yield msgspec.structs.replace(action, loss=None)
                for simpler in _simpler_losses(loss):
                    yield msgspec.structs.replace(action, loss=simpler)
            if after_effects > 1:
                yield msgspec.structs.replace(action, after_effects=1)
            yield from _on_fewer(action)
        case actions.OnNodes() | actions.OnBrokers():
            yield from _on_fewer(action)
        case _:
            pass


def _simpler_losses(loss: DiskLoss) -> Iterator[DiskLoss]:
    exact = loss.exact
    has_one_fate = loss.disk.has_ordered_journal
    names = NamesFate.KEPT if exact is None or has_one_fate else exact.names
    if loss.keep is not Keep.NONE:
        nothing = ExactLoss(kept=0, truncation=TruncationFate.KEPT, names=names)
        yield msgspec.structs.replace(loss, keep=Keep.NONE, exact=nothing)
    if exact is not None and exact.names is not NamesFate.KEPT and not has_one_fate:
        yield msgspec.structs.replace(loss, exact=msgspec.structs.replace(exact, names=NamesFate.KEPT))


def _on_fewer(action: actions.OnNodes[NodeId] | actions.OnBrokers[NodeId]) -> Iterator[actions.Action]:
    """Yields the action with each of its nodes left out, if it has several."""
    for node in action.nodes if len(action.nodes) > 1 else ():
        fewer = msgspec.structs.replace(action, nodes=tuple(each for each in action.nodes if each != node))
        yield cast(actions.Action, fewer)


def _drop_topology(search: Search) -> None:
    changes: tuple[Callable[[Plan], Plan | None], ...] = (_with_one_partition, _with_three_brokers)
    for change in changes:
        candidate = change(search.plan)
        if candidate is not None:
            search.accepts(candidate)


def _with_one_partition(plan: Plan) -> Plan | None:
    first = plan.topics[0]
    if plan.has_transactions or (len(plan.topics) == 1 and len(first.replicas) == 1):
        return None
    return msgspec.structs.replace(plan, topics=(msgspec.structs.replace(first, replicas=first.replicas[:1]),))


def _with_three_brokers(plan: Plan) -> Plan | None:
    if plan.brokers == 3:
        return None
    topics: list[PlannedTopic] = []
    for topic in plan.topics:
        replicas = tuple(tuple(broker for broker in each if broker < 3) for each in topic.replicas)
        if any(len(each) < 3 for each in replicas):
            return None
        topics.append(msgspec.structs.replace(topic, replicas=replicas))
    return msgspec.structs.replace(plan, brokers=3, topics=tuple(topics))
