"""Processes in the form of a live view, with the actions that are possible now."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import grpc.aio

from laststand.chaos.play.recorded_plan import PlayedStep
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.toxiproxy import Toxiproxy
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import EmulatorError, causes_of
from laststand.emulator.core.types import BrokerId, NodeId, NodeRole, kafka_client_ids
from laststand.emulator.live.stage import LinkRow, NodeRow, Offer, PartitionRow, StageState
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import NamedNode, NodeRef
from laststand.emulator.plan.plan_lint import refusal
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.plan.steps import action_text
from laststand.emulator.plan.zookeeper_refusals import server_refusal

_OF_PROCESS: Final = (actions.Kill, actions.Stop, actions.Pause)
_NAMES: Final = {NodeRole.CONTROLLER: "controller", NodeRole.ZOOKEEPER: "ZooKeeper"}
_LABELS: Final[dict[type, str]] = {actions.HealAll: "heal all links", actions.LoseResponses: "lose responses"}


class ActionFailedError(EmulatorError):
    """An action was begun and not completed."""


class ProcessStage:
    """``Stage`` of real processes.

    Args:
        name: of the scenario or cluster.
        era: the cluster's era.
        directory: of the run.
        driver: of the nodes.
        target: returns the cluster; ``None`` before it has started and after its end.
        play: plays a step and records it.
    """

    def __init__(
        self,
        *,
        name: str,
        era: str,
        directory: Path,
        driver: DriverName,
        target: Callable[[], ProcessTarget | None],
        play: Callable[[str], Awaitable[PlayedStep]],
    ) -> None:
        self.name = name
        self.era = era
        self.directory = directory
        self._driver = driver
        self._target = target
        self._play = play

    def state(self) -> StageState:
        """Returns the state of processes, proxies and committed metadata."""
        target = self._target()
        if target is None:
            return StageState()
        links = target.cluster.toxiproxy
        return StageState(
            nodes=tuple(_node(target, node, self._driver) for node in target.cluster.layout.node_ids),
            links=() if links is None else tuple(_link(target, links, link, self._driver) for link in links.links),
            partitions=tuple(
                PartitionRow(
                    name=str(partition),
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=state.isr,
                    elr=state.elr,
                )
                for partition, state in sorted(target.image.partitions.items())
            ),
            faults=target.in_force(),
            offers=_offers((actions.HealAll(),) if _has_broken_links(target) else (), self._driver),
        )

    async def play(self, step: str) -> str:
        """Has the harness play an action.

        Raises:
            EmulatorError: the action could not be completed.
        """
        try:
            played = await self._play(step)
        except* (EmulatorError, grpc.aio.AioRpcError) as errors:
            raise ActionFailedError("; ".join(str(error) for error in causes_of(errors))) from None
        return played.outcome.seen


def _has_broken_links(target: ProcessTarget) -> bool:
    links = target.cluster.toxiproxy
    return links is not None and bool(links.broken or target.messages.channels)


def _node(target: ProcessTarget, node: NodeId, driver: DriverName) -> NodeRow:
    cluster = target.cluster
    is_broker = node in cluster.layout.broker_ids
    registration = target.image.brokers.get(BrokerId(node))
    is_fenced = is_broker and registration is not None and registration.fenced
    state = "paused" if cluster.is_paused(node) else "running"
    if cluster.is_awaited(node):
        state = "not started yet"
    elif not cluster.is_running(node):
        state = f"down ({target.downed.get(node, 'by itself').replace('_', ' ')})"
    return NodeRow(
        name=f"broker {node}" if is_broker else _NAMES[cluster.layout.role_of(node)],
        state=f"{state}, fenced" if is_fenced else state,
        is_well=state == "running" and not is_fenced,
        offers=_offers(_possible(target, _actions_of_node(target, node), driver), driver),
    )


def _possible(
    target: ProcessTarget, offered: Iterable[actions.ActionTemplate], driver: DriverName
) -> Iterator[actions.ActionTemplate]:
    """Yields the actions that are possible in this cluster."""
    kind = target.cluster.layout.kind
    yield from (action for action in offered if server_refusal(action, kind=kind, driver=driver) is None)


def _actions_of_node(target: ProcessTarget, node: NodeId) -> Iterator[actions.ActionTemplate]:
    cluster, links = target.cluster, target.cluster.toxiproxy
    if not cluster.is_running(node):
        yield actions.Start(nodes=(node,))
    elif cluster.is_paused(node):
        yield actions.Resume(nodes=(node,))
        yield actions.Kill(nodes=(node,))
    else:
        yield from (kind(nodes=(node,)) for kind in _OF_PROCESS)
        if cluster.has_sync_ledger(node):
            yield actions.PowerLoss(nodes=(node,), loss=DiskLoss(keep=Keep.NONE))
        if node in cluster.layout.broker_ids:
            yield actions.ReplaceDisk(nodes=(BrokerId(node),))
    if links is not None:
        own = links.links_of(node)
        if not all(links.is_blocked(link) for link in own):
            yield actions.Isolate(nodes=(node,))
        if any(link in links.broken for link in own):
            yield actions.HealNodes(nodes=(node,))


def _link(target: ProcessTarget, links: Toxiproxy, link: Link[NodeId], driver: DriverName) -> LinkRow:
    toxics = links.toxics(link)
    client = kafka_client_ids(target.cluster.layout.kafka_clients).get(link.source)
    named: Link[NodeRef] = Link(link.source if client is None else NamedNode(name=client), link.target)
    offered: tuple[actions.ActionTemplate, ...] = (
        (actions.HealLink(link=named),)
        if toxics
        else (actions.Cut(link=named), actions.LoseResponses(link=named), actions.Reset(link=named))
    )
    return LinkRow(name=str(named), broken=", ".join(map(str, toxics)), offers=_offers(offered, driver))


def _offers(offered: Iterable[actions.ActionTemplate], driver: DriverName) -> tuple[Offer, ...]:
    """Returns the actions that the driver supports."""
    return tuple(
        Offer(
            step=action_text(action), label=_LABELS.get(type(action)) or actions.spec_of(action).verb.replace("_", " ")
        )
        for action in offered
        if refusal(action, driver) is None
    )
