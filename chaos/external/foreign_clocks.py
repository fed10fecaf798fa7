"""Clocks of the hosts on which others wrote their histories: what shows that files cannot be merged by their times.

Who was given a record was given it after its send had begun. Where two files say otherwise, their clocks differ, and no
order of their operations is known: who read last, or whose send was over before another one began. Clocks that
differ by less than it takes a record to arrive show nothing, and move nothing across a record.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

from laststand.chaos.external.foreign_history import ForeignOperation, ForeignPoll, ForeignSend
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import TopicPartition

_S: Final = 1e9


def clock_set_back(name: str, operations: Iterable[ForeignSend | ForeignPoll]) -> str | None:
    """Returns in words where a file's clock went back; ``None`` if it nowhere did."""
    for before, after in pairwise(each.time_ns for each in operations):
        if after < before:
            return f"the clock of {name} was set back by {(before - after) / _S:g} s: the order of files is not known"
    return None


def clocks_that_differ(merged: Sequence[ForeignOperation], name_of: Callable[[ForeignOperation], str]) -> str | None:
    """Returns in words by how much clocks differ at least, if a record arrived before it was sent.

    Args:
        merged: operations of several files, in the order of their times.
        name_of: returns the file of an operation.
    """
    begun: dict[tuple[TopicPartition, str], tuple[int, ForeignSend]] = {}
    for each in merged:
        if isinstance(each, ForeignSend):
            after_ns = each.time_ns if each.type is OperationType.INVOKE else each.after_ns
            if after_ns is not None:  # an outcome alone may be known later than the record arrives
                begun.setdefault((each.partition, each.value), (after_ns, each))
    worst: tuple[int, ForeignPoll, ForeignSend] | None = None
    for each in merged:
        if not isinstance(each, ForeignPoll):
            continue
        for _, value in each.records:
            after_ns, send = begun.get((each.partition, value), (0, None))
            if send is not None and (worst is None or after_ns - each.time_ns > worst[0]):
                worst = after_ns - each.time_ns, each, send
    if worst is None or worst[0] <= 0:
        return None
    ahead_ns, poll, send = worst
    return (
        f"the clocks of {name_of(poll)} and {name_of(send)} differ by {ahead_ns / _S:g} s or more: {poll.process} was "
        f"given a record of {poll.partition} before {send.process} sent it"
    )
