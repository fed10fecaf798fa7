"""The risk that the cluster was allowed: min ISR and unclean elections, by the committed configuration.

This implements Kafka's order (topic, broker, cluster, the nodes' own file) a second time, on purpose: the guarantee
must not depend on the core's implementation.
"""

from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import BrokerId, ConfigResource, NodeId, RecoveryStrategy
from laststand.emulator.plan.nodes import CONTROLLER

_MIN_ISR: Final = "min.insync.replicas"
_STRATEGY: Final = "unclean.recovery.strategy"
_UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
_EVERY_BROKER: Final = ""


class Configuration:
    """The configuration of one run.

    Args:
        static: the properties with which nodes were started.
    """

    def __init__(self, static: NodeProperties) -> None:
        self._static = static
        self._values: dict[tuple[ConfigResource, str, str], str] = {}

    def changed(self, event: events.ConfigChanged) -> None:
        """A value was set or deleted."""
        key = (event.resource, event.resource_name, event.name)
        if event.value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = event.value

    def deleted(self, topic: str) -> None:
        """A topic is deleted, with its configuration."""
        for key in [key for key in self._values if key[:2] == (ConfigResource.TOPIC, topic)]:
            del self._values[key]

    def min_isr(self, topic: str, replicas: tuple[BrokerId, ...]) -> int:
        """Returns the least ``min.insync.replicas`` that any of a partition's replicas would apply as leader."""
        return min((self._min_isr_of(topic, broker_id) for broker_id in replicas), default=1)

    def min_isr_of_controller(self, topic: str) -> int:
        """Returns the ``min.insync.replicas`` that the controller has to apply."""
        return self._min_isr_of(topic, CONTROLLER)

    def _min_isr_of(self, topic: str, node_id: NodeId) -> int:
        for place in _places(topic, node_id):
            value = self._values.get((*place, _MIN_ISR))
            if value is not None:
                return int(value)
        return self._static.min_insync_replicas

    def accepts_unclean_leaders(self, topic: str) -> bool:
        """Returns whether a topic takes an unclean leader rather than wait for its candidates."""
        return self.recovery_strategy(topic) is RecoveryStrategy.AGGRESSIVE

    def recovery_strategy(self, topic: str) -> RecoveryStrategy:
        """Returns the recovery strategy of a topic; the older property stands for Aggressive or Balanced."""
        for place in _places(topic, CONTROLLER):
            strategy = self._values.get((*place, _STRATEGY))
            if strategy is not None:
                return RecoveryStrategy(strategy)
            enabled = self._values.get((*place, _UNCLEAN_ELECTION))
            if enabled is not None:
                return _strategy_of(is_enabled=enabled.lower() == "true")
        if self._static.unclean_recovery_strategy is not None:
            return RecoveryStrategy(self._static.unclean_recovery_strategy)
        return _strategy_of(is_enabled=self._static.unclean_leader_election_enable)


def _strategy_of(*, is_enabled: bool) -> RecoveryStrategy:
    return RecoveryStrategy.AGGRESSIVE if is_enabled else RecoveryStrategy.BALANCED


def _places(topic: str, node_id: NodeId) -> tuple[tuple[ConfigResource, str], ...]:
    return (
        (ConfigResource.TOPIC, topic),
        (ConfigResource.BROKER, str(node_id)),
        (ConfigResource.BROKER, _EVERY_BROKER),
    )
