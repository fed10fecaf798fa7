"""The ledger of a guarantee: what was configured, asked for and broken counts, not what the cluster says of itself."""

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ChangeReason,
    ConfigResource,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
)
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.nodes.nodes import incarnation_name
from laststand.emulator.simulator.oracle.configuration import Configuration
from laststand.emulator.simulator.oracle.guarantee import GuaranteeLedger
from laststand.emulator.simulator.oracle.truth import PartitionTruth, PromisedBatch

BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))


def changed(
    leader_epoch: int, election: events.Election = events.Election.ISR, *, replicas: tuple[BrokerId, ...] = BROKERS
) -> events.PartitionChanged:
    return events.PartitionChanged(
        cause_id=CauseId("test"),
        topic="orders",
        partition=0,
        topic_id=TopicId("orders-id"),
        metadata_offset=MetadataOffset(leader_epoch),
        reason=ChangeReason.BROKER_FENCED,
        election=election,
        broker_id=None,
        effective_min_isr=1,
        leader=BROKERS[0],
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(leader_epoch),
        replicas=replicas,
        isr=BROKERS[:1],
        elr=(),
        last_known_elr=(),
        last_known_leader=None,
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
        adding_replicas=(),
        removing_replicas=(),
    )


class Ledger(GuaranteeLedger):
    """A ledger of a topic with min ISR 2 that would rather wait than have an unclean leader."""

    def change(
        self, event: events.PartitionChanged, *, moment: int, min_isr: int = 2, accepts_unclean_leaders: bool = False
    ) -> None:
        """Takes a committed change in."""
        self.changed(event, min_isr=min_isr, accepts_unclean_leaders=accepts_unclean_leaders, moment=moment)

    def end(self, *nodes: int, moment: int) -> None:
        """Takes in that processes were killed."""
        for node in nodes:
            killed = events.IncarnationEnded(
                cause_id=CauseId("test"),
                ended_node=NodeId(node),
                ended_incarnation=0,
                end=events.IncarnationEnd.KILLED,
                exit_code=None,
                metadata_offset=None,
            )
            self.ended(killed, moment=moment)


def test_a_promise_of_a_deposed_leader_is_judged_from_its_deposition_on() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.change(changed(2, events.Election.UNCLEAN), moment=20, accepts_unclean_leaders=True)
    ledger.change(changed(3), moment=40)

    promised_at = 30  # by the leader of epoch 1, which does not know yet
    assert ledger.deposed_at(LeaderEpoch(1)) == 20
    assert ledger.held(promised_at, 40)
    assert not ledger.held(min(promised_at, ledger.deposed_at(LeaderEpoch(1))), 40)


def test_a_leader_that_was_not_deposed_promises_from_the_promise_on() -> None:
    ledger = Ledger()
    ledger.change(changed(1, events.Election.UNCLEAN), moment=10, accepts_unclean_leaders=True)

    promised_at = 30
    assert min(promised_at, ledger.deposed_at(LeaderEpoch(1))) == promised_at
    assert ledger.held(promised_at, 40)


@pytest.mark.parametrize("election", [events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER])
def test_an_unclean_election_without_acceptance_is_no_excuse(election: events.Election) -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.change(changed(2, election), moment=20)
    assert ledger.held(15, 30)


def test_an_administrator_accepts_one_unclean_election_at_a_time() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.asked()
    ledger.change(changed(2, events.Election.UNCLEAN), moment=20)
    ledger.change(changed(3, events.Election.UNCLEAN), moment=30)
    assert not ledger.held(15, 20)
    assert ledger.held(25, 30)


def test_an_unregistered_broker_is_outstanding_until_it_is_registered_and_in_sync_again() -> None:
    ledger = Ledger()
    ledger.change(changed(0), moment=1)
    ledger.unregistered(BROKERS[0], moment=2)
    ledger.end(1, moment=3)
    assert not ledger.held(2, 3)
    assert ledger.outstanding() == (0, 1)
    ledger.registered(registered(0))
    ledger.change(changed(1), moment=4)
    assert ledger.outstanding() == (1,)
    assert ledger.held(5, 6)


