"""From files to a log that is served: what is trimmed, and what is told of it."""

import msgspec
import pytest

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.broker.replicas.log_opening import create_log, open_log
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicId
from tests.unit.core.broker.hosting import NAME, TOPIC_ID, Hosting, batch, events_of

OTHER_ID = TopicId("id-of-another")


def entry(leader_epoch: int, start_offset: int) -> EpochEntry:
    return EpochEntry(LeaderEpoch(leader_epoch), Offset(start_offset))


def loaded(*epochs: EpochEntry, log_start_checkpoint: int = 0, topic_id: TopicId | None = TOPIC_ID) -> inputs.LoadedLog:
    """A log of the records 0 to 4."""
    return inputs.LoadedLog(
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


def checkpoints(log: inputs.LoadedLog) -> list[tuple[EpochEntry, ...]]:
    turn = Hosting().turn()
    open_log(turn, log, TOPIC_ID, switches=Switches())
    return [effect.epochs for effect in turn.effects() if isinstance(effect, effects.WriteEpochCheckpoint)]


def test_epochs_are_written_again_where_one_went_at_either_end() -> None:
    assert checkpoints(loaded(entry(0, 0), entry(1, 4))) == []
    assert checkpoints(loaded(entry(0, 0), entry(1, 5))) == [(entry(0, 0),)]
    trimmed = loaded(entry(0, 0), entry(1, 2), entry(2, 4), log_start_checkpoint=3)
    assert checkpoints(trimmed) == [(entry(1, 2), entry(2, 4))]


def empty(*epochs: EpochEntry) -> inputs.LoadedLog:
    """A log whose records were all deleted, up to 5."""
    return msgspec.structs.replace(loaded(*epochs, log_start_checkpoint=5), batches=(), log_end_offset=Offset(5))


@pytest.mark.parametrize(("switches", "left"), [(Switches(), [(1, 3)]), (Switches(empty_logs_keep_epoch=False), [])])
def test_a_log_without_records_knows_of_which_epoch_the_last_one_was(
    switches: Switches, left: list[tuple[int, int]]
) -> None:
    # S50: without an epoch it would follow a leader that has any other records below its end.
    before = open_log(Hosting().turn(), loaded(entry(0, 0), entry(1, 3)), TOPIC_ID, switches=switches)
    before.raise_log_start(Offset(5))
    log = open_log(Hosting().turn(), empty(*before.epochs.entries), TOPIC_ID, switches=switches)
    assert [(kept.leader_epoch, kept.start_offset) for kept in log.epochs.entries] == left


def test_of_deleted_records_the_last_epoch_stays() -> None:
    log = open_log(Hosting().turn(), loaded(entry(0, 0), entry(1, 2), entry(2, 4)), TOPIC_ID, switches=Switches())
    assert not log.raise_log_start(Offset(1))
    assert log.raise_log_start(Offset(4))
    assert list(log.epochs.entries) == [entry(1, 2), entry(2, 4)]
    assert log.raise_log_start(Offset(5))
    assert list(log.epochs.entries) == [entry(2, 4)]


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_log_knows_whether_a_lower_start_is_durable(*, is_durable: bool) -> None:
    switches = Switches(lower_start_is_durable=is_durable)
    for log in (
        open_log(Hosting().turn(), loaded(), TOPIC_ID, switches=switches),
        create_log(Hosting().turn(), NAME, TOPIC_ID, switches=switches),
    ):
        assert log.lower_start_is_durable == is_durable


def opened(log: inputs.LoadedLog | None) -> events.LogOpened:
    turn = Hosting().turn()
    if log is None:
        create_log(turn, NAME, TOPIC_ID, switches=Switches())
        assert effects.CreateLog(partition=NAME, topic_id=TOPIC_ID) in turn.effects()
    else:
        open_log(turn, log, TOPIC_ID, switches=Switches())
    (event,) = events_of(turn)
    assert isinstance(event, events.LogOpened)
    return event


def test_the_event_names_the_opened_directory_and_how_much_of_it_is_synced() -> None:
    assert [(event.topic_id, event.recovery_point) for event in map(opened, (None, loaded()))] == [
        (TOPIC_ID, 0),
        (TOPIC_ID, 4),
    ]
    assert opened(loaded(topic_id=OTHER_ID)).topic_id == OTHER_ID
    assert opened(loaded(topic_id=None)).topic_id == TOPIC_ID
