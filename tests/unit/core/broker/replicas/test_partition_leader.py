"""The leader's rules that are most often got wrong (Kafka's ``Partition``, ``AlterPartitionManager``)."""

import msgspec
import pytest

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.broker.replicas.follower_state import FollowerState
from laststand.emulator.core.broker.replicas.isr import (
    Committed,
    IsrProposal,
    IsrState,
    PendingExpand,
    PendingShrink,
    can_expand,
)
from laststand.emulator.core.broker.replicas.isr_answer import judge_answer
from laststand.emulator.core.broker.replicas.isr_changes import handle_answer, maybe_shrink_isr
from laststand.emulator.core.broker.replicas.produce import commit_result
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import MaximalIsr, Switches
from laststand.emulator.core.types import BrokerId, IsrAnswer, LeaderEpoch, Offset, PartitionEpoch
from tests.unit.core.broker.hosting import FIRST, LAG_MS, NAME, OWN, SECOND, TOPIC_ID, Hosting, events_of


def answer(
    hosting: Hosting,
    proposal: IsrProposal,
    error: ErrorCode,
    *,
    isr: tuple[BrokerId, ...] = (),
    leader_epoch: int = 1,
    partition_epoch: int = 2,
) -> Turn:
    turn = hosting.turn()
    result = messages.AlterPartitionResult(
        topic=NAME.topic,
        topic_id=TOPIC_ID,
        partition=NAME.partition,
        error=error,
        isr=isr,
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
    )
    handle_answer(turn, hosting.partition, proposal, result)
    return turn


def test_a_sent_expansion_does_not_count_towards_min_isr() -> None:
    hosting = Hosting(min_insync_replicas=2, records=5)
    hosting.lead(OWN)
    turn = hosting.fetch(FIRST, 5)
    assert isinstance(hosting.partition.isr_state, PendingExpand)
    hosting.fetch(FIRST, 4)
    hosting.fetch(FIRST, 5)
    assert hosting.high_watermark == 0, "the gate counts the committed ISR, of one, not the maximal, of two"
    (proposal,) = turn.proposals
    answer(hosting, proposal, ErrorCode.NONE, isr=(OWN, FIRST))
    assert hosting.high_watermark == 5


def test_a_sent_expansion_holds_the_high_watermark_at_once() -> None:
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    hosting.fetch(FIRST, 5)
    hosting.append()
    assert hosting.high_watermark == 5
    hosting.fetch(FIRST, 6)
    assert hosting.high_watermark == 6


def test_a_sent_shrink_moves_nothing_until_it_is_committed() -> None:
    hosting = Hosting(min_insync_replicas=1, records=5)
    hosting.lead(OWN, FIRST)
    hosting.fetch(FIRST, 5)
    hosting.append()
    hosting.now_ms += LAG_MS + 1
    turn = hosting.turn()
    maybe_shrink_isr(turn, hosting.partition)
    assert isinstance(hosting.partition.isr_state, PendingShrink)
    hosting.append()
    assert hosting.high_watermark == 5
    answered = answer(hosting, turn.proposals[0], ErrorCode.NONE, isr=(OWN,))
    assert hosting.high_watermark == 7
    assert [event.new for event in events_of(answered) if isinstance(event, events.HighWatermarkAdvanced)] == [7]


@pytest.mark.parametrize(("rule", "high_watermark"), [(MaximalIsr.ON, 5), (MaximalIsr.PROPOSED, 7)])
def test_the_eager_shrink_is_what_the_switch_brings_back(rule: MaximalIsr, high_watermark: int) -> None:
    hosting = Hosting(records=5, switches=Switches(maximal_isr=rule))
    hosting.lead(OWN, FIRST)
    hosting.fetch(FIRST, 5)
    hosting.append()
    hosting.now_ms += LAG_MS + 1
    maybe_shrink_isr(hosting.turn(), hosting.partition)
    hosting.append()
    assert hosting.high_watermark == high_watermark


def test_the_gate_of_min_isr_is_a_switch() -> None:
    for is_on, expected in ((True, 0), (False, 5)):
        hosting = Hosting(min_insync_replicas=2, records=5, switches=Switches(hw_requires_min_isr=is_on))
        hosting.lead(OWN)
        assert hosting.high_watermark == expected


