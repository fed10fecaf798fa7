"""Requests of an administrator, one a move, at any moment and beside any fault; what they ask for is drawn.

Races, in which a request comes at the one dangerous moment, are in ``administrator_moves``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from emulator.core.admin_messages import RequestedElection
from emulator.core.effective_config import CLUSTER
from emulator.core.types import ConfigResource
from emulator.plan.actions import AlterConfig, CancelReassignment, CreatePartitions, ElectLeaders, Reassign
from emulator.plan.administration_fields import ConfigChange
from emulator.plan.lines import MIN_ISR
from emulator.simulator.cluster_view import Actions, ClusterView, Move

_PARTITIONS_MAX: Final = 4
"""Of the topic; more would only take time."""

_UNCLEAN: Final = (
    RequestedElection.UNCLEAN,
    RequestedElection.DESIGNATED,
    RequestedElection.LONGEST_LOG_BALANCED,
    RequestedElection.LONGEST_LOG_AGGRESSIVE,
)


def _elect_preferred(view: ClusterView) -> Actions:
    return [ElectLeaders(election=RequestedElection.PREFERRED, partitions=(view.draw_partition(),))]


def _elect_member(view: ClusterView) -> Actions:
    """Moves a leadership to another member of the ISR, which is a clean election."""
    led = view.draw_led_partition()
    others = [] if led is None else [member for member in led.state.isr if member != led.leader]
    if led is None or not others:
        return []
    leader = view.schedule.choice(others)
    return [ElectLeaders(election=RequestedElection.DESIGNATED, partitions=(led.name,), leader=leader)]


def _elect_anybody(view: ClusterView) -> Actions:
    """Asks for a leader that may lack records; what is lost by it was accepted."""
    name = view.draw_partition()
    state = view.cluster.state(name)
    if state is None:
        return []
    election = view.schedule.choice(_UNCLEAN)
    leader = view.schedule.choice(state.replicas) if election is RequestedElection.DESIGNATED else None
    return [ElectLeaders(election=election, partitions=(name,), leader=leader)]


def _resize(view: ClusterView) -> Actions:
    """Gives one partition another replication factor than the rest of its topic has."""
    name = view.draw_partition()
    factor = view.schedule.randint(1, len(view.brokers))
    targets = view.schedule.sample([node.broker_id for node in view.brokers], factor)
    return [Reassign(partition=name, replicas=tuple(targets))]


def _cancel(view: ClusterView) -> Actions:
    return [CancelReassignment(partition=view.draw_partition())]


def _create_partitions(view: ClusterView) -> Actions:
    topic = view.draw_partition().topic
    count = sum(name.topic == topic for name in view.cluster.image.partitions)
    return [CreatePartitions(name=topic, count=count + 1)] if 0 < count < _PARTITIONS_MAX else []


def _cluster_min_isr(view: ClusterView) -> Actions:
    """Changes min ISR for every topic that has none of its own, and takes the topic's own away or puts it back."""
    topic = view.draw_partition().topic
    value = str(view.schedule.randint(1, 3))
    own = view.schedule.choice((None, value))
    return [
        _set(ConfigResource.BROKER, CLUSTER, MIN_ISR, value),
        _set(ConfigResource.TOPIC, topic, MIN_ISR, own),
    ]


def _strategy(view: ClusterView) -> Actions:
    """Lets a topic wait for its candidates in one way or the other: it risks nothing by either."""
    topic = view.draw_partition().topic
    return [_set(ConfigResource.TOPIC, topic, "unclean.recovery.strategy", view.schedule.choice(("None", "Balanced")))]


def _set(resource: ConfigResource, name: str, key: str, value: str | None) -> AlterConfig:
    return AlterConfig(config=ConfigChange(resource=resource, name=name, changes=((key, value),)))


REQUEST_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "elect_preferred": _elect_preferred,
        "elect_member": _elect_member,
        "elect_anybody": _elect_anybody,
        "resize": _resize,
        "cancel": _cancel,
        "create_partitions": _create_partitions,
        "cluster_min_isr": _cluster_min_isr,
        "strategy": _strategy,
    }
)
"""By the name that profiles use."""
