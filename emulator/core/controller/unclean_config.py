"""The unclean elections that a topic allows: KIP-966's strategy, or the older boolean that stands for a strategy.

``unclean.recovery.strategy`` and ``unclean.leader.election.enable`` exist side by side. The value set nearest to the
topic decides (topic, controller's node, cluster default, the node's own file); if both are set in one place, the
strategy decides. Without any value it is Balanced, by either default.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.emulator.core import admin_messages
from laststand.emulator.core.controller.recovery import strategy_of_unclean_enable
from laststand.emulator.core.effective_config import CLUSTER, ConfigValue
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import ConfigResource, NodeId, RecoveryStrategy

STRATEGY: Final = "unclean.recovery.strategy"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


def recovery_strategy(image: MetadataImage, *, topic: str, node_id: NodeId, static: NodeProperties) -> RecoveryStrategy:
    """Returns the strategy in effect for a topic (KIP-966, "Unclean recovery": configs to update)."""
    places = (
        (ConfigResource.TOPIC, topic),
        (ConfigResource.BROKER, str(node_id)),
        (ConfigResource.BROKER, CLUSTER),
    )
    for resource, name in places:
        strategy = image.config(resource, name, STRATEGY)
        if strategy is not None:
            return RecoveryStrategy(strategy)
        enable = image.config(resource, name, UNCLEAN_ELECTION)
        if enable is not None:
            return strategy_of_unclean_enable(enable)
    if static.unclean_recovery_strategy is not None:
        return RecoveryStrategy(static.unclean_recovery_strategy)
    return strategy_of_unclean_enable("true" if static.unclean_leader_election_enable else "false")


def strategy_values(own: Sequence[ConfigValue], older: Sequence[ConfigValue]) -> list[ConfigValue]:
    """Returns every place that gives the strategy a value, strongest first: by its own name, or by the older boolean's.

    Args:
        own: of ``unclean.recovery.strategy``, the default last.
        older: values of ``unclean.leader.election.enable``, in the same order.
    """
    *places, default = own
    for each in older:
        if each.value is not None and each.source is not admin_messages.ConfigSource.DEFAULT_CONFIG:
            places.append(msgspec.structs.replace(each, value=strategy_of_unclean_enable(each.value).value))
    order = tuple(admin_messages.ConfigSource)
    unset = msgspec.structs.replace(default, value=RecoveryStrategy.BALANCED.value)
    return [*sorted(places, key=lambda each: order.index(each.source)), unset]
