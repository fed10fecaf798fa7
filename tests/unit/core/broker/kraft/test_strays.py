"""Strays (KIP-550): which logs are, what becomes of them, and that no assigned log is ever one (KAFKA-13127)."""

import itertools

import msgspec
import pytest

from laststand.emulator.core import effects, events, inputs, records
from laststand.emulator.core.broker.kraft.stray import stray_reason
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.stray_cleanup import StrayLogs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.switches import ERAS, Switches
from laststand.emulator.core.types import BrokerId, CauseId, StrayCleanup, StrayReason, TopicId
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND, TOPIC_ID, Hosting, events_of, found_log

OTHER_ID = TopicId("id-of-the-next-orders")
GRACE_MS = 60_000


def image_of(topic_id: TopicId, replicas: tuple[BrokerId, ...]) -> MetadataImage:
    image = MetadataImage()
    image.replay(records.TopicRecord(name=NAME.topic, topic_id=topic_id), offset=image.next_offset)
    record = records.PartitionRecord(
        topic_id=topic_id, partition=0, replicas=replicas, isr=replicas, leader=replicas[0]
    )
    image.replay(record, offset=image.next_offset)
    return image


@pytest.mark.parametrize(
    ("log", "image", "reason"),
    [
        (found_log(), image_of(TOPIC_ID, (FIRST, OWN)), None),
        (found_log(None), image_of(TOPIC_ID, (FIRST, OWN)), StrayReason.NO_TOPIC_ID),
        (found_log(), MetadataImage(), StrayReason.UNKNOWN_TOPIC),
        (found_log(), image_of(OTHER_ID, (FIRST, OWN)), StrayReason.UNKNOWN_TOPIC),
        (found_log(), image_of(TOPIC_ID, (FIRST, SECOND)), StrayReason.NOT_A_REPLICA),
    ],
)
def test_what_makes_a_stray(log: inputs.LoadedLog, image: MetadataImage, reason: StrayReason | None) -> None:
    assert stray_reason(log, image, OWN) is reason


def test_an_assigned_log_is_never_a_stray_and_every_other_is() -> None:
    sets = [replicas for size in (1, 2, 3) for replicas in itertools.permutations((OWN, FIRST, SECOND), size)]
    for replicas, topic_id in itertools.product(sets, (TOPIC_ID, OTHER_ID)):
        is_assigned = OWN in replicas and topic_id == TOPIC_ID
        assert (stray_reason(found_log(), image_of(topic_id, replicas), OWN) is None) == is_assigned


def configured(rule: StrayCleanup) -> BrokerConfig:
    return Hosting(switches=msgspec.structs.replace(Switches(), stray_cleanup=rule)).config


def handle_stray(strays: StrayLogs, *, now_ms: int = 0) -> Turn:
    turn = Turn(now_ms=now_ms, cause_id=CauseId("unit"))
    strays.handle_stray(turn, found_log(), StrayReason.UNKNOWN_TOPIC)
    return turn


def fire(strays: StrayLogs, *, now_ms: int) -> Turn:
    turn = Turn(now_ms=now_ms, cause_id=CauseId("unit"))
    strays.handle_timer(turn)
    return turn


def test_the_kip_deletes_after_the_grace() -> None:
    strays = StrayLogs(configured(StrayCleanup.DELETE))
    assert effects.RenameStrayLog(partition=NAME) in handle_stray(strays).effects()
    assert strays.timers.earliest_ms == GRACE_MS
    assert fire(strays, now_ms=GRACE_MS - 1).effects() == []
    turn = fire(strays, now_ms=GRACE_MS)
    assert effects.DeleteStrayLog(partition=NAME, topic_id=TOPIC_ID) in turn.effects()
    assert [type(event) for event in events_of(turn)] == [events.StrayDeleted]


def test_what_an_earlier_process_put_aside_gets_its_grace_too() -> None:
    strays = StrayLogs(configured(StrayCleanup.DELETE))
    strays.resume(Turn(now_ms=5, cause_id=CauseId("unit")), (inputs.StrayLog(partition=NAME, topic_id=None),))
    turn = fire(strays, now_ms=5 + GRACE_MS)
    assert effects.DeleteStrayLog(partition=NAME, topic_id=None) in turn.effects()


def test_kafka_renames_and_leaves_it_there() -> None:
    strays = StrayLogs(configured(StrayCleanup.RENAME))
    assert effects.RenameStrayLog(partition=NAME) in handle_stray(strays).effects()
    strays.resume(Turn(now_ms=0, cause_id=CauseId("unit")), (inputs.StrayLog(partition=NAME, topic_id=TOPIC_ID),))
    assert strays.timers.earliest_ms is None
    assert strays.pop_retained(NAME) is None


def test_without_cleanup_a_log_is_kept_for_the_next_topic_of_its_name() -> None:
    strays = StrayLogs(configured(StrayCleanup.OFF))
    turn = handle_stray(strays)
    assert [effect for effect in turn.effects() if isinstance(effect, effects.RenameStrayLog)] == []
    (event,) = events_of(turn)
    assert isinstance(event, events.StrayDetected)
    assert event.action == "off"
    assert strays.pop_retained(NAME) == found_log()
    assert strays.pop_retained(NAME) is None


def test_the_eras() -> None:
    rules = {era: switches.stray_cleanup.value for era, switches in ERAS.items()}
    assert rules == {
        "kafka-0.10": "off",
        "kafka-0.11": "off",
        "kafka-3.9": "rename",
        "kafka-4.2": "rename",
        "kip-966-text": "delete",
        "kip-966": "delete",
    }
