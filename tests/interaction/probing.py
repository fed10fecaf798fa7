"""One request of each kind that a recovering leader, or a stray's broker, must refuse (KIP-704)."""

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTarget,
    EpochPosition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsPosition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicPartition


def probes(name: TopicPartition) -> dict[str, Request]:
    """Returns the five requests by Kafka's API names; the append is of one record with acks=1."""
    topic, partition = name
    batch = BatchDescriptor(
        base_offset=Offset(0), last_offset=Offset(0), leader_epoch=LeaderEpoch(0), crc=0, size=100, record_count=1
    )
    fetch = FetchPartition(topic=topic, topic_id=None, partition=partition, fetch_offset=Offset(0))
    position = ListOffsetsPosition(topic=topic, partition=partition, timestamp=-2)
    epoch = EpochPosition(topic=topic, partition=partition, leader_epoch=LeaderEpoch(0))
    target = DeleteRecordsTarget(topic=topic, partition=partition, offset=Offset(0))
    return {
        "PRODUCE": ProduceRequest(
            acks=1, timeout_ms=100, partitions=(ProducePartition(topic=topic, partition=partition, batch=batch),)
        ),
        "FETCH": FetchRequest(partitions=(fetch,), max_wait_ms=0, client_rack=""),
        "LIST_OFFSETS": ListOffsetsRequest(partitions=(position,)),
        "DELETE_RECORDS": DeleteRecordsRequest(partitions=(target,), timeout_ms=100),
        "OFFSET_FOR_LEADER_EPOCH": OffsetForLeaderEpochRequest(partitions=(epoch,)),
    }


def error_of(response: Response | None) -> str:
    """Returns the error that the only partition of an answer has."""
    match response:
        case (
            ProduceResponse()
            | FetchResponse()
            | ListOffsetsResponse()
            | DeleteRecordsResponse()
            | OffsetForLeaderEpochResponse()
        ):
            return response.partitions[0].error.name
        case _:
            return "no answer"
