"""Races of ZooKeeper clusters: known failures, step by step, with random times and details.

The docstring of each race begins with its id in docs/eras-zookeeper.md. It loses records where the rule that prevents
the loss is off. A race that needs another controller or leader requests the change, and does nothing more.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.types import BrokerId, ConfigResource, TopicPartition, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.fields import PRODUCER_ALL, PRODUCER_LEADER
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move
from laststand.emulator.simulator.zookeeper.cluster import ZooKeeperCluster

_METADATA_AGE_MS: Final = 2_100
"""After which clients ask again who leads."""


def elected_controller(view: ClusterView) -> BrokerId | None:
    """Returns the broker that ZooKeeper names as controller; ``None`` in a KRaft cluster."""
    return view.cluster.elected_controller if isinstance(view.cluster, ZooKeeperCluster) else None


def _wait(view: ClusterView, least_ms: int, most_ms: int) -> actions.Action:
    return actions.Wait(duration_ms=view.schedule.randint(least_ms, most_ms))


def _preferred(name: TopicPartition) -> actions.Action:
    return actions.ElectLeaders(election=admin_messages.RequestedElection.PREFERRED, partitions=(name,), leader=None)


def _race_own_write(view: ClusterView) -> Actions:
    """Z05: the answer to a leader's own expansion is lost, and the replica that it added is elected.

    The leader takes its write for failed, because the node's version has changed since, and keeps its old ISR.
    """
    led, controller = view.draw_led_partition(), elected_controller(view)
    if led is None or controller is None or len(led.state.replicas) < 2:
        return []
    name, state = led.name, led.state
    preferred, leader = state.replicas[0], led.leader if led.leader != state.replicas[0] else state.replicas[1]
    produce = actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1)  # an idle partition never lags
    lag = actions.Wait(duration_ms=2 * view.past_lag_ms())
    if controller in (preferred, leader):
        return [actions.ExpireSession(nodes=(controller,)), lag]
    if led.leader == preferred:
        return [actions.ExpireSession(nodes=(preferred,)), lag]
    to_zookeeper, fetches = Link(leader, CONTROLLER), Link(preferred, leader)
    return [
        *(actions.Cut(link=Link(other, leader)) for other in state.replicas if other != leader),
        produce,
        lag,
        actions.LoseResponses(link=to_zookeeper),
        actions.HealLink(link=fetches),
        actions.Wait(duration_ms=view.schedule.randint(60, 260)),
        actions.Cut(link=Link(controller, leader)),
        actions.Cut(link=fetches),
        actions.ElectLeaders(election=admin_messages.RequestedElection.PREFERRED, partitions=(name,), leader=None),
        actions.Wait(duration_ms=view.schedule.randint(10, 40)),
        actions.HealLink(link=to_zookeeper),
        lag,
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        lag,
        actions.HealNodes(nodes=(leader,)),
    ]


def _race_zombie_write(view: ClusterView) -> Actions:
    """Z08: a controller is deposed between reading a partition's state and writing it; its session goes on."""
    led, controller = view.draw_led_partition(), elected_controller(view)
    if led is None or controller is None:
        return []
    name, preferred = led.name, led.state.replicas[0]
    if led.leader == preferred or preferred not in led.state.isr:
        return [actions.ExpireSession(nodes=(preferred,)), actions.Wait(duration_ms=2 * view.past_lag_ms())]
    steps = Channel(controller, CONTROLLER, "Execute", Way.REQUEST)
    return [
        actions.Hold(channel=steps),
        _preferred(name),
        _wait(view, 3, 8),
        actions.Release(channel=steps, count=1),
        _wait(view, 3, 8),
        actions.DeposeController(),
        _wait(view, 20, 80),
        actions.Release(channel=steps),
        _wait(view, 20, 80),
    ]


