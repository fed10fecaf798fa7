"""Settings of producers and consumers, by Kafka's client property names.

Defaults are Kafka's, but for idempotence: it is on if ``acks`` is ``all`` and off otherwise, so that ``acks=1`` alone
is a valid configuration, as in practice.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.property_text import INT_MAX, PropertyReader, dotted
from laststand.emulator.core.types import Acks

_Milliseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=INT_MAX)]


class ProducerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One producer. Times are ms.

    Attributes:
        acks: the acknowledgement that a produce request waits for.
        enable_idempotence: whether batches carry producer id and sequence numbers.
        max_in_flight: unanswered batches per partition; a request carries one batch here, so this is Kafka's
            ``max.in.flight.requests.per.connection`` counted per partition. Invariant: at most 5 with idempotence,
            which is how many batches a broker remembers.
        delivery_timeout_ms: time from a batch's creation until the batch fails.
        request_timeout_ms: how long one request may stay unanswered; also the broker's time to gather ``acks=all``.
        retry_backoff_ms: pause before a retry and between metadata requests.
        metadata_max_age_ms: age of metadata at which it is requested again without other need.
        buffer_records_max: records accepted and not yet completed, over all partitions (``buffer.memory`` in records).
        transaction_timeout_ms: time after which the coordinator aborts an open transaction of this producer.
    """

    acks: Acks = Acks.ALL
    enable_idempotence: bool = True
    max_in_flight: Annotated[int, msgspec.Meta(ge=1, le=5)] = 5
    delivery_timeout_ms: _Milliseconds = 120_000
    request_timeout_ms: _Milliseconds = 30_000
    retry_backoff_ms: _Milliseconds = 100
    metadata_max_age_ms: _Milliseconds = 300_000
    buffer_records_max: int = 100_000
    transaction_timeout_ms: _Milliseconds = 60_000


class OffsetReset(Enum):
    """The start position of a consumer that has none (``auto.offset.reset``)."""

    EARLIEST = "earliest"
    LATEST = "latest"


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One consumer. Times are ms, sizes bytes; with ``client.rack`` it may read from a follower in that rack.

    With ``isolation.level=read_committed`` it gets only records outside transactions or of committed ones.
    """

    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    auto_offset_reset: OffsetReset = OffsetReset.EARLIEST
    client_rack: str = ""
    request_timeout_ms: _Milliseconds = 30_000
    retry_backoff_ms: _Milliseconds = 100
    metadata_max_age_ms: _Milliseconds = 300_000
    fetch_max_wait_ms: Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)] = 500
    max_partition_fetch_bytes: Annotated[int, msgspec.Meta(ge=1, le=INT_MAX)] = 1 << 20

    @property
    def is_committed_only(self) -> bool:
        """The consumer gets only committed records."""
        return self.isolation_level == "read_committed"


class MemberSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One member of a consumer group. Times are ms; settings not listed here are as in ``ConsumerSettings``.

    Session timeouts are those of Kafka before 3.0 (KIP-735), and the rebalance timeout is shorter than Kafka's, so that
    the effects of a failed member are seen sooner.

    Attributes:
        session_timeout_ms: time without a heartbeat after which the coordinator removes the member.
        heartbeat_interval_ms: time between heartbeats.
        rebalance_timeout_ms: how long a rebalance waits for a member (``max.poll.interval.ms``).
        auto_offset_reset: start position without a committed one.
        records: number of records read and then committed at a time, in whole batches (``max.poll.records``).
    """

    session_timeout_ms: _Milliseconds = 10_000
    heartbeat_interval_ms: _Milliseconds = 3_000
    rebalance_timeout_ms: _Milliseconds = 60_000
    auto_offset_reset: OffsetReset = OffsetReset.EARLIEST
    records: int = 500
    request_timeout_ms: _Milliseconds = 30_000
    retry_backoff_ms: _Milliseconds = 100
    metadata_max_age_ms: _Milliseconds = 300_000


UNNAMED_GROUP: Final = MemberSettings(request_timeout_ms=2_000)
"""Settings of members of groups that no workload names: they notice soon that a coordinator is gone."""

_SHARED: Final = dotted("request_timeout_ms", "retry_backoff_ms", "metadata_max_age_ms")
_PRODUCER: Final = PropertyReader(
    ProducerSettings,
    {
        **_SHARED,
        **dotted("enable_idempotence", "delivery_timeout_ms", "transaction_timeout_ms"),
        "max.in.flight.requests.per.connection": "max_in_flight",
    },
)
_CONSUMER: Final = PropertyReader(
    ConsumerSettings,
    {**_SHARED, **dotted("client_rack", "fetch_max_wait_ms", "max_partition_fetch_bytes", "isolation_level")},
)

_MEMBER: Final = PropertyReader(
    MemberSettings,
    {
        **_SHARED,
        **dotted("session_timeout_ms", "heartbeat_interval_ms"),
        "max.poll.interval.ms": "rebalance_timeout_ms",
    },
)

PRODUCER_PROPERTIES: Final = frozenset(_PRODUCER.fields)
"""Names that ``producer_settings`` knows."""

CONSUMER_PROPERTIES: Final = frozenset(_CONSUMER.fields)
"""Names that ``consumer_settings`` knows."""


MEMBER_PROPERTIES: Final = frozenset(_MEMBER.fields)
"""Names that ``member_settings`` knows."""


def producer_settings(acks: Acks, given: Mapping[str, str]) -> ProducerSettings:
    """Returns a producer's settings: defaults with ``given`` on top, keyed by Kafka's names.

    Raises:
        ConfigError: unknown name, a value out of range, or idempotence without ``acks=all``.
    """
    fields = {"enable_idempotence": acks is Acks.ALL, **_PRODUCER.read(given)}
    settings = msgspec.structs.replace(ProducerSettings(acks=acks), **fields)
    if settings.enable_idempotence and acks is not Acks.ALL:
        raise ConfigError(key="enable.idempotence", value="true", expected="acks: all beside it")
    return settings


def consumer_settings(given: Mapping[str, str]) -> ConsumerSettings:
    """Returns a consumer's settings: defaults with ``given`` on top, keyed by Kafka's names.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    return msgspec.structs.replace(ConsumerSettings(), **_CONSUMER.read(given))


def member_settings(given: Mapping[str, str]) -> MemberSettings:
    """Returns the settings of a group's members: defaults with ``given`` on top, keyed by Kafka's names.

    Raises:
        ConfigError: unknown name, or a value out of range.
    """
    return msgspec.structs.replace(MemberSettings(), **_MEMBER.read(given))
