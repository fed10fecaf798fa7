"""Reads the lines that a Kafka broker prints about its replicas: roles, truncations, and raised log starts.

The lines are those of ``Partition.makeLeader`` and ``makeFollower``, ``ReplicaManager.getOrCreatePartition``,
``AbstractFetcherThread`` (the reason of a truncation), ``UnifiedLog.truncateTo`` (the truncation),
``LogManager.loadLog`` and ``UnifiedLog.maybeIncrementLogStartOffset``, at level INFO, as Kafka 3.9 to 4.4 print them.

The line of a truncation has only the new end. A follower truncates before it appends, so the old end is the one that it
logged when it began to follow, or at its last truncation since then. A truncation whose old end or reason is not logged
is left out. A rise of a log's start has only the new start; the old one is what the process logged last, or 0. If a log
is restarted because all of it was dropped, Kafka prints nothing.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.core.events import (
    BecameFollower,
    BecameLeader,
    LogStartOffsetRaised,
    LogTruncated,
    PartitionEvent,
)
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TruncationReason,
)

_PARTITION: Final = r"(?P<topic>[\w.-]+)-(?P<partition>\d+)"
_CREATING: Final = re.compile(rf"Creating new partition {_PARTITION} with topic id (?P<id>[\w-]+)")
_LEADER: Final = re.compile(
    rf"Leader {_PARTITION} with topic id \S+ starts at leader epoch (?P<leader_epoch>\d+) from offset (?P<end>\d+)"
    r" with partition epoch (?P<partition_epoch>\d+), high watermark (?P<high_watermark>\d+), ISR \[(?P<isr>[\d, ]*)\]"
)
_FOLLOWER: Final = re.compile(
    rf"Follower {_PARTITION} starts at leader epoch (?P<leader_epoch>\d+) from offset (?P<end>\d+)"
    r" with partition epoch (?P<partition_epoch>\d+) and high watermark (?P<high_watermark>\d+)\."
    r" Current leader is (?P<leader>-?\d+)"
)
_WHY: Final = re.compile(
    rf"Truncating partition {_PARTITION} with .* due to (?P<why>local high watermark|leader epoch and offset)"
)
_CUT: Final = re.compile(rf"\[UnifiedLog partition={_PARTITION}, dir=.*\] Truncating to offset (?P<end>\d+)$")
_LOADED: Final = re.compile(
    r"Completed load of Log\(dir=.*, topic=(?P<topic>[\w.-]+), partition=(?P<partition>\d+), .*"
    r"logStartOffset=(?P<start>\d+), "
)
_RAISED: Final = re.compile(
    rf"\[UnifiedLog partition={_PARTITION}, dir=.*\] Incremented log start offset to (?P<start>\d+) due to "
)
_REASONS: Final = {
    "local high watermark": TruncationReason.HIGH_WATERMARK,
    "leader epoch and offset": TruncationReason.DIVERGING_EPOCH,
}

_Name = tuple[str, int]
"""Topic and partition."""


class _Follower(NamedTuple):
    """The last line of a follower about its log."""

    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    log_end_offset: Offset
    high_watermark: Offset


class BrokerLogLines:
    """The lines of one process, in its order.

    Args:
        cause_id: of the events.
    """

    def __init__(self, cause_id: CauseId) -> None:
        self._cause_id = cause_id
        self._topic_ids: dict[_Name, TopicId] = {}
        self._followers: dict[_Name, _Follower] = {}
        self._reasons: dict[_Name, TruncationReason] = {}
        self._log_starts: dict[_Name, Offset] = {}

    def events(self, lines: Iterable[str]) -> Iterator[PartitionEvent]:
        """Yields the events of further lines."""
        for line in lines:
            if (creating := _CREATING.search(line)) is not None:
                self._topic_ids[_name(creating)] = TopicId(creating["id"])
            elif (why := _WHY.search(line)) is not None:
                self._reasons[_name(why)] = _REASONS[why["why"]]
            elif (loaded := _LOADED.search(line)) is not None:
                self._log_starts[_name(loaded)] = Offset(int(loaded["start"]))
            else:
                yield from self._events_of_line(line)

    def _events_of_line(self, line: str) -> Iterator[PartitionEvent]:
        match = _LEADER.search(line) or _FOLLOWER.search(line) or _CUT.search(line) or _RAISED.search(line)
        if match is None:
            return
        topic_id = self._topic_ids.get(_name(match))
        if topic_id is None:
            return
        if match.re is _LEADER:
            yield self._lead(match, topic_id)
        elif match.re is _FOLLOWER:
            yield self._follow(match, topic_id)
        elif match.re is _RAISED:
            yield self._raise_log_start(match, topic_id)
        else:
            yield from self._cut(match, topic_id)

    def _lead(self, match: re.Match[str], topic_id: TopicId) -> BecameLeader:
        topic, partition = _name(match)
        self._followers.pop((topic, partition), None)
        return BecameLeader(
            cause_id=self._cause_id,
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            leader_epoch=LeaderEpoch(int(match["leader_epoch"])),
            partition_epoch=PartitionEpoch(int(match["partition_epoch"])),
            epoch_start_offset=Offset(int(match["end"])),
            high_watermark=Offset(int(match["high_watermark"])),
            isr=tuple(BrokerId(NodeId(int(member))) for member in match["isr"].split(",") if member),
        )

    def _follow(self, match: re.Match[str], topic_id: TopicId) -> BecameFollower:
        topic, partition = _name(match)
        leader = int(match["leader"])
        follower = self._followers[topic, partition] = _Follower(
            leader=None if leader < 0 else BrokerId(NodeId(leader)),
            leader_epoch=LeaderEpoch(int(match["leader_epoch"])),
            log_end_offset=Offset(int(match["end"])),
            high_watermark=Offset(int(match["high_watermark"])),
        )
        self._reasons.pop((topic, partition), None)
        return BecameFollower(
            cause_id=self._cause_id,
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            leader=follower.leader,
            leader_epoch=follower.leader_epoch,
            partition_epoch=PartitionEpoch(int(match["partition_epoch"])),
            log_end_offset=follower.log_end_offset,
            high_watermark=follower.high_watermark,
        )

    def _cut(self, match: re.Match[str], topic_id: TopicId) -> Iterator[LogTruncated]:
        topic, partition = _name(match)
        new_end_offset = Offset(int(match["end"]))
        follower = self._followers.get((topic, partition))
        reason = self._reasons.pop((topic, partition), None)
        if follower is None or reason is None or follower.log_end_offset <= new_end_offset:
            return
        self._followers[topic, partition] = follower._replace(
            log_end_offset=new_end_offset, high_watermark=min(follower.high_watermark, new_end_offset)
        )
        yield LogTruncated(
            cause_id=self._cause_id,
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            reason=reason,
            old_end_offset=follower.log_end_offset,
            new_end_offset=new_end_offset,
            high_watermark=follower.high_watermark,
            leader=follower.leader,
            leader_epoch=follower.leader_epoch,
        )

    def _raise_log_start(self, match: re.Match[str], topic_id: TopicId) -> LogStartOffsetRaised:
        topic, partition = _name(match)
        old = self._log_starts.get((topic, partition), Offset(0))
        new = self._log_starts[topic, partition] = Offset(int(match["start"]))
        return LogStartOffsetRaised(
            cause_id=self._cause_id, topic=topic, partition=partition, topic_id=topic_id, old=old, new=new
        )


class BrokerLogReader:
    """Follows a process's output, from the present end of the file.

    Args:
        path: the file, which need not exist yet; earlier processes may have written to it.
        cause_id: of the events.
    """

    def __init__(self, path: Path, *, cause_id: CauseId) -> None:
        self._path = path
        self._position = path.stat().st_size if path.exists() else 0
        self._lines = BrokerLogLines(cause_id)

    def read_new(self) -> list[PartitionEvent]:
        """Returns the events of the whole lines printed since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._position += len(whole)
        return list(self._lines.events(whole.decode(errors="replace").splitlines()))


def _name(match: re.Match[str]) -> _Name:
    return match["topic"], int(match["partition"])