def _race_late_stop(view: ClusterView) -> Actions:
    """Z11: a copy of the StopReplica of an ended reassignment arrives when the replica is in sync again."""
    led, controller = view.draw_led_partition(), elected_controller(view)
    if led is None or controller is None:
        return []
    name, replicas = led.name, led.state.replicas
    candidates = [member for member in led.state.isr if member not in (led.leader, controller)]
    if not candidates or len(replicas) < 2:
        return []
    moved = view.schedule.choice(candidates)
    others = tuple(replica for replica in replicas if replica != moved)
    stops = Channel(controller, moved, "StopReplica", Way.REQUEST)
    return [
        actions.Hold(channel=stops),
        actions.Reassign(partition=name, replicas=others),
        _wait(view, 20, 60),
        actions.Release(channel=stops, count=1),  # not to fetch any more
        _wait(view, 3, 10),
        actions.Duplicate(channel=stops),  # and to delete
        _wait(view, 3, 10),
        actions.Reassign(partition=name, replicas=(moved, *others)),
        _wait(view, 120, 300),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        _wait(view, 10, 60),
        actions.Release(channel=stops),
        _wait(view, 3, 10),
        _preferred(name),
        _wait(view, 20, 80),
    ]


def _race_former_life(view: ClusterView) -> Actions:
    """Z15: the full list for a broker's former session arrives after the new session was assigned a partition."""
    led, controller = view.draw_led_partition(), elected_controller(view)
    if led is None or controller is None:
        return []
    name, replicas = led.name, led.state.replicas
    spare = [node.broker_id for node in view.brokers if node.broker_id not in (*replicas, controller)]
    if not spare:
        return [actions.ExpireSession(nodes=(controller,)), _wait(view, 100, 400)]
    added = view.schedule.choice(spare)
    roles = Channel(controller, added, "LeaderAndIsr", Way.REQUEST)
    return [
        actions.Hold(channel=roles),
        actions.ExpireSession(nodes=(added,)),
        _wait(view, 30, 120),
        actions.ExpireSession(nodes=(added,)),
        _wait(view, 30, 120),
        actions.ReleaseNewest(channel=roles),
        _wait(view, 3, 10),
        actions.Reassign(partition=name, replicas=(added, *replicas)),
        _wait(view, 10, 40),
        actions.ReleaseNewest(channel=roles),
        _wait(view, 120, 300),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        _wait(view, 10, 60),
        actions.Release(channel=roles, count=1),
        _wait(view, 3, 10),
        _preferred(name),
        actions.Release(channel=roles),
        _wait(view, 20, 80),
    ]


def _race_stray(view: ClusterView) -> Actions:
    """Z13: a replica is moved off a broker that is down; its topic is deleted, and made again with that broker."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 2:
        return []
    name, replicas = led.name, led.state.replicas
    absent = view.schedule.choice([replica for replica in replicas if replica != led.leader])
    others = tuple(replica for replica in replicas if replica != absent)
    configs = view.cluster.image.configs(ConfigResource.TOPIC, name.topic)
    again = PlannedTopic(name=name.topic, replicas=((absent, *others),), properties=tuple(sorted(configs.items())))
    return [
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=view.workload.choice((2, 5))),
        _wait(view, 20, 60),
        actions.Stop(nodes=(absent,)),
        _wait(view, 60, 200),
        actions.Reassign(partition=name, replicas=others),
        _wait(view, 20, 80),
        actions.Start(nodes=(absent,)),
        _wait(view, 60, 200),
        actions.DeleteTopic(name=name.topic),
        _wait(view, 60, 200),
        actions.CreateTopic(topic=again),
        actions.Wait(duration_ms=_METADATA_AGE_MS),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        _wait(view, 60, 300),
        _preferred(name),
        _wait(view, 20, 80),
    ]


ZOOKEEPER_RACES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "race_own_write": _race_own_write,
        "race_zombie_write": _race_zombie_write,
        "race_late_stop": _race_late_stop,
        "race_former_life": _race_former_life,
        "race_stray": _race_stray,
    }
)
"""The ZooKeeper races, by the name that profiles use."""
