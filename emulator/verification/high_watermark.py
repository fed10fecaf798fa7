"""The oracle's own arithmetic of high watermarks.

A leader may call a record committed once every member of the maximal ISR has it (Kafka's ``Partition``). The bound is
computed here from reported log ends, not taken from what a node concluded.
"""

from emulator.core.events import HighWatermarkAdvanced


def high_watermark_bound(advanced: HighWatermarkAdvanced, *, leader: int) -> int:
    """Returns the highest offset that the leader could call committed by what it knew.

    A member whose log end the leader does not know does not count. The leader's own log end is a field of its own.
    """
    bound = advanced.log_end_offset
    members = {*advanced.maximal_isr} - {leader}
    ends = [r.log_end_offset for r in advanced.replicas if r.broker_id in members]
    known = [end for end in ends if end is not None]
    return bound if len(known) < len(members) or len(known) < len(ends) else min([bound, *known])
