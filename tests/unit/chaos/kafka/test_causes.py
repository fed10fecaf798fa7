"""Reasons of a record of the metadata log, by what stands beside it and before it."""

import pytest
from msgspec import UNSET

from laststand.chaos.kafka.causes import Causes
from laststand.emulator.core import events
from laststand.emulator.core.controller.decision import FencingCause, PartitionCause, RegistrationCause
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ChangeReason,
    FenceReason,
    IncarnationId,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    TopicId,
)
from laststand.emulator.plan.nodes import CONTROLLER

ZERO, ONE, TWO, THREE = (BrokerId(NodeId(number)) for number in range(4))
ORDERS = TopicId("hgVbxQCe_Os7VnlrJKiLLQ")


def registration(broker: BrokerId, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker, incarnation_id=IncarnationId(f"i-{epoch}"), broker_epoch=BrokerEpoch(epoch), log_dirs=()
    )


def fencing(broker: BrokerId) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=BrokerEpoch(broker), fenced=True)


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=ORDERS, partition=0, **fields)  # type: ignore[arg-type]


def causes(
    batch: list[Record],
    *,
    before: PartitionChangeRecord | None = None,
    previous: dict[BrokerId, BrokerEpoch] | None = None,
    stopping: tuple[BrokerId, ...] = (),
) -> Causes:
    image = MetadataImage()
    partition = PartitionRecord(
        topic_id=ORDERS, partition=0, replicas=(ZERO, ONE, TWO), isr=(ZERO, ONE, TWO), leader=ZERO
    )
    registered = [registration(broker, broker) for broker in (ZERO, ONE, TWO)]
    records: list[Record] = [*registered, TopicRecord(name="orders", topic_id=ORDERS), partition]
    for record in (*records, *([] if before is None else [before])):
        image.replay(record, offset=MetadataOffset(image.next_offset))
    view = ClusterView(image=image, properties=NodeProperties(), switches=era_switches("kafka-4.2"), node_id=CONTROLLER)
    return Causes(batch, view=view, previous_epochs=previous or {}, stopping=stopping)


@pytest.mark.parametrize(
    ("beside", "record", "reason", "election"),
    [
        ([fencing(ZERO)], change(isr=(ONE, TWO), leader=ONE), ChangeReason.BROKER_FENCED, events.Election.ISR),
        ([], change(isr=(ZERO, ONE)), ChangeReason.ALTER_PARTITION, events.Election.NONE),
        ([registration(TWO, 9)], change(isr=(ZERO, ONE)), ChangeReason.BROKER_REGISTERED, events.Election.NONE),
        ([fencing(ZERO)], change(isr=(), leader=None), ChangeReason.BROKER_FENCED, events.Election.NO_CANDIDATE),
        ([], change(adding_replicas=(TWO,)), ChangeReason.REASSIGNMENT, events.Election.NONE),
        ([], change(leader=ONE), ChangeReason.ELECT_LEADERS, events.Election.ISR),
        (
            [],
            change(replicas=(ONE, THREE), isr=(THREE,), leader=THREE),
            ChangeReason.ALTER_PARTITION,
            events.Election.ISR,
        ),
        (
            [],
            change(leader_recovery_state=LeaderRecoveryState.RECOVERED),
            ChangeReason.ALTER_PARTITION,
            events.Election.NONE,
        ),
    ],
)
def test_a_change_has_the_reason_of_its_batch(
    beside: list[Record], record: PartitionChangeRecord, reason: ChangeReason, election: events.Election
) -> None:
    cause = causes([record, *beside]).of(record)
    assert isinstance(cause, PartitionCause)
    assert (cause.reason, cause.election) == (reason, election)


@pytest.mark.parametrize(
    ("before", "leader", "election"),
    [
        (change(isr=(), leader=None, elr=(ONE,), last_known_leader=ZERO), ONE, events.Election.ELR),
        (change(isr=(), leader=None, last_known_leader=ZERO), ZERO, events.Election.LAST_KNOWN_LEADER),
        (change(isr=(), leader=None, last_known_leader=ZERO), TWO, events.Election.UNCLEAN),
    ],
)
def test_an_election_is_known_by_the_state_before(
    before: PartitionChangeRecord, leader: BrokerId, election: events.Election
) -> None:
    record = change(leader=leader, isr=(leader,), elr=UNSET)
    cause = causes([record], before=before).of(record)
    assert isinstance(cause, PartitionCause)
    assert cause.election is election
    assert cause.reason is ChangeReason.ELECT_LEADERS  # nobody led who could have asked for another ISR
    assert (cause.unclean is not None) is (election is not events.Election.ELR)


@pytest.mark.parametrize(
    ("elr", "previous", "election"),
    [
        ((TWO,), {}, events.Election.LAST_KNOWN_LEADER),
        ((TWO,), {TWO: BrokerEpoch(2)}, events.Election.UNCLEAN),
        ((ONE, TWO), {}, events.Election.UNCLEAN),
    ],
)
def test_a_broker_that_proves_nothing_is_out_of_the_elr_before_the_election(
    elr: tuple[BrokerId, ...], previous: dict[BrokerId, BrokerEpoch], election: events.Election
) -> None:
    # S44, S46: broker 2 was all that the ELR had, and the change that drops it elects the last known leader.
    before = change(isr=(), leader=None, elr=elr, last_known_leader=ZERO)
    record = change(leader=ZERO, isr=(ZERO,), elr=(), last_known_leader=None)
    cause = causes([record, registration(TWO, 9)], before=before, previous=previous).of(record)
    assert isinstance(cause, PartitionCause)
    assert (cause.reason, cause.election) == (ChangeReason.BROKER_REGISTERED, election)


@pytest.mark.parametrize(("previous", "is_clean"), [({}, False), ({ONE: BrokerEpoch(1)}, True)])
def test_a_registration_is_clean_by_the_epoch_that_was_on_disk(
    previous: dict[BrokerId, BrokerEpoch],
    is_clean: bool,  # noqa: FBT001 - a column of the table
) -> None:
    record = registration(ONE, 9)
    cause = causes([record], previous=previous).of(record)
    assert cause == RegistrationCause(
        previous_broker_epoch=previous.get(ONE), stored_broker_epoch=BrokerEpoch(1), is_clean=is_clean
    )


@pytest.mark.parametrize(("stopping", "reason"), [((), FenceReason.SESSION_EXPIRED), ((ONE,), FenceReason.SHUTDOWN)])
def test_a_fencing_without_a_stop_is_the_end_of_a_session(stopping: tuple[BrokerId, ...], reason: FenceReason) -> None:
    record = fencing(ONE)
    assert causes([record], stopping=stopping).of(record) == FencingCause(reason=reason)
