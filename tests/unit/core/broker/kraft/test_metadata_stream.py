"""A broker's metadata stream: when it is opened again, and which of its records are taken."""

import pytest

from laststand.emulator.core import effects
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.kraft.metadata_stream import BACKOFF_MAX_MS, MetadataStream
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.records import MetadataBatch, TopicRecord
from laststand.emulator.core.types import BrokerId, CauseId, IncarnationId, LeaderEpoch, MetadataOffset, NodeId, TopicId

CONTROLLER = NodeId(100)
NO_EPOCH = LeaderEpoch(0)


def stream_of(image: MetadataImage) -> MetadataStream:
    config = BrokerConfig(
        broker_id=BrokerId(NodeId(1)), controller_ids=(CONTROLLER,), cluster_id="c", incarnation_id=IncarnationId("i")
    )
    return MetadataStream(image, ControllerChannel(config, InFlightRequests()))


def turn_at(now_ms: int) -> Turn:
    return Turn(now_ms=now_ms, cause_id=CauseId("unit"))


def batch_of(base_offset: int, *names: str) -> MetadataBatch:
    records = tuple(TopicRecord(name=name, topic_id=TopicId(f"id-of-{name}")) for name in names)
    return MetadataBatch(base_offset=MetadataOffset(base_offset), records=records)


def test_the_wait_doubles_with_each_loss_until_a_stream_opens() -> None:
    stream = stream_of(MetadataImage())
    waits = []
    for _ in range(8):
        stream.handle_lost(turn_at(1000))
        waits.append((stream.next_deadline_ms() or 0) - 1000)
    assert waits == [20, 40, 80, 160, 320, BACKOFF_MAX_MS, BACKOFF_MAX_MS, BACKOFF_MAX_MS]
    stream.handle_opened(MetadataOffset(0), NO_EPOCH)
    stream.handle_lost(turn_at(2000))
    assert stream.next_deadline_ms() == 2020


@pytest.mark.parametrize(("now_ms", "count"), [(1019, 0), (1020, 1), (1500, 1)])
def test_it_is_opened_again_once_when_the_wait_is_over(now_ms: int, count: int) -> None:
    stream = stream_of(MetadataImage())
    stream.replay((batch_of(0, "orders"),))
    stream.handle_lost(turn_at(1000))
    turn = turn_at(now_ms)
    stream.handle_timer(turn)
    stream.handle_timer(turn)
    assert turn.effects() == [effects.OpenMetadataStream(from_offset=MetadataOffset(1), destination=CONTROLLER)] * count
    assert stream.next_deadline_ms() == (1020 if count == 0 else None)


def test_the_end_is_that_of_the_log_when_the_stream_was_opened_last() -> None:
    stream = stream_of(MetadataImage())
    assert not stream.has_reached_end
    stream.handle_opened(MetadataOffset(2), NO_EPOCH)
    stream.replay((batch_of(0, "orders"),))
    assert not stream.has_reached_end
    stream.replay((batch_of(1, "bills"),))
    assert stream.has_reached_end
    stream.handle_opened(MetadataOffset(3), NO_EPOCH)
    assert not stream.has_reached_end


def test_records_that_are_reported_again_are_left_out() -> None:
    image = MetadataImage()
    stream = stream_of(image)
    stream.replay((batch_of(0, "orders", "bills"),))
    stream.replay((batch_of(0, "orders", "bills"), batch_of(2, "notes")))
    assert image.next_offset == 3
    assert sorted(image.topics) == ["bills", "notes", "orders"]
