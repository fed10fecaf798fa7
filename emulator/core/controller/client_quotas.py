"""Quotas of clients: what may be set (Kafka's ``ClientQuotaControlManager``)."""

import ipaddress
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from laststand.emulator.core import admin_messages, records
from laststand.emulator.core.client_quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    ENTITY_TYPES,
    IP,
    PRODUCER_BYTE_RATE,
    USER,
    QuotaEntity,
)
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode

_BYTE_RATES: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE})
_OF_CLIENTS: Final = _BYTE_RATES | {"request_percentage", "controller_mutation_rate"}
_KEYS: Final[Mapping[frozenset[str], frozenset[str]]] = {
    frozenset({USER}): _OF_CLIENTS,
    frozenset({CLIENT_ID}): _OF_CLIENTS,
    frozenset({USER, CLIENT_ID}): _OF_CLIENTS,
    frozenset({IP}): frozenset({"connection_creation_rate"}),
}
"""The quotas of each combination of types that an entity may have."""

_WHOLE: Final = _BYTE_RATES | _KEYS[frozenset({IP})]
"""Quotas whose value is a whole number."""

_EPSILON: Final = 1e-6
_EMPTY: Final = "Invalid empty client quota entity"


def quota_problems(entries: Iterable[admin_messages.QuotaAlteration]) -> list[str]:
    """Returns why each entry of AlterClientQuotas is refused; empty text for those that are not."""
    asked = list(entries)
    counts = Counter(entry.entity for entry in asked)
    return [
        f"Ignoring duplicate entity {entry.entity}" if counts[entry.entity] > 1 else _problem(entry) or ""
        for entry in asked
    ]


def alter_quotas(view: ClusterView, entry: admin_messages.QuotaAlteration) -> Iterator[Decision]:
    """Yields the decisions on an entry that is not refused; a value that is set already is not written again."""
    present = view.image.client_quotas.of(entry.entity)
    for op in entry.ops:
        if present.get(op.key) != op.value:
            record = records.ClientQuotaRecord(entity=entry.entity, key=op.key, value=op.value)
            yield Decision(record=record)


def result_of(problem: str) -> admin_messages.QuotaResult:
    """Returns the outcome of an entry."""
    error = ErrorCode.INVALID_REQUEST if problem else ErrorCode.NONE
    return admin_messages.QuotaResult(error=error, error_message=problem)


def _problem(entry: admin_messages.QuotaAlteration) -> str | None:
    repeated = next((op.key for op in entry.ops if [other.key for other in entry.ops].count(op.key) > 1), None)
    if repeated is not None:
        return f"Duplicate quota key {repeated} not updating quota for this entity"
    return _entity_problem(entry.entity) or next(
        filter(None, (_op_problem(entry.entity, op) for op in entry.ops)), None
    )


def _entity_problem(entity: QuotaEntity) -> str | None:
    for part in entity:
        if part.entity_type not in ENTITY_TYPES:
            return f"Unhandled client quota entity type: {part.entity_type}"
        if part.entity_name == "":
            return f"Empty {part.entity_type} not supported"
        if part.entity_type == IP and part.entity_name is not None and not _is_address(part.entity_name):
            return f"{part.entity_name} is not a valid IP or resolvable host."
    return None if _types_of(entity) in _KEYS else _EMPTY


def _is_address(text: str) -> bool:
    # Kafka resolves host names, too; a decision here asks no name server.
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def _types_of(entity: QuotaEntity) -> frozenset[str]:
    return frozenset(part.entity_type for part in entity)


def _op_problem(entity: QuotaEntity, op: admin_messages.QuotaOperation) -> str | None:
    if op.value is None:
        return None
    if op.key not in _KEYS[_types_of(entity)]:
        return f"Invalid configuration key {op.key}"
    if not math.isfinite(op.value):
        return f"Configuration {op.key} must be a finite number"
    if op.key in _WHOLE and abs(round(op.value) - op.value) > _EPSILON:
        return f"Configuration {op.key} must be a Long value"
    return None