def test_the_cap_of_min_isr_is_a_switch() -> None:
    for is_on, expected in ((True, 3), (False, 4)):
        hosting = Hosting(min_insync_replicas=4, switches=Switches(min_isr_capped=is_on))
        hosting.lead(OWN, FIRST, SECOND)
        assert hosting.partition.effective_min_isr == expected
        assert hosting.partition.is_under_min_isr is not is_on


def test_not_enough_replicas_after_append_looks_at_the_maximal_isr() -> None:
    hosting = Hosting(min_insync_replicas=2, records=5)
    hosting.lead(OWN, FIRST)
    hosting.fetch(FIRST, 5)
    assert commit_result(hosting.partition, Offset(5)) is ErrorCode.NONE
    hosting.now_ms += LAG_MS + 1
    hosting.append()
    maybe_shrink_isr(hosting.turn(), hosting.partition)
    assert commit_result(hosting.partition, Offset(5)) is ErrorCode.NONE, "the leaving member still counts"
    hosting.lead(OWN, partition_epoch=2)
    assert commit_result(hosting.partition, Offset(5)) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert commit_result(hosting.partition, Offset(6)) is None, "the high watermark is frozen: it waits on"


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_an_answer_that_leaves_the_outcome_open_keeps_the_change_pending_without_retry(error: ErrorCode) -> None:
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    (proposal,) = hosting.fetch(FIRST, 5).proposals
    turn = answer(hosting, proposal, error)
    assert hosting.partition.maximal_isr == (OWN, FIRST)
    assert turn.proposals == []


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_an_answer_that_asserts_nothing_was_done_reverts(error: ErrorCode) -> None:
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    (proposal,) = hosting.fetch(FIRST, 5).proposals
    answer(hosting, proposal, error)
    assert hosting.partition.isr_state == Committed((OWN,))


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "outcome"),
    [
        (4, 6, IsrAnswer.COMMITTED),
        (4, 7, IsrAnswer.COMMITTED),
        (4, 5, IsrAnswer.PENDING),
        (3, 7, IsrAnswer.PENDING),
        (5, 7, IsrAnswer.PENDING),
    ],
)
def test_a_success_of_another_leader_epoch_or_an_older_partition_epoch_proves_nothing(
    leader_epoch: int, partition_epoch: int, outcome: IsrAnswer
) -> None:
    result = messages.AlterPartitionResult(
        topic=NAME.topic,
        topic_id=TOPIC_ID,
        partition=NAME.partition,
        error=ErrorCode.NONE,
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
    )
    assert judge_answer(result, leader_epoch=LeaderEpoch(4), partition_epoch=PartitionEpoch(6)) is outcome


def test_any_other_error_has_the_same_proposal_sent_again() -> None:
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    (proposal,) = hosting.fetch(FIRST, 5).proposals
    assert answer(hosting, proposal, ErrorCode.UNKNOWN_SERVER_ERROR).proposals == [proposal]


def test_an_answer_to_a_state_that_metadata_replaced_is_ignored() -> None:
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    (proposal,) = hosting.fetch(FIRST, 5).proposals
    hosting.lead(OWN, partition_epoch=2)
    turn = answer(hosting, proposal, ErrorCode.NONE, isr=(OWN, FIRST), partition_epoch=3)
    assert hosting.partition.isr_state == Committed((OWN,))
    assert [event.outcome for event in events_of(turn) if isinstance(event, events.AlterPartitionAnswered)] == [
        "ignored"
    ]


def test_metadata_of_the_epochs_at_hand_does_not_touch_a_later_change() -> None:
    # A hazard of Kafka's ``Partition``: resetting here would let the high watermark pass the joining replica.
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    (proposal,) = hosting.fetch(FIRST, 5).proposals
    answer(hosting, proposal, ErrorCode.NONE, isr=(OWN, FIRST))
    hosting.fetch(SECOND, 5)
    hosting.lead(OWN, FIRST, partition_epoch=2)
    assert hosting.partition.maximal_isr == (OWN, FIRST, SECOND)


