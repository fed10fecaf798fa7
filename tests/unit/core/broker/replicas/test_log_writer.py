"""Changes of a log's files, and the events and effects that tell of them."""

import msgspec
import pytest

from laststand.emulator.core import effects, events
from laststand.emulator.core.broker.replicas.log_writer import CutDurability, append_batches, restart_log, truncate_log
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TruncationReason
from tests.unit.core.broker.hosting import FIRST, NAME, TOPIC_ID, Hosting, batch, events_of


def appended(hosting: Hosting, leader_epoch: int) -> list[type[effects.BrokerEffect]]:
    turn, log = hosting.turn(), hosting.partition.log
    batches = (batch(log.log_end_offset, leader_epoch),)
    epoch = LeaderEpoch(leader_epoch)
    append_batches(turn, log, batches, role=events.AppendRole.FOLLOWER, current_leader_epoch=epoch)
    return [type(effect) for effect in turn.effects() if not isinstance(effect, effects.RecordEvent)]


def test_the_epoch_checkpoint_is_written_with_the_first_batch_of_an_epoch_only() -> None:
    hosting = Hosting()
    assert appended(hosting, 1) == [effects.AppendToLog, effects.WriteEpochCheckpoint]
    assert appended(hosting, 1) == [effects.AppendToLog]
    assert appended(hosting, 3) == [effects.AppendToLog, effects.WriteEpochCheckpoint]


def test_the_producer_of_a_batch_is_recorded() -> None:
    hosting = Hosting()
    sent = msgspec.structs.replace(
        batch(0, 1), producer_id=ProducerId(7), producer_epoch=ProducerEpoch(2), base_sequence=5
    )
    turn, epoch = hosting.turn(), LeaderEpoch(1)
    append_batches(turn, hosting.partition.log, (sent,), role=events.AppendRole.LEADER, current_leader_epoch=epoch)
    (event,) = events_of(turn)
    assert isinstance(event, events.BatchAppended)
    assert (event.producer_id, event.producer_epoch, event.base_sequence) == (7, 2, 5)


def cut(hosting: Hosting, offset: int) -> list[effects.BrokerEffect]:
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
    return [
        effect
        for effect in turn.effects()
        if isinstance(effect, effects.RestartLog | effects.TruncateLog | effects.SyncLog)
    ]


def test_a_log_is_cut_within_its_bounds_and_restarted_below_them() -> None:
    hosting = Hosting(records=5)
    hosting.partition.log.raise_log_start(Offset(2))
    synced = effects.SyncLog(partition=NAME)
    assert cut(hosting, 5) == []
    assert cut(hosting, 4) == [effects.TruncateLog(partition=NAME, offset=Offset(4)), synced]
    assert cut(hosting, 2) == [effects.TruncateLog(partition=NAME, offset=Offset(2)), synced]
    assert cut(hosting, 1) == [effects.RestartLog(partition=NAME, offset=Offset(1)), synced]


_OF_A_RESTART = effects.RestartLog | effects.WriteLogCheckpoints | effects.WriteEpochCheckpoint


def from_5(log: ReplicaLog) -> ReplicaLog:
    log.restart_at(Offset(5))
    log.append(batch(5, 0), now_ms=0)
    log.epochs.assign(LeaderEpoch(0), Offset(5))
    return log


def restarted(log: ReplicaLog, offset: int) -> list[type]:
    turn = Hosting().turn()
    restart_log(turn, log, Offset(offset), leader=None, leader_epoch=LeaderEpoch(1))
    return [type(effect) for effect in turn.effects() if isinstance(effect, _OF_A_RESTART)]


@pytest.mark.parametrize(
    ("offset", "written"),
    [
        (4, [effects.RestartLog, effects.WriteLogCheckpoints, effects.WriteEpochCheckpoint]),
        (5, [effects.RestartLog, effects.WriteEpochCheckpoint]),
        (9, [effects.RestartLog, effects.WriteEpochCheckpoint]),
    ],
)
def test_a_start_that_is_lower_is_written_down_before_the_epochs(offset: int, written: list[type]) -> None:
    # S51: after a kill the checkpoint empties a log up to the start that it has.
    assert restarted(from_5(ReplicaLog(NAME, TOPIC_ID, lower_start_is_durable=True)), offset) == written
    assert restarted(from_5(ReplicaLog(NAME, TOPIC_ID)), offset) == [effects.RestartLog, effects.WriteEpochCheckpoint]


def test_so_it_is_where_a_cut_below_the_start_is_why() -> None:
    turn = Hosting().turn()
    truncate_log(
        turn,
        from_5(ReplicaLog(NAME, TOPIC_ID, lower_start_is_durable=True)),
        Offset(3),
        reason=TruncationReason.DIVERGING_EPOCH,
        leader=None,
        leader_epoch=LeaderEpoch(1),
        durability=CutDurability.CACHED,
    )
    written = [type(effect) for effect in turn.effects() if isinstance(effect, _OF_A_RESTART)]
    assert written == [effects.RestartLog, effects.WriteLogCheckpoints, effects.WriteEpochCheckpoint]
