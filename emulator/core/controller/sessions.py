"""The last contact of each broker: the controller's soft state, lost when it restarts.

A session belongs to a broker id *and* epoch. It expires strictly: exactly at the timeout it is alive. Besides, each
broker's applied metadata offset, and the offset that others must have applied before a leaving broker may stop
(Kafka's ``PartitionRegistration``, ``BrokerHeartbeatManager``).
"""

from collections.abc import Iterable

import msgspec

from laststand.emulator.core.types import BrokerEpoch, BrokerId, MetadataOffset


class SessionKey(msgspec.Struct, frozen=True):
    """Names a session, and its timer."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch


def is_expired(*, last_contact: int, now: int, timeout: int) -> bool:
    """Returns whether a session has ended; all three arguments have the same unit of time."""
    return last_contact + timeout < now


class SessionTracker:
    """Contact times by session, and what brokers said about their progress."""

    def __init__(self, *, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._contact_ms: dict[SessionKey, int] = {}
        self._applied: dict[BrokerId, MetadataOffset] = {}
        self._shutdown: dict[BrokerId, MetadataOffset] = {}

    def touch(self, key: SessionKey, *, now_ms: int) -> int:
        """Notes a sign of life; returns the first time at which the session counts as expired without another."""
        self._contact_ms[key] = now_ms
        return now_ms + self._timeout_ms + 1

    def last_contact_ms(self, key: SessionKey) -> int | None:
        """Returns when a session was last heard of, or ``None`` if it is not tracked."""
        return self._contact_ms.get(key)

    def is_valid(self, key: SessionKey, *, now_ms: int) -> bool:
        """Returns whether a session is tracked and has not expired."""
        last_contact = self._contact_ms.get(key)
        return last_contact is not None and not is_expired(
            last_contact=last_contact, now=now_ms, timeout=self._timeout_ms
        )

    def end(self, key: SessionKey) -> None:
        """Forgets a session and what that broker said."""
        self._contact_ms.pop(key, None)
        self._applied.pop(key.broker_id, None)
        self._shutdown.pop(key.broker_id, None)

    def note_applied(self, broker_id: BrokerId, offset: MetadataOffset) -> None:
        """Notes the offset of the last record that a broker applied."""
        self._applied[broker_id] = offset

    def begin_shutdown(self, broker_id: BrokerId, *, offset: MetadataOffset) -> None:
        """Notes the last record of the batch that started a broker's controlled shutdown; only the first counts."""
        self._shutdown.setdefault(broker_id, offset)

    def shutdown_offset(self, broker_id: BrokerId) -> MetadataOffset | None:
        """Returns the offset noted by ``begin_shutdown``, or ``None`` if the broker is not shutting down."""
        return self._shutdown.get(broker_id)

    def applied_offsets(self, broker_ids: Iterable[BrokerId]) -> tuple[MetadataOffset | None, ...]:
        """Returns the applied offsets of brokers, ``None`` for one that has not said."""
        return tuple(self._applied.get(broker_id) for broker_id in broker_ids)
