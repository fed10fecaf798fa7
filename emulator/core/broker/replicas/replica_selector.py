"""Chooses the replica that a consumer should read: the leader, or an in-sync follower in its rack (KIP-392).

Only the leader decides, and only it knows enough: which followers are in sync, and how far each has come. A follower
that lacks the offset asked for is never named. Sources: Kafka's ``ReplicaManager.findPreferredReadReplica`` and
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
        broker_id: which.
        rack: where it is; empty if it did not say.
        log_end_offset: how far it has come, as the leader knows.
        last_caught_up_ms: when it last had everything.
    """

    broker_id: BrokerId
    rack: str
    log_end_offset: Offset
    last_caught_up_ms: int


def select_in_rack(client_rack: str, leader: ReadableReplica, followers: Iterable[ReadableReplica]) -> BrokerId:
    """Returns the replica of the consumer's rack that has most; the leader if it, or no replica, is there."""
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
    """Returns the follower that a consumer of that rack should read from instead of this leader, if there is one."""
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
