"""Properties that the simulator does not have: its disk never syncs by a clock."""

from typing import Final

NOT_SIMULATED: Final = "the simulated disk does not sync by time"
"""Why it does not take them."""

NODE_FLUSH_TIME: Final = "log.flush.interval.ms"
TOPIC_FLUSH_TIME: Final = "flush.ms"
