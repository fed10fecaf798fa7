"""Quotas of clients by entity: which one a client has, and which a filter finds."""

import pytest

from laststand.emulator.core.client_quotas import (
    ClientQuota,
    ClientQuotaStore,
    QuotaEntity,
    QuotaEntityPart,
    QuotaFilter,
    quota_entity,
)

BOTH = quota_entity(user="alice", client_id="app")
ORDER = (
    (BOTH, ("alice", "app")),
    (quota_entity(user="alice", client_id=None), ("alice", "app")),
    (quota_entity(user="alice"), ("alice", None)),
    (quota_entity(user=None, client_id="app"), ("alice", "app")),
    (quota_entity(user=None, client_id=None), ("alice", "app")),
    (quota_entity(user=None), ("alice", None)),
    (quota_entity(client_id="app"), (None, "app")),
    (quota_entity(client_id=None), (None, "app")),
)


def store(*entities: QuotaEntity) -> ClientQuotaStore:
    made = ClientQuotaStore()
    for number, entity in enumerate(entities):
        made.set(entity, "k", float(number))
    return made


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_in_kafkas_order_counts(first: int) -> None:
    made = store(*(entity for entity, _ in ORDER[first:]))
    assert made.quota_of("k", user="alice", client_id="app") == ClientQuota(0.0, ORDER[first][1])


def test_others_have_none() -> None:
    made = store(BOTH, quota_entity(user="bob"), quota_entity(client_id="other"))
    assert made.quota_of("k", user="carol", client_id="app") is None
    assert made.quota_of("other", user="alice", client_id="app") is None


def test_a_quota_that_is_removed_is_gone_with_its_entity() -> None:
    made = store(BOTH)
    made.set(BOTH, "other", 7.0)
    made.set(BOTH, "k", None)
    assert made.of(BOTH) == {"other": 7.0}
    made.set(BOTH, "other", None)
    made.set(BOTH, "never", None)
    assert not made


@pytest.mark.parametrize(
    ("exact", "types", "strictness", "found"),
    [
        ({("user", "alice")}, set(), "any", [0, 1]),
        ({("user", "alice")}, set(), "strict", [1]),
        ({("user", None)}, set(), "any", [2]),
        (set(), {"client-id"}, "any", [0, 3]),
        (set(), {"client-id"}, "strict", [3]),
        ({("user", "alice")}, {"client-id"}, "strict", [0]),
        (set(), set(), "any", [0, 1, 2, 3]),
        (set(), set(), "strict", []),
    ],
)
def test_filters_find_entities(
    exact: set[tuple[str, str | None]], types: set[str], strictness: str, found: list[int]
) -> None:
    made = store(BOTH, quota_entity(user="alice"), quota_entity(user=None), quota_entity(client_id="app"))
    asked = QuotaFilter(frozenset(QuotaEntityPart(*part) for part in exact), frozenset(types), strictness == "strict")
    assert [quotas["k"] for _, quotas in made.found(asked)] == found
