"""Moves of members of a group: they join, leave, are paused, and their requests to the coordinator are delayed."""

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
    """A member that does not run joins; a running one leaves, dies or is paused; a paused one is resumed."""
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
    """Delays the requests of members to their coordinator, or its responses."""
    coordinator = view.coordinator(GROUP, OFFSETS_TOPIC)
    if coordinator is None:
        return []
    api = view.network.choice(("JoinGroup", "SyncGroup", "SyncGroup", "Heartbeat", "OffsetCommit"))
    return [actions.Hold(channel=Channel(CLIENT, coordinator, api, view.network.choice(tuple(Way))))]


def _rebalance(view: ClusterView) -> Actions:
    """Waits until members have learned of a rebalance."""
    return [actions.Wait(duration_ms=view.schedule.randint(1_000, 4_000))]


def _outlast_session(view: ClusterView) -> Actions:
    """Waits until the session of a silent member has expired."""
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
