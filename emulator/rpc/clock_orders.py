"""Faults of a node's clock, told by the harness at the node's own port, past all proxies.

Only what the protocol measures by it is affected: sessions, lags, backoffs. Deadlines of requests are the transport's.
"""

from typing import Final

import msgspec

CLOCK_SERVICE: Final = "laststand.Clock"
CLOCK_METHOD: Final = "Change"


class ClockOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with the clock.

    Attributes:
        rate_ppm: its rate from now on, in parts per million of the right one; ``None`` to leave it.
        jump_ms: how far it jumps ahead.
    """

    rate_ppm: int | None = None
    jump_ms: int = 0


class ClockReport(msgspec.Struct, frozen=True, kw_only=True):
    """The clock after an order.

    Attributes:
        rate_ppm: its rate.
        before_ms: the node's time before the order.
        after_ms: and after it.
    """

    rate_ppm: int
    before_ms: int
    after_ms: int


_ENCODER: Final = msgspec.json.Encoder()
_ORDERS: Final = msgspec.json.Decoder(ClockOrder)
_REPORTS: Final = msgspec.json.Decoder(ClockReport)


def encode_clock_order(order: ClockOrder) -> bytes:
    """Returns an order's bytes."""
    return _ENCODER.encode(order)


def decode_clock_order(payload: bytes) -> ClockOrder:
    """Inverse of ``encode_clock_order``.

    Raises:
        msgspec.DecodeError: the bytes are no order.
    """
    return _ORDERS.decode(payload)


def encode_clock_report(report: ClockReport) -> bytes:
    """Returns a report's bytes."""
    return _ENCODER.encode(report)


def decode_clock_report(payload: bytes) -> ClockReport:
    """Inverse of ``encode_clock_report``.

    Raises:
        msgspec.DecodeError: the bytes are no report.
    """
    return _REPORTS.decode(payload)
