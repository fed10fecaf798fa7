"""Moves of rolling upgrades and downgrades: nodes are started again with the rules of another era.

A node gets an era that supports the current feature levels: otherwise a broker's registration is refused, and a
controller does not start.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.metadata_version import ELR_VERSION, LATEST, METADATA_VERSION, level_of
from laststand.emulator.core.release import latest_metadata_version
from laststand.emulator.core.types import FeatureUpgradeType
from laststand.emulator.plan import actions
from laststand.emulator.plan.administration_fields import FeatureLevel
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move
from laststand.emulator.simulator.nodes.nodes import ControllerNode

_WITH_ELR: Final = ("kafka-4.2", "kafka-4.2,reassignment_needs_all=off", "kip-966-text", "kip-966")
_WITHOUT_ELR: Final = (*_WITH_ELR, "kafka-3.9")
_REQUEST_MS: Final = 20
_LATEST_OF_3_9: Final = level_of("3.9")


def _draw_era(view: ClusterView) -> str:
    return view.schedule.choice(_WITH_ELR if _metadata_version(view) > _LATEST_OF_3_9 else _WITHOUT_ELR)


def _metadata_version(view: ClusterView) -> int:
    """Returns the level that a controller has in its log, committed or not."""
    node = view.cluster.metadata_node
    if isinstance(node, ControllerNode) and node.core is not None:
        return node.controller.image.feature_level(METADATA_VERSION)
    return view.cluster.image.feature_level(METADATA_VERSION)


def _awaits_entry(view: ClusterView) -> bool:
    """Returns whether a broker of a release without the latest level is registered as the process before it was."""
    registered = view.cluster.image.brokers
    return any(
        broker.supports(METADATA_VERSION, LATEST) and latest_metadata_version(view.cluster.rules_of(broker_id)) < LATEST
        for broker_id, broker in registered.items()
    )


def _roll(view: ClusterView) -> Actions:
    """A broker is stopped in order, and started with another era."""
    running = view.running
    if not running:
        return []
    node = view.schedule.choice(running).node_id
    start = actions.Start(nodes=(node,), era=_draw_era(view))
    return [actions.Stop(nodes=(node,)), actions.Wait(duration_ms=view.past_session_ms(175)), start]


def _crash_and_roll(view: ClusterView) -> Actions:
    """A broker crashes, and is started with another era."""
    victim = view.draw_victim()
    if victim is None:
        return []
    crash: actions.Action = view.draw_power_loss((victim.node_id,))
    if view.storage.random() < 0.5:
        crash = actions.Kill(nodes=(victim.node_id,))
    start = actions.Start(nodes=(victim.node_id,), era=_draw_era(view))
    return [crash, actions.Wait(duration_ms=view.schedule.choice((1, 20, view.session_ms))), start]


def _roll_controller(view: ClusterView) -> Actions:
    """The controller is stopped or killed, and started with another era."""
    node = view.controller_id
    if view.cluster.metadata_node.core is None:
        return []
    end: actions.Action = actions.Stop(nodes=(node,))
    if view.schedule.random() < 0.5:
        end = actions.Kill(nodes=(node,))
    start = actions.Start(nodes=(node,), era=_draw_era(view))
    return [end, actions.Wait(duration_ms=view.schedule.choice((1, 20, 200))), start]


def _turn_elr(view: ClusterView) -> Actions:
    """Downgrades or upgrades ELR and the metadata version that it needs; a broker without them blocks an upgrade.

    An upgrade is in the controller's log before the next move is drawn, so that no broker is refused for good.
    """
    if view.cluster.image.feature_level(ELR_VERSION) > 0:
        levels = (FeatureLevel(ELR_VERSION, 0), FeatureLevel(METADATA_VERSION, _LATEST_OF_3_9))
        upgrade_type = FeatureUpgradeType.SAFE_DOWNGRADE
    elif _awaits_entry(view):
        return []
    else:
        levels = (FeatureLevel(METADATA_VERSION, LATEST), FeatureLevel(ELR_VERSION, 1))
        upgrade_type = FeatureUpgradeType.UPGRADE
    updates = [actions.UpdateFeature(target=level, upgrade_type=upgrade_type) for level in levels]
    return [*updates, actions.Wait(duration_ms=_REQUEST_MS)]


ERA_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "roll": _roll,
        "crash_and_roll": _crash_and_roll,
        "roll_controller": _roll_controller,
        "turn_elr": _turn_elr,
    }
)
"""The moves of mixed clusters, by the name that profiles use."""
