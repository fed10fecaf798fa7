"""Counts over the committed state for monitoring: KIP-966's gauges and those of Kafka's controller.

Counts are computed when requested. A leaderless partition *waits for somebody* if neither a returning broker nor a
running recovery would give it a leader by itself.
"""

from collections.abc import Collection

import msgspec

from laststand.emulator.core.controller.recovery import RecoveryAction, decide_recovery
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import RecoveryStrategy, TopicPartition


class ControllerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of brokers, topics and partitions.

    Attributes:
        under_min_isr: partitions with an ISR smaller than the effective min ISR.
        offline: partitions without a leader.
        manual_election_required: offline partitions that only an administrator can give a leader.
        unclean_recoveries: offline partitions under unclean recovery, be it asked for or configured, or waiting for
            their last known ELR.
        preferred_imbalance: partitions that another than the first replica leads.
        electable_leaders: by partition, how many replicas could be elected cleanly: ISR and ELR together.
    """

    active_brokers: int
    fenced_brokers: int
    topics: int
    partitions: int
    under_min_isr: int
    offline: int
    manual_election_required: int
    unclean_recoveries: int
    preferred_imbalance: int
    electable_leaders: dict[TopicPartition, int]


def controller_health(view: ClusterView, *, under_way: Collection[TopicPartition]) -> ControllerHealth:
    """Returns the counts of this moment.

    Args:
        view: the committed state.
        under_way: partitions whose replicas are being asked for their logs, by the topic's strategy or on request.
    """
    image = view.image
    states = image.partitions
    min_isr = {topic: view.min_isr(topic) for topic in {name.topic for name in states}}
    offline = [(name, state) for name, state in states.items() if state.leader is None]
    return ControllerHealth(
        active_brokers=len(view.active_brokers()),
        fenced_brokers=sum(broker.fenced for broker in image.brokers.values()),
        topics=len(image.topics),
        partitions=len(states),
        under_min_isr=sum(
            len(state.isr) < min_isr[name.topic].effective(state.replicas) for name, state in states.items()
        ),
        offline=len(offline),
        manual_election_required=sum(
            name not in under_way and _waits_for_somebody(view, name, state) for name, state in offline
        ),
        unclean_recoveries=sum(
            name in under_way or _waits_for_last_known(view, name, state) for name, state in offline
        ),
        preferred_imbalance=sum(state.leader != state.replicas[0] for state in states.values()),
        electable_leaders={name: len(state.isr) + len(state.elr) for name, state in sorted(states.items())},
    )


def _waits_for_last_known(view: ClusterView, name: TopicPartition, state: PartitionState) -> bool:
    """KIP-966: "if in Balance mode, the members in LastKnownELR are not all unfenced, it is also counted"."""
    if not view.properties.unclean_recovery_manager_enabled:
        return False
    strategy = view.recovery_strategy(name.topic)
    decision = decide_recovery(state, active=view.active_brokers(), strategy=strategy)
    return decision.action is RecoveryAction.WAIT_LAST_KNOWN_ELR


def _waits_for_somebody(view: ClusterView, name: TopicPartition, state: PartitionState) -> bool:
    if state.isr or state.elr:
        return False
    match view.recovery_strategy(name.topic):
        case RecoveryStrategy.AGGRESSIVE:
            return False
        case RecoveryStrategy.BALANCED:
            # A recovery waits for brokers, not for people; without the manager the last known leader is waited for.
            return not view.properties.unclean_recovery_manager_enabled and state.last_known_leader is None
        case RecoveryStrategy.NONE:
            return True
