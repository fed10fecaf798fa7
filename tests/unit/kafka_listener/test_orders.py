"""Orders of clients of Kafka are on record before a node gets them; questions are not."""

from types import SimpleNamespace
from typing import Any

import pytest

from laststand.emulator.core import admin_messages, events, messages
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import NodeId, Offset, TopicPartition
from laststand.emulator.kafka_listener.connection import KafkaConnection
from laststand.emulator.kafka_listener.requests import ClientRequest, Served

CONTROLLER = NodeId(100)
PARTITION = TopicPartition("orders", 0)


def noted(asked: messages.Request) -> list[events.OrderRelayed]:
    """Returns what a broker that knows one partition puts on record."""
    image = MetadataImage()
    image.partitions[PARTITION] = None  # type: ignore[assignment]
    order: list[events.OrderRelayed] = []
    unused: dict[str, Any] = dict.fromkeys(Served._fields)
    history = SimpleNamespace(process_of=lambda _: "kafka:app@0-0.1")
    served = Served(
        **{**unused, "broker": SimpleNamespace(image=image), "history": history, "note_order": order.append}
    )
    connection = KafkaConnection(link=NodeId(1001), number=1, max_bytes=1000, handle=None, on_end=lambda _: None)
    served.note(ClientRequest(0, 0, {}, connection), asked, to=CONTROLLER)
    return order


def test_an_order_names_its_client_and_what_records_it_deletes() -> None:
    target = messages.DeleteRecordsTarget(topic="orders", partition=0, offset=Offset(5))
    (order,) = noted(messages.DeleteRecordsRequest(partitions=(target,), timeout_ms=1))
    assert (order.client, order.given_to, order.api) == ("kafka:app@0-0.1", CONTROLLER, "DeleteRecords")
    assert order.deletions == (events.RequestedDeletion("orders-0", Offset(5)),)


@pytest.mark.parametrize(
    ("election", "partitions", "unclean"),
    [
        (admin_messages.RequestedElection.PREFERRED, None, ()),
        (admin_messages.RequestedElection.UNCLEAN, None, ("orders-0",)),
        (
            admin_messages.RequestedElection.UNCLEAN,
            (admin_messages.ElectablePartition(topic="a", partition=1),),
            ("a-1",),
        ),
    ],
)
def test_unclean_elections_are_on_record(
    election: admin_messages.RequestedElection,
    partitions: tuple[admin_messages.ElectablePartition, ...] | None,
    unclean: tuple[str, ...],
) -> None:
    (order,) = noted(admin_messages.ElectLeadersRequest(election_type=election.value, partitions=partitions))
    assert order.unclean_elections == unclean


def test_a_question_is_not_on_record() -> None:
    assert noted(admin_messages.DescribeClusterRequest()) == []
