"""The risk that the cluster was allowed: min ISR and unclean elections, as configured at any metadata offset.

This implements Kafka's order (topic, broker, cluster, the nodes' own file) without code of the core: the guarantee must
not depend on the judged cluster's view of its configuration.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final, TypeAlias

from laststand.emulator.core import events
from laststand.emulator.core.types import ConfigResource, RecoveryStrategy
from laststand.emulator.verification.tables.timeline import Timeline

_MIN_ISR: Final = "min.insync.replicas"
_CAP: Final = "min_isr_capped"
_STRATEGY: Final = "unclean.recovery.strategy"
_UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
_RECOVERY_TIMEOUT: Final = "unclean.recovery.timeout.ms"
_EVERY_BROKER: Final = ""

_Values: TypeAlias = dict[tuple[ConfigResource, str, str], str]
"""The values that are set: by resource, its name, and the name of the property."""


class Configuration:
    """The configuration of one run over time; moments are metadata offsets (exclusive)."""

    def __init__(self, timeline: Timeline) -> None:
        started = next((each for each in timeline.of(events.NodeStarted) if each.role.has_metadata), None)
        self._static: Mapping[str, str] = {} if started is None else started.properties
        # In a mixed cluster the node with the lowest requirement counts.
        self._is_capped = not timeline.members or any(each.switches.get(_CAP) != "off" for each in timeline.members)
        self._controller = next(
            (
                str(collected.node)
                for collected in timeline.events
                if collected.event is started and started is not None
            ),
            "",
        )
        changes: list[events.ConfigChanged | events.TopicDeleted] = [
            *timeline.of(events.ConfigChanged),
            *timeline.of(events.TopicDeleted),
        ]
        changes.sort(key=lambda change: change.metadata_offset)
        self._offsets = [change.metadata_offset for change in changes]
        self._states = list(accumulate(changes, _after, initial=_Values()))

    @property
    def changed_at(self) -> tuple[int, ...]:
        """The metadata offsets (exclusive) at which the configuration changed."""
        return tuple(offset + 1 for offset in self._offsets)

    def min_isr(self, topic: str, replicas: Iterable[int], *, at: int) -> int:
        """Returns the least ``min.insync.replicas`` that any replica of a partition would apply as its leader."""
        values = self._values(at)
        default = self._static.get(_MIN_ISR, "1")
        return min(
            (int(_nearest(values, _MIN_ISR, topic=topic, node=str(replica)) or default) for replica in replicas),
            default=1,
        )

    def min_isr_of_controller(self, topic: str, *, at: int) -> int:
        """Returns the ``min.insync.replicas`` that the controller has to apply to a topic."""
        value = _nearest(self._values(at), _MIN_ISR, topic=topic, node=self._controller)
        return int(value or self._static.get(_MIN_ISR, "1"))

    def members_required(self, new: events.PartitionChanged) -> int:
        """Returns the number of members that the ISR of a committed state needs for acks=all.

        That is the min ISR by which the controller decided, at most the number of replicas. Where brokers do not cap it
        by the number of replicas, it is the configured value.
        """
        if self._is_capped:
            return min(new.effective_min_isr, len(new.replicas))
        return self.min_isr_of_controller(new.topic, at=new.metadata_offset)

    def accepts_unclean_leaders(self, topic: str, *, at: int) -> bool:
        """Returns whether a topic is configured to elect an unclean leader rather than to wait for a candidate."""
        return self.recovery_strategy(topic, at=at) is RecoveryStrategy.AGGRESSIVE

    def recovery_strategy(self, topic: str, *, at: int) -> RecoveryStrategy:
        """Returns a topic's recovery strategy; ``unclean.leader.election.enable`` stands for Aggressive or Balanced."""
        values = self._values(at)
        for place in _places(topic, self._controller):
            if (*place, _STRATEGY) in values:
                return RecoveryStrategy(values[*place, _STRATEGY])
            if (*place, _UNCLEAN_ELECTION) in values:
                return _strategy_of(values[*place, _UNCLEAN_ELECTION])
        if self._static.get(_STRATEGY):
            return RecoveryStrategy(self._static[_STRATEGY])
        return _strategy_of(self._static.get(_UNCLEAN_ELECTION, "false"))

    @property
    def recovery_timeout_ms(self) -> int:
        """The time for which an unclean recovery waits for replicas; no dynamic property."""
        return int(self._static.get(_RECOVERY_TIMEOUT, "300000"))

    def _values(self, at: int) -> _Values:
        return self._states[bisect_left(self._offsets, at)]


def _after(values: _Values, change: events.ConfigChanged | events.TopicDeleted) -> _Values:
    """Returns the configured values after a change."""
    match change:
        case events.TopicDeleted(topic=topic):
            return {key: value for key, value in values.items() if key[:2] != (ConfigResource.TOPIC, topic)}
        case events.ConfigChanged(resource=resource, resource_name=resource_name, name=name, value=value):
            others = {key: each for key, each in values.items() if key != (resource, resource_name, name)}
            return others if value is None else {**others, (resource, resource_name, name): value}


def _strategy_of(unclean_election: str) -> RecoveryStrategy:
    return RecoveryStrategy.AGGRESSIVE if unclean_election.lower() == "true" else RecoveryStrategy.BALANCED


def _nearest(values: _Values, name: str, *, topic: str, node: str) -> str | None:
    return next((values[*place, name] for place in _places(topic, node) if (*place, name) in values), None)


def _places(topic: str, node: str) -> tuple[tuple[ConfigResource, str], ...]:
    return (
        (ConfigResource.TOPIC, topic),
        (ConfigResource.BROKER, node),
        (ConfigResource.BROKER, _EVERY_BROKER),
    )
