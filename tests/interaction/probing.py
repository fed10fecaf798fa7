"""One request of each kind that a recovering leader, or a stray's broker, must refuse (KIP-704)."""

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicPartition


def probes(name: TopicPartition) -> dict[str, messages.Request]:
    """Returns the five requests by Kafka's API names; the append is of one record with acks=1."""
    topic, partition = name
    batch = BatchDescriptor(
        base_offset=Offset(0), last_offset=Offset(0), leader_epoch=LeaderEpoch(0), crc=0, size=100, record_count=1
    )
    fetch = messages.FetchPartition(topic=topic, topic_id=None, partition=partition, fetch_offset=Offset(0))
    position = messages.ListOffsetsPosition(topic=topic, partition=partition, timestamp=-2)
    epoch = messages.EpochPosition(topic=topic, partition=partition, leader_epoch=LeaderEpoch(0))
    target = messages.DeleteRecordsTarget(topic=topic, partition=partition, offset=Offset(0))
    return {
        "PRODUCE": messages.ProduceRequest(
            acks=1,
            timeout_ms=100,
            partitions=(messages.ProducePartition(topic=topic, partition=partition, batch=batch),),
        ),
        "FETCH": messages.FetchRequest(partitions=(fetch,), max_wait_ms=0, client_rack=""),
        "LIST_OFFSETS": messages.ListOffsetsRequest(partitions=(position,)),
        "DELETE_RECORDS": messages.DeleteRecordsRequest(partitions=(target,), timeout_ms=100),
        "OFFSET_FOR_LEADER_EPOCH": messages.OffsetForLeaderEpochRequest(partitions=(epoch,)),
    }


def error_of(response: messages.Response | None) -> str:
    """Returns the error that the only partition of an answer has."""
    match response:
        case (
            messages.ProduceResponse()
            | messages.FetchResponse()
            | messages.ListOffsetsResponse()
            | messages.DeleteRecordsResponse()
            | messages.OffsetForLeaderEpochResponse()
        ):
            return response.partitions[0].error.name
        case _:
            return "no answer"
