"""Plays the steps of a scenario: waits at barriers, performs actions, and records what was observed."""

import dataclasses
import random
from collections.abc import Iterable

import msgspec

from laststand.chaos.play.administration import administer
from laststand.chaos.play.barriers import Observation, View, observe
from laststand.chaos.play.recorded_plan import PlayedStep
from laststand.chaos.play.roles import candidates, missing, resolve
from laststand.chaos.play.target import Target
from laststand.chaos.play.voters import change_voters
from laststand.chaos.play.waiting import StepError
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario import Step
from laststand.emulator.core.types import NodeId, kafka_client_ids
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import DrawnFrom, DrawnNodes, NamedNode, NodeGroup, NodeRef
from laststand.emulator.plan.power import SEED_BITS


class StepPlayer:
    """Plays steps one after the other, and remembers the names that they give to nodes.

    Args:
        target: the cluster.
        seed: of random choices.
        kafka_clients: names of the clients of Kafka.
    """

    def __init__(self, *, target: Target, seed: int, kafka_clients: Iterable[str] = ()) -> None:
        self._target = target
        self._seed = seed
        self._kafka_clients = kafka_client_ids(kafka_clients)
        self._names: dict[str, NodeId] = {name: client_id for client_id, name in self._kafka_clients.items()}
        self._repairs: list[actions.Action] = []
        self._unregistered: set[NodeId] = set()
        self._began_ms: list[int] = []

    async def play(self, number: int, step: Step) -> PlayedStep:
        """Plays one step; ``number`` counts from 1.

        Raises:
            StepError: a barrier was not reached, no node has the role that the step names, or an answer is not allowed.
            EmulatorError: the action could not be played to its end.
        """
        self._began_ms.append(self._target.now_ms)
        if isinstance(step.action, conditions.Until):
            observation = await self._wait(step.action)
            reached = actions.Outcome(took_effect=True, affected=True, seen=observation.text)
            return PlayedStep(action=self._as_played(step.action), outcome=reached)
        action = self._resolved(self._with_groups(step.action, number))
        if isinstance(action, actions.PowerLoss) and action.loss.seed is None:
            loss = msgspec.structs.replace(action.loss, seed=self._chance(number).getrandbits(SEED_BITS))
            action = msgspec.structs.replace(action, loss=loss)
        if step.bind is not None:
            (self._names[step.bind],) = (node for node in actions.nodes_of(action) if isinstance(node, int))
        outcome = await self.perform(action, number=number)
        return PlayedStep(action=self._with_clients_named(action), outcome=outcome)

    def _with_clients_named(self, action: actions.Action) -> actions.ActionTemplate:
        """Returns an action with names in place of the ids of clients of Kafka, which a plan must not contain."""

        def named(node: NodeRef) -> NodeRef:
            name = self._kafka_clients.get(node) if isinstance(node, int) else None
            return node if name is None else NamedNode(name=name)

        return actions.with_nodes(action, named)

    def left_out(self, step: Step) -> int:
        """Returns the number of steps, from this one on, that are left out because the time of ``every`` is over."""
        if step.limit is None or self._target.now_ms - self._began_ms[-step.limit.before] < step.limit.span_ms:
            return 0
        return step.limit.rest

    def leave_out(self, steps: int) -> None:
        """Skips a number of steps."""
        self._began_ms += [self._target.now_ms] * steps

    def _as_played(self, barrier: conditions.Until) -> conditions.Until:
        """Returns a barrier as it can be played again: with ids for names, and time counted from its own beginning."""
        if isinstance(barrier.condition, conditions.Elapsed):
            waited_ms = self._target.now_ms - self._began_ms[-1]
            return dataclasses.replace(barrier, condition=conditions.Elapsed(duration_ms=waited_ms))
        return barrier.with_names(self._names)

    async def perform(self, action: actions.Action, *, number: int) -> actions.Outcome:
        """Performs an action of step ``number``.

        Raises:
            StepError: the controller's answer is not allowed.
            EmulatorError: the action could not be completed.
        """
        if isinstance(action, actions.VoterAction):
            return await change_voters(self._target, action)
        if isinstance(action, actions.Administration):
            outcome = await administer(self._target, action, chance=self._chance(number))
            if isinstance(action, actions.UnregisterBroker) and outcome.took_effect:
                self._unregistered.add(action.broker_id)
            return outcome
        outcome = await self._target.perform(action)
        if isinstance(action, actions.Start) and outcome.took_effect:
            self._unregistered.difference_update(action.nodes)
        repair = action.repair()
        if outcome.took_effect and repair is not None and repair not in self._repairs:
            self._repairs.append(repair)
        return outcome

    @property
    def repairs(self) -> tuple[actions.Action, ...]:
        """The repairs of played actions that only an action of the same kind can revert.

        A broker that was unregistered registers again when it is started, and not before.
        """
        idle = tuple(node for node in sorted(self._unregistered) if self._target.is_running(node))
        restarts = (actions.Stop(nodes=idle), actions.Start(nodes=idle)) if idle else ()
        return (*self._repairs, *restarts)

    def _chance(self, number: int) -> random.Random:
        return random.Random(f"{self._seed}:step-{number}")

    async def _wait(self, barrier: conditions.Until) -> Observation:
        target = self._target
        at_start, began_ms = target.counts, self._began_ms

        def observed() -> Observation:
            view = View(
                image=target.image,
                counts=target.counts,
                counts_at_start=at_start,
                names=self._names,
                log_end=target.log_end,
                log_names=target.log_names,
                intercepted=target.intercepted,
                elapsed_ms=lambda steps: target.now_ms - began_ms[-1 - steps],
            )
            return observe(barrier.condition, view)

        return await target.wait(observed, timeout_s=barrier.within_ms / 1000)

    def _with_groups(self, template: actions.ActionTemplate, number: int) -> actions.ActionTemplate:
        """Draws the groups of an action, each node once."""
        chance = random.Random(f"{self._seed}:nodes-{number}")
        drawn = {node for node in actions.nodes_of(template) if isinstance(node, int)}

        def members(group: NodeGroup) -> tuple[NodeId, ...]:
            found = [node for node in candidates(group, self._target.image) if node not in drawn]
            if isinstance(group, DrawnNodes):
                if group.drawn_from is DrawnFrom.BROKERS:
                    found = [node for node in found if self._can_be_done(template, node)]
                if len(found) < group.count:
                    raise StepError(f"{group}: there are only {len(found)}")
                found = sorted(chance.sample(found, group.count))
            if not found:
                raise StepError(f"{group}: there are none")
            drawn.update(found)
            return tuple(found)

        return actions.with_members(template, members)

    def _can_be_done(self, template: actions.ActionTemplate, node: NodeId) -> bool:
        is_running, is_paused = self._target.is_running(node), self._target.is_paused(node)
        match template:
            case actions.Start():
                return not is_running
            case actions.Resume():
                return is_paused
            case _:
                return is_running and not is_paused

    def _resolved(self, template: actions.ActionTemplate) -> actions.Action:
        taken: list[NodeId] = []

        def found(node: NodeRef) -> NodeId:
            one = resolve(node, self._target.image, self._names, taken=taken)
            if one is None:
                raise StepError(missing(node))
            taken.append(one)
            return one

        return actions.with_nodes(template, found)
