"""Lost responses: requests arrive and are executed, answers vanish.

When the sender's ping has timed out it closes the connection, and from then on the link is as good as cut: new
connections never become usable, because nothing comes back.
"""

from chaos.faults.injury import Injury
from chaos.faults.links import break_links, link_name, proxies
from chaos.faults.stage import Stage
from chaos.scenario import CLIENT
from emulator.cluster.toxiproxy import Link
from emulator.core.types import NodeId


async def lose_responses(stage: Stage, source: NodeId, target: NodeId) -> Injury:
    """Stops the bytes that come back on what ``source`` dials to ``target``."""
    link = Link(source=link_name(source, CLIENT), target=str(target))
    bit = await break_links(stage, [link], proxies(stage).lose_responses)
    return Injury(fault="lose", target=str(link), bit=bit)
