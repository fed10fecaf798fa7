"""Properties that the simulator refuses: its disk has no timed flush."""

from typing import Final

NO_TIMED_FLUSH: Final = "the simulated disk has no timed flush"
"""The reason, for messages."""

NODE_FLUSH_TIME: Final = "log.flush.interval.ms"
TOPIC_FLUSH_TIME: Final = "flush.ms"
