"""The oracle's own arithmetic of high watermarks.

A leader may commit a record once every member of the maximal ISR has it (Kafka's ``Partition``). The bound is
computed here from reported log ends, not taken from what a node concluded.

A log end counts from the start of the leader's *term*: another leader may have truncated the log before. A term begins
when a broker becomes leader, and continues under later epochs until it follows or opens the log again; with the rule
``progress_of_this_term``, also until an epoch is skipped, in which another broker may have led (S43).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import CollectedEvent

_UNBORNE: Final = -1
"""A bound below every offset: the leader relied on a log end from before its term."""


class Terms:
    """The terms of one partition's leaders.

    Args:
        roles: the events that begin or end a term (BecameLeader, BecameFollower, LogOpened), each node's in its order.
        ends_with_jumps: by node and incarnation, whether a term ends when the node's leader epoch skips an epoch.
    """

    def __init__(
        self,
        roles: Collection[CollectedEvent[events.PartitionEvent]],
        *,
        ends_with_jumps: Mapping[tuple[int, int], bool],
    ) -> None:
        self._starts: defaultdict[tuple[int, int, str], list[tuple[int, int]]] = defaultdict(list)
        last: dict[tuple[int, int, str], int] = {}
        for collected in roles:
            event = collected.event
            replica = (collected.node, collected.incarnation, event.topic_id)
            if not isinstance(event, events.BecameLeader):
                last.pop(replica, None)
                continue
            before, starts = last.get(replica), self._starts[replica]
            is_next = before is not None and before <= event.leader_epoch <= before + 1
            goes_on = is_next or not ends_with_jumps.get(replica[:2], False)
            is_new = before is None or not goes_on
            starts.append((collected.sequence, event.leader_epoch if is_new else starts[-1][1]))
            last[replica] = event.leader_epoch

    def starts_of(self, moves: EventRows[events.HighWatermarkAdvanced]) -> Ints:
        """Returns for each move the epoch in which its leader's term began; the move's own epoch if that is unknown."""
        found = moves["leader_epoch"].copy()
        for places in groups_of(moves["node"], moves["incarnation"], moves["topic_id"]):
            first = places[0]
            topic_id = moves.words("topic_id")[moves["topic_id"][first]]
            starts = self._starts.get((int(moves["node"][first]), int(moves["incarnation"][first]), topic_id))
            if starts is None:
                continue
            sequences, epochs = np.array(starts, np.int64).T
            before = np.searchsorted(sequences, moves["sequence"][places]) - 1
            is_known = before >= 0
            found[places[is_known]] = np.minimum(epochs[before[is_known]], found[places[is_known]])
        return found


def high_watermark_bounds(moves: EventRows[events.HighWatermarkAdvanced], term_starts: Ints) -> Ints:
    """Returns for each move the highest offset that the leader could commit, by the log ends that it knew.

    If the leader does not know the log end of a member, only its own log end (``log_end_offset``) is the bound. If it
    relied on a log end that it learned before its term, the bound is below all offsets.
    """
    bounds = moves["log_end_offset"].copy()
    counts, replicas = moves.elements("replicas")
    broker_ids, ends, epochs = replicas["broker_id"], replicas["log_end_offset"], replicas["leader_epoch"]
    for places in groups_of(moves["node"], moves["maximal_isr"], counts):
        first = places[0]
        maximal_isr = moves.words("maximal_isr")[moves["maximal_isr"][first]]
        members = np.array(sorted({*maximal_isr} - {int(moves["node"][first])}), np.int64)
        own = moves["replicas"][places][:, np.newaxis] + np.arange(counts[first])
        is_member = np.isin(broker_ids[own], members)
        is_known = is_member & (ends[own] != NONE)
        is_stale = is_known & (epochs[own] != NONE) & (epochs[own] < term_starts[places][:, np.newaxis])
        least = np.min(np.where(is_stale, _UNBORNE, ends[own]), axis=1, where=is_known, initial=np.iinfo(np.int64).max)
        known = is_known.sum(axis=1)
        is_bound = (known >= len(members)) & (known == is_member.sum(axis=1))
        bounds[places] = np.where(is_bound, np.minimum(bounds[places], least), bounds[places])
    return bounds
