"""Plays the steps of a scenario: waits at barriers, breaks and mends things, and notes what was seen."""

import random
from collections.abc import Awaitable, Callable
from typing import Final, assert_never

from chaos.administration import Administration
from chaos.administrator import administer
from chaos.barriers import Sight, View, look
from chaos.faults.injury import Injury, Recovery
from chaos.plan import PlayedStep, fill_in
from chaos.roles import resolve
from chaos.scenario import (
    Cut,
    FixedNode,
    HealAll,
    HealLink,
    HealNode,
    Isolate,
    Kill,
    LoseResponses,
    NamedNode,
    NetworkAction,
    NodeRef,
    Pause,
    PowerLoss,
    ProcessAction,
    Produce,
    ReplaceDisk,
    Resume,
    RoleNode,
    Start,
    Step,
    Stop,
    Until,
)
from chaos.scene import Scene
from chaos.waiting import Missed
from emulator.core.events import FaultHealed, FaultInjected
from emulator.core.types import NodeId

_SEED_BITS: Final = 31


class StepPlayer:
    """Plays steps one after the other, and remembers what they called nodes."""

    def __init__(self, *, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._seed = seed
        self._names: dict[str, NodeId] = {}

    async def play(self, number: int, step: Step) -> PlayedStep:
        """Plays one step; ``number`` counts from 1.

        Raises:
            Missed: a barrier was not reached, nobody has the role that the step names, or something failed.
            EmulatorError: the fault could not be played.
        """
        action = step.action
        if isinstance(action, Until):
            sight = await self._wait(action)
            return PlayedStep(text=fill_in(step.text, self._names, seed=None), seen=sight.text)
        if isinstance(action, Administration):
            chance = random.Random(f"{self._seed}:step-{number}")
            return PlayedStep(text=step.text, seen=await administer(self._scene, action, chance=chance))
        if isinstance(action, Produce):
            self._scene.produce(action.producer, action.partition, action.records)
            return PlayedStep(text=step.text, seen="sent")
        refs = _refs(action)
        nodes = {str(ref): self._resolve(ref) for ref in refs}
        seed = self._step_seed(action, number) if isinstance(action, PowerLoss) else None
        seen = await self._act(action, nodes, seed)
        if step.bind is not None:
            self._names[step.bind] = next(iter(nodes.values()))
        found = {text: nodes[str(ref)] for ref in refs for text in _found_texts(ref)}
        return PlayedStep(text=fill_in(step.text, found, seed=seed), seen=seen)

    async def break_with(self, inject: Callable[[], Awaitable[Injury]]) -> str:
        """Injects a fault and records it; returns what was seen."""
        scene = self._scene
        committed = await scene.committed_end()
        injury = await inject()
        scene.note(
            FaultInjected(
                cause_id=scene.cause_id,
                fault=injury.fault,
                target=injury.target,
                bit=injury.bit,
                metadata_offset=committed,
            )
        )
        return injury.bit or "no-op: it did not bite"

    async def mend_with(self, recovery: Awaitable[Recovery]) -> str:
        """Mends a fault and records it; returns what was seen."""
        scene = self._scene
        mended = await recovery
        committed = await scene.committed_end()
        scene.note(
            FaultHealed(
                cause_id=scene.cause_id,
                fault=mended.fault,
                target=mended.target,
                seen=mended.seen,
                metadata_offset=committed,
            )
        )
        return mended.seen or "no-op: nothing was mended"

    async def _wait(self, barrier: Until) -> Sight:
        scene = self._scene
        at_start = scene.progress

        def see() -> Sight:
            view = View(
                image=scene.image,
                progress=scene.progress,
                progress_at_start=at_start,
                names=self._names,
                log_end=scene.log_end,
                log_names=scene.log_names,
            )
            return look(barrier.condition, view)

        return await scene.wait(see, timeout_s=barrier.within_ms / 1000)

    def _resolve(self, ref: NodeRef) -> NodeId:
        node = resolve(ref, self._scene.image, self._names)
        if node is None:
            raise Missed(f"nobody is {ref}")
        return node

    def _step_seed(self, action: PowerLoss, number: int) -> int:
        if action.seed is not None:
            return action.seed
        return random.Random(f"{self._seed}:step-{number}").getrandbits(_SEED_BITS)

    async def _act(self, action: NetworkAction | ProcessAction, nodes: dict[str, NodeId], seed: int | None) -> str:
        scene = self._scene
        match action:
            case Isolate(node=node, clients=clients):
                return await self.break_with(lambda: scene.isolate(nodes[str(node)], clients))
            case Cut(source=source, target=target):
                return await self.break_with(lambda: scene.cut(nodes[str(source)], nodes[str(target)]))
            case LoseResponses(source=source, target=target):
                return await self.break_with(lambda: scene.lose_responses(nodes[str(source)], nodes[str(target)]))
            case Kill(node=node):
                return await self.break_with(lambda: scene.kill(nodes[str(node)]))
            case Pause(node=node):
                return await self.break_with(lambda: scene.pause(nodes[str(node)]))
            case Stop(node=node):
                return await self.break_with(lambda: scene.stop(nodes[str(node)]))
            case ReplaceDisk(node=node):
                return await self.break_with(lambda: scene.replace_disk(nodes[str(node)]))
            case PowerLoss(keep=keep, exact=exact):
                seeds = {node: random.Random(f"{seed}:node-{node}").getrandbits(_SEED_BITS) for node in nodes.values()}
                return await self.break_with(lambda: scene.power_loss(seeds, keep, exact))
            case Resume(node=node):
                return await self.mend_with(scene.resume(nodes[str(node)]))
            case Start(node=node):
                return await self.mend_with(scene.start(nodes[str(node)]))
            case HealAll():
                return await self.mend_with(scene.heal_all())
            case HealNode(node=node):
                return await self.mend_with(scene.heal_node(nodes[str(node)]))
            case HealLink(source=source, target=target):
                return await self.mend_with(scene.heal_link(nodes[str(source)], nodes[str(target)]))
            case _:
                assert_never(action)


def _found_texts(ref: NodeRef) -> tuple[str, ...]:
    """Returns how a scenario may have written a node that had to be found out."""
    match ref:
        case FixedNode():
            return ()  # it keeps its name: `client` has no id in a scenario
        case NamedNode(name=name):
            return (name,)
        case RoleNode(role=role):
            return (str(ref), role.value)  # the short form where there is one partition
        case _:
            assert_never(ref)


def _refs(action: NetworkAction | ProcessAction) -> tuple[NodeRef, ...]:
    match action:
        case Cut(source=source, target=target) | LoseResponses(source=source, target=target):
            return (source, target)
        case HealLink(source=source, target=target):
            return (source, target)
        case PowerLoss(nodes=nodes):
            return nodes
        case HealAll():
            return ()
        case (
            Isolate(node=node)
            | Kill(node=node)
            | Pause(node=node)
            | ReplaceDisk(node=node)
            | Resume(node=node)
            | Start(node=node)
            | Stop(node=node)
            | HealNode(node=node)
        ):
            return (node,)
        case _:
            assert_never(action)
