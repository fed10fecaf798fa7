"""Healing: links let everything through again. Connections that were open meanwhile are closed, as if reset."""

import asyncio
from collections.abc import Iterable

from chaos.faults.injury import Recovery
from chaos.faults.links import PASSES_WITHIN_S, link_name, proxies
from chaos.faults.stage import Stage
from chaos.scenario import CLIENT
from emulator.cluster.probe import ProbeOutcome
from emulator.cluster.toxiproxy import Link
from emulator.core.types import NodeId


async def heal_all(stage: Stage) -> Recovery:
    """Mends every link."""
    return Recovery(fault="heal", target="all", seen=await _restore(stage, proxies(stage).links))


async def heal_node(stage: Stage, node_id: NodeId) -> Recovery:
    """Mends every link to and from a node."""
    seen = await _restore(stage, proxies(stage).links_of(str(node_id)))
    return Recovery(fault="heal", target=str(node_id), seen=seen)


async def heal_link(stage: Stage, source: NodeId, target: NodeId) -> Recovery:
    """Mends what ``source`` dials to ``target``."""
    link = Link(source=link_name(source, CLIENT), target=str(target))
    return Recovery(fault="heal", target=str(link), seen=await _restore(stage, [link]))


async def _restore(stage: Stage, links: Iterable[Link]) -> str | None:
    changed = await proxies(stage).restore(links)
    # Behind a link to a node that is down or paused nobody can answer, healed or not.
    answering = [link for link in changed if _answers(stage, NodeId(int(link.target)))]
    outcomes = await asyncio.gather(*(proxies(stage).probe(link, timeout_s=PASSES_WITHIN_S) for link in answering))
    if not changed or any(outcome is not ProbeOutcome.PASSES for outcome in outcomes):
        return None
    return f"{len(changed)} links restored, {len(answering)} of them answer"


def _answers(stage: Stage, node_id: NodeId) -> bool:
    return stage.cluster.is_running(node_id) and not stage.cluster.is_paused(node_id)
