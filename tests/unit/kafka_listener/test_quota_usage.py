"""Clients against their quotas: how long they are muted, and who shares a quota."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.client_quotas import ClientQuotaStore, quota_entity
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.kafka_listener import quota_usage
from laststand.emulator.kafka_listener.client_history import ClientHistory
from laststand.emulator.kafka_listener.fetch import fetch
from laststand.emulator.kafka_listener.gateway import Answered
from laststand.emulator.kafka_listener.quota_usage import QuotaUsage
from tests.unit.kafka_listener.test_client_history import broker_with, fetch_request

NONE = ClientQuotaStore()


def connection(client_id: str = "app", user: str = "alice") -> Any:
    return cast(Any, SimpleNamespace(client_id=client_id, principal=f"User:{user}"))


def quotas(rate: float, **entity: str | None) -> ClientQuotaStore:
    made = ClientQuotaStore()
    made.set(quota_entity(**entity), "k", rate)
    return made


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still."""
    now = SimpleNamespace(monotonic_ns=lambda: 10**9)
    monkeypatch.setattr(quota_usage, "time", now)
    return now


def test_a_client_above_its_quota_is_muted_until_the_mean_is_within_it() -> None:
    usage, allowed = QuotaUsage("k"), quotas(8000, client_id="app")
    assert usage.record(allowed, connection(), 50_000) == 0
    assert usage.record(allowed, connection(), 50_000) == 2500
    assert usage.record(allowed, connection("other"), 500_000) == 0
    assert usage.record(NONE, connection(), 500_000) == 0


def test_a_quota_of_nothing_mutes_for_good() -> None:
    assert QuotaUsage("k").record(quotas(0, client_id="app"), connection(), 1) == 2**31 - 1


def test_bytes_that_would_exceed_the_quota_are_not_counted() -> None:
    usage, allowed = QuotaUsage("k"), quotas(8000, client_id="app")
    assert usage.max_bytes(allowed, connection()) == 80_000
    assert usage.max_bytes(NONE, connection()) is None
    assert usage.record_unless_exceeded(allowed, connection(), 60_000) == 0
    assert usage.record_unless_exceeded(allowed, connection(), 60_000) == 5000
    assert usage.record_unless_exceeded(allowed, connection(), 20_000) == 0


def test_a_quota_of_a_user_is_shared_by_all_of_its_clients() -> None:
    usage, allowed = QuotaUsage("k"), quotas(8000, user="alice")
    usage.record(allowed, connection("app"), 80_000)
    assert usage.record(allowed, connection("other"), 8_000) == 1000
    assert usage.record(allowed, connection("app", "bob"), 8_000) == 0


def test_a_default_is_each_clients_own() -> None:
    usage, allowed = QuotaUsage("k"), quotas(8000, client_id=None)
    usage.record(allowed, connection("app"), 80_000)
    assert usage.record(allowed, connection("other"), 8_000) == 0
    assert usage.record(allowed, connection("app"), 8_000) == 1000


def test_only_so_many_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_usage, "_RATES_MAX", 2)
    usage, allowed = QuotaUsage("k"), quotas(8000, client_id=None)
    for client_id in ("first", "second", "third"):
        usage.record(allowed, connection(client_id), 80_000)
    assert usage.record(allowed, connection("third"), 8_000) == 1000
    assert usage.record(allowed, connection("first"), 8_000) == 0


async def test_a_fetch_waits_for_no_more_bytes_than_its_quota_allows(tmp_path: Path) -> None:
    asked: list[messages.FetchRequest] = []
    broker = broker_with(b"", ClientHistory(tmp_path / "history.packed", broker_id=BrokerId(NodeId(0)), incarnation=0))
    answers = broker.core

    async def ask(request: messages.FetchRequest) -> Answered:
        asked.append(request)
        return await answers.ask(request)

    broker.broker.image.client_quotas.set(quota_entity(client_id="app"), "consumer_byte_rate", 50)
    request = fetch_request("orders")
    request.body["minBytes"] = 800
    await fetch(broker._replace(core=cast(Any, SimpleNamespace(ask=ask))), request)
    assert [(each.min_bytes, each.max_bytes) for each in asked] == [(500, 500)]
