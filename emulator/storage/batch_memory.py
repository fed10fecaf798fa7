"""The newest batches of all logs of a broker, kept in memory so that a fetch near the end of a log reads no file.

All logs share one budget: a broker's memory must not grow with the number of its partitions. The batches that were
appended first are dropped first, whatever log they belong to.
"""

from collections import deque
from typing import Final, TypeAlias

from laststand.emulator.storage.filesystem import Buffer

BYTES_MAX: Final = 24 << 20
"""Budget of a broker: a second or so of fast traffic, which is more than followers lag behind."""

Recent: TypeAlias = dict[int, Buffer]
"""The batches of one log that are in memory, by base offset. The log may drop entries, and adds none itself."""


class BatchMemory:
    """The budget. Not thread-safe.

    Invariant: the batches held, also those dropped by their log, take at most ``bytes_max``.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._held: deque[tuple[Recent, int, Buffer]] = deque()

    def add(self, recent: Recent, base_offset: int, content: Buffer) -> None:
        """Adds a batch to a log's memory, and drops the oldest batches of all logs until the budget is kept."""
        held = self._held
        recent[base_offset] = content
        held.append((recent, base_offset, content))
        self._bytes += len(content)
        while self._bytes > self._bytes_max:
            owner, oldest, gone = held.popleft()
            self._bytes -= len(gone)
            if owner.get(oldest) is gone:
                del owner[oldest]
