"""Settings of producers and consumers, by Kafka's client property names.

Defaults are Kafka's, but for idempotence: it is on where ``acks`` is ``all`` and off elsewhere, so that a producer with
``acks=1`` behaves as such a producer is used.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

import msgspec

from emulator.core.errors import ConfigError
from emulator.core.types import Acks


class ProducerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One producer. Times are ms.

    Attributes:
        acks: what a produce request waits for.
        enable_idempotence: whether batches carry producer id and sequence numbers.
        max_in_flight: unanswered batches per partition; a request carries one batch here, so this is Kafka's
            ``max.in.flight.requests.per.connection`` counted per partition. Invariant: at most 5 with idempotence,
            which is how many batches a broker remembers.
        delivery_timeout_ms: from a batch's creation until it is given up.
        request_timeout_ms: how long one request may stay unanswered; also the broker's time to gather ``acks=all``.
        retry_backoff_ms: pause before a retry and between metadata requests.
        metadata_max_age_ms: after which metadata is asked for without need.
        buffer_records_max: records accepted and not yet completed, over all partitions (``buffer.memory`` in records).
    """

    acks: Acks = Acks.ALL
    enable_idempotence: bool = True
    max_in_flight: int = 5
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    metadata_max_age_ms: int = 300_000
    buffer_records_max: int = 100_000


class OffsetReset(Enum):
    """Where a consumer begins that has no position (``auto.offset.reset``)."""

    EARLIEST = "earliest"
    LATEST = "latest"


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One consumer. Times are ms, sizes bytes; ``client.rack`` is where it reads from a follower, if one is there."""

    auto_offset_reset: OffsetReset = OffsetReset.EARLIEST
    client_rack: str = ""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    metadata_max_age_ms: int = 300_000
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1 << 20


def _bounded(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return parse


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_LIMIT: Final = 2**31 - 1
_TIME: Final = (_bounded(1, _LIMIT), "milliseconds, 1 or more")

_SHARED: Final = {
    "request.timeout.ms": ("request_timeout_ms", *_TIME),
    "retry.backoff.ms": ("retry_backoff_ms", *_TIME),
    "metadata.max.age.ms": ("metadata_max_age_ms", *_TIME),
}
_PRODUCER: Final[Mapping[str, tuple[str, Callable[[str], int | bool], str]]] = {
    **_SHARED,
    "enable.idempotence": ("enable_idempotence", _flag, "true or false"),
    "max.in.flight.requests.per.connection": ("max_in_flight", _bounded(1, 5), "an integer from 1 to 5"),
    "delivery.timeout.ms": ("delivery_timeout_ms", *_TIME),
}
_CONSUMER: Final[Mapping[str, tuple[str, Callable[[str], int | bool | str], str]]] = {
    **_SHARED,
    "client.rack": ("client_rack", str, "text"),
    "fetch.max.wait.ms": ("fetch_max_wait_ms", _bounded(0, _LIMIT), "milliseconds, 0 or more"),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", _bounded(1, _LIMIT), "bytes, 1 or more"),
}

PRODUCER_PROPERTIES: Final = frozenset(_PRODUCER)
"""Names that ``producer_settings`` knows."""

CONSUMER_PROPERTIES: Final = frozenset(_CONSUMER)
"""Names that ``consumer_settings`` knows."""


def _parse(
    table: Mapping[str, tuple[str, Callable[[str], int | bool | str], str]], given: Mapping[str, str]
) -> dict[str, int | bool | str]:
    fields: dict[str, int | bool | str] = {}
    for name, text in given.items():
        if name not in table:
            raise ConfigError(key=name, value=None, expected="one of " + ", ".join(sorted(table)))
        field, parse, expected = table[name]
        try:
            fields[field] = parse(text.strip())
        except (ValueError, KeyError):
            raise ConfigError(key=name, value=text, expected=expected) from None
    return fields


def producer_settings(acks: Acks, given: Mapping[str, str]) -> ProducerSettings:
    """Returns a producer's settings: defaults with ``given`` on top, keyed by Kafka's names.

    Raises:
        ConfigError: unknown name, a value out of range, or idempotence without ``acks=all``.
    """
    fields = {"enable_idempotence": acks is Acks.ALL, **_parse(_PRODUCER, given)}
    settings = msgspec.structs.replace(ProducerSettings(acks=acks), **fields)
    if settings.enable_idempotence and acks is not Acks.ALL:
        raise ConfigError(key="enable.idempotence", value="true", expected="acks: all beside it")
    return settings


def consumer_settings(given: Mapping[str, str]) -> ConsumerSettings:
    """Returns a consumer's settings: defaults with ``given`` on top, keyed by Kafka's names.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    return msgspec.structs.replace(ConsumerSettings(), **_parse(_CONSUMER, given))
