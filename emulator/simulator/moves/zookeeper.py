"""Moves on what only ZooKeeper clusters have: sessions, the server, control requests, controllers among the brokers.

A move that needs something that the cluster lacks returns no actions.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.types import BrokerId, NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move
from laststand.emulator.simulator.moves.zookeeper_races import ZOOKEEPER_RACES, elected_controller

_CONTROL: Final = ("LeaderAndIsr", "LeaderAndIsr", "UpdateMetadata", "StopReplica")


def _draw_broker(view: ClusterView) -> NodeId:
    """Draws a broker: often a leader or the controller, whose sessions matter most."""
    led, controller = view.draw_led_partition(), elected_controller(view)
    special = [node for node in (None if led is None else led.leader, controller) if node is not None]
    if special and view.schedule.random() < 0.6:
        return view.schedule.choice(special)
    return view.schedule.choice(view.brokers).node_id


def _expire_session(view: ClusterView) -> Actions:
    return [actions.ExpireSession(nodes=(_draw_broker(view),))]


def _past_session(view: ClusterView) -> actions.Action:
    return actions.Wait(duration_ms=view.past_session_ms())


def _cut_off(view: ClusterView) -> Actions:
    """Cuts a broker off from ZooKeeper only, perhaps for longer than its session timeout."""
    link = Link(_draw_broker(view), CONTROLLER)
    cut: actions.Action = view.network.choice((actions.Cut(link=link), actions.LoseResponses(link=link)))
    if view.network.random() < 0.4:
        return [cut]
    wait = (
        _past_session(view) if view.network.random() < 0.5 else actions.Wait(duration_ms=view.network.randint(5, 300))
    )
    return [cut, wait, actions.HealLink(link=link)]


def _slow_zookeeper(view: ClusterView) -> Actions:
    link = Link(_draw_broker(view), CONTROLLER)
    return [actions.Slow(link=link, latency_ms=view.network.choice((5, 20, 60)))]


def _reset_zookeeper(view: ClusterView) -> Actions:
    return [actions.Reset(link=Link(_draw_broker(view), CONTROLLER))]


def _hold_steps(view: ClusterView) -> Actions:
    way = view.network.choice((Way.REQUEST, Way.RESPONSE))
    return [actions.Hold(channel=Channel(_draw_broker(view), CONTROLLER, "Execute", way))]


def _hold_control(view: ClusterView) -> Actions:
    controller = elected_controller(view)
    others = [node.node_id for node in view.brokers if node.node_id != controller]
    if controller is None or not others:
        return []
    way = view.network.choice((Way.REQUEST, Way.REQUEST, Way.RESPONSE))
    return [actions.Hold(channel=Channel(controller, view.network.choice(others), view.network.choice(_CONTROL), way))]


def _hold_isr(view: ClusterView) -> Actions:
    led, controller = view.draw_led_partition(), elected_controller(view)
    if led is None or controller is None or controller == led.leader:
        return []
    way = view.network.choice((Way.REQUEST, Way.RESPONSE))
    return [actions.Hold(channel=Channel(led.leader, controller, "AlterPartition", way))]


def _zombie_controller(view: ClusterView) -> Actions:
    """The controller is paused for longer than its session, and then continues where it was."""
    controller = elected_controller(view)
    if controller is None:
        return []
    pause, resume = actions.Pause(nodes=(controller,)), actions.Resume(nodes=(controller,))
    return [_expiry(view, controller), pause, _past_session(view), resume]


def _expiry(view: ClusterView, controller: BrokerId) -> actions.Action:
    """Gives the controller work: another broker's session ends."""
    others = [node.node_id for node in view.brokers if node.node_id != controller]
    return actions.ExpireSession(nodes=(view.schedule.choice(others or [controller]),))


def _cut_control(view: ClusterView) -> Actions:
    """The controller does not reach a broker; ZooKeeper does."""
    controller = elected_controller(view)
    others = [node.node_id for node in view.brokers if node.node_id != controller]
    return [] if controller is None or not others else [actions.Cut(link=Link(controller, view.network.choice(others)))]


def _zookeeper_down(view: ClusterView) -> Actions:
    if view.cluster.metadata_node.core is None:
        return []
    wait = actions.Wait(duration_ms=view.schedule.choice((5, 60, 300, 900)))
    if view.schedule.random() < 0.5:
        return [actions.Kill(nodes=(CONTROLLER,)), wait, actions.Start(nodes=(CONTROLLER,))]
    return [actions.Pause(nodes=(CONTROLLER,)), wait, actions.Resume(nodes=(CONTROLLER,))]


ZOOKEEPER_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "expire_session": _expire_session,
        "cut_off": _cut_off,
        "slow_zookeeper": _slow_zookeeper,
        "reset_zookeeper": _reset_zookeeper,
        "hold_steps": _hold_steps,
        "hold_control": _hold_control,
        "hold_isr": _hold_isr,
        "zombie_controller": _zombie_controller,
        "cut_control": _cut_control,
        "zookeeper_down": _zookeeper_down,
        **ZOOKEEPER_RACES,
    }
)
"""The ZooKeeper moves, by the name that profiles use."""
