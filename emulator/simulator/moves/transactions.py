"""Moves of transactions: they begin and end; requests between clients, coordinators and leaders are delayed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.types import Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.fields import GROUPS, PIPE, READERS, TRANSACTIONAL
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move


def _transact(view: ClusterView) -> Actions:
    partitions = view.client_partitions
    count = view.workload.randint(1, min(3, len(partitions)))
    return [
        actions.Transact(
            partitions=tuple(view.workload.sample(partitions, count)),
            records=view.workload.choice((1, 1, 2)),
            end=view.workload.choice((actions.End.COMMIT, actions.End.COMMIT, actions.End.ABORT)),
        )
        for _ in range(view.workload.choice((1, 2, 3)))
    ]


def _consume(view: ClusterView) -> Actions:
    """Reads for a group, mostly within a transaction."""
    source, into = view.workload.choice(view.client_partitions), view.workload.choice(view.client_partitions)
    is_in_transaction = view.workload.random() < 0.7
    return [
        actions.Consume(
            partition=source,
            group=PIPE if is_in_transaction else READERS,
            records=view.workload.choice((1, 1, 2, 4)),
            into=into if is_in_transaction else None,
            end=view.workload.choice((actions.End.COMMIT, actions.End.COMMIT, actions.End.ABORT)),
        )
        for _ in range(view.workload.choice((1, 1, 2)))
    ]


def _hold_position(view: ClusterView) -> Actions:
    """Delays a group's request for its committed offset, or its commit, or the response."""
    coordinator = view.coordinator(view.network.choice(GROUPS), OFFSETS_TOPIC)
    if coordinator is None:
        return []
    api = view.network.choice(("OffsetCommit", "OffsetCommit", "OffsetFetch"))
    return [actions.Hold(channel=Channel(CLIENT, coordinator, api, view.network.choice(tuple(Way))))]


def _hold_end(view: ClusterView) -> Actions:
    """Delays a producer's requests to its transaction coordinator, or the responses."""
    coordinator = view.coordinator(TRANSACTIONAL, TRANSACTIONS_TOPIC)
    if coordinator is None:
        return []
    api = view.network.choice(("EndTxn", "EndTxn", "EndTxn", "AddPartitionsToTxn", "InitTransaction"))
    return [actions.Hold(channel=Channel(CLIENT, coordinator, api, view.network.choice(tuple(Way))))]


def _hold_between_brokers(view: ClusterView) -> Actions:
    """Delays transaction markers, or the request by which a leader verifies a transaction before its first append."""
    coordinator, led = view.coordinator(TRANSACTIONAL, TRANSACTIONS_TOPIC), view.draw_led_partition()
    if coordinator is None or led is None or led.leader == coordinator:
        return []
    ends = view.network.choice(
        ((coordinator, led.leader, "WriteTxnMarkers"), (led.leader, coordinator, "AddPartitionsToTxn"))
    )
    return [actions.Hold(channel=Channel(*ends, view.network.choice(tuple(Way))))]


def _overtake(view: ClusterView) -> Actions:
    """Requests of a producer wait until it retries; the newest copy arrives first, the others some time later."""
    coordinator = view.coordinator(TRANSACTIONAL, TRANSACTIONS_TOPIC)
    if coordinator is None:
        return []
    channel = Channel(CLIENT, coordinator, view.network.choice(("EndTxn", "EndTxn", "AddPartitionsToTxn")), Way.REQUEST)
    return [
        actions.Hold(channel=channel),
        *_transact(view),
        actions.Wait(duration_ms=view.schedule.randint(340, 700)),
        actions.ReleaseNewest(channel=channel),
        actions.Wait(duration_ms=view.schedule.randint(2, 80)),
        actions.Release(channel=channel),
        actions.Wait(duration_ms=view.schedule.randint(2, 40)),
    ]


def _outlast(view: ClusterView) -> Actions:
    """Waits until clients' requests time out and are retried, and a little longer."""
    return [actions.Wait(duration_ms=view.schedule.randint(280, 500))]


TRANSACTION_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "transact": _transact,
        "consume": _consume,
        "hold_position": _hold_position,
        "hold_end": _hold_end,
        "hold_between_brokers": _hold_between_brokers,
        "overtake": _overtake,
        "outlast": _outlast,
    }
)
"""The moves of transactions, by the name that profiles use."""
