"""Moves on a quorum of controllers: voters die, lose power, and are cut off from each other."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import SYNC, Channel, Link
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move

_APIS: Final = ("Vote", "FetchMetadata", "BeginQuorumEpoch", "EndQuorumEpoch")


def _draw_voter(view: ClusterView) -> NodeId:
    """Draws a controller, the active one as often as all others together."""
    voters = list(view.cluster.metadata_nodes)
    return view.schedule.choice([view.controller_id] * (len(voters) - 1) + voters)


def _draw_ends(view: ClusterView) -> tuple[NodeId, NodeId]:
    source = _draw_voter(view)
    return source, view.network.choice([node for node in view.cluster.metadata_nodes if node != source])


def _kill_voter(view: ClusterView) -> Actions:
    return [actions.Kill(nodes=(_draw_voter(view),))]


def _power_loss_voters(view: ClusterView) -> Actions:
    """One, a majority or all of the controllers lose power at the same moment."""
    voters = tuple(view.cluster.metadata_nodes)
    count = view.schedule.choice((1, len(voters) // 2 + 1, len(voters)))
    struck = tuple(sorted(view.schedule.sample(voters, count)))
    return [
        view.draw_power_loss(struck),
        actions.Wait(duration_ms=view.schedule.choice((1, 20, 200))),
        actions.Start(nodes=struck),
    ]


def _replace_voters_disk(view: ClusterView) -> Actions:
    """One disk of a schedule is replaced: directory ids make the node an observer, and the others must all be there."""
    if not _have_first_disks(view):
        return []
    voter = _draw_voter(view)
    return [
        actions.ReplaceDisk(nodes=(voter,)),
        actions.Wait(duration_ms=view.schedule.choice((1, 50, 300))),
        actions.Start(nodes=(voter,)),
    ]


def _replace_disk_while_another_lags(view: ClusterView) -> Actions:
    """Q03: whoever has an empty disk is started together with whoever lags, before the only one that has everything."""
    if not _have_first_disks(view):
        return []
    voters = tuple(view.cluster.metadata_nodes)
    lagging, *others = view.schedule.sample(voters, len(voters))
    whole, replaced = tuple(others[1:]), others[0]
    return [
        actions.Kill(nodes=(lagging,)),
        actions.Wait(duration_ms=view.schedule.randint(100, 900)),
        actions.Kill(nodes=tuple(sorted((*whole, replaced)))),
        actions.ReplaceDisk(nodes=(replaced,)),
        actions.Start(nodes=tuple(sorted((lagging, replaced)))),
        actions.Wait(duration_ms=view.schedule.randint(200, 900)),
        actions.Start(nodes=whole),
    ]


def _have_first_disks(view: ClusterView) -> bool:
    return all(node.has_first_disk for node in view.cluster.metadata_nodes.values())


def _cut_voters(view: ClusterView) -> Actions:
    """One direction between two controllers."""
    return [actions.Cut(link=Link(*_draw_ends(view)))]


def _isolate_voter(view: ClusterView) -> Actions:
    """A controller is cut off from the others; brokers still reach it."""
    voter = _draw_voter(view)
    others = [node for node in view.cluster.metadata_nodes if node != voter]
    cuts = [link for other in others for link in (Link(voter, other), Link(other, voter))]
    return [
        *(actions.Cut(link=link) for link in cuts),
        actions.Wait(duration_ms=view.schedule.randint(50, 900)),
        *(actions.HealLink(link=link) for link in cuts),
    ]


def _hold_vote(view: ClusterView) -> Actions:
    """Messages of one API between two controllers wait."""
    way = view.network.choice((Way.REQUEST, Way.RESPONSE))
    return [actions.Hold(channel=Channel(*_draw_ends(view), view.network.choice(_APIS), way))]


def _hold_voter_sync(view: ClusterView) -> Actions:
    """A controller's fsyncs do not complete."""
    voter = _draw_voter(view)
    return [actions.Hold(channel=Channel(voter, voter, SYNC, Way.RESPONSE))]


def _pause_voter(view: ClusterView) -> Actions:
    return [actions.Pause(nodes=(_draw_voter(view),))]


def _late_answer(view: ClusterView) -> Actions:
    """An answer to a leader's proposal is held until its controller is deposed."""
    led = view.draw_led_partition()
    if led is None:
        return []
    controller, api = view.controller_id, view.network.choice(("AlterPartition", "BrokerHeartbeat"))
    answers = Channel(NodeId(led.leader), controller, api, Way.RESPONSE)
    others = [node for node in view.cluster.metadata_nodes if node != controller]
    cuts = [link for other in others for link in (Link(controller, other), Link(other, controller))]
    followers = [member for member in led.state.isr if member != led.leader]
    lag = [actions.Expire(nodes=(view.schedule.choice(followers),))] if followers else []
    return [
        actions.Hold(channel=answers),
        *lag,
        *(actions.Cut(link=link) for link in cuts),
        actions.Wait(duration_ms=view.schedule.randint(200, 900)),
        actions.Release(channel=answers),
        *(actions.HealLink(link=link) for link in cuts),
    ]


QUORUM_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "kill_voter": _kill_voter,
        "power_loss_voters": _power_loss_voters,
        "replace_voters_disk": _replace_voters_disk,
        "replace_disk_while_another_lags": _replace_disk_while_another_lags,
        "cut_voters": _cut_voters,
        "isolate_voter": _isolate_voter,
        "hold_vote": _hold_vote,
        "hold_voter_sync": _hold_voter_sync,
        "pause_voter": _pause_voter,
        "late_answer": _late_answer,
    }
)
"""The moves on controllers, by the name that profiles use."""
