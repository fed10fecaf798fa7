"""Metrics that clients push (KIP-714): answered as by a broker without a receiver for them, and not advertised."""

import secrets
from collections.abc import Mapping
from typing import Final

from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka_listener.message_codec import ZERO_UUID
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served

_COMPRESSIONS: Final = (4, 3, 1, 2)
"""zstd, lz4, gzip and snappy, in the order in which Kafka prefers them."""

_PUSH_INTERVAL_MS: Final = 300_000
_TELEMETRY_BYTES: Final = 1 << 20


async def _telemetry_subscriptions(_: Served, request: ClientRequest) -> Message:
    client = request.body["clientInstanceId"]
    return {
        "clientInstanceId": uuid_text(secrets.token_bytes(16)) if client in (None, ZERO_UUID) else client,
        "acceptedCompressionTypes": _COMPRESSIONS,
        "pushIntervalMs": _PUSH_INTERVAL_MS,
        "telemetryMaxBytes": _TELEMETRY_BYTES,
        "deltaTemporality": True,
    }


TELEMETRY: Final[Mapping[int, Handler]] = {api_named("GetTelemetrySubscriptions").key: _telemetry_subscriptions}
