"""Chooses the replica that a consumer should read: the leader, or an in-sync follower in its rack (KIP-392).

Only the leader selects a replica, as only it knows which followers are in sync and how far their logs reach. A follower
without the requested offset is never selected. Sources: Kafka's ``ReplicaManager.findPreferredReadReplica`` and
``RackAwareReplicaSelector``.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.image import BrokerRegistration
from laststand.emulator.core.types import BrokerId, Offset

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The value of ``replica.selector.class`` that prefers the consumer's rack; without one every read is the leader's."""


class ReadableReplica(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that could serve a read.

    Attributes:
        broker_id: the broker.
        rack: its rack; empty if it registered none.
        log_end_offset: its log end offset, as the leader knows it.
        last_caught_up_ms: when it was last caught up.
    """

    broker_id: BrokerId
    rack: str
    log_end_offset: Offset
    last_caught_up_ms: int


def select_in_rack(client_rack: str, leader: ReadableReplica, followers: Iterable[ReadableReplica]) -> BrokerId:
    """Returns the consumer's rack's replica with the longest log; the leader if it, or no replica, is there."""
    here = [replica for replica in followers if replica.rack == client_rack]
    if not client_rack or not here or leader.rack == client_rack:
        return leader.broker_id
    return max(here, key=lambda replica: (replica.log_end_offset, replica.last_caught_up_ms)).broker_id


def preferred_read_replica(
    partition: Partition,
    registrations: Mapping[BrokerId, BrokerRegistration],
    *,
    client_rack: str,
    fetch_offset: Offset,
    now_ms: int,
) -> BrokerId | None:
    """Returns the follower that a consumer in this rack should read from; ``None`` if it should use the leader."""
    leader = partition.leader
    if leader is None or not partition.is_leader:
        return None
    own = ReadableReplica(
        broker_id=leader,
        rack=_rack(registrations, leader),
        log_end_offset=partition.log.log_end_offset,
        last_caught_up_ms=now_ms,
    )
    followers = [
        ReadableReplica(
            broker_id=broker_id,
            rack=_rack(registrations, broker_id),
            log_end_offset=follower.log_end_offset,
            last_caught_up_ms=follower.last_caught_up_ms,
        )
        for broker_id, follower in partition.followers.items()
        if broker_id in partition.committed_isr
        and broker_id in registrations
        and registrations[broker_id].is_active
        and follower.log_end_offset is not None
        and (follower.log_start_offset or 0) <= fetch_offset <= follower.log_end_offset
    ]
    chosen = select_in_rack(client_rack, own, followers)
    return None if chosen == leader else chosen


def _rack(registrations: Mapping[BrokerId, BrokerRegistration], broker_id: BrokerId) -> str:
    registration = registrations.get(broker_id)
    return "" if registration is None else registration.rack
