"""Requests of an administrator, one per move, at any moment and during any fault; their arguments are drawn.

Races, in which a request comes at the one dangerous moment, are in ``administrators``; several requests whose metadata
some brokers receive late, and as one batch, are in ``late_metadata``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.effective_config import CLUSTER
from laststand.emulator.core.metadata_version import ELR_VERSION, LATEST, METADATA_VERSION
from laststand.emulator.core.types import ConfigResource, FeatureUpgradeType, Offset
from laststand.emulator.plan import actions
from laststand.emulator.plan.administration_fields import ConfigChange, FeatureLevel
from laststand.emulator.plan.lines import MIN_ISR, elr_feature
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move

_PARTITIONS_MAX: Final = 4
"""Most partitions of the topic; more would only take time."""

_UNCLEAN: Final = (
    admin_messages.RequestedElection.UNCLEAN,
    admin_messages.RequestedElection.DESIGNATED,
    admin_messages.RequestedElection.LONGEST_LOG_BALANCED,
    admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE,
)


def _elect_preferred(view: ClusterView) -> Actions:
    return [
        actions.ElectLeaders(election=admin_messages.RequestedElection.PREFERRED, partitions=(view.draw_partition(),))
    ]


def _elect_member(view: ClusterView) -> Actions:
    """Moves a leadership to another member of the ISR, which is a clean election."""
    led = view.draw_led_partition()
    others = [] if led is None else [member for member in led.state.isr if member != led.leader]
    if led is None or not others:
        return []
    leader = view.schedule.choice(others)
    return [
        actions.ElectLeaders(
            election=admin_messages.RequestedElection.DESIGNATED, partitions=(led.name,), leader=leader
        )
    ]


def _elect_anybody(view: ClusterView) -> Actions:
    """Asks for a leader that may lack records; the administrator accepts this loss."""
    name = view.draw_partition()
    state = view.cluster.state(name)
    if state is None:
        return []
    election = view.schedule.choice(_UNCLEAN)
    leader = view.schedule.choice(state.replicas) if election is admin_messages.RequestedElection.DESIGNATED else None
    return [actions.ElectLeaders(election=election, partitions=(name,), leader=leader)]


def _resize(view: ClusterView) -> Actions:
    """Gives one partition another replication factor than the rest of its topic has."""
    name = view.draw_partition()
    factor = view.schedule.randint(1, len(view.brokers))
    targets = view.schedule.sample([node.broker_id for node in view.brokers], factor)
    return [actions.Reassign(partition=name, replicas=tuple(targets))]


def _cancel(view: ClusterView) -> Actions:
    return [actions.CancelReassignment(partition=view.draw_partition())]


def _create_partitions(view: ClusterView) -> Actions:
    topic = view.draw_partition().topic
    count = sum(name.topic == topic for name in view.cluster.image.partitions)
    return [actions.CreatePartitions(name=topic, count=count + 1)] if 0 < count < _PARTITIONS_MAX else []


def _cluster_min_isr(view: ClusterView) -> Actions:
    """Changes the cluster's default min ISR, and deletes the topic's own min ISR or sets it again."""
    topic = view.draw_partition().topic
    value = str(view.schedule.randint(1, 3))
    own = view.schedule.choice((None, value))
    return [
        _set(ConfigResource.BROKER, CLUSTER, MIN_ISR, value),
        _set(ConfigResource.TOPIC, topic, MIN_ISR, own),
    ]


def _strategy(view: ClusterView) -> Actions:
    """Changes a topic's unclean recovery strategy between those that wait for the candidates, and so risk nothing."""
    topic = view.draw_partition().topic
    return [_set(ConfigResource.TOPIC, topic, "unclean.recovery.strategy", view.schedule.choice(("None", "Balanced")))]


def _unclean_election(view: ClusterView) -> Actions:
    """Has a topic prefer an unclean leader to none from now on, or not any more."""
    topic = view.draw_partition().topic
    value = view.schedule.choice(("true", "true", "false", None))
    return [_set(ConfigResource.TOPIC, topic, "unclean.leader.election.enable", value)]


def _broker_config(view: ClusterView) -> Actions:
    """Sets or deletes a configuration of one broker; for min ISR the controller refuses this while ELR is on."""
    broker = str(view.schedule.choice(view.brokers).broker_id)
    choices = ((MIN_ISR, ("1", "2", "3")), ("unclean.recovery.strategy", ("None", "Balanced")))
    key, values = view.schedule.choice(choices)
    return [_set(ConfigResource.BROKER, broker, key, view.schedule.choice((None, *values)))]


def _unregister(view: ClusterView) -> Actions:
    """Unregisters a broker, which counts as its failure: only a new process of the broker can register again."""
    victim = view.draw_victim()
    if victim is None:
        return []
    node = victim.node_id
    pause = actions.Wait(duration_ms=view.schedule.randint(1, 150))
    forget: list[actions.Action] = [actions.UnregisterBroker(broker_id=victim.broker_id), pause]
    match view.schedule.choice(("stop", "kill", "power", "nothing")):
        case "stop":
            return [
                *forget,
                actions.Stop(nodes=(node,)),
                actions.Wait(duration_ms=view.past_session_ms()),
                actions.Start(nodes=(node,)),
            ]
        case "kill":
            return [*forget, actions.Kill(nodes=(node,)), actions.Start(nodes=(node,))]
        case "power":
            return [*forget, view.draw_power_loss((node,)), actions.Start(nodes=(node,))]
        case _:
            return forget


def _features(view: ClusterView) -> Actions:
    """Downgrades or upgrades features: eligible leader replicas, and perhaps the metadata version that they require."""
    pause = actions.Wait(duration_ms=view.schedule.randint(1, 60))
    if view.cluster.image.feature_level(ELR_VERSION) == 0:
        raised = actions.UpdateFeature(target=FeatureLevel(METADATA_VERSION, LATEST))
        return [raised, pause, elr_feature(1)]
    if view.schedule.random() < 0.5:
        return [elr_feature(0)]
    level = FeatureLevel(METADATA_VERSION, view.schedule.randint(1, LATEST - 1))
    return [
        elr_feature(0),
        pause,
        actions.UpdateFeature(target=level, upgrade_type=FeatureUpgradeType.UNSAFE_DOWNGRADE),
    ]


def _delete_records(view: ClusterView) -> Actions:
    """Deletes some of a leader's records, or all committed ones; beyond the high watermark the request is refused."""
    led = view.draw_led_partition()
    log = None if led is None else view.cluster.nodes[led.leader].disk.logs.get(led.name)
    if led is None or log is None:
        return []
    some = Offset(view.schedule.randint(log.log_start_offset, log.log_end_offset + 1))
    return [actions.DeleteRecords(partition=led.name, offset=view.schedule.choice((some, some, None)))]


def _set(resource: ConfigResource, name: str, key: str, value: str | None) -> actions.AlterConfig:
    return actions.AlterConfig(config=ConfigChange(resource=resource, name=name, changes=((key, value),)))


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
        "unclean_election": _unclean_election,
        "broker_config": _broker_config,
        "unregister": _unregister,
        "features": _features,
        "delete_records": _delete_records,
    }
)
"""The request moves, by the name that profiles use."""
