"""Brokers that leave and what is told of their proposals (Kafka's ``BrokerHeartbeatManager``)."""

import msgspec
import pytest

from laststand.emulator.core import events, messages
from laststand.emulator.core.types import MetadataOffset, TopicId
from tests.unit.core.controller.controller_driver import ControllerDriver
from tests.unit.core.controller.test_controller import booted


def tells(made: ControllerDriver, broker_id: int, offset: int) -> None:
    """A broker says up to where it has applied metadata."""
    request = msgspec.structs.replace(made.heartbeat_request(broker_id), current_metadata_offset=MetadataOffset(offset))
    made.ask(request, messages.BrokerHeartbeatResponse)


def test_a_broker_may_stop_once_every_active_one_has_applied_that_it_leaves() -> None:
    made = booted()
    made.heartbeat(0, "shut_down")
    last_offset = made.image.next_offset - 1
    may_stop: list[bool] = []
    for offsets in ((last_offset - 1, last_offset - 1), (last_offset, last_offset - 1), (last_offset, last_offset)):
        for broker_id, offset in zip((1, 2), offsets, strict=True):
            tells(made, broker_id, offset)
        may_stop.append(made.heartbeat(0, "shut_down").should_shut_down)
    assert may_stop == [False, False, True]


@pytest.mark.parametrize(
    ("api_version", "topic", "topic_id", "told"),
    [
        (1, "orders", None, [("orders", "orders-id")]),
        (1, "nowhere", None, []),  # an event names a topic that there is
        (2, "nowhere", "orders-id", [("orders", "orders-id")]),
        (2, "orders", "another", [("orders", "another")]),
    ],
)
def test_a_verdict_names_the_topic_that_was_meant(
    api_version: int, topic: str, topic_id: str | None, told: list[tuple[str, str]]
) -> None:
    made = booted()
    request = made.alter_request(0, (0, 1))
    wanted = None if topic_id is None else TopicId(topic_id)
    data = msgspec.structs.replace(request.partitions[0], topic=topic, topic_id=wanted)
    made.ask(
        msgspec.structs.replace(request, api_version=api_version, partitions=(data,)), messages.AlterPartitionResponse
    )
    verdicts = [event for event in made.events if isinstance(event, events.AlterPartitionDecided)]
    assert [(event.topic, event.topic_id) for event in verdicts] == told
