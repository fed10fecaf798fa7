"""Consumers of a partition that belong to applications: the records that each received twice, or never.

Each connection belongs to one consumer. A new connection continues a consumer if it begins where the previous
connection ended, or at the position that its group received meanwhile. Otherwise it may be another consumer of the same
name, and records that both received do not count as received twice. If the earlier connection later continues from its
own end, there are two consumers.

Brokers do not move consumers. If no answer explains a jump, its cause is unknown: a client that seeks sends no request.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import ForeignProcess, GroupPositionOperation, OperationType
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.tables.client_history import Poll
from laststand.emulator.verification.verdict.loss_report import OffsetRange, merged

_JUMPS_MAX: Final = 100
_LIVE: Final = "live"


class JumpCause(Enum):
    """The cause of a jump: a consumer went on at another offset than the one after its last record."""

    OUT_OF_RANGE = "a broker had answered OFFSET_OUT_OF_RANGE"
    GROUP_POSITION = "its group was given that position"
    NOT_KNOWN = "not known: it may have sought of its own"


class Jump(msgspec.Struct, frozen=True, kw_only=True):
    """A jump of a consumer to another offset than the one after its last record.

    Attributes:
        expected: the offset after its last record.
        position: the offset that it asked for.
        cause: of the jump, if an answer explains it.
    """

    expected: int
    position: int
    cause: JumpCause


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer of one partition that is not Laststand's own, over all its connections.

    Attributes:
        client_id: the consumer's client id.
        group_id: of the only group whose positions clients of that name commit or ask for.
        topic: of the partition.
        partition: its number.
        given: number of offsets that it received, each counted once.
        twice: offsets that it received more than once.
        never: offsets in the final log, between its first and last one, that it did not receive; ``None`` without a
            final log.
        jumps: its first jumps, in order.
    """

    client_id: str
    group_id: str | None
    topic: str
    partition: int
    given: int
    twice: tuple[OffsetRange, ...]
    never: tuple[OffsetRange, ...] | None
    jumps: tuple[Jump, ...]

    @property
    def sentence(self) -> str | None:
        """The offsets received twice or never, in words; ``None`` if there are none."""
        parts = [
            f"{_named(offsets)} {word}" for offsets, word in ((self.twice, "twice"), (self.never, "never")) if offsets
        ]
        if not parts:
            return None
        who = self.client_id if self.group_id is None else f"{self.client_id} of group {self.group_id}"
        jumps = "".join(f"; from {each.expected} to {each.position}: {each.cause.value}" for each in self.jumps[:1])
        return f"{who} was given {self.topic}-{self.partition} {', '.join(parts)}{jumps}"


class _Batch(NamedTuple):
    last_offset: int
    crc: int


class _Stream:
    """The state of a consumer while its polls are read in the order of time."""

    def __init__(self, client_id: str, first: Poll) -> None:
        self.client_id = client_id
        self.topic_id = first.topic_id
        self.begin = first.position
        self.expected: int | None = None
        self.end = first.position
        self.time_ns = first.time_ns
        self.is_out_of_range = False
        self.given_from: dict[_Batch, int] = {}
        self.given = 0
        self.twice: list[tuple[int, int]] = []
        self.jumps: list[Jump] = []

    def go_on(self, poll: Poll, cause: JumpCause | None) -> None:
        """Adds a poll that returned batches; ``cause`` is the cause of its jump, if it is one."""
        if self.expected is not None and cause is not None:
            self.jumps.append(Jump(expected=self.expected, position=poll.position, cause=cause))
        for base, last, crc in zip(poll.firsts, poll.lasts, poll.crcs, strict=True):
            first, batch = max(base, poll.position), _Batch(last, crc)
            before = self.given_from.get(batch, last + 1)
            if before <= last:
                self.twice.append((max(first, before), last))
            self.given += max(before - first, 0)
            self.given_from[batch] = min(before, first)
        self.begin = min(self.begin, poll.position)
        self.expected = poll.read_up_to
        self.end = max(self.end, self.expected or 0)
        self.time_ns = poll.time_ns
        self.is_out_of_range = False


def readers_of_partition(facts: PartitionFacts) -> tuple[Reader, ...]:
    """Returns the consumers of a partition that are no clients of this project, in the order of their first polls."""
    walk = _Walk(facts)
    for poll in sorted((each for each in facts.polls if each.phase == _LIVE), key=lambda each: each.time_ns):
        walk.take(poll)
    return tuple(walk.readers())


