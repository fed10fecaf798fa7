"""Clocks of the hosts that wrote foreign histories: finds clocks that differ too much to merge files by their times.

A consumer gets a record after its send has begun. If times in two files contradict that, their clocks differ, and no
order of their operations is known: which read was last, or which send was over before another one began. Clocks that
differ by less than the time that a record needs to arrive show nothing, and change no such order.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from laststand.chaos.external.appended_lists import ListRead
from laststand.chaos.external.foreign_history import ForeignOperation, ForeignPoll, ForeignSend
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import TopicPartition

_S: Final = 1e9


def clock_set_back(name: str, operations: Iterable[ForeignSend | ForeignPoll | ListRead]) -> str | None:
    """Describes where a file's clock went back for a process; ``None`` if it never did.

    Several processes that write one file, each in its own thread, may write their lines out of order.
    """
    last: dict[str, int] = {}
    for each in operations:
        back_ns = last.get(each.process, each.time_ns) - each.time_ns
        if back_ns > 0:
            return f"the clock of {name} was set back by {back_ns / _S:g} s: the order of files is not known"
        last[each.process] = each.time_ns
    return None


def clocks_that_differ(merged: Sequence[ForeignOperation], name_of: Callable[[ForeignOperation], str]) -> str | None:
    """Describes the least difference of two clocks by which a record arrived before it was sent; ``None`` without any.

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
    worst: tuple[int, ForeignPoll | ListRead, ForeignSend] | None = None
    for each in merged:
        match each:
            case ForeignPoll():
                given = [value for _, value in each.records]
            case ListRead():
                given = list(each.elements or ())
            case _:
                continue
        for value in given:
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
