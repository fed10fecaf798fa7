"""Every predicate must fire on a state that breaks it, and must not on one that does not."""

from collections.abc import Callable

import msgspec
import pytest

from laststand.emulator.core.controller import invariants
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import BrokerRegistration, ImageDelta, PartitionDelta, PartitionState
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)

PARTITION = TopicPartition("orders", 0)


def ids(*values: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(NodeId(value)) for value in values)


STATE = PartitionState(
    topic_id=TopicId("id"),
    replicas=ids(0, 1, 2),
    isr=ids(1),
    elr=ids(2),
    leader=BrokerId(NodeId(1)),
    leader_epoch=LeaderEpoch(4),
    partition_epoch=PartitionEpoch(7),
)
REGISTRATION = BrokerRegistration(
    broker_id=BrokerId(NodeId(0)),
    incarnation_id=IncarnationId("first"),
    broker_epoch=BrokerEpoch(5),
    log_dirs=("dir",),
    fenced=True,
    in_controlled_shutdown=False,
    registration_offset=MetadataOffset(6),
)


def check(state: PartitionState, *, active: tuple[int, ...] = (0, 1, 2), effective_min_isr: int | None = 2) -> None:
    invariants.check_partition(PARTITION, state, active=frozenset(ids(*active)), effective_min_isr=effective_min_isr)


def changed(**fields: object) -> PartitionState:
    return msgspec.structs.replace(STATE, **fields)


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("M1", lambda: check(changed(elr=ids(1)))),
        ("M1", lambda: check(changed(isr=ids(1, 1)))),
        ("M1", lambda: check(changed(isr=ids(1, 3)))),
        ("M1", lambda: check(changed(leader=BrokerId(NodeId(0))))),
        ("M2", lambda: check(STATE, active=(0, 2))),
        ("M2", lambda: check(changed(isr=ids(1, 0), elr=()), active=(1, 2))),
        ("M3", lambda: check(STATE, effective_min_isr=1)),
        ("M3", lambda: check(changed(isr=ids(0, 1), elr=(), last_known_elr=ids(2)))),
        ("M17", lambda: invariants.check_m17_elr_replicas(PARTITION, changed(elr=ids(3)))),
    ],
)
def test_a_broken_partition_is_found(rule: str, broken: Callable[[], None]) -> None:
    with pytest.raises(InvariantError, match=f"^{rule}: "):
        broken()


def test_sound_partitions_pass() -> None:
    check(STATE)
    check(changed(isr=(), leader=None, elr=ids(1, 2)), active=())
    check(changed(isr=ids(0, 1, 2), elr=()))
    invariants.check_m17_elr_replicas(PARTITION, changed(isr=(), elr=ids(0, 1, 2)))


def test_without_elr_a_fenced_member_may_stay_in_the_isr() -> None:
    check(changed(leader=None, elr=()), active=(), effective_min_isr=None)


@pytest.mark.parametrize(
    "after",
    [
        changed(partition_epoch=PartitionEpoch(7)),
        changed(partition_epoch=PartitionEpoch(9)),
        changed(partition_epoch=PartitionEpoch(8), leader=None),
        changed(partition_epoch=PartitionEpoch(8), leader=None, leader_epoch=LeaderEpoch(6)),
        changed(partition_epoch=PartitionEpoch(8), leader_epoch=LeaderEpoch(3)),
    ],
)
def test_m9_finds_epochs_that_do_not_follow(after: PartitionState) -> None:
    with pytest.raises(InvariantError, match=r"^M9: "):
        invariants.check_m9_epochs(PARTITION, before=STATE, after=after)


@pytest.mark.parametrize(
    "after",
    [
        changed(partition_epoch=PartitionEpoch(8)),
        changed(partition_epoch=PartitionEpoch(8), leader_epoch=LeaderEpoch(5)),
        changed(partition_epoch=PartitionEpoch(8), leader=None, leader_epoch=LeaderEpoch(5)),
    ],
)
def test_m9_accepts_epochs_that_follow(after: PartitionState) -> None:
    invariants.check_m9_epochs(PARTITION, before=STATE, after=after)


@pytest.mark.parametrize(
    "after",
    [
        msgspec.structs.replace(REGISTRATION, incarnation_id=IncarnationId("second")),
        msgspec.structs.replace(REGISTRATION, incarnation_id=IncarnationId("second"), broker_epoch=BrokerEpoch(4)),
        msgspec.structs.replace(REGISTRATION, broker_epoch=BrokerEpoch(6)),
        msgspec.structs.replace(REGISTRATION, broker_epoch=BrokerEpoch(7)),
    ],
)
def test_m12_finds_epochs_that_do_not_rise(after: BrokerRegistration) -> None:
    with pytest.raises(InvariantError, match=r"^M12: "):
        invariants.check_m12_broker_epoch(before=REGISTRATION, after=after)


def test_m12_accepts_first_same_and_next() -> None:
    second = msgspec.structs.replace(
        REGISTRATION,
        incarnation_id=IncarnationId("second"),
        broker_epoch=BrokerEpoch(9),
        registration_offset=MetadataOffset(9),
    )
    invariants.check_m12_broker_epoch(before=None, after=REGISTRATION)
    invariants.check_m12_broker_epoch(before=REGISTRATION, after=REGISTRATION)
    invariants.check_m12_broker_epoch(before=REGISTRATION, after=second)


def delta(after: PartitionState, *brokers: BrokerId) -> ImageDelta:
    return ImageDelta(
        end_offset=MetadataOffset(8),
        partitions={PARTITION: PartitionDelta(before=STATE, after=after)},
        brokers=frozenset(brokers),
        configs=frozenset(),
    )


def test_a_record_is_checked_for_partitions_and_brokers() -> None:
    again = msgspec.structs.replace(REGISTRATION, incarnation_id=IncarnationId("second"))
    before, after = {REGISTRATION.broker_id: REGISTRATION}, {REGISTRATION.broker_id: again}
    fine = delta(changed(partition_epoch=PartitionEpoch(8)))
    invariants.check_delta(fine, brokers_before=before, brokers_after=before)
    invariants.check_delta(delta(changed(topic_id=TopicId("other"))), brokers_before=before, brokers_after=before)
    with pytest.raises(InvariantError, match=r"^M9: "):
        invariants.check_delta(delta(STATE), brokers_before=before, brokers_after=before)
    registered = msgspec.structs.replace(fine, brokers=frozenset({REGISTRATION.broker_id}))
    with pytest.raises(InvariantError, match=r"^M12: "):
        invariants.check_delta(registered, brokers_before=before, brokers_after=after)