class _Walk:
    def __init__(self, facts: PartitionFacts) -> None:
        self._facts = facts
        self._streams: list[_Stream] = []
        self._by_process: dict[tuple[str, str | None], _Stream] = {}
        self._ends: dict[tuple[str, str | None], int | None] = {}
        self._groups: dict[str, set[str]] = {}
        self._given: dict[str, list[GroupPositionOperation]] = {}
        place = facts.topic, facts.partition
        own = (each for each in facts.cluster.group_positions if (each.topic, each.partition) == place)
        for each in sorted(own, key=_time_of):
            client = ForeignProcess.parse(each.process)
            if client is not None:
                self._groups.setdefault(client.client_id, set()).add(each.group_id)
                if each.kind == "fetch" and each.type is OperationType.OK:
                    self._given.setdefault(client.client_id, []).append(each)

    def take(self, poll: Poll) -> None:
        client = ForeignProcess.parse(poll.process)
        if client is None:
            return
        place = poll.process, poll.topic_id
        stream = self._by_process.get(place) or self._continued(client.client_id, poll)
        if stream is not None and self._is_another(stream, client.client_id, poll):
            stream = None
        if stream is None:
            if not poll.crcs:
                return
            stream = _Stream(client.client_id, poll)
            self._streams.append(stream)
        self._by_process[place] = stream
        if poll.error == ErrorCode.OFFSET_OUT_OF_RANGE.name:
            stream.is_out_of_range = True
        elif poll.crcs:
            has_jumped = stream.expected not in (None, poll.position)
            stream.go_on(poll, self._cause(stream, client.client_id, poll) if has_jumped else None)
            self._ends[place] = poll.read_up_to

    def readers(self) -> Iterator[Reader]:
        facts = self._facts
        for stream in self._streams:
            is_known = stream.topic_id in facts.settled
            yield Reader(
                client_id=stream.client_id,
                group_id=self._group_of(stream.client_id),
                topic=facts.topic,
                partition=facts.partition,
                given=stream.given,
                twice=_ranges(stream.twice),
                never=_ranges(_missed(facts, stream)) if is_known else None,
                jumps=tuple(stream.jumps[:_JUMPS_MAX]),
            )

    def _continued(self, client_id: str, poll: Poll) -> _Stream | None:
        """Returns the consumer that a new connection's first poll continues; ``None`` if it continues none."""
        own = [each for each in reversed(self._streams) if each.topic_id == poll.topic_id]
        for stream in own:
            if stream.client_id == client_id and stream.expected == poll.position:
                return stream
        group_id = self._group_of(client_id)
        for stream in own:
            is_of_group = group_id is not None and self._group_of(stream.client_id) == group_id
            if is_of_group and self._was_given(client_id, poll, since_ns=stream.time_ns):
                return stream
        return None

    def _is_another(self, stream: _Stream, client_id: str, poll: Poll) -> bool:
        """Returns whether a connection is another consumer: it goes on from its own end, not from the consumer's."""
        is_at_own_end = self._ends.get((poll.process, poll.topic_id)) == poll.position != stream.expected
        return is_at_own_end and self._cause(stream, client_id, poll) is JumpCause.NOT_KNOWN

    def _cause(self, stream: _Stream, client_id: str, poll: Poll) -> JumpCause:
        if stream.is_out_of_range:
            return JumpCause.OUT_OF_RANGE
        was_given = self._was_given(client_id, poll, since_ns=stream.time_ns)
        return JumpCause.GROUP_POSITION if was_given else JumpCause.NOT_KNOWN

    def _was_given(self, client_id: str, poll: Poll, *, since_ns: int) -> bool:
        """Returns whether a coordinator returned this position to the client since a time, or that it has none."""
        given = self._given.get(client_id, [])
        first, end = bisect_left(given, since_ns, key=_time_of), bisect_right(given, poll.time_ns, key=_time_of)
        return any(each.offset in (None, poll.position) for each in given[first:end])

    def _group_of(self, client_id: str) -> str | None:
        groups = self._groups.get(client_id, set())
        return next(iter(groups)) if len(groups) == 1 else None


def _time_of(operation: GroupPositionOperation) -> int:
    return operation.time_ns


def _missed(facts: PartitionFacts, stream: _Stream) -> Iterator[tuple[int, int]]:
    batches = facts.settled_batches
    own = batches.has("topic_id", stream.topic_id) & (batches["is_control"] == 0)
    passed = own & (batches["last_offset"] >= stream.begin) & (batches["base_offset"] < stream.end)
    for batch in batches.rows(passed):
        first, last = max(batch.base_offset, stream.begin), min(batch.last_offset, stream.end - 1)
        given_from = stream.given_from.get(_Batch(batch.last_offset, batch.crc), last + 1)
        if first < given_from:
            yield first, given_from - 1


def _ranges(found: Iterable[tuple[int, int]]) -> tuple[OffsetRange, ...]:
    return merged(OffsetRange(first=first, last=last) for first, last in found)


_NAMED_MAX: Final = 5


def _named(offsets: Sequence[OffsetRange]) -> str:
    more = f" and {len(offsets) - _NAMED_MAX} more ranges" if len(offsets) > _NAMED_MAX else ""
    return ", ".join(map(str, offsets[:_NAMED_MAX])) + more
