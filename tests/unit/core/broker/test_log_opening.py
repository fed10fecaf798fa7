"""From files to a log that is served: what is trimmed, and what is told of it."""

from emulator.core.batch import EpochEntry
from emulator.core.broker.log_opening import create_log, open_log
from emulator.core.effects import CreateLog, WriteEpochCheckpoint
from emulator.core.events import LogOpened
from emulator.core.inputs import LoadedLog
from emulator.core.types import LeaderEpoch, Offset, TopicId
from tests.unit.core.broker.hosting import NAME, TOPIC_ID, Hosting, batch, events_of

OTHER_ID = TopicId("id-of-another")


def entry(leader_epoch: int, start_offset: int) -> EpochEntry:
    return EpochEntry(LeaderEpoch(leader_epoch), Offset(start_offset))


def loaded(*epochs: EpochEntry, log_start_checkpoint: int = 0, topic_id: TopicId | None = TOPIC_ID) -> LoadedLog:
    """A log of the records 0 to 4."""
    return LoadedLog(
        partition=NAME,
        topic_id=topic_id,
        is_clean=True,
        batches=tuple(batch(offset, 0) for offset in range(5)),
        log_start_offset=Offset(log_start_checkpoint),
        log_end_offset=Offset(5),
        epochs=epochs,
        log_start_checkpoint=Offset(log_start_checkpoint),
        high_watermark_checkpoint=Offset(0),
        recovery_point=Offset(4),
    )


def checkpoints(log: LoadedLog) -> list[tuple[EpochEntry, ...]]:
    turn = Hosting().turn()
    open_log(turn, log, TOPIC_ID)
    return [effect.epochs for effect in turn.effects() if isinstance(effect, WriteEpochCheckpoint)]


def test_epochs_are_written_again_where_one_went_at_either_end() -> None:
    assert checkpoints(loaded(entry(0, 0), entry(1, 4))) == []
    assert checkpoints(loaded(entry(0, 0), entry(1, 5))) == [(entry(0, 0),)]
    trimmed = loaded(entry(0, 0), entry(1, 2), entry(2, 4), log_start_checkpoint=3)
    assert checkpoints(trimmed) == [(entry(1, 3), entry(2, 4))]


def opened(log: LoadedLog | None) -> LogOpened:
    turn = Hosting().turn()
    if log is None:
        create_log(turn, NAME, TOPIC_ID)
        assert CreateLog(partition=NAME, topic_id=TOPIC_ID) in turn.effects()
    else:
        open_log(turn, log, TOPIC_ID)
    (event,) = events_of(turn)
    assert isinstance(event, LogOpened)
    return event


def test_it_is_told_whose_directory_was_opened_and_how_much_of_it_is_synced() -> None:
    assert [(event.topic_id, event.recovery_point) for event in map(opened, (None, loaded()))] == [
        (TOPIC_ID, 0),
        (TOPIC_ID, 4),
    ]
    assert opened(loaded(topic_id=OTHER_ID)).topic_id == OTHER_ID
    assert opened(loaded(topic_id=None)).topic_id == TOPIC_ID
