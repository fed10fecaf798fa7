"""The recovery step (KIP-704): when it starts, how long it takes, what it finds, and how it tells the controller."""

import msgspec
import pytest

from laststand.emulator.core import effects, events, inputs, messages
from laststand.emulator.core.broker.replicas.isr import Committed, PendingRecovery
from laststand.emulator.core.broker.replicas.isr_changes import handle_answer
from laststand.emulator.core.broker.replicas.leader_recovery import RETRY_MS, LeaderRecovery
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions.inquiry import TransactionInquiry
from laststand.emulator.core.broker.transactions.recovery import LogMender
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import ERAS, Switches
from laststand.emulator.core.types import (
    CauseId,
    LeaderEpoch,
    LeaderRecoveryState,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
)
from laststand.emulator.simulator.nodes.batch_registry import ENCODE_RECORDS
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID, Hosting, batch, events_of

RECOVERING, RECOVERED = LeaderRecoveryState.RECOVERING, LeaderRecoveryState.RECOVERED


class Step:
    """A partition of five records whose leader, this broker, was elected uncleanly in epoch 1."""

    def __init__(self, *, min_ms: int = 0, switches: Switches | None = None) -> None:
        self.hosting = Hosting(records=5, switches=switches)
        properties = msgspec.structs.replace(self.hosting.config.properties, leader_recovery_min_ms=min_ms)
        config = msgspec.structs.replace(self.hosting.config, properties=properties)
        mender = LogMender(config, TransactionInquiry(config, self.hosting.image), ENCODE_RECORDS)
        self.recoveries = LeaderRecovery(config, self.hosting.hosted, mender)
        self.partition = self.hosting.partition
        self.first_turn = self.lead()

    def lead(self, *, leader_epoch: int = 1, partition_epoch: int = 1) -> Turn:
        turn = self.hosting.turn()
        state = self.hosting.state(leader=OWN, isr=(OWN,), leader_epoch=leader_epoch, partition_epoch=partition_epoch)
        self.partition.become_leader(turn, msgspec.structs.replace(state, leader_recovery_state=RECOVERING))
        self.recoveries.check(turn, NAME)
        return turn

    def read(self, *, leader_epoch: int = 1, bad_offset: int | None = None) -> Turn:
        turn = self.hosting.turn()
        found = inputs.LogRecovered(
            cause_id=CauseId("unit"),
            partition=NAME,
            leader_epoch=LeaderEpoch(leader_epoch),
            scanned_from=Offset(0),
            batch_count=5,
            bad_offset=None if bad_offset is None else Offset(bad_offset),
        )
        self.recoveries.handle_recovered(turn, found)
        return turn

    def wait(self, duration_ms: int) -> Turn:
        self.hosting.now_ms += duration_ms
        turn = self.hosting.turn()
        self.recoveries.handle_timer(turn)
        return turn

    def answer(self, turn: Turn, error: ErrorCode, *, state: LeaderRecoveryState = RECOVERED) -> None:
        (proposal,) = turn.proposals
        handle_answer(self.hosting.turn(), self.partition, proposal, self.result(error, state=state))

    def result(self, error: ErrorCode, *, state: LeaderRecoveryState) -> messages.AlterPartitionResult:
        return messages.AlterPartitionResult(
            topic=NAME.topic,
            topic_id=TOPIC_ID,
            partition=NAME.partition,
            error=error,
            leader=OWN,
            leader_epoch=self.partition.leader_epoch,
            isr=(OWN,),
            leader_recovery_state=state,
            partition_epoch=PartitionEpoch(self.partition.partition_epoch + 1),
        )


def finished(turn: Turn) -> events.RecoveryFinished | None:
    return next((event for event in events_of(turn) if isinstance(event, events.RecoveryFinished)), None)


def test_the_log_is_read_under_the_leader_epoch_that_was_won() -> None:
    step = Step()
    assert effects.RecoverLog(partition=NAME, leader_epoch=LeaderEpoch(1)) in step.first_turn.effects()
    assert any(isinstance(event, events.RecoveryStarted) for event in events_of(step.first_turn))


def test_nothing_starts_in_a_release_of_kafka() -> None:
    for era in ("kafka-0.10", "kafka-0.11", "kafka-3.9", "kafka-4.2"):
        step = Step(switches=ERAS[era])
        assert not step.partition.is_recovering
        assert not any(isinstance(effect, effects.RecoverLog) for effect in step.first_turn.effects())


def test_it_takes_its_least_duration() -> None:
    step = Step(min_ms=500)
    assert finished(step.read()) is None
    assert step.recoveries.timers.earliest_ms == step.hosting.now_ms + 500
    assert finished(step.wait(499)) is None
    event = finished(step.wait(1))
    assert event is not None
    assert (event.duration_ms, event.batch_count, event.log_end_offset) == (500, 5, 5)


