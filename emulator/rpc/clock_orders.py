"""Faults of a node's clock, ordered by the harness at the node's own port, past all proxies.

Only what the protocol measures by it is affected: sessions, lags, backoffs. Deadlines of requests are the transport's.
"""

from typing import Final

import msgspec

from laststand.emulator.rpc.json_codec import JsonCodec

CLOCK_SERVICE: Final = "laststand.Clock"
CLOCK_METHOD: Final = "Change"


class ClockOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order to change the clock.

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


CLOCK_ORDERS: Final = JsonCodec(ClockOrder)
CLOCK_REPORTS: Final = JsonCodec(ClockReport)
