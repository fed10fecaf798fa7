"""Plays the steps of a scenario: waits at barriers, breaks and mends things, and notes what was seen."""

import random
from collections.abc import Awaitable, Callable
from typing import Final, assert_never

from chaos.barriers import Sight, View, look
from chaos.client_link import ClientLink
from chaos.faults.cut import cut
from chaos.faults.heal import heal_all, heal_link, heal_node
from chaos.faults.isolate import isolate
from chaos.faults.kill import kill
from chaos.faults.lose_responses import lose_responses
from chaos.faults.pause import pause, resume
from chaos.faults.power_cycle import start, stop
from chaos.faults.power_loss import power_loss
from chaos.faults.stage import Injury, Recovery, Stage
from chaos.plan import PlayedStep, fill_in
from chaos.roles import resolve
from chaos.scenario import (
    Action,
    Cut,
    FixedNode,
    HealAll,
    HealLink,
    HealNode,
    Isolate,
    Kill,
    LoseResponses,
    NamedNode,
    NodeRef,
    Pause,
    PowerLoss,
    Resume,
    RoleNode,
    Start,
    Step,
    Stop,
    Until,
)
from chaos.waiting import Lookout, Missed
from emulator.core.types import MetadataOffset, NodeId

_SEED_BITS: Final = 31


class StepPlayer:
    """Plays steps one after the other, and remembers what they called nodes."""

    def __init__(self, *, stage: Stage, client: ClientLink, lookout: Lookout, seed: int) -> None:
        self._stage = stage
        self._client = client
        self._lookout = lookout
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
        committed = await self._stage.watch.committed_end()
        return self._note_injury(await inject(), committed)

    async def mend_with(self, recovery: Awaitable[Recovery]) -> str:
        """Mends a fault and records it; returns what was seen."""
        mended = await recovery
        committed = await self._stage.watch.committed_end()
        self._stage.log.healed(mended.fault, mended.target, seen=mended.seen, metadata_offset=committed)
        return mended.seen or "no-op: nothing was mended"

    def _note_injury(self, injury: Injury, committed: MetadataOffset) -> str:
        self._stage.log.injected(injury.fault, injury.target, bit=injury.bit, metadata_offset=committed)
        return injury.bit or "no-op: it did not bite"

    async def _wait(self, barrier: Until) -> Sight:
        at_start = self._client.progress

        def see() -> Sight:
            view = View(
                image=self._stage.watch.image,
                progress=self._client.progress,
                progress_at_start=at_start,
                names=self._names,
            )
            return look(barrier.condition, view)

        return await self._lookout.wait(see, timeout_s=barrier.within_ms / 1000)

    def _resolve(self, ref: NodeRef) -> NodeId:
        node = resolve(ref, self._stage.watch.image, self._names)
        if node is None:
            raise Missed(f"nobody is {ref}")
        return node

    def _step_seed(self, action: PowerLoss, number: int) -> int:
        if action.seed is not None:
            return action.seed
        return random.Random(f"{self._seed}:step-{number}").getrandbits(_SEED_BITS)

    async def _act(self, action: Action, nodes: dict[str, NodeId], seed: int | None) -> str:
        stage = self._stage
        match action:
            case Isolate(node=node, clients=clients):
                return await self.break_with(lambda: isolate(stage, nodes[str(node)], clients))
            case Cut(source=source, target=target):
                return await self.break_with(lambda: cut(stage, nodes[str(source)], nodes[str(target)]))
            case LoseResponses(source=source, target=target):
                return await self.break_with(lambda: lose_responses(stage, nodes[str(source)], nodes[str(target)]))
            case Kill(node=node):
                return await self.break_with(lambda: kill(stage, nodes[str(node)]))
            case Pause(node=node):
                return await self.break_with(lambda: pause(stage, nodes[str(node)]))
            case Stop(node=node):
                return await self.break_with(lambda: stop(stage, nodes[str(node)]))
            case PowerLoss(keep=keep):
                seeds = {node: random.Random(f"{seed}:node-{node}").getrandbits(_SEED_BITS) for node in nodes.values()}
                return await self.break_with(lambda: power_loss(stage, seeds, keep))
            case Resume(node=node):
                return await self.mend_with(resume(stage, nodes[str(node)]))
            case Start(node=node):
                return await self.mend_with(start(stage, nodes[str(node)]))
            case HealAll():
                return await self.mend_with(heal_all(stage))
            case HealNode(node=node):
                return await self.mend_with(heal_node(stage, nodes[str(node)]))
            case HealLink(source=source, target=target):
                return await self.mend_with(heal_link(stage, nodes[str(source)], nodes[str(target)]))
            case Until():
                raise AssertionError("a barrier is waited for, not acted out")
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


def _refs(action: Action) -> tuple[NodeRef, ...]:
    match action:
        case Cut(source=source, target=target) | LoseResponses(source=source, target=target):
            return (source, target)
        case HealLink(source=source, target=target):
            return (source, target)
        case PowerLoss(nodes=nodes):
            return nodes
        case HealAll() | Until():
            return ()
        case (
            Isolate(node=node)
            | Kill(node=node)
            | Pause(node=node)
            | Resume(node=node)
            | Start(node=node)
            | Stop(node=node)
            | HealNode(node=node)
        ):
            return (node,)
        case _:
            assert_never(action)