def test_a_new_leader_enters_its_epoch_before_it_writes() -> None:
    hosting = Hosting(records=5)
    turn = hosting.lead(OWN, leader_epoch=7)
    end = hosting.partition.log.epochs.end_offset_for(LeaderEpoch(7), log_end_offset=Offset(5))
    assert end is not None
    assert (end.leader_epoch, end.end_offset) == (7, 5)
    assert any(isinstance(effect, effects.WriteEpochCheckpoint) for effect in turn.effects())


def test_an_old_partition_epoch_is_ignored() -> None:
    hosting = Hosting()
    hosting.lead(OWN, FIRST, partition_epoch=3)
    hosting.lead(OWN, leader_epoch=2, partition_epoch=2)
    hosting.follow(FIRST, leader_epoch=2, partition_epoch=2)
    assert hosting.partition.is_leader
    assert hosting.partition.committed_isr == (OWN, FIRST)


def test_a_replica_that_restarted_since_its_fetch_does_not_hold_up_commits() -> None:
    # KIP-903: the fetch was another incarnation's, so this one may not join by it.
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    hosting.partition.note_fetch(
        hosting.turn(),
        FIRST,
        fetch_offset=Offset(5),
        log_start_offset=Offset(0),
        broker_epoch=hosting.image.brokers[FIRST].broker_epoch,
    )
    hosting.append()
    assert hosting.high_watermark == 5, "it may join"
    hosting.register(FIRST, broker_epoch=200)
    hosting.append()
    assert hosting.high_watermark == 7


def test_metadata_of_the_epochs_at_hand_may_have_another_assignment() -> None:
    hosting = Hosting(min_insync_replicas=3)
    hosting.lead(OWN, FIRST)
    state = hosting.state(leader=OWN, isr=(OWN, FIRST), leader_epoch=1, partition_epoch=1)
    hosting.partition.become_leader(hosting.turn(), msgspec.structs.replace(state, replicas=(OWN, FIRST)))
    assert hosting.partition.effective_min_isr == 2


def test_a_log_start_that_a_follower_reached_is_looked_at_again() -> None:
    # DeleteRecords waits for it.
    hosting = Hosting(records=5)
    hosting.lead(OWN, FIRST)
    hosting.fetch(FIRST, 5)
    assert NAME not in hosting.fetch(FIRST, 5).advanced
    turn = hosting.turn()
    hosting.partition.note_fetch(turn, FIRST, fetch_offset=Offset(5), log_start_offset=Offset(2), broker_epoch=None)
    assert NAME in turn.advanced


def test_a_leader_that_is_ordered_to_follow_under_the_partition_epoch_it_has_does_so() -> None:
    hosting = Hosting()
    hosting.lead(OWN, FIRST, partition_epoch=3)
    hosting.follow(FIRST, leader_epoch=2, partition_epoch=3)
    assert not hosting.partition.is_leader
    assert hosting.partition.leader == FIRST


def test_a_replica_with_data_of_older_epochs_only_cannot_join() -> None:
    # KAFKA-7128 (S05): the high watermark may lie below the start of the leader's epoch.
    hosting = Hosting(min_insync_replicas=2, records=5)
    hosting.lead(OWN)
    assert hosting.fetch(FIRST, 3).proposals == []
    assert hosting.fetch(FIRST, 5).proposals != []


def test_a_replica_that_lacks_committed_records_cannot_join() -> None:
    # Kafka's ``Partition.isFollowerInSync``: to have the start of the leader's epoch is not enough.
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    hosting.append(count=2)
    assert hosting.high_watermark == 7
    assert hosting.fetch(FIRST, 5).proposals == []
    hosting.append()
    assert hosting.fetch(FIRST, 7).proposals == []
    assert hosting.fetch(FIRST, 8).proposals != []


