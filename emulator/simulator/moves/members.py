"""Moves of members of a group: they come, go, are stopped for a while, and what they ask their coordinator waits."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move

GROUP: Final = "members"
"""The group that has members, and no positions but theirs."""

_NUMBERS: Final = (0, 1, 2)


def _member(view: ClusterView) -> Actions:
    """A member that does not run joins; one that does leaves, dies or is stopped, and one that is stopped goes on."""
    number = view.workload.choice(_NUMBERS)
    node = view.cluster.clients.running_member(GROUP, number)
    kind = actions.MemberKind.STATIC if number == _NUMBERS[-1] else actions.MemberKind.DYNAMIC
    if node is None:
        does = actions.MemberDoes.JOIN
    elif node.process.is_paused:
        does = view.workload.choice((actions.MemberDoes.GO_ON, actions.MemberDoes.GO_ON, actions.MemberDoes.DIE))
    else:
        does = view.workload.choice(
            (actions.MemberDoes.PAUSE, actions.MemberDoes.PAUSE, actions.MemberDoes.DIE, actions.MemberDoes.LEAVE)
        )
    return [actions.Member(group=GROUP, number=number, does=does, kind=kind)]


def _hold_membership(view: ClusterView) -> Actions:
    """Delays what members ask their coordinator, or its answers."""
    coordinator = view.coordinator(GROUP, OFFSETS_TOPIC)
    if coordinator is None:
        return []
    api = view.network.choice(("JoinGroup", "SyncGroup", "SyncGroup", "Heartbeat", "OffsetCommit"))
    return [actions.Hold(channel=Channel(CLIENT, coordinator, api, view.network.choice(tuple(Way))))]


def _rebalance(view: ClusterView) -> Actions:
    """Waits until members have heard of a rebalance."""
    return [actions.Wait(duration_ms=view.schedule.randint(1_000, 4_000))]


def _outlast_session(view: ClusterView) -> Actions:
    """Waits until the session of a member is over that is not heard of."""
    return [actions.Wait(duration_ms=view.schedule.randint(9_000, 12_000))]


MEMBER_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "member": _member,
        "hold_membership": _hold_membership,
        "rebalance": _rebalance,
        "outlast_session": _outlast_session,
    }
)
"""The moves of members, by the name that profiles use."""
