"""Performs actions on links and on single messages."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias, assert_never

from laststand.emulator.core.types import MessageFate, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Direction, Link
from laststand.emulator.plan.machines import isolation_cuts
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.plan.nouns import counted
from laststand.emulator.simulator.actions.targets import UNKNOWN_NODE, find_process
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.network.network import Interference

_UNKNOWN_LINK: Final = actions.no_op("there is no such link")


def _links(cluster: SimulatedCluster) -> list[Link[NodeId]]:
    """Returns the pairs of nodes that talk: the clients with every node, and the nodes with each other."""
    nodes = [*cluster.nodes, *cluster.metadata_nodes]
    return [Link(source, target) for source in (CLIENT, *nodes) for target in nodes if source != target]


def _is_link(cluster: SimulatedCluster, link: Link[NodeId]) -> bool:
    ends = (*cluster.nodes, *cluster.metadata_nodes)
    return link.source != link.target and link.target in ends and (link.source in ends or link.source == CLIENT)


def _is_live(cluster: SimulatedCluster, link: Link[NodeId]) -> bool:
    """Returns whether a link is open and leads to a node that runs and is not paused."""
    target = find_process(cluster, link.target)
    assert target is not None, "a link leads to a node"
    return not cluster.network.is_blocked(link) and target.core is not None and not target.is_paused


def _silenced(live: int, links: int) -> actions.Outcome:
    return (
        actions.effective(f"{live} of {links} links silent")
        if live
        else actions.unproved("nothing passed there before")
    )


def isolate(cluster: SimulatedCluster, node_id: NodeId, action: actions.Isolate[NodeId]) -> actions.Outcome:
    """Cuts the links of a node to other machines; with ``roles: named``, also those within its machine."""
    if find_process(cluster, node_id) is None:
        return UNKNOWN_NODE
    links = [link for link in _links(cluster) if node_id in link and isolation_cuts(action, link, cluster.machine_of)]
    live = sum(_is_live(cluster, link) for link in links)
    for link in links:
        cluster.links.cut(link.source, link.target)
    return _silenced(live, len(links))


def cut(cluster: SimulatedCluster, link: Link[NodeId]) -> actions.Outcome:
    """Cuts a link."""
    return _silence(cluster, link, silenced=cluster.network.cuts, silence=cluster.links.cut, already="it is cut")


def lose_responses(cluster: SimulatedCluster, link: Link[NodeId]) -> actions.Outcome:
    """Loses the responses that come back on a link."""
    silenced, silence = cluster.network.losing, cluster.links.lose_responses
    return _silence(cluster, link, silenced=silenced, silence=silence, already="it loses responses")


def half_open(cluster: SimulatedCluster, link: Link[NodeId]) -> actions.Outcome:
    """Loses the requests of a link."""
    silenced, silence = cluster.network.deaf, cluster.links.half_open
    return _silence(cluster, link, silenced=silenced, silence=silence, already="it is half open")


def _silence(
    cluster: SimulatedCluster,
    link: Link[NodeId],
    *,
    silenced: Collection[Link[NodeId]],
    silence: Callable[[NodeId, NodeId], None],
    already: str,
) -> actions.Outcome:
    """Silences a link in one way; no effect if the link is already in ``silenced``."""
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if link in silenced:
        return actions.no_op(already)
    live = int(_is_live(cluster, link))
    silence(link.source, link.target)
    return _silenced(live, 1)


def flap(cluster: SimulatedCluster, action: actions.Flap[NodeId]) -> actions.Outcome:
    """Cuts a link and heals it, several times."""
    link = action.link
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if not _is_live(cluster, link):
        return actions.no_op("nothing passed there before")
    for _ in range(action.times):
        cluster.links.cut(link.source, link.target)
        cluster.run(action.down_ms)
        cluster.links.mend(link.source, link.target)
        cluster.run(action.up_ms)
    return actions.effective(f"cut {counted(action.times, 'time')}")


def reset(cluster: SimulatedCluster, link: Link[NodeId]) -> actions.Outcome:
    """Ends the requests of a link."""
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    ended = cluster.links.reset(link.source, link.target)
    if not ended:
        return actions.no_op("no request was under way")
    return actions.effective(f"{counted(ended, 'request')} ended")


def slow(
    cluster: SimulatedCluster, link: Link[NodeId], latency_ms: int, *, jitter_ms: int, direction: Direction
) -> actions.Outcome:
    """Makes messages of a link take longer."""
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if latency_ms < 0:
        return actions.no_op("there is no such latency")
    live = _is_live(cluster, link)
    cluster.links.slow(link, latency_ms, jitter_ms=jitter_ms, direction=direction)
    return actions.Outcome(took_effect=True, affected=live, seen=f"messages take {latency_ms} ms")


def heal_all(cluster: SimulatedCluster) -> actions.Outcome:
    """Heals every link, and delivers the held messages."""
    if cluster.network.is_whole:
        return actions.no_op("nothing is wrong with the network")
    count = len(cluster.network.broken)
    cluster.links.heal()
    return actions.effective(f"{counted(count, 'link')} restored")


def heal_node(cluster: SimulatedCluster, node_id: NodeId) -> actions.Outcome:
    """Heals every link of a node."""
    if find_process(cluster, node_id) is None:
        return UNKNOWN_NODE
    count = _mend(cluster, (link for link in cluster.network.broken if node_id in link))
    return actions.Outcome(took_effect=True, affected=count > 0, seen=f"{counted(count, 'link')} restored")


def heal_link(cluster: SimulatedCluster, link: Link[NodeId]) -> actions.Outcome:
    """Heals a link."""
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if link not in cluster.network.broken:
        return actions.no_op("it is whole")
    count = _mend(cluster, [link])
    return actions.effective(f"{counted(count, 'link')} restored")


def _mend(cluster: SimulatedCluster, links: Iterable[Link[NodeId]]) -> int:
    """Heals links; returns their number."""
    mended = list(links)
    for link in mended:
        cluster.links.mend(link.source, link.target)
    return len(mended)


# --- Single messages ----------------------------------------------------------------------------------------------


_HeldAction: TypeAlias = (
    actions.Hold[NodeId]
    | actions.Release[NodeId]
    | actions.ReleaseNewest[NodeId]
    | actions.LoseHeld[NodeId]
    | actions.Duplicate[NodeId]
)


def interfere(
    cluster: SimulatedCluster,
    action: actions.LoseNext[NodeId] | actions.DuplicateNext[NodeId] | actions.DelayMessages[NodeId],
) -> actions.Outcome:
    """Loses, duplicates or delays messages of one kind from now on."""
    match action:
        case actions.LoseNext(channel=channel, count=count):
            interference = Interference(fate=MessageFate.LOST, left=count)
        case actions.DuplicateNext(channel=channel, count=count):
            interference = Interference(fate=MessageFate.DUPLICATED, left=count)
        case actions.DelayMessages(channel=channel, delay_ms=delay_ms):
            interference = Interference(fate=MessageFate.DELAYED, delay_ms=delay_ms)
        case _:
            assert_never(action)
    if cluster.network.interferences.get(channel) == interference:
        return actions.no_op("that is done to them")
    cluster.links.interfere(channel, interference)
    return actions.effective("from now on")


def on_messages(cluster: SimulatedCluster, action: _HeldAction) -> actions.Outcome:
    """Holds messages of one channel, or releases, loses or duplicates its held messages."""
    channel = action.channel
    is_held = channel in cluster.network.held
    match action:
        case actions.Hold():
            if is_held:
                return actions.no_op("they are held")
            cluster.links.hold(channel)
            return actions.effective("held from now on")
        case actions.Release(count=count):
            if not is_held and (count is not None or channel not in cluster.network.interferences):
                return actions.no_op("they are not held")
            number = cluster.links.release(channel, count=count)
            return actions.effective(f"{number} released") if number or count is None else actions.no_op("none is held")
        case actions.ReleaseNewest():
            return (
                actions.effective("1 released")
                if cluster.links.release_newest(channel)
                else actions.no_op("none is held")
            )
        case actions.LoseHeld():
            return actions.effective("1 lost") if cluster.links.lose_held(channel) else actions.no_op("none is held")
        case actions.Duplicate():
            return (
                actions.effective("1 duplicated")
                if cluster.links.duplicate_held(channel)
                else actions.no_op("no request is held")
            )
        case _:
            assert_never(action)
