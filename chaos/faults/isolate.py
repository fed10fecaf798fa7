"""Isolation: a node reaches nobody and nobody reaches it, clients included unless they stay connected."""

from chaos.faults.injury import Injury
from chaos.faults.links import break_links, proxies
from chaos.faults.stage import Stage
from chaos.scenario import Clients
from emulator.cluster.process_cluster import CLIENT_NAME
from emulator.core.types import NodeId


async def isolate(stage: Stage, node_id: NodeId, clients: Clients) -> Injury:
    """Cuts every link to and from a node."""
    links = [
        link for link in proxies(stage).links_of(str(node_id)) if clients is Clients.CUT or link.source != CLIENT_NAME
    ]
    bit = await break_links(stage, links, proxies(stage).cut)
    return Injury(fault="isolate", target=str(node_id), bit=bit)
