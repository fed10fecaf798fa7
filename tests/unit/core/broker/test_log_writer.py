"""What is done to a log's files, and what is told of it."""

import msgspec

from emulator.core.broker.log_writer import CutDurability, append_batches, truncate_log
from emulator.core.effects import (
    AppendToLog,
    BrokerEffect,
    RecordEvent,
    RestartLog,
    SyncLog,
    TruncateLog,
    WriteEpochCheckpoint,
)
from emulator.core.events import AppendRole, BatchAppended
from emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TruncationReason
from tests.unit.core.broker.hosting import FIRST, NAME, Hosting, batch, events_of


def appended(hosting: Hosting, leader_epoch: int) -> list[type[BrokerEffect]]:
    turn, log = hosting.turn(), hosting.partition.log
    batches = (batch(log.log_end_offset, leader_epoch),)
    epoch = LeaderEpoch(leader_epoch)
    append_batches(turn, log, batches, role=AppendRole.FOLLOWER, current_leader_epoch=epoch)
    return [type(effect) for effect in turn.effects() if not isinstance(effect, RecordEvent)]


def test_the_epoch_checkpoint_is_written_with_the_first_batch_of_an_epoch_only() -> None:
    hosting = Hosting()
    assert appended(hosting, 1) == [AppendToLog, WriteEpochCheckpoint]
    assert appended(hosting, 1) == [AppendToLog]
    assert appended(hosting, 3) == [AppendToLog, WriteEpochCheckpoint]


def test_the_producer_of_a_batch_is_told() -> None:
    hosting = Hosting()
    sent = msgspec.structs.replace(
        batch(0, 1), producer_id=ProducerId(7), producer_epoch=ProducerEpoch(2), base_sequence=5
    )
    turn, epoch = hosting.turn(), LeaderEpoch(1)
    append_batches(turn, hosting.partition.log, (sent,), role=AppendRole.LEADER, current_leader_epoch=epoch)
    (event,) = events_of(turn)
    assert isinstance(event, BatchAppended)
    assert (event.producer_id, event.producer_epoch, event.base_sequence) == (7, 2, 5)


def cut(hosting: Hosting, offset: int) -> list[BrokerEffect]:
    turn = hosting.turn()
    truncate_log(
        turn,
        hosting.partition.log,
        Offset(offset),
        reason=TruncationReason.DIVERGING_EPOCH,
        leader=FIRST,
        leader_epoch=LeaderEpoch(1),
        durability=CutDurability.SYNCED,
    )
    return [effect for effect in turn.effects() if isinstance(effect, RestartLog | TruncateLog | SyncLog)]


def test_a_log_is_cut_within_its_bounds_and_restarted_below_them() -> None:
    hosting = Hosting(records=5)
    hosting.partition.log.raise_log_start(Offset(2))
    synced = SyncLog(partition=NAME)
    assert cut(hosting, 5) == []
    assert cut(hosting, 4) == [TruncateLog(partition=NAME, offset=Offset(4)), synced]
    assert cut(hosting, 2) == [TruncateLog(partition=NAME, offset=Offset(2)), synced]
    assert cut(hosting, 1) == [RestartLog(partition=NAME, offset=Offset(1)), synced]
