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
    """Replaces one disk per schedule: directory ids make the node an observer; all other voters must be running."""
    if not _have_first_disks(view):
        return []
    voter = _draw_voter(view)
    return [
        actions.ReplaceDisk(nodes=(voter,)),
        actions.Wait(duration_ms=view.schedule.choice((1, 50, 300))),
        actions.Start(nodes=(voter,)),
    ]


def _replace_disk_while_another_lags(view: ClusterView) -> Actions:
    """Q03: a voter with an empty disk and one that lags are started before the only voter that has everything."""
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


def _lose_quorum_state(view: ClusterView) -> Actions:
    """Q01: a voter loses the record of its vote, in the middle of elections."""
    if not _have_first_disks(view):
        return []
    voter = view.schedule.choice([node for node in view.cluster.metadata_nodes if node != view.controller_id])
    return [
        actions.Kill(nodes=(view.controller_id,)),
        actions.Wait(duration_ms=view.schedule.randint(100, 500)),
        actions.LoseQuorumState(nodes=(voter,)),
        actions.Start(nodes=tuple(sorted((view.controller_id, voter)))),
    ]


def _have_first_disks(view: ClusterView) -> bool:
    """Returns whether no controller has lost its disk or its state yet: a schedule damages one of them at most."""
    nodes = view.cluster.metadata_nodes.values()
    return all(node.has_first_disk and node.has_state for node in nodes)


def _add_voter(view: ClusterView) -> Actions:
    return [actions.AddVoter(node=view.schedule.choice(list(view.cluster.metadata_nodes)))]


def _remove_voter(view: ClusterView) -> Actions:
    """Removes a voter: the leader as often as all others together; at least two voters are left.

    A voter whose disk was replaced is removed first: if two of three voters are gone, no majority can remove them.
    """
    voters = _voters(view)
    if len(voters) < 3:
        return []
    removed = _voter_without_disk(view) or _draw_of(view, voters)
    return [actions.RemoveVoter(node=removed), actions.Wait(duration_ms=view.schedule.choice((5, 50)))]


def _remove_and_add_voter(view: ClusterView) -> Actions:
    """A voter is an observer for a while; perhaps its log lags when it is added again."""
    voters = _voters(view)
    if len(voters) < 3 or _voter_without_disk(view) is not None:
        return []
    voter = _draw_of(view, voters)
    is_down = view.schedule.random() < 0.3
    return [
        actions.RemoveVoter(node=voter),
        actions.Wait(duration_ms=view.schedule.choice((1, 50, 400))),
        *([actions.Kill(nodes=(voter,))] if is_down else []),
        actions.Wait(duration_ms=view.schedule.choice((1, 50, 400))),
        *([actions.Start(nodes=(voter,))] if is_down else []),
        actions.Wait(duration_ms=view.schedule.choice((1, 50, 400))),
        actions.AddVoter(node=voter),
        actions.Wait(duration_ms=view.schedule.choice((1, 100))),
    ]


def _remove_two_voters(view: ClusterView) -> Actions:
    """Q28: a leader that is cut off is asked for two voter changes, after which it would be a majority by itself."""
    voters, leader = _voters(view), view.controller_id
    if len(voters) < 3 or leader not in voters or _voter_without_disk(view) is not None:
        return []
    others = [voter for voter in voters if voter != leader]
    cuts = _cuts_around(view, leader)
    # The leader accepts no second change before it has answered the first, perhaps with a timeout.
    answered_ms = view.cluster.properties.controller_quorum_request_timeout_ms
    pause = actions.Wait(duration_ms=answered_ms + view.schedule.choice((5, 40)))
    return [
        *(actions.Cut(link=link) for link in cuts),
        *(action for voter in others for action in (actions.RemoveVoter(node=voter), pause)),
        actions.Wait(duration_ms=view.schedule.randint(300, 900)),
        *(actions.HealLink(link=link) for link in cuts),
        actions.Wait(duration_ms=view.schedule.randint(50, 400)),
        *(action for voter in others for action in (actions.AddVoter(node=voter), pause)),
    ]


