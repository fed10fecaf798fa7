"""Administrators' requests in Kafka's protocol."""

from typing import cast

import pytest
from kio.schema.delete_records.v2 import request as delete_records
from kio.schema.delete_records.v2 import response as records_deleted
from kio.schema.errors import ErrorCode as KafkaError
from kio.static.primitive import i32, i64

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Offset
from laststand.emulator.kafka.admin_calls import admin_call
from laststand.emulator.kafka.calls import Call, to_milliseconds, to_name


def delete_call(offset: Offset | None) -> Call:
    target = messages.DeleteRecordsTarget(topic="orders", partition=1, offset=offset)
    return admin_call(messages.DeleteRecordsRequest(partitions=(target,), timeout_ms=4_000))


def answer(error: KafkaError, *, low_watermark: int) -> records_deleted.DeleteRecordsResponse:
    partition = records_deleted.DeleteRecordsPartitionResult(
        partition_index=i32(1), low_watermark=i64(low_watermark), error_code=error
    )
    topic = records_deleted.DeleteRecordsTopicResult(name=to_name("orders"), partitions=(partition,))
    return records_deleted.DeleteRecordsResponse(throttle_time=to_milliseconds(0), topics=(topic,))


@pytest.mark.parametrize(("offset", "sent"), [(Offset(50), 50), (None, -1)])
def test_records_are_deleted_below_an_offset_or_the_high_watermark(offset: Offset | None, sent: int) -> None:
    request = cast(delete_records.DeleteRecordsRequest, delete_call(offset).request)
    [topic] = request.topics
    assert (topic.name, [(each.partition_index, each.offset) for each in topic.partitions]) == ("orders", [(1, sent)])
    assert request.timeout.total_seconds() == 4


@pytest.mark.parametrize(
    ("told", "error", "low_watermark"),
    [
        (answer(KafkaError.none, low_watermark=50), ErrorCode.NONE, Offset(50)),
        (answer(KafkaError.request_timed_out, low_watermark=-1), ErrorCode.REQUEST_TIMED_OUT, None),
    ],
)
def test_a_leader_answers_with_the_low_watermark_or_an_error(
    told: records_deleted.DeleteRecordsResponse, error: ErrorCode, low_watermark: Offset | None
) -> None:
    result = messages.DeleteRecordsResult(topic="orders", partition=1, error=error, low_watermark=low_watermark)
    assert delete_call(None).decode(told) == (messages.DeleteRecordsResponse(partitions=(result,)), ())
