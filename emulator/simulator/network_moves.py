"""Moves on the network: messages held, released, lost and duplicated; links cut, reset and slowed; lagging followers.

A held message stays in ``Network.held`` until a move releases or loses it. ``lag`` and ``fork`` cut links for long
enough to change logs: a follower leaves the ISR, a leader has records that no follower has.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from emulator.core.types import Acks, NodeId
from emulator.simulator.actions import (
    ChannelVerb,
    LinkVerb,
    NodeVerb,
    OnChannel,
    OnLink,
    OnNode,
    Produce,
    Slow,
    Wait,
)
from emulator.simulator.cluster_view import Actions, ClusterView, Move
from emulator.simulator.network import STREAM, SYNC, Channel, Way
from emulator.simulator.nodes import CLIENT, CONTROLLER


def _hold(channel: Channel) -> Actions:
    return [OnChannel(verb=ChannelVerb.HOLD, channel=channel)]


def _hold_alter_partition(view: ClusterView) -> Actions:
    led = view.draw_led_partition()
    if led is None:
        return []
    way = view.network.choice((Way.REQUEST, Way.REQUEST, Way.REQUEST, Way.RESPONSE))
    return _hold(Channel(led.leader, CONTROLLER, "AlterPartition", way))


def _hold_fetch(view: ClusterView) -> Actions:
    led = view.draw_led_partition()
    if led is None:
        return []
    followers = [replica for replica in led.state.replicas if replica != led.leader]
    if not followers:
        return []
    way = view.network.choice((Way.REQUEST, Way.RESPONSE))
    return _hold(Channel(view.network.choice(followers), led.leader, "Fetch", way))


def _hold_stream(view: ClusterView) -> Actions:
    return _hold(Channel(view.network.choice(view.brokers).node_id, CONTROLLER, STREAM, Way.RESPONSE))


def _hold_sync(_: ClusterView) -> Actions:
    return _hold(Channel(CONTROLLER, CONTROLLER, SYNC, Way.RESPONSE))


def _on_waiting(view: ClusterView, verb: ChannelVerb, *, count: int | None = None) -> Actions:
    waiting = [channel for channel, messages in view.cluster.network.held.items() if messages]
    if not waiting:
        return []
    return [OnChannel(verb=verb, channel=view.network.choice(waiting), count=count)]


def _release_one(view: ClusterView) -> Actions:
    return _on_waiting(view, ChannelVerb.RELEASE, count=1)


def _release_newest(view: ClusterView) -> Actions:
    return _on_waiting(view, ChannelVerb.RELEASE_NEWEST)


def _lose_held(view: ClusterView) -> Actions:
    waiting = [
        channel
        for channel, messages in view.cluster.network.held.items()
        if messages
        and channel.api not in (STREAM, SYNC)  # streams break rather than lose a message; a sync always completes
    ]
    return [OnChannel(verb=ChannelVerb.LOSE, channel=view.network.choice(waiting))] if waiting else []


def _duplicate_held(view: ClusterView) -> Actions:
    waiting = [
        channel
        for channel, messages in view.cluster.network.held.items()
        if messages and channel.way is Way.REQUEST and channel.api not in (STREAM, SYNC)
    ]
    return [OnChannel(verb=ChannelVerb.DUPLICATE, channel=view.network.choice(waiting))] if waiting else []


def _draw_link(view: ClusterView) -> tuple[NodeId, NodeId]:
    source = view.network.choice([*(node.node_id for node in view.brokers), CLIENT])
    ends = [*(node.node_id for node in view.brokers if node.node_id != source)]
    if source != CLIENT:
        ends.append(CONTROLLER)
    return source, view.network.choice(ends)


def _on_link(view: ClusterView, verb: LinkVerb) -> Actions:
    source, destination = _draw_link(view)
    return [OnLink(verb=verb, source=source, destination=destination)]


def _cut(view: ClusterView) -> Actions:
    return _on_link(view, LinkVerb.CUT)


def _lose_responses(view: ClusterView) -> Actions:
    return _on_link(view, LinkVerb.LOSE_RESPONSES)


def _reset(view: ClusterView) -> Actions:
    return _on_link(view, LinkVerb.RESET)


def _slow(view: ClusterView) -> Actions:
    source, destination = _draw_link(view)
    return [Slow(source=source, destination=destination, latency_ms=view.network.choice((3, 10, 30, 90)))]


def _isolate(view: ClusterView) -> Actions:
    return [OnNode(verb=NodeVerb.ISOLATE, nodes=(view.network.choice(view.brokers).node_id,))]


def _lag(view: ClusterView) -> Actions:
    """A follower stops fetching until it has to leave the ISR."""
    led = view.draw_led_partition()
    if led is None:
        return []
    name, leader, state = led
    followers = [member for member in state.isr if member != leader]
    if not followers:
        return []
    return [
        OnLink(verb=LinkVerb.CUT, source=view.network.choice(followers), destination=leader),
        Produce(partition=name, acks=Acks.LEADER, records=1),  # an idle partition never lags
        Wait(duration_ms=view.schedule.randint(320, 520)),
    ]


def _fork(view: ClusterView) -> Actions:
    """The leader appends records that no follower gets, and is deposed: it has to truncate when it rejoins."""
    led = view.draw_led_partition()
    if led is None:
        return []
    name, leader, state = led
    followers = [member for member in state.isr if member != leader]
    if not followers:
        return []
    cuts = [OnLink(verb=LinkVerb.CUT, source=member, destination=leader) for member in followers]
    return [
        *cuts,
        Produce(partition=name, acks=Acks.LEADER, records=view.workload.choice((1, 2))),
        Wait(duration_ms=view.schedule.randint(3, 20)),
        OnLink(verb=LinkVerb.CUT, source=leader, destination=CONTROLLER),
        Wait(duration_ms=view.schedule.randint(420, 520)),
        OnNode(verb=NodeVerb.REJOIN, nodes=(leader,)),
        Wait(duration_ms=view.schedule.randint(5, 60)),
    ]


NETWORK_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "hold_alter_partition": _hold_alter_partition,
        "hold_fetch": _hold_fetch,
        "hold_stream": _hold_stream,
        "hold_sync": _hold_sync,
        "release_one": _release_one,
        "release_newest": _release_newest,
        "lose_held": _lose_held,
        "duplicate_held": _duplicate_held,
        "cut": _cut,
        "lose_responses": _lose_responses,
        "reset": _reset,
        "slow": _slow,
        "isolate": _isolate,
        "lag": _lag,
        "fork": _fork,
    }
)
"""By the name that profiles use."""
