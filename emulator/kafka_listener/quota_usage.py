"""The bytes that clients send and receive, against their quotas (Kafka's ``ClientQuotaManager``, KIP-219).

A client above its quota is answered at once, with the time that it has to wait; nothing is read from its connection
during that time.
"""

import time
from typing import Final

from laststand.emulator.core.client_quotas import ClientQuota, ClientQuotaStore
from laststand.emulator.core.property_text import INT_MAX
from laststand.emulator.core.rates import WINDOW_MS, WINDOWS, Rate
from laststand.emulator.kafka_listener.connection import KafkaConnection

_RATES_MAX: Final = 10_000
"""Clients whose rates are remembered; the one that was first seen is forgotten first."""


class QuotaUsage:
    """Usage of one kind of quota at one broker: each broker counts for itself.

    Args:
        key: of the quota.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._rates: dict[tuple[str | None, str | None], Rate] = {}

    def record(self, quotas: ClientQuotaStore, connection: KafkaConnection, size: int) -> int:
        """Adds bytes of a client; returns for how many ms the client is muted."""
        quota = self._quota(quotas, connection)
        if quota is None:
            return 0
        now_ms, rate = time.monotonic_ns() // 1_000_000, self._rate(quota)
        rate.record(size, now_ms=now_ms)
        return _throttle_ms(rate, quota, now_ms=now_ms)

    def record_unless_exceeded(self, quotas: ClientQuotaStore, connection: KafkaConnection, size: int) -> int:
        """Adds bytes of a client unless that exceeds its quota; returns for how many ms the client is then muted."""
        throttle_ms = self.record(quotas, connection, size)
        if throttle_ms:
            self.record(quotas, connection, -size)
        return throttle_ms

    def max_bytes(self, quotas: ClientQuotaStore, connection: KafkaConnection) -> int | None:
        """Returns the bytes that a client may have within a whole window; ``None`` without a quota."""
        quota = self._quota(quotas, connection)
        return None if quota is None else int(quota.rate * (WINDOWS - 1) * WINDOW_MS / 1000)

    def _quota(self, quotas: ClientQuotaStore, connection: KafkaConnection) -> ClientQuota | None:
        if not quotas:
            return None
        user = connection.principal.partition(":")[2]
        return quotas.quota_of(self._key, user=user, client_id=connection.client_id)

    def _rate(self, quota: ClientQuota) -> Rate:
        rate = self._rates.get(quota.shared_by)
        if rate is None:
            if len(self._rates) >= _RATES_MAX:
                del self._rates[next(iter(self._rates))]
            rate = self._rates[quota.shared_by] = Rate()
        return rate


def _throttle_ms(rate: Rate, quota: ClientQuota, *, now_ms: int) -> int:
    used = rate.per_second(now_ms=now_ms)
    if used <= quota.rate:
        return 0
    if quota.rate <= 0:
        return INT_MAX
    return min(round((used - quota.rate) / quota.rate * rate.span_ms(now_ms=now_ms)), INT_MAX)