def test_the_high_watermark_stands_still_and_nobody_joins_until_it_is_committed() -> None:
    step = Step()
    turn = step.read()
    assert step.hosting.high_watermark == 0
    assert step.partition.isr_state == PendingRecovery((OWN,))
    step.hosting.fetch(FIRST, 5)
    assert set(step.partition.maximal_isr) == {OWN}
    step.answer(turn, ErrorCode.NONE)
    assert step.partition.leader_recovery_state is RECOVERED
    assert step.hosting.high_watermark == 5
    step.hosting.fetch(FIRST, 5)
    assert set(step.partition.maximal_isr) == {OWN, FIRST}


def test_a_refusal_is_answered_by_sending_the_request_again() -> None:
    step = Step()
    step.answer(step.read(), ErrorCode.OPERATION_NOT_ATTEMPTED)
    assert step.partition.isr_state == Committed((OWN,))
    assert step.partition.is_recovering
    assert step.hosting.fetch(FIRST, 5).proposals == [], "nobody joins a leader that recovers"
    assert step.wait(RETRY_MS - 1).proposals == []
    step.answer(step.wait(1), ErrorCode.NONE)
    assert not step.partition.is_recovering


def test_metadata_that_still_says_recovering_makes_it_report_again_but_not_recover_again() -> None:
    step = Step()
    step.read()
    turn = step.lead(partition_epoch=2)
    assert not any(isinstance(effect, effects.RecoverLog) for effect in turn.effects())
    (proposal,) = turn.proposals
    assert proposal.partition_epoch == 2


def test_another_leader_epoch_begins_anew_and_forgets_what_the_earlier_one_read() -> None:
    step = Step()
    turn = step.lead(leader_epoch=2, partition_epoch=2)
    assert effects.RecoverLog(partition=NAME, leader_epoch=LeaderEpoch(2)) in turn.effects()
    assert finished(step.read(leader_epoch=1)) is None
    assert finished(step.read(leader_epoch=2)) is not None


def test_a_leader_that_follows_now_has_nothing_to_report() -> None:
    step = Step()
    turn = step.hosting.turn()
    state = step.hosting.state(leader=FIRST, isr=(FIRST,), leader_epoch=2, partition_epoch=2)
    step.partition.become_follower(turn, state)
    step.recoveries.check(turn, NAME)
    read = step.read()
    assert finished(read) is None
    assert read.proposals == []
    assert step.recoveries.timers.earliest_ms is None


def test_a_bad_batch_ends_the_log_and_the_epoch_starts_there() -> None:
    step = Step()
    turn = step.read(bad_offset=3)
    event = finished(turn)
    assert event is not None
    assert (event.old_end_offset, event.log_end_offset) == (5, 3)
    assert effects.TruncateLog(partition=NAME, offset=Offset(3)) in turn.effects()
    (cut,) = [found for found in events_of(turn) if isinstance(found, events.LogTruncated)]
    assert (cut.reason, cut.leader, cut.leader_epoch) == ("recovered", OWN, 1)
    assert step.partition.epoch_start_offset == 3
    assert [(entry.leader_epoch, entry.start_offset) for entry in step.partition.log.epochs.entries] == [(0, 0), (1, 3)]


def test_a_state_in_an_answer_starts_no_recovery() -> None:
    step = Step()
    step.answer(step.read(), ErrorCode.NONE)
    assert not step.partition.is_recovering
    step.partition.commit_isr(step.hosting.turn(), step.result(ErrorCode.NONE, state=RECOVERING))
    assert not step.partition.is_recovering


def test_it_knows_the_producers_of_its_log_and_no_others() -> None:
    step = Step()
    unknown = msgspec.structs.replace(batch(5, 1), producer_id=ProducerId(7))
    step.partition.log.producers.update(unknown, now_ms=step.hosting.now_ms)
    step.read()
    assert len(step.partition.log.producers) == 0


@pytest.mark.parametrize(("raises_epoch", "marker_epoch"), [(True, 3), (False, 2)])
def test_a_transaction_whose_end_was_lost_is_aborted(*, raises_epoch: bool, marker_epoch: int) -> None:
    """KAFKA-20716: its coordinator wrote the end once, and readers of committed records would wait for it."""
    step = Step(switches=Switches(epoch_per_transaction=raises_epoch))
    log = step.partition.log
    opened = msgspec.structs.replace(
        batch(5, 1),
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(2),
        base_sequence=0,
        is_transactional=True,
    )
    log.append(opened, now_ms=step.hosting.now_ms)
    step.read()
    ended = log.producers.get(ProducerId(7))
    assert ended is not None
    assert (ended.producer_epoch, ended.transaction_first_offset, log.log_end_offset) == (marker_epoch, None, 7)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 7
    assert [each.first_offset for each in log.aborted_transactions(Offset(0), Offset(7))] == [5]


def test_a_release_of_kafka_leaves_it_open() -> None:
    step = Step(switches=Switches(recovery_aborts_transactions=False))
    log = step.partition.log
    opened = msgspec.structs.replace(
        batch(5, 1), producer_id=ProducerId(7), producer_epoch=ProducerEpoch(2), is_transactional=True
    )
    log.append(opened, now_ms=step.hosting.now_ms)
    step.read()
    log.high_watermark = log.log_end_offset
    assert (log.log_end_offset, log.last_stable_offset) == (6, 5)
