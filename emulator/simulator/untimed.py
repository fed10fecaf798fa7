"""Properties that mean nothing in the simulator, whose disk syncs at no time of its own."""

from typing import Final

UNTIMED: Final = "the simulated disk syncs at no time of its own"
"""Why it does not take them."""

NODE_FLUSH_TIME: Final = "log.flush.interval.ms"
TOPIC_FLUSH_TIME: Final = "flush.ms"
