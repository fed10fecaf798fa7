"""Decides which records may be gone: those below a requested offset, or by retention.

An administrator names a partition, not a topic id: if the topic is created again meanwhile, the request deletes records
of the new one.
"""

from laststand.emulator.core.types import CauseId, Offset, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.simulator.disk.retention import RETENTION


class Deletions:
    """Deletions that administrators have asked for in one run."""

    def __init__(self) -> None:
        self._below: dict[TopicPartition, Offset] = {}
        self._all_committed: set[TopicPartition] = set()

    def asked(self, action: actions.DeleteRecords) -> None:
        """An administrator is about to ask for records to be deleted."""
        name = action.partition
        if action.offset is None:
            self._all_committed.add(name)
        else:
            self._below[name] = max(action.offset, self._below.get(name, Offset(0)))

    def allowed(self, name: TopicPartition, new: Offset, *, committed: Offset, cause_id: CauseId) -> Offset:
        """Returns the offset below which records may be gone once a broker has raised its log start to ``new``.

        Args:
            name: the partition.
            new: the log start offset that the broker reported.
            committed: the largest high watermark that any leader ever had.
            cause_id: of the rise.
        """
        return min(new, committed if cause_id == RETENTION else self.asked_below(name, committed=committed))

    def asked_below(self, name: TopicPartition, *, committed: Offset) -> Offset:
        """Returns the offset below which records may be gone because of a request alone; ``committed`` as above."""
        return committed if name in self._all_committed else min(committed, self._below.get(name, Offset(0)))
