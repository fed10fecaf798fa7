"""Checks of group members, by their own record of memberships and positions: R7, R8, X9."""

from collections.abc import Callable
from typing import NamedTuple

from laststand.emulator.core.client.steps import GroupCommitRecorded, GroupMemberRecorded, GroupReadRecorded
from laststand.emulator.core.history import MemberStep, OperationType
from laststand.emulator.core.types import TopicId, TopicPartition
from laststand.emulator.simulator.oracle.group_positions import GroupPositions

Report = Callable[[str, str, str], None]
"""Takes a check, a group, and what is wrong."""


class _Tenure(NamedTuple):
    """The time in which a member had an assignment; ``until_ms`` is ``None`` while it has it."""

    client: str
    record: GroupMemberRecorded
    since_ms: int
    until_ms: int | None = None

    def overlaps(self, other: "_Tenure") -> bool:
        has_begun = other.until_ms is None or self.since_ms < other.until_ms
        return has_begun and (self.until_ms is None or other.since_ms < self.until_ms)


class MembershipChecks:
    """Checks of one run's members."""

    def __init__(self, report: Report, positions: GroupPositions) -> None:
        self._report = report
        self._positions = positions
        self._tenures: dict[str, list[_Tenure]] = {}
        self._current: dict[str, _Tenure] = {}
        self._newest: dict[str, _Tenure] = {}
        self._newest_when_asked: dict[str, _Tenure | None] = {}
        self._groups_with_positions: set[str] = set()
        self._assigned_at: dict[str, int] = {}
        self._begun: dict[str, set[tuple[TopicPartition, TopicId | None]]] = {}
        self._had_positions: dict[str, bool] = {}

    def committed(self, record: GroupCommitRecorded) -> None:
        """Notes that a member's commit of a position was answered, or given up."""
        if record.type is OperationType.OK:
            self._groups_with_positions.add(record.group_id)

    def read(self, client: str, record: GroupReadRecorded) -> None:
        """Notes that a member received records: X9 on the start position after an assignment."""
        begun, place = self._begun.setdefault(client, set()), (record.partition, record.topic_id)
        if client not in self._assigned_at or place in begun:
            return
        begun.add(place)
        standing = self._positions.of(record, since=self._assigned_at[client])
        expected = min(standing.last, default=None)
        if expected is not None and record.position < expected and record.position not in standing.open:
            sentence = (
                f"{client} goes on at {record.position} of {record.partition}, and {record.group_id} had committed"
            )
            self._report("X9", record.group_id, f"{sentence} {expected}")

    def stepped(self, client: str, record: GroupMemberRecorded, *, now_ms: int) -> None:
        """Notes that a member has reached a step: R7 if it is an assignment."""
        current = self._current.pop(client, None)
        if current is not None:
            ended = current._replace(until_ms=now_ms - record.overdue_ms)
            self._tenures.setdefault(record.group_id, []).append(ended)
        if record.step is MemberStep.JOINING:
            self._newest_when_asked[client] = self._newest.get(record.group_id)
            self._had_positions[client] = record.group_id in self._groups_with_positions
        if record.step is not MemberStep.ASSIGNED:
            return
        self._assigned_at[client] = self._positions.moment
        self._begun[client] = set()
        tenure = self._current[client] = _Tenure(client, record, now_ms)
        before = self._newest_when_asked.get(client)
        if before is not None and before.record.generation_id > record.generation_id and self._had_positions[client]:
            sentence = f"{client} joined generation {record.generation_id} of {record.group_id} after {before.client}"
            self._report("R7", record.group_id, f"{sentence} was in {before.record.generation_id}")
        newest = self._newest.get(record.group_id)
        if newest is None or newest.record.generation_id <= record.generation_id:
            self._newest[record.group_id] = tenure

    def check(self) -> None:
        """R8, at the end of the run."""
        for client in list(self._current):
            tenure = self._current.pop(client)
            self._tenures.setdefault(tenure.record.group_id, []).append(tenure)
        for group_id, tenures in self._tenures.items():
            for number, one in enumerate(tenures):
                for other in tenures[number + 1 :]:
                    self._check_pair(group_id, one, other)

    def _check_pair(self, group_id: str, one: _Tenure, other: _Tenure) -> None:
        mine, theirs = one.record, other.record
        is_same = (mine.instance_id or mine.member_id) == (theirs.instance_id or theirs.member_id)
        if is_same or mine.generation_id != theirs.generation_id or not one.overlaps(other):
            return
        both: list[TopicPartition] = sorted({*mine.partitions} & {*theirs.partitions})
        if both:
            clients = " and ".join(sorted((one.client, other.client)))
            self._report("R8", group_id, f"{clients} both own {both[0]} in generation {mine.generation_id}")