def test_min_isr_is_the_configured_one_not_the_one_in_the_controllers_decision() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    assert changed(1).effective_min_isr == 1
    ledger.end(0, moment=20)
    assert ledger.held(15, 30)
    ledger.end(1, moment=40)
    assert not ledger.held(15, 40)


def test_the_replication_factor_caps_min_isr() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.change(changed(2, replicas=BROKERS[:1]), moment=20)
    ledger.end(0, moment=30)
    assert not ledger.held(15, 30)


def test_a_min_isr_that_is_raised_does_not_cover_what_was_acknowledged_before() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10, min_isr=1)
    ledger.configured(2, offset=MetadataOffset(7), moment=20)
    ledger.end(0, moment=30)
    assert ledger.allowed == 1
    assert not ledger.held(15, 30)
    assert ledger.held(25, 30)


def test_a_promise_counts_by_the_min_isr_of_which_its_leader_has_heard() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10, min_isr=1)
    ledger.configured(2, offset=MetadataOffset(7), moment=20)
    assert ledger.known_at(MetadataOffset(7), 25) == 19
    assert ledger.known_at(MetadataOffset(8), 25) == 25


def set_to(
    value: str | None, *, name: str = "min.insync.replicas", resource: ConfigResource, of: str
) -> events.ConfigChanged:
    return events.ConfigChanged(
        cause_id=CauseId("test"),
        metadata_offset=MetadataOffset(0),
        resource=resource,
        resource_name=of,
        name=name,
        value=value,
    )


def test_min_isr_is_the_nearest_that_is_set_and_the_least_of_the_replicas() -> None:
    configuration = Configuration(NodeProperties(min_insync_replicas=4))
    assert configuration.min_isr("orders", BROKERS) == 4
    configuration.changed(set_to("3", resource=ConfigResource.BROKER, of=""))
    assert configuration.min_isr("orders", BROKERS) == 3
    configuration.changed(set_to("2", resource=ConfigResource.BROKER, of="1"))
    assert configuration.min_isr("orders", BROKERS) == 2
    assert configuration.min_isr("orders", BROKERS[:1]) == 3
    configuration.changed(set_to("5", resource=ConfigResource.TOPIC, of="orders"))
    assert configuration.min_isr("orders", BROKERS) == 5
    configuration.deleted("orders")
    configuration.changed(set_to(None, resource=ConfigResource.BROKER, of="1"))
    assert configuration.min_isr("orders", BROKERS) == 3


@pytest.mark.parametrize(
    ("name", "value", "is_accepted"),
    [
        ("unclean.leader.election.enable", "true", True),
        ("unclean.leader.election.enable", "false", False),
        ("unclean.recovery.strategy", "Aggressive", True),
        ("unclean.recovery.strategy", "Balanced", False),
        ("unclean.recovery.strategy", "None", False),
    ],
)
def test_unclean_leaders_are_accepted_by_what_is_set_nearest_to_the_topic(
    name: str, value: str, *, is_accepted: bool
) -> None:
    for resource, of in (
        (ConfigResource.TOPIC, "orders"),
        (ConfigResource.BROKER, str(CONTROLLER)),
        (ConfigResource.BROKER, ""),
    ):
        configuration = Configuration(NodeProperties(unclean_leader_election_enable=not is_accepted))
        assert configuration.accepts_unclean_leaders("orders") is not is_accepted
        configuration.changed(set_to(value, name=name, resource=resource, of=of))
        assert configuration.accepts_unclean_leaders("orders") is is_accepted


