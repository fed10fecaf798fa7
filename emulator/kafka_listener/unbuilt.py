"""Requests about what this cluster has not: client quotas, telemetry.

They are answered as Kafka answers where there is none of it, but not advertised, so that no client relies on them.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka_listener.message_codec import ZERO_UUID
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served

_QUOTAS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_QUOTA_ENTITIES: Final = frozenset({"user", "client-id", "ip"})
_EXACT: Final = 0
_COMPRESSIONS: Final = (4, 3, 1, 2)
"""zstd, lz4, gzip and snappy, in the order in which Kafka prefers them."""

_PUSH_INTERVAL_MS: Final = 300_000
_TELEMETRY_BYTES: Final = 1 << 20


async def _describe_quotas(_: Served, request: ClientRequest) -> Message:
    for component in request.body["components"]:
        kind = component["entityType"]
        if kind not in _QUOTA_ENTITIES:
            message = f"Unsupported entity type {kind}"
            return {"errorCode": ErrorCode.UNSUPPORTED_VERSION, "errorMessage": message, "entries": None}
        if (component["matchType"] == _EXACT) is (component["match"] is None):
            message = f"match type {component['matchType']} with match {component['match']!r}"
            return {"errorCode": ErrorCode.INVALID_REQUEST, "errorMessage": message, "entries": None}
    return {"errorMessage": ""}


async def _alter_quotas(_: Served, request: ClientRequest) -> Message:
    return {
        "entries": [
            {
                "errorCode": ErrorCode.INVALID_REQUEST,
                "errorMessage": next(
                    (f"Invalid configuration key {op['key']}" for op in entry["ops"] if op["key"] not in _QUOTAS),
                    "there are no quotas here",
                ),
                "entity": entry["entity"],
            }
            for entry in request.body["entries"]
        ]
    }


async def _telemetry_subscriptions(_: Served, request: ClientRequest) -> Message:
    client = request.body["clientInstanceId"]
    return {
        "clientInstanceId": uuid_text(secrets.token_bytes(16)) if client in (None, ZERO_UUID) else client,
        "acceptedCompressionTypes": _COMPRESSIONS,
        "pushIntervalMs": _PUSH_INTERVAL_MS,
        "telemetryMaxBytes": _TELEMETRY_BYTES,
        "deltaTemporality": True,
    }


UNBUILT: Final[Mapping[int, Handler]] = {
    api_named("DescribeClientQuotas").key: _describe_quotas,
    api_named("AlterClientQuotas").key: _alter_quotas,
    api_named("GetTelemetrySubscriptions").key: _telemetry_subscriptions,
}
