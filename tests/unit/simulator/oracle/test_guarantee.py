"""A leader that was deposed goes on for a while: what it promises then is judged from its deposition on."""

import msgspec

from emulator.core.events import BrokerRegistered, Election, IncarnationEnd, IncarnationEnded, PartitionChanged
from emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ChangeReason,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
)
from emulator.simulator.nodes import incarnation_name
from emulator.simulator.oracle.guarantee import GuaranteeLedger

BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))


def changed(leader_epoch: int, election: Election) -> PartitionChanged:
    return PartitionChanged(
        cause_id=CauseId("test"),
        topic="orders",
        partition=0,
        topic_id=TopicId("orders-id"),
        metadata_offset=MetadataOffset(leader_epoch),
        reason=ChangeReason.BROKER_FENCED,
        election=election,
        broker_id=None,
        effective_min_isr=2,
        leader=BROKERS[0],
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(leader_epoch),
        replicas=BROKERS,
        isr=BROKERS[:1],
        elr=(),
        last_known_elr=(),
        last_known_leader=None,
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
        adding_replicas=(),
        removing_replicas=(),
    )


def test_a_promise_of_a_deposed_leader_is_judged_from_its_deposition_on() -> None:
    ledger = GuaranteeLedger()
    ledger.changed(changed(1, Election.ISR), moment=10)
    ledger.changed(changed(2, Election.UNCLEAN), moment=20)
    ledger.changed(changed(3, Election.ISR), moment=40)

    promised_at = 30  # by the leader of epoch 1, which does not know yet
    assert ledger.deposed_at(LeaderEpoch(1)) == 20
    assert ledger.held(promised_at, 40)
    assert not ledger.held(min(promised_at, ledger.deposed_at(LeaderEpoch(1))), 40)


def test_a_leader_that_was_not_deposed_promises_from_the_promise_on() -> None:
    ledger = GuaranteeLedger()
    ledger.changed(changed(1, Election.UNCLEAN), moment=10)

    promised_at = 30
    assert min(promised_at, ledger.deposed_at(LeaderEpoch(1))) == promised_at
    assert ledger.held(promised_at, 40)


def killed(broker: int) -> IncarnationEnded:
    return IncarnationEnded(
        cause_id=CauseId("test"),
        ended_node=BROKERS[broker],
        ended_incarnation=0,
        end=IncarnationEnd.KILLED,
        exit_code=None,
        metadata_offset=MetadataOffset(0),
    )


def registered(broker: int) -> BrokerRegistered:
    return BrokerRegistered(
        cause_id=CauseId("test"),
        metadata_offset=MetadataOffset(0),
        broker_id=BROKERS[broker],
        incarnation_id=incarnation_name(BROKERS[broker], 1),
        broker_epoch=BrokerEpoch(1),
        previous_broker_epoch=None,
        stored_broker_epoch=None,
        is_clean=False,
    )


def test_the_guarantee_holds_again_when_replicas_are_back_after_an_unclean_election_among_too_few() -> None:
    ledger = GuaranteeLedger()
    ledger.changed(changed(1, Election.ISR), moment=10)
    for moment, broker in ((20, 1), (21, 2)):
        ledger.ended(killed(broker), moment=moment)
    ledger.changed(changed(2, Election.UNCLEAN), moment=30)
    for broker in (1, 2):
        ledger.registered(registered(broker))
    back = msgspec.structs.replace(changed(3, Election.ISR), isr=BROKERS)
    ledger.changed(back, moment=40)

    assert not ledger.held(25, 25)
    assert not ledger.held(30, 30)
    assert ledger.held(41, 50)