def registered(broker: int) -> events.BrokerRegistered:
    return events.BrokerRegistered(
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
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.end(1, moment=20)
    ledger.end(2, moment=21)
    ledger.change(changed(2, events.Election.UNCLEAN), moment=30, accepts_unclean_leaders=True)
    for broker in (1, 2):
        ledger.registered(registered(broker))
    ledger.change(msgspec.structs.replace(changed(3), isr=BROKERS), moment=40)

    assert not ledger.held(25, 25)
    assert not ledger.held(30, 30)
    assert ledger.held(41, 50)


def test_the_least_min_isr_since_the_commit_counts() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.configured(1, offset=MetadataOffset(7), moment=20)
    ledger.configured(2, offset=MetadataOffset(8), moment=30)
    ledger.end(0, moment=40)
    assert not ledger.held(15, 40)
    assert ledger.held(35, 40)


def test_a_replication_factor_between_commit_and_loss_excuses_nothing_once_the_replicas_are_in_sync() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.change(changed(2, replicas=BROKERS[:1]), moment=20)
    ledger.change(in_sync(3), moment=30)
    ledger.end(0, moment=40)
    assert ledger.held(15, 40)
    assert not ledger.held(25, 40)


def in_sync(leader_epoch: int) -> events.PartitionChanged:
    """Returns a change that brings all replicas into the ISR."""
    return msgspec.structs.replace(changed(leader_epoch), isr=BROKERS)


def test_a_replica_that_was_assigned_anew_counts_for_nothing_until_it_is_in_sync() -> None:
    ledger = Ledger()
    ledger.change(in_sync(1), moment=10, min_isr=3)
    ledger.change(changed(2, replicas=BROKERS[:2]), moment=20, min_isr=3)
    ledger.change(changed(3), moment=30, min_isr=3)
    assert ledger.holders == BROKERS[:2]
    ledger.end(0, moment=40)
    assert ledger.held(15, 40)
    ledger.end(2, moment=50)
    assert ledger.outstanding() == (0,)
    assert ledger.held(15, 50)
    ledger.end(1, moment=60)
    assert not ledger.held(15, 60)


def test_a_replica_that_was_assigned_anew_counts_once_it_is_in_sync() -> None:
    ledger = Ledger()
    ledger.change(changed(1, replicas=BROKERS[:2]), moment=10, min_isr=3)
    ledger.change(changed(2), moment=20, min_isr=3)
    ledger.change(in_sync(3), moment=30, min_isr=3)
    ledger.end(0, 1, moment=40)
    assert ledger.holders == BROKERS
    assert ledger.held(35, 40)


def test_replicas_that_are_being_added_excuse_nothing() -> None:
    others = tuple(BrokerId(NodeId(number)) for number in (3, 4, 5))
    ledger = Ledger()
    ledger.change(in_sync(1), moment=10)
    ledger.change(msgspec.structs.replace(changed(2, replicas=(*BROKERS, *others)), isr=BROKERS), moment=20)
    ledger.end(0, moment=30)
    assert ledger.held(15, 30)


def test_a_promise_counts_from_the_deposition_of_the_leader_that_made_it() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.change(changed(2), moment=20)
    truth = PartitionTruth(ledger)

    def promise(leader_epoch: int | None) -> PromisedBatch:
        epoch = None if leader_epoch is None else LeaderEpoch(leader_epoch)
        return PromisedBatch(base_offset=Offset(0), last_offset=Offset(0), crc=1, moment=30, leader_epoch=epoch)

    assert [truth.counts_since(promise(epoch)) for epoch in (1, 2, None)] == [20, 30, 30]


def test_a_leader_that_an_unclean_election_deposed_promises_before_that_election() -> None:
    ledger = Ledger()
    ledger.change(changed(1), moment=10)
    ledger.change(changed(2, events.Election.UNCLEAN), moment=20)
    assert ledger.elected_uncleanly(ledger.deposed_at(LeaderEpoch(1)), 20)
    assert not ledger.elected_uncleanly(21, 30)
