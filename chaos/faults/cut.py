"""A cut: one node cannot call another, in either byte direction; the other can still call it."""

from chaos.faults.injury import Injury
from chaos.faults.links import break_links, link_name, proxies
from chaos.faults.stage import Stage
from chaos.scenario import CLIENT
from emulator.cluster.toxiproxy import Link
from emulator.core.types import NodeId


async def cut(stage: Stage, source: NodeId, target: NodeId) -> Injury:
    """Cuts what ``source`` dials to ``target``."""
    link = Link(source=link_name(source, CLIENT), target=str(target))
    bit = await break_links(stage, [link], proxies(stage).cut)
    return Injury(fault="cut", target=str(link), bit=bit)
