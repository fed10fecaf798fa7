"""The oracle's own arithmetic of high watermarks.

A leader may call a record committed once every member of the maximal ISR has it (Kafka's ``Partition``). The bound is
computed here from reported log ends, not taken from what a node concluded.
"""

import numpy as np

from emulator.core.events import HighWatermarkAdvanced
from emulator.verification.columns import NONE
from emulator.verification.event_table import EventRows
from emulator.verification.integers import Ints
from emulator.verification.matching import groups_of


def high_watermark_bounds(moves: EventRows[HighWatermarkAdvanced]) -> Ints:
    """Returns for each move the highest offset that the leader could call committed by what it knew.

    A member whose log end the leader does not know does not count. The leader's own log end is a field of its own.
    """
    bounds = moves["log_end_offset"].copy()
    counts, replicas = moves.elements("replicas")
    broker_ids, ends = replicas["broker_id"], replicas["log_end_offset"]
    for places in groups_of(moves["node"], moves["maximal_isr"], counts):
        first = places[0]
        maximal_isr = moves.words("maximal_isr")[moves["maximal_isr"][first]]
        members = np.array(sorted({*maximal_isr} - {int(moves["node"][first])}), np.int64)
        own = moves["replicas"][places][:, np.newaxis] + np.arange(counts[first])
        is_member = np.isin(broker_ids[own], members)
        is_known = is_member & (ends[own] != NONE)
        least = np.min(ends[own], axis=1, where=is_known, initial=np.iinfo(np.int64).max)
        known = is_known.sum(axis=1)
        is_bound = (known >= len(members)) & (known == is_member.sum(axis=1))
        bounds[places] = np.where(is_bound, np.minimum(bounds[places], least), bounds[places])
    return bounds
