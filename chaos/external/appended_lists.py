"""Lists that transactions append to and read as a whole: finds the reads that show a list's final elements and order.

A read is over before another one if it ended before that one began. The last reads of a list are those that are over
before no other one: each of them began before any of them ended. The longest of them (of several, the one that began
last) stands for the list at the end. An element's index in it is its offset, because appends return no offset.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from laststand.emulator.core.types import TopicPartition


class ListRead(NamedTuple):
    """The invocation of a read of a whole list, or its result.

    Attributes:
        process: the reader.
        operation: pairs invocation and outcome.
        partition: the partition that has the list as its log.
        elements: of the list, in order; ``None`` for the invocation.
        time_ns: by the clock of its host.
    """

    process: str
    operation: str
    partition: TopicPartition
    elements: tuple[str, ...] | None
    time_ns: int = 0


class LastRead(NamedTuple):
    """The read that stands for a list at the end.

    Attributes:
        begun: place in the history at which the last reads had all begun.
        ended: place in the history of its result.
        elements: of the list.
    """

    begun: int
    ended: int
    elements: tuple[str, ...]

    def offset(self, element: str) -> int | None:
        """Returns an element's index in the list; ``None`` if it is missing, or occurs more than once."""
        return self.elements.index(element) if self.elements.count(element) == 1 else None


def last_reads(history: Iterable[object]) -> dict[TopicPartition, LastRead]:
    """Returns the last read of each list that was read, of a history in the order of time."""
    begun: dict[str, int] = {}
    reads: dict[TopicPartition, list[LastRead]] = defaultdict(list)
    for place, each in enumerate(history):
        match each:
            case ListRead(elements=None):
                begun[each.operation] = place
            case ListRead(elements=tuple() as elements):
                reads[each.partition].append(LastRead(begun[each.operation], place, elements))
            case _:
                pass
    found: dict[TopicPartition, LastRead] = {}
    for partition, its_own in reads.items():
        last_begun = max(read.begun for read in its_own)
        last = [read for read in its_own if read.ended > last_begun]
        longest = max(last, key=lambda read: (len(read.elements), read.begun))
        found[partition] = longest._replace(begun=last_begun)
    return found
