"""Moves on the network: messages held, released, lost and duplicated; links cut, reset and slowed; lagging followers.

A held message stays in ``Network.held`` until a move releases or loses it. ``lag`` and ``fork`` cut links for long
enough to change logs: a follower leaves the ISR, a leader has records that no follower has.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import CONTROLLER_SYNC, STREAM, SYNC, Channel, Link
from laststand.emulator.plan.fields import PRODUCER_LEADER
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move


def _hold(channel: Channel[NodeId]) -> Actions:
    return [actions.Hold(channel=channel)]


def _hold_alter_partition(view: ClusterView) -> Actions:
    led = view.draw_led_partition()
    if led is None:
        return []
    way = view.network.choice((Way.REQUEST, Way.REQUEST, Way.REQUEST, Way.RESPONSE))
    return _hold(Channel(led.leader, view.controller_id, "AlterPartition", way))


def _hold_fetch(view: ClusterView) -> Actions:
    led = view.draw_led_partition()
    if led is None:
        return []
    followers = [replica for replica in led.state.replicas if replica != led.leader]
    if not followers:
        return []
    way = view.network.choice((Way.REQUEST, Way.RESPONSE))
    return _hold(Channel(view.network.choice(followers), led.leader, "Fetch", way))


def _hold_produce(view: ClusterView) -> Actions:
    led = view.draw_led_partition()
    return [] if led is None else _hold(Channel(CLIENT, led.leader, "Produce", Way.REQUEST))


def _hold_stream(view: ClusterView) -> Actions:
    return _hold(Channel(view.network.choice(view.brokers).node_id, view.controller_id, STREAM, Way.RESPONSE))


def _hold_sync(_: ClusterView) -> Actions:
    return _hold(CONTROLLER_SYNC)


def _hold_session(view: ClusterView) -> Actions:
    """Delays one of: messages of a broker's session, a producer's first request, the requests of a recovery."""
    broker = view.network.choice(view.brokers).node_id
    channels = (
        Channel(broker, view.controller_id, "BrokerHeartbeat", Way.REQUEST),
        Channel(broker, view.controller_id, "BrokerHeartbeat", Way.RESPONSE),
        Channel(broker, view.controller_id, "BrokerRegistration", Way.REQUEST),
        Channel(broker, view.controller_id, "BrokerRegistration", Way.RESPONSE),
        Channel(CLIENT, broker, "InitProducerId", Way.REQUEST),
        Channel(view.controller_id, broker, "GetReplicaLogInfo", Way.REQUEST),
    )
    return _hold(view.network.choice(channels))


def _draw_waiting(view: ClusterView) -> Channel[NodeId] | None:
    """Draws a channel on which a message is held; ``None`` if there is none."""
    waiting = [channel for channel, messages in view.cluster.network.held.items() if messages]
    return view.network.choice(waiting) if waiting else None


def _release_one(view: ClusterView) -> Actions:
    channel = _draw_waiting(view)
    return [] if channel is None else [actions.Release(channel=channel, count=1)]


def _release_newest(view: ClusterView) -> Actions:
    channel = _draw_waiting(view)
    return [] if channel is None else [actions.ReleaseNewest(channel=channel)]


def _lose_held(view: ClusterView) -> Actions:
    waiting = [
        channel
        for channel, messages in view.cluster.network.held.items()
        if messages
        and channel.api not in (STREAM, SYNC)  # streams break rather than lose a message; a sync always completes
    ]
    return [actions.LoseHeld(channel=view.network.choice(waiting))] if waiting else []


def _duplicate_held(view: ClusterView) -> Actions:
    waiting = [
        channel
        for channel, messages in view.cluster.network.held.items()
        if messages and channel.way is Way.REQUEST and channel.api not in (STREAM, SYNC)
    ]
    return [actions.Duplicate(channel=view.network.choice(waiting))] if waiting else []


def _draw_link(view: ClusterView) -> Link[NodeId]:
    source = view.network.choice([*(node.node_id for node in view.brokers), CLIENT])
    ends = [*(node.node_id for node in view.brokers if node.node_id != source)]
    if source != CLIENT:
        ends.append(view.controller_id)
    return Link(source, view.network.choice(ends))


def _cut(view: ClusterView) -> Actions:
    return [actions.Cut(link=_draw_link(view))]


def _lose_responses(view: ClusterView) -> Actions:
    return [actions.LoseResponses(link=_draw_link(view))]


def _reset(view: ClusterView) -> Actions:
    return [actions.Reset(link=_draw_link(view))]


def _slow(view: ClusterView) -> Actions:
    return [actions.Slow(link=_draw_link(view), latency_ms=view.network.choice((3, 10, 30, 90)))]


def _isolate(view: ClusterView) -> Actions:
    return [actions.Isolate(clients=actions.Clients.CONNECTED, nodes=(view.network.choice(view.brokers).node_id,))]


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
        actions.Cut(link=Link(view.network.choice(followers), leader)),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),  # an idle partition never lags
        actions.Wait(duration_ms=view.past_lag_ms()),
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
    cuts = [actions.Cut(link=Link(member, leader)) for member in followers]
    return [
        *cuts,
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=view.workload.choice((1, 2))),
        actions.Wait(duration_ms=view.schedule.randint(3, 20)),
        actions.Cut(link=Link(leader, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms()),
        actions.HealNodes(nodes=(leader,)),
        actions.Wait(duration_ms=view.schedule.randint(5, 60)),
    ]


NETWORK_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "hold_alter_partition": _hold_alter_partition,
        "hold_fetch": _hold_fetch,
        "hold_produce": _hold_produce,
        "hold_stream": _hold_stream,
        "hold_sync": _hold_sync,
        "hold_session": _hold_session,
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
"""The network moves, by the name that profiles use."""