def _cuts_around(view: ClusterView, voter: NodeId) -> list[Link[NodeId]]:
    """Returns the links between a controller and all others."""
    others = [node for node in view.cluster.metadata_nodes if node != voter]
    return [link for other in others for link in (Link(voter, other), Link(other, voter))]


def _replace_disk_in_order(view: ClusterView) -> Actions:
    """The documented order: the node comes back as an observer, catches up, and its old disk makes room for the new."""
    voters = _voters(view)
    if _voter_without_disk(view) is not None or len(voters) < 3:
        return []
    voter = _draw_of(view, voters)
    return [
        actions.ReplaceDisk(nodes=(voter,)),
        actions.Start(nodes=(voter,)),
        actions.Wait(duration_ms=view.schedule.randint(100, 900)),
        actions.RemoveVoter(node=voter),
        actions.Wait(duration_ms=view.schedule.randint(50, 400)),
        actions.AddVoter(node=voter),
        actions.Wait(duration_ms=view.schedule.randint(50, 400)),
    ]


def _voters(view: ClusterView) -> tuple[NodeId, ...]:
    """Returns the voters; none while a voter change is uncommitted or nobody leads: administrators check that first."""
    if not view.cluster.has_settled_voters:
        return ()
    return tuple(node for node in view.cluster.metadata_nodes if view.cluster.voter(node) is not None)


def _draw_of(view: ClusterView, voters: tuple[NodeId, ...]) -> NodeId:
    leader = [view.controller_id] * (len(voters) - 1) if view.controller_id in voters else []
    return view.schedule.choice([*leader, *voters])


def _voter_without_disk(view: ClusterView) -> NodeId | None:
    """Returns the voter that no longer has the disk with which it became a voter."""
    cluster = view.cluster
    return next(
        (node for node in cluster.metadata_nodes if cluster.voter(node) not in (None, cluster.quorum_replica(node))),
        None,
    )


def _cut_voters(view: ClusterView) -> Actions:
    """Cuts one direction between two controllers."""
    return [actions.Cut(link=Link(*_draw_ends(view)))]


def _isolate_voter(view: ClusterView) -> Actions:
    """A controller is cut off from the others; brokers still reach it."""
    voter = _draw_voter(view)
    cuts = _cuts_around(view, voter)
    return [
        *(actions.Cut(link=link) for link in cuts),
        actions.Wait(duration_ms=view.schedule.randint(50, 900)),
        *(actions.HealLink(link=link) for link in cuts),
    ]


def _hold_vote(view: ClusterView) -> Actions:
    """Holds messages of one API between two controllers."""
    way = view.network.choice((Way.REQUEST, Way.RESPONSE))
    return [actions.Hold(channel=Channel(*_draw_ends(view), view.network.choice(_APIS), way))]


def _hold_voter_sync(view: ClusterView) -> Actions:
    """Holds the completions of a controller's fsyncs."""
    voter = _draw_voter(view)
    return [actions.Hold(channel=Channel(voter, voter, SYNC, Way.RESPONSE))]


def _pause_voter(view: ClusterView) -> Actions:
    return [actions.Pause(nodes=(_draw_voter(view),))]


def _late_answer(view: ClusterView) -> Actions:
    """Holds a controller's response to a leader until that controller is deposed."""
    led = view.draw_led_partition()
    if led is None:
        return []
    controller, api = view.controller_id, view.network.choice(("AlterPartition", "BrokerHeartbeat"))
    answers = Channel(NodeId(led.leader), controller, api, Way.RESPONSE)
    cuts = _cuts_around(view, controller)
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
        "lose_quorum_state": _lose_quorum_state,
        "replace_disk_while_another_lags": _replace_disk_while_another_lags,
        "add_voter": _add_voter,
        "remove_voter": _remove_voter,
        "remove_and_add_voter": _remove_and_add_voter,
        "remove_two_voters": _remove_two_voters,
        "replace_disk_in_order": _replace_disk_in_order,
        "cut_voters": _cut_voters,
        "isolate_voter": _isolate_voter,
        "hold_vote": _hold_vote,
        "hold_voter_sync": _hold_voter_sync,
        "pause_voter": _pause_voter,
        "late_answer": _late_answer,
    }
)
"""The moves on controllers, by the name that profiles use."""
