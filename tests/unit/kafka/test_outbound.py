"""Requests of clients to brokers of others, which may answer anything."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.offset_commit.v8 import response as offset_committed
from kio.static.primitive import i32Timedelta

from laststand.emulator.core import inputs
from laststand.emulator.core.group_messages import CommittedOffset, OffsetCommitRequest
from laststand.emulator.core.types import CauseId, CorrelationId, NodeId, Offset, RequestFailure, TopicPartition
from laststand.emulator.kafka.outbound import KafkaOutbound
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.channel import Keepalive


async def test_an_answer_to_something_else_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered: list[inputs.ResponseReceived | inputs.RequestFailed] = []

    async def ask(*_: Any) -> offset_committed.OffsetCommitResponse:
        return offset_committed.OffsetCommitResponse(throttle_time=i32Timedelta.parse(timedelta()), topics=())

    async def connection(*_: Any) -> SimpleNamespace:
        return SimpleNamespace(versions={}, ask=ask)

    monkeypatch.setattr(KafkaOutbound, "_connection", connection)
    async with asyncio.TaskGroup() as tasks:
        outbound = KafkaOutbound(
            addresses=AddressBook({}),
            keepalive=Keepalive(interval_ms=1000, timeout_ms=1000),
            tasks=tasks,
            parse_fetched=lambda _: (),
            deliver=lambda outcome, _: delivered.append(outcome),
            numbers={},
        )
        position = CommittedOffset(partition=TopicPartition("orders", 0), offset=Offset(3), leader_epoch=None)
        outbound.send(
            destination=NodeId(0),
            correlation_id=CorrelationId(1),
            request=OffsetCommitRequest(
                api_version=8, group_id="buyers", member_id="", instance_id=None, generation_id=-1, offsets=(position,)
            ),
            timeout_ms=10_000,
            cause_id=CauseId("commit-1"),
        )
    [failed] = delivered
    assert isinstance(failed, inputs.RequestFailed)
    assert failed.failure is RequestFailure.DISCONNECTED
