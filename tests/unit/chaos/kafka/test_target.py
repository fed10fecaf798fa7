"""Requests to several controllers of Kafka, of which one leads."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from laststand.chaos.kafka import target as subject
from laststand.chaos.kafka.target import KafkaTarget
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.plan.nodes import CONTROLLER, controller_ids


async def test_a_slow_answer_of_the_leader_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    answer = admin_messages.DeleteTopicsResponse(topics=())

    @asynccontextmanager
    async def connected(*_: object) -> AsyncIterator[SimpleNamespace]:
        async def ask(*_: object) -> None:
            return None

        yield SimpleNamespace(ask=ask)

    async def ask_admin(_: object, request: messages.Request) -> messages.Response:
        asked.append(request)
        await asyncio.sleep(0.3)
        return answer

    monkeypatch.setattr(subject, "_NEXT_AFTER_S", 0.1)
    monkeypatch.setattr(subject, "connected", connected)
    monkeypatch.setattr(subject, "fetched_ends", lambda _: {CONTROLLER: 1})
    monkeypatch.setattr(subject, "ask_admin", ask_admin)
    layout = SimpleNamespace(controller_ids=controller_ids(3), controller_id=CONTROLLER, has_authorizer=False)
    target = object.__new__(KafkaTarget)
    addresses = dict.fromkeys(layout.controller_ids, "")
    target.__dict__["cluster"] = SimpleNamespace(layout=layout, direct_addresses=lambda: addresses)
    request = admin_messages.DeleteTopicsRequest(topics=("orders",))
    assert await target.ask_controller(request) is answer
    assert asked == [request]
