"""Quotas of clients, as metadata has them (KIP-13, KIP-546): for users, client ids, both together, or addresses.

An entity is a tuple of parts, ascending by type: ``(client-id app,)``, or ``(client-id app, user alice)``. A part
without a name is the default of its type.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

CLIENT_ID: Final = "client-id"
IP: Final = "ip"
USER: Final = "user"
ENTITY_TYPES: Final = frozenset({CLIENT_ID, IP, USER})

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"


class QuotaEntityPart(msgspec.Struct, frozen=True, order=True):
    """A user, a client id or an address; the default of its type where the name is ``None``."""

    entity_type: str
    entity_name: str | None


QuotaEntity: TypeAlias = tuple[QuotaEntityPart, ...]


def quota_entity(**names: str | None) -> QuotaEntity:
    """Returns the entity of parts; keywords are their types, with ``_`` for ``-``."""
    return tuple(QuotaEntityPart(kind.replace("_", "-"), names[kind]) for kind in sorted(names))


class QuotaFilter(NamedTuple):
    """A filter over entities (Kafka's ``ClientQuotasImage.describe``).

    Attributes:
        exact: parts that an entity must have.
        types: types of which it must have a part.
        is_strict: whether it must have no other parts.
    """

    exact: frozenset[QuotaEntityPart]
    types: frozenset[str]
    is_strict: bool

    def matches(self, entity: QuotaEntity) -> bool:
        """Returns whether the filter matches an entity."""
        if self.is_strict and len(entity) != len(self.exact) + len(self.types):
            return False
        return self.exact <= set(entity) and self.types <= {part.entity_type for part in entity}


class ClientQuota(NamedTuple):
    """A limit in effect for a client.

    Attributes:
        rate: the largest rate allowed.
        shared_by: the user and client id whose clients share the limit; ``None`` in place of one stands for all.
    """

    rate: float
    shared_by: tuple[str | None, str | None]


class ClientQuotaStore:
    """Quotas by entity and key."""

    def __init__(self) -> None:
        self._quotas: dict[QuotaEntity, dict[str, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def set(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Sets a quota, or removes it where the value is ``None``."""
        if value is not None:
            self._quotas.setdefault(entity, {})[key] = value
            return
        quotas = self._quotas.get(entity, {})
        quotas.pop(key, None)
        if not quotas:
            self._quotas.pop(entity, None)

    def quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """Returns a copy of all quotas by entity and key."""
        return {entity: dict(quotas) for entity, quotas in self._quotas.items()}

    def restore(self, quotas: dict[QuotaEntity, dict[str, float]]) -> None:
        """Resets the store to quotas that ``quotas`` once returned."""
        self._quotas = {entity: dict(of_entity) for entity, of_entity in quotas.items()}

    def of(self, entity: QuotaEntity) -> Mapping[str, float]:
        """Returns the quotas that are set for an entity."""
        return self._quotas.get(entity, {})

    def found(self, asked: QuotaFilter) -> Iterator[tuple[QuotaEntity, Mapping[str, float]]]:
        """Yields the entities that a filter matches, and their quotas."""
        return ((entity, quotas) for entity, quotas in self._quotas.items() if asked.matches(entity))

    def quota_of(self, key: str, *, user: str, client_id: str) -> ClientQuota | None:
        """Returns the limit of a client; ``None`` without one.

        The first match in Kafka's order of precedence counts (``ClientQuotaManager.DefaultQuotaCallback``).
        """
        for entity, shared_by in (
            (quota_entity(user=user, client_id=client_id), (user, client_id)),
            (quota_entity(user=user, client_id=None), (user, client_id)),
            (quota_entity(user=user), (user, None)),
            (quota_entity(user=None, client_id=client_id), (user, client_id)),
            (quota_entity(user=None, client_id=None), (user, client_id)),
            (quota_entity(user=None), (user, None)),
            (quota_entity(client_id=client_id), (None, client_id)),
            (quota_entity(client_id=None), (None, client_id)),
        ):
            rate = self.of(entity).get(key)
            if rate is not None:
                return ClientQuota(rate, shared_by)
        return None
