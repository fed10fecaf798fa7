"""Events at once: each kind of pair in the events that make it one, and in those that do not."""

from collections import Counter
from collections.abc import Callable

import pytest

from laststand.emulator.core import events, messages
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ChangeReason,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
    TruncationReason,
)
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.network.wire import RequestFate
from laststand.emulator.simulator.oracle.conjunctions import CONJUNCTIONS, MUST_OCCUR, Conjunctions

CAUSE = CauseId("test")
NAME = TopicPartition("orders", 0)
FIRST, SECOND, THIRD = BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))


class Watched:
    """A partition whose changes are committed one by one, the first led by broker 0."""

    def __init__(self) -> None:
        self.marks: Counter[str] = Counter()
        self.now_ms = 0
        self.offset = 10
        self.leader_epoch = 0
        self.conjunctions = Conjunctions(lambda pair: self.marks.update((pair,)), lambda: self.now_ms)
        self.change(FIRST, ChangeReason.CREATED)
        self.apply(FIRST, since=1)

    def change(
        self,
        leader: BrokerId,
        reason: ChangeReason = ChangeReason.ELECT_LEADERS,
        *,
        replicas: tuple[BrokerId, ...] = BROKERS,
        isr: tuple[BrokerId, ...] = BROKERS,
        topic_id: str = "orders-id",
    ) -> None:
        self.now_ms += 1
        event = events.PartitionChanged(
            cause_id=CAUSE,
            topic=NAME.topic,
            partition=NAME.partition,
            topic_id=TopicId(topic_id),
            metadata_offset=MetadataOffset(self.offset),
            reason=reason,
            election=events.Election.ISR,
            broker_id=None,
            effective_min_isr=2,
            leader=leader,
            leader_epoch=LeaderEpoch(self.leader_epoch),
            partition_epoch=PartitionEpoch(self.offset),
            replicas=replicas,
            isr=isr,
            elr=(),
            last_known_elr=(),
            last_known_leader=None,
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
            adding_replicas=(),
            removing_replicas=(),
        )
        self.conjunctions.changed(NAME, event)
        self.offset += 1
        self.leader_epoch += 1

    def apply(self, broker_id: BrokerId, *, since: int) -> None:
        applied = events.MetadataApplied(
            cause_id=CAUSE, start_offset=MetadataOffset(since), end_offset=MetadataOffset(self.offset)
        )
        self.conjunctions.applied(broker_id, applied)

    def cut(self, node_id: NodeId) -> None:
        self.now_ms += 1
        cut = events.LogTruncated(
            cause_id=CAUSE,
            topic=NAME.topic,
            partition=NAME.partition,
            topic_id=TopicId("orders-id"),
            reason=TruncationReason.DIVERGING_EPOCH,
            old_end_offset=Offset(2),
            new_end_offset=Offset(1),
            high_watermark=Offset(1),
            leader=SECOND,
            leader_epoch=LeaderEpoch(1),
        )
        self.conjunctions.log_changed(node_id, NAME, cut)

    def delete(self) -> None:
        gone = events.TopicDeleted(
            cause_id=CAUSE, metadata_offset=MetadataOffset(self.offset), topic="orders", topic_id=TopicId("orders-id")
        )
        self.conjunctions.deleted(gone)
        self.offset += 1

    def register(self, broker_id: BrokerId) -> None:
        self.now_ms += 1
        event = events.BrokerRegistered(
            cause_id=CAUSE,
            metadata_offset=MetadataOffset(self.offset),
            broker_id=broker_id,
            incarnation_id=IncarnationId("next"),
            broker_epoch=BrokerEpoch(9),
            previous_broker_epoch=None,
            stored_broker_epoch=None,
            is_clean=True,
        )
        self.conjunctions.registered(event)
        self.offset += 1

    def ask(self, fate: RequestFate, *, sent_ms: int) -> None:
        data = messages.AlterPartitionData(
            topic=NAME.topic,
            topic_id=TopicId("orders-id"),
            partition=NAME.partition,
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(0),
            new_isr=(),
        )
        request = messages.AlterPartitionRequest(broker_id=FIRST, broker_epoch=BrokerEpoch(1), partitions=(data,))
        self.conjunctions.request_ended(FIRST, CONTROLLER, request, sent_ms, fate)

    def asked_for_log_info(self, broker_id: BrokerId, *, sent_ms: int) -> None:
        request = messages.GetReplicaLogInfoRequest(partitions=((TopicId("orders-id"), 0), (TopicId("unknown"), 0)))
        self.conjunctions.request_ended(CONTROLLER, broker_id, request, sent_ms, RequestFate.LATE)

    def configure(self) -> None:
        event = events.ConfigChanged(
            cause_id=CAUSE,
            metadata_offset=MetadataOffset(self.offset),
            resource=ConfigResource.TOPIC,
            resource_name=NAME.topic,
            name="min.insync.replicas",
            value="1",
        )
        self.conjunctions.configured(event)
        self.offset += 1

    def raise_feature(self) -> None:
        event = events.FeatureChanged(
            cause_id=CAUSE, metadata_offset=MetadataOffset(self.offset), name=ELR_VERSION, feature_level=1
        )
        self.conjunctions.feature_changed(event)
        self.offset += 1


def another_leads(watched: Watched) -> None:
    watched.change(SECOND)
    watched.change(FIRST)


def a_follower_cuts_its_log(watched: Watched) -> None:
    watched.change(SECOND)
    watched.cut(THIRD)
    watched.change(FIRST)


