"""Positions of groups that our own brokers are asked about are on record: commits also where the broker dies first."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from laststand.emulator.client.history import read_history
from laststand.emulator.core.history import GroupPositionOperation, OperationType
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, NodeId, TopicId
from laststand.emulator.kafka_listener.client_history import ClientHistory
from laststand.emulator.kafka_listener.connection import KafkaConnection
from laststand.emulator.kafka_listener.group_positions import with_positions_on_record
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Served

BROKER = BrokerId(NodeId(0))
ORDERS = TopicId("id-of-orders-id-of-ord")
COMMIT = {
    "groupId": "buyers",
    "topics": [{"name": "orders", "partitions": [{"partitionIndex": 3, "committedOffset": 17}]}],
}


async def answer(path: Path, api: str, body: Message, answered: Message | None) -> list[GroupPositionOperation]:
    """Returns what is on record of a request; without an answer the broker fails."""
    image = MetadataImage()
    image.topics["orders"] = ORDERS
    unused: dict[str, Any] = dict.fromkeys(Served._fields)
    history = ClientHistory(path, broker_id=BROKER, incarnation=0)
    served = Served(**{**unused, "broker": SimpleNamespace(image=image), "history": history})
    connection = KafkaConnection(link=NodeId(1001), number=1, max_bytes=1000, handle=None, on_end=lambda _: None)

    async def handle(_: Served, __: ClientRequest) -> Message:
        if answered is None:
            raise ArithmeticError
        return answered

    request = ClientRequest(api_named(api).key, 2, body, connection)
    if answered is None:
        with pytest.raises(ArithmeticError):
            await with_positions_on_record(served, request, handle)
    else:
        assert await with_positions_on_record(served, request, handle) == answered
    return [each for each in read_history(path) if isinstance(each, GroupPositionOperation)]


@pytest.mark.parametrize(
    ("answered", "outcome"),
    [
        ({"topics": [{"name": "orders", "partitions": [{"partitionIndex": 3, "errorCode": 0}]}]}, OperationType.OK),
        ({"topics": [{"name": "orders", "partitions": [{"partitionIndex": 3, "errorCode": 22}]}]}, OperationType.FAIL),
        ({"topics": [{"name": "orders", "partitions": [{"partitionIndex": 3, "errorCode": 16}]}]}, OperationType.INFO),
        (None, OperationType.INFO),
    ],
    ids=["committed", "refused", "perhaps", "no answer"],
)
async def test_a_commit_is_on_record_before_and_after(
    answered: Message | None, outcome: OperationType, tmp_path: Path
) -> None:
    begun, ended = await answer(tmp_path / "history.packed", "OffsetCommit", COMMIT, answered)
    assert (begun.type, ended.type) == (OperationType.INVOKE, outcome)
    assert begun.operation_id == ended.operation_id
    assert (ended.kind, ended.group_id, ended.topic, ended.topic_id) == ("commit", "buyers", "orders", ORDERS)
    assert (ended.partition, ended.offset) == (3, 17)


async def test_a_position_that_is_given_is_on_record(tmp_path: Path) -> None:
    given = {"partitionIndex": 3, "committedOffset": 17, "errorCode": 0}
    answered = {"errorCode": 0, "topics": [{"name": "orders", "topicId": None, "partitions": [given]}]}
    [position] = await answer(tmp_path / "history.packed", "OffsetFetch", {"groupId": "buyers"}, answered)
    assert (position.kind, position.type, position.offset) == ("fetch", OperationType.OK, 17)
