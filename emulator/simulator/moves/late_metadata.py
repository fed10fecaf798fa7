"""Requests whose metadata some brokers receive late, and as one batch: it is held while the requests are executed.

All requests are drawn before the first is sent, so the later ones are based on old metadata. A broker whose metadata is
late keeps its old roles meanwhile, and then applies the whole difference, in which it does not see roles and leader
epochs of the meantime.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

from laststand.emulator.core import admin_messages
from laststand.emulator.core.types import BrokerId, NodeId, Way
from laststand.emulator.plan.actions import (
    Action,
    Cut,
    ElectLeaders,
    Expire,
    HealLink,
    Hold,
    Produce,
    Reassign,
    Release,
    ReleaseNewest,
    Start,
    Stop,
    UnregisterBroker,
    Wait,
)
from laststand.emulator.plan.channels import STREAM, Channel, Link
from laststand.emulator.plan.fields import PRODUCER_ALL
from laststand.emulator.simulator.moves.administrators import ADMINISTRATOR_MOVES
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, LedPartition, Move
from laststand.emulator.simulator.moves.requests import REQUEST_MOVES

_Change: TypeAlias = Callable[[ClusterView, LedPartition], Actions]


def _there_and_back(view: ClusterView, led: LedPartition) -> Actions:
    """Lets another member lead for a while."""
    successor = _draw_successor(view, led)
    if successor is None:
        return []
    return [
        _designated(led, successor),
        Wait(duration_ms=view.schedule.choice((0, 1, 3, 30, 100))),
        _designated(led, led.leader),
    ]


def _stops_as_leader(view: ClusterView, led: LedPartition) -> Actions:
    """Lets another member lead until it stops in order, and the previous leader leads again."""
    successor = _draw_successor(view, led)
    if successor is None:
        return []
    return [
        _designated(led, successor),
        Wait(duration_ms=view.schedule.choice((1, 3, 30))),
        Stop(nodes=(successor,)),
        Wait(duration_ms=view.schedule.choice((3, 30, 100))),
        _designated(led, led.leader),
        Start(nodes=(successor,)),
    ]


def _is_unregistered_as_leader(view: ClusterView, led: LedPartition) -> Actions:
    """Lets another member lead until it is unregistered, which counts as its failure."""
    successor = _draw_successor(view, led)
    if successor is None or not view.may_crash(view.cluster.nodes[successor]):
        return []
    return [
        _designated(led, successor),
        Wait(duration_ms=view.schedule.choice((1, 3, 30))),
        UnregisterBroker(broker_id=successor),
        Wait(duration_ms=view.schedule.choice((1, 3, 30))),
        _designated(led, led.leader),
        Stop(nodes=(successor,)),
        Wait(duration_ms=view.schedule.choice((3, 30, 100))),
        Start(nodes=(successor,)),
    ]


def _draw_successor(view: ClusterView, led: LedPartition) -> BrokerId | None:
    others = [member for member in led.state.isr if member != led.leader]
    return view.schedule.choice(others) if others else None


def _away_and_back(view: ClusterView, led: LedPartition) -> Actions:
    """A replica is moved away, which deletes its log, and assigned again."""
    moved = view.schedule.choice(led.state.replicas)
    stay = tuple(replica for replica in led.state.replicas if replica != moved)
    if not stay:
        return []
    return [
        Reassign(partition=led.name, replicas=stay),
        Wait(duration_ms=view.schedule.choice((0, 1, 3, 30, 100))),
        Reassign(partition=led.name, replicas=view.schedule.choice(((moved, *stay), (*stay, moved)))),
    ]


def _away_and_back_beside_a_fence(view: ClusterView, led: LedPartition) -> Actions:
    """Lets another member lead for a while, and meanwhile another broker's session ends."""
    others = [replica for replica in led.state.replicas if replica != led.leader]
    moves = _away_and_back(view, led)
    if not others or not moves:
        return []
    return [*moves[:-1], Expire(nodes=(view.schedule.choice(others),)), *moves[-1:]]


def _designated(led: LedPartition, leader: int) -> ElectLeaders:
    member = next(replica for replica in led.state.replicas if replica == leader)
    return ElectLeaders(election=admin_messages.RequestedElection.DESIGNATED, partitions=(led.name,), leader=member)


def _any(name: str) -> _Change:
    move = REQUEST_MOVES.get(name) or ADMINISTRATOR_MOVES[name]
    return lambda view, _: move(view)


_CHANGES: Final[tuple[_Change, ...]] = (
    *(4 * (_there_and_back,)),
    *(2 * (_away_and_back,)),
    _away_and_back_beside_a_fence,
    *(4 * (_stops_as_leader,)),
    _is_unregistered_as_leader,
    *map(_any, ("elect_member", "elect_preferred", "resize", "reassign", "cancel", "min_isr", "cluster_min_isr")),
    *map(_any, ("recreate", "create_partitions", "strategy", "broker_config", "delete_records")),
)

_CHANGES_OF_FEATURES: Final = (*_CHANGES, *map(_any, ("features", "features", "features")))
"""Without eligible leader replicas less is promised, so that only one profile draws from these."""


def _behind(view: ClusterView, changes: Sequence[_Change] = _CHANGES) -> Actions:
    """Some brokers do not learn of two or three requests; meanwhile a link between brokers may be cut, then another."""
    led = view.draw_led_partition()
    if led is None:
        return []
    streams = [Channel(broker, view.controller_id, STREAM, Way.RESPONSE) for broker in _draw_late(view, led)]
    actions: list[Action] = [Hold(channel=stream) for stream in streams]
    link = _draw_link(view, led) if len(view.brokers) > 1 and view.network.random() < 0.6 else None
    if link is not None:
        actions.append(Cut(link=link))
    for change in view.schedule.choices(changes, k=view.schedule.randint(2, 3)):
        if view.workload.random() < 0.6:
            actions.append(Produce(partition=led.name, producer=PRODUCER_ALL, records=view.workload.choice((1, 1, 2))))
        actions += [*change(view, led), Wait(duration_ms=view.schedule.choice((0, 2, 5, 20, 60)))]
    if link is not None and view.network.random() < 0.4:
        next_link = _draw_link(view, led)
        actions += [HealLink(link=link), Cut(link=next_link)]
        link = next_link
    for stream in view.network.sample(streams, len(streams)):
        if view.network.random() < 0.7:
            actions.append(ReleaseNewest(channel=stream))  # brings everything, and the broker acts on it at once
        actions.append(Release(channel=stream))
    if link is not None and view.network.random() < 0.5:
        actions += [Wait(duration_ms=view.schedule.randint(1, 40)), HealLink(link=link)]
    return actions


def _draw_late(view: ClusterView, led: LedPartition) -> list[NodeId]:
    """Draws the brokers whose metadata is held: the leader alone, or any brokers."""
    if view.network.random() < 0.4:
        return [led.leader]
    return [node.node_id for node in view.network.sample(view.brokers, view.network.randint(1, len(view.brokers)))]


def _draw_link(view: ClusterView, led: LedPartition) -> Link[NodeId]:
    """Draws a link from one broker to another, more often than not to the leader, from which the others fetch."""
    source, target = view.network.sample([node.node_id for node in view.brokers], 2)
    if source != led.leader and view.network.random() < 0.5:
        target = led.leader
    return Link(source, target)


LATE_METADATA_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {"behind": _behind, "behind_features": partial(_behind, changes=_CHANGES_OF_FEATURES)}
)
"""The moves with late metadata, by the name that profiles use."""
