"""Errors of Kafka that only clients meet; the core has no use for them (``o.a.k.common.protocol.Errors``)."""

from enum import IntEnum


class WireError(IntEnum):
    """Kafka's errors besides those of ``laststand.emulator.core.errors.ErrorCode``, by name and number."""

    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    SASL_AUTHENTICATION_FAILED = 58
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    UNSUPPORTED_COMPRESSION_TYPE = 76
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