@pytest.mark.parametrize(
    ("state", "log_end_offset", "may_join"),
    [
        (Committed((OWN,)), 5, True),
        (Committed((OWN,)), 6, True),
        (Committed((OWN,)), 4, False),
        (Committed((OWN,)), None, False),
        (Committed((OWN, FIRST)), 5, False),
        (PendingExpand((OWN,), SECOND), 5, False),
        (PendingShrink((OWN, SECOND), frozenset({SECOND})), 5, False),
    ],
)
def test_replicas_that_may_be_proposed_as_members(
    state: IsrState, log_end_offset: int | None, *, may_join: bool
) -> None:
    # Kafka's ``Partition.needsExpandIsr``, and one change at a time (KIP-497).
    follower = FollowerState(FIRST)
    follower.log_end_offset = None if log_end_offset is None else Offset(log_end_offset)
    registrations = Hosting().image.brokers
    answer = can_expand(
        state, follower, high_watermark=Offset(5), epoch_start_offset=Offset(3), registrations=registrations
    )
    assert answer is may_join


def test_a_fenced_replica_neither_joins_nor_holds_up_commits() -> None:
    # KIP-841 (S12), KAFKA-15021 (S29).
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    hosting.register(FIRST, fenced=True)
    assert hosting.fetch(FIRST, 5).proposals == []
    hosting.append()
    assert hosting.high_watermark == 6


def test_a_fetch_of_an_earlier_incarnation_is_refused_and_leaves_no_trace() -> None:
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    old_epoch = hosting.image.brokers[FIRST].broker_epoch
    hosting.register(FIRST, broker_epoch=200)
    error = hosting.partition.note_fetch(
        hosting.turn(), FIRST, fetch_offset=Offset(5), log_start_offset=Offset(0), broker_epoch=old_epoch
    )
    assert error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hosting.partition.followers[FIRST].log_end_offset is None


def test_a_member_is_named_with_the_incarnation_whose_fetch_came() -> None:
    # KAFKA-15221 (S11): who is registered now may be a later process than the one that was judged.
    hosting = Hosting(records=5)
    hosting.lead(OWN, FIRST)
    hosting.fetch(FIRST, 5)
    hosting.register(FIRST, broker_epoch=200)
    (proposal,) = hosting.fetch(SECOND, 5).proposals
    assert [(member.broker_id, member.broker_epoch) for member in proposal.members] == [(0, 100), (1, 101), (2, 102)]


def test_a_replica_that_was_moved_away_and_back_is_judged_by_its_fetch() -> None:
    # S19: its log was deleted in between, and metadata that arrives together shows neither.
    hosting = Hosting(records=5)
    hosting.lead(OWN, FIRST)
    hosting.fetch(FIRST, 5)
    hosting.lead(OWN, partition_epoch=3)
    assert hosting.fetch(FIRST, 0).proposals == []
    assert hosting.fetch(FIRST, 5).proposals != []


def test_the_event_shows_everything_that_the_rule_looked_at() -> None:
    hosting = Hosting(min_insync_replicas=2, records=5)
    hosting.lead(OWN, FIRST)
    (event,) = [
        event for event in events_of(hosting.fetch(FIRST, 4)) if isinstance(event, events.HighWatermarkAdvanced)
    ]
    assert event.describe() == (
        "HighWatermarkAdvanced orders-0 old=0 new=4 leader_epoch=1 log_end_offset=5 committed_isr=(0,1)"
        " maximal_isr=(0,1) joiners=() effective_min_isr=2 replicas=(0:5@1,1:4@1,2:none@none)"
    )


@pytest.mark.parametrize(
    ("leader_epoch", "progress_of_this_term", "high_watermark"),
    [(2, True, 5), (2, False, 5), (3, True, 0), (3, False, 5)],
)
def test_a_leader_that_skips_an_epoch_counts_on_nothing_that_followers_had_before(
    leader_epoch: int, *, progress_of_this_term: bool, high_watermark: int
) -> None:
    hosting = Hosting(records=5, switches=Switches(progress_of_this_term=progress_of_this_term))
    hosting.lead(OWN, FIRST, SECOND)
    hosting.fetch(FIRST, 5)
    assert hosting.high_watermark == 0
    hosting.lead(OWN, FIRST, SECOND, leader_epoch=leader_epoch, partition_epoch=2)
    hosting.fetch(SECOND, 5)
    assert hosting.high_watermark == high_watermark
    hosting.fetch(FIRST, 5)
    assert hosting.high_watermark == 5