def a_follower_is_moved_away(watched: Watched) -> None:
    watched.change(FIRST, ChangeReason.REASSIGNMENT, replicas=(FIRST, SECOND), isr=(FIRST, SECOND))
    watched.change(FIRST, ChangeReason.REASSIGNMENT, isr=(FIRST, SECOND))


def it_is_made_anew(watched: Watched) -> None:
    watched.delete()
    watched.change(FIRST, ChangeReason.ALTER_PARTITION, topic_id="another-id")


def two_lead_in_between(watched: Watched) -> None:
    watched.change(SECOND)
    watched.change(THIRD)
    watched.change(FIRST)


def it_leaves_and_returns(watched: Watched) -> None:
    watched.change(FIRST, ChangeReason.BROKER_FENCED, isr=(FIRST, SECOND))
    watched.change(FIRST, ChangeReason.ALTER_PARTITION)


@pytest.mark.parametrize(
    ("play", "broker_id", "pairs"),
    [
        (another_leads, FIRST, {"elect_leaders+another_led"}),
        (another_leads, SECOND, {"elect_leaders+led_itself"}),
        (another_leads, THIRD, {"elect_leaders+followed_two"}),
        (a_follower_cuts_its_log, FIRST, {"elect_leaders+another_led", "elect_leaders+follower_cut_log"}),
        (a_follower_is_moved_away, FIRST, {"reassignment+follower_moved_away"}),
        (a_follower_is_moved_away, THIRD, {"reassignment+moved_away"}),
        (it_is_made_anew, FIRST, {"alter_partition+topic_recreated"}),
        (two_lead_in_between, SECOND, {"elect_leaders+led_itself", "elect_leaders+followed_two"}),
        (it_leaves_and_returns, THIRD, {"broker_fenced+left_isr", "alter_partition+left_isr"}),
        (it_leaves_and_returns, SECOND, set()),
    ],
)
def test_what_a_difference_hides(play: Callable[[Watched], None], broker_id: BrokerId, pairs: set[str]) -> None:
    watched = Watched()
    since = watched.offset
    play(watched)
    watched.apply(broker_id, since=since)
    assert set(watched.marks) == {f"coalesced:{pair}" for pair in pairs}
    assert set(watched.marks) <= set(CONJUNCTIONS)


def test_changes_that_are_applied_one_by_one_hide_nothing() -> None:
    watched = Watched()
    for leader in (SECOND, FIRST):
        since = watched.offset
        watched.change(leader)
        watched.apply(FIRST, since=since)
    assert not watched.marks


@pytest.mark.parametrize("fate", RequestFate)
def test_which_epoch_changed_under_a_request(fate: RequestFate) -> None:
    watched = Watched()
    sent_ms = watched.now_ms
    watched.ask(fate, sent_ms=sent_ms)
    assert not watched.marks
    watched.change(SECOND)
    watched.ask(fate, sent_ms=sent_ms)
    assert set(watched.marks) == {
        f"request:AlterPartition_{fate.value}+{epoch}" for epoch in ("leader_epoch", "partition_epoch")
    }
    assert set(watched.marks) <= set(CONJUNCTIONS)
    watched.marks.clear()
    watched.ask(fate, sent_ms=watched.now_ms)
    assert not watched.marks


def test_a_request_may_arrive_after_its_sender_was_registered_again() -> None:
    watched = Watched()
    sent_ms = watched.now_ms
    watched.register(FIRST)
    watched.ask(RequestFate.LATE, sent_ms=sent_ms)
    assert set(watched.marks) == {"request:AlterPartition_late+broker_epoch"}
    assert set(watched.marks) <= set(CONJUNCTIONS)


def test_records_about_no_partition_that_come_with_what_is_hidden() -> None:
    watched = Watched()
    since = watched.offset
    watched.configure()
    another_leads(watched)
    watched.raise_feature()
    watched.register(SECOND)
    watched.apply(FIRST, since=since)
    kinds = ("elect_leaders", "config_record", "feature_record", "registration_record")
    assert set(watched.marks) == {f"coalesced:{kind}+another_led" for kind in kinds}
    assert set(watched.marks) <= set(CONJUNCTIONS)
    watched.marks.clear()
    since = watched.offset
    another_leads(watched)
    watched.apply(FIRST, since=since)
    assert set(watched.marks) == {"coalesced:elect_leaders+another_led"}, "earlier records are not counted again"


def test_a_replica_may_be_asked_for_its_log_that_is_registered_again_or_has_another_leader() -> None:
    watched = Watched()
    sent_ms = watched.now_ms
    watched.register(SECOND)
    watched.asked_for_log_info(FIRST, sent_ms=sent_ms)
    assert not watched.marks
    watched.asked_for_log_info(SECOND, sent_ms=sent_ms)
    assert set(watched.marks) == {"request:GetReplicaLogInfo_late+target_broker_epoch"}
    watched.change(SECOND)
    watched.asked_for_log_info(FIRST, sent_ms=sent_ms)
    assert set(watched.marks) == {
        f"request:GetReplicaLogInfo_late+{epoch}"
        for epoch in ("target_broker_epoch", "leader_epoch", "partition_epoch")
    }
    assert set(watched.marks) <= set(CONJUNCTIONS)


def test_what_must_occur_is_counted() -> None:
    assert set(MUST_OCCUR) < set(CONJUNCTIONS)
    assert len(set(CONJUNCTIONS)) == len(CONJUNCTIONS)
