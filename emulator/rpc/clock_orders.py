"""Faults of a node's clock, ordered by the harness at the node's own port, past all proxies.

Only the times that the protocol measures are affected: sessions, lags, backoffs. Deadlines of requests belong to the
transport.
"""

from typing import Final

import msgspec

from laststand.emulator.rpc.json_codec import JsonCodec

CLOCK_SERVICE: Final = "laststand.Clock"
CLOCK_METHOD: Final = "Change"


class ClockOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order to change the clock.

    Attributes:
        rate_ppm: its new rate, in parts per million of the correct rate; ``None`` to keep it.
        jump_ms: by how much it is set forward.
    """

    rate_ppm: int | None = None
    jump_ms: int = 0


class ClockReport(msgspec.Struct, frozen=True, kw_only=True):
    """The clock after an order.

    Attributes:
        rate_ppm: rate of the clock.
        before_ms: the node's time before the order.
        after_ms: the clock after the order.
    """

    rate_ppm: int
    before_ms: int
    after_ms: int


CLOCK_ORDERS: Final = JsonCodec(ClockOrder)
CLOCK_REPORTS: Final = JsonCodec(ClockReport)
