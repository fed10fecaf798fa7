"""The positions that groups commit, by all who read for them: operations of applications, and members.

A commit takes effect between the line of its reading and the line of its outcome. Commits of two readers may overlap,
so more than one of them may be the last one.
"""

from typing import NamedTuple

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.steps import GroupCommitRecorded, GroupReadRecorded, TransactionRecorded
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import CauseId, Offset, TopicId, TopicPartition


class _Commit(NamedTuple):
    """A commit that took effect, and the moments between which it did; ``read`` is ``None`` if its topic is deleted."""

    offset: Offset
    read: GroupReadRecorded | None
    asked: int
    settled: int

    def is_of(self, topic_id: TopicId | None) -> bool:
        """Returns whether the commit was made in a topic."""
        return self.read is not None and self.read.topic_id == topic_id


class _Place:
    """A partition of a group: the commits that took effect, and the offsets of those that may yet take effect."""

    def __init__(self) -> None:
        self.taken: list[_Commit] = []
        self.open: dict[CauseId, Offset] = {}


class Standing(NamedTuple):
    """The commits of a group in a partition, as far as histories tell.

    Attributes:
        last: the offsets of commits that may be the last one, in the order of their outcomes, and in the topic that is
            asked about; empty if another topic's may be.
        taken: all offsets that were ever committed.
        open: the offsets of commits that may yet take effect.
    """

    last: tuple[Offset, ...]
    taken: frozenset[Offset]
    open: frozenset[Offset]

    def may_be_at(self, position: Offset) -> bool:
        """Returns whether the group may be at a position."""
        return position in self.last or position in self.open


class GroupPositions:
    """The positions of all groups of one run.

    A coordinator knows a topic by its name, so a commit may hold for a later topic than the one that was read.

    Attributes:
        moment: number of the lines so far.
    """

    def __init__(self) -> None:
        self.moment = 0
        self._places: dict[tuple[str, TopicPartition], _Place] = {}
        self._reads: dict[CauseId, tuple[GroupReadRecorded, int]] = {}
        self._last_line: dict[str, int] = {}

    def forget(self, name: TopicPartition) -> None:
        """Forgets what was read of a partition that was deleted."""
        self._reads = {each: read for each, read in self._reads.items() if read[0].partition != name}

    def read(self, client: str, record: GroupReadRecorded) -> None:
        """Somebody read for a group, and is to commit the position behind that."""
        self._advance(client)
        self._reads[record.operation_id] = (record, self.moment)
        self._place(record.group_id, record.partition).open[record.operation_id] = record.next_position

    def committed(self, client: str, record: GroupCommitRecorded, *, is_in_transaction: bool) -> None:
        """A commit has its outcome, or will share that of its transaction."""
        self._advance(client)
        place = self._place(record.group_id, record.partition)
        if record.type is OperationType.FAIL:
            place.open.pop(record.operation_id, None)
        elif record.type is OperationType.OK and not is_in_transaction:
            self._take(place, record.operation_id, record.offset)
        else:
            place.open[record.operation_id] = record.offset

    def transacted(self, client: str, record: TransactionRecorded) -> None:
        """A transaction is over: what it read has been read for good, or not at all."""
        if record.type is OperationType.INVOKE:
            return
        self._advance(client)
        read = self._reads.get(record.operation_id)
        if read is None or record.type is OperationType.INFO:
            return
        place = self._place(read[0].group_id, read[0].partition)
        is_committed = record.type is OperationType.OK and record.result is TransactionResult.COMMIT
        if is_committed and record.operation_id in place.open:
            self._take(place, record.operation_id, place.open[record.operation_id])
        place.open.pop(record.operation_id, None)

    def since(self, client: str) -> int:
        """Returns the moment of a client's last line: whatever it asks for now, it asked for after that."""
        return self._last_line.get(client, 0)

    def of(self, record: GroupReadRecorded, *, since: int) -> Standing:
        """Returns what a group had committed when somebody read who asked for its position after a moment."""
        place = self._place(record.group_id, record.partition)
        overtaken = max((each.asked for each in place.taken if each.settled <= since), default=-1)
        is_certain = any(each.settled <= since for each in place.taken)
        last = [each for each in place.taken if each.settled >= overtaken]
        is_of_topic = is_certain and last[-1].is_of(record.topic_id)
        return Standing(
            last=tuple([each.offset for each in last]) if is_of_topic else (),
            taken=frozenset([each.offset for each in place.taken]),
            open=frozenset(place.open.values()),
        )

    def _take(self, place: _Place, operation_id: CauseId, offset: Offset) -> None:
        read, asked = self._reads.get(operation_id, (None, self.moment))
        place.open.pop(operation_id, None)
        place.taken.append(_Commit(offset, read, asked, self.moment))

    def _place(self, group_id: str, partition: TopicPartition) -> _Place:
        return self._places.setdefault((group_id, partition), _Place())

    def _advance(self, client: str) -> None:
        self.moment += 1
        self._last_line[client] = self.moment
