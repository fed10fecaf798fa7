"""A run as its files tell it: metadata in committed order, what each replica's log held and when, and what clients saw.

Processes share no clock that a check may trust. Three orders are used: that of the lines of one file, that of metadata
offsets, and that of the leader epochs of a partition.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.independent.kafka_log import Batch, FinalLog, read_checkpoint, read_log
from tests.independent.packed import read_packed

Line = dict[str, Any]


class Key(NamedTuple):
    """A partition of one incarnation of a topic."""

    topic: str
    partition: int
    topic_id: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Takeover(NamedTuple):
    """A broker begins to lead, or leads again after a restart.

    Attributes:
        batches: what its log held, by (last offset, CRC).
        has_led: whether a former process of the broker led in that epoch.
    """

    node: int
    incarnation: int
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int
    batches: frozenset[tuple[int, int]]
    has_led: bool

    def lacks(self, places: frozenset[tuple[int, int]]) -> bool:
        """Returns whether a batch is not in its log, which ended before it or has another one there.

        A process that was killed may have appended what it did not tell of; the next one finds it in its log.
        """
        last_offsets = {last for last, _ in places}
        is_replaced = any(last in last_offsets for last, _ in self.batches)
        is_outside = self.log_end_offset <= max(last_offsets) or max(last_offsets) < self.log_start_offset
        return not self.batches & places and (is_replaced or is_outside)


class Commit(NamedTuple):
    """A leader's high watermark rose: what it committed, by the log that it had."""

    node: int
    incarnation: int
    leader_epoch: int
    high_watermark: int
    batches: tuple[Batch, ...]


class Cut(NamedTuple):
    """A follower cut its log off; with the batches that went."""

    node: int
    leader_epoch: int
    old_end_offset: int
    new_end_offset: int
    reason: str
    batches: tuple[Batch, ...]


class Poll(NamedTuple):
    """The answer to one fetch of a consumer."""

    process: str
    phase: str
    key: Key
    node: int
    leader_epoch: int | None
    position: int
    is_seek: bool
    error: str | None
    batches: tuple[Batch, ...]


class Send(NamedTuple):
    """A batch that a producer sent, when it was through. Places in the history order sends of one file."""

    process: str
    operation_id: str
    key: Key
    file: str
    begun: int
    ended: int
    acks: int
    result: str
    base_offset: int | None
    record_count: int
    crcs: frozenset[int]
    attempts: tuple[Line, ...]

    @property
    def last_offset(self) -> int:
        assert self.base_offset is not None
        return self.base_offset + self.record_count - 1

    @property
    def places(self) -> frozenset[tuple[int, int]]:
        """Places of an acknowledged batch, one by each CRC that an attempt had."""
        return frozenset((self.last_offset, crc) for crc in self.crcs)


class Run:
    """The evidence of a run that the checks use.

    Args:
        directory: of the run.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.doubts: list[str] = []
        self.files: dict[tuple[int, int], list[Line]] = {}
        self.harness: list[Line] = []
        for path in sorted((directory / "events").iterdir()):
            lines = list(_lines(path))
            if not lines:
                continue
            if path.stem.startswith("harness"):
                self.harness = lines
            else:
                self.files[lines[0]["node"], lines[0]["incarnation"]] = lines
        self.controllers = {key[0] for key, lines in self.files.items() if lines[0].get("role") != "broker"}
        """Nodes that commit metadata: controllers, and ZooKeeper's server."""
        self.metadata = self._committed()
        self.deleted = {line["topic_id"] for line in self.metadata if line["type"] == "TopicDeleted"}
        created = [line["topic_id"] for line in self.metadata if line["type"] == "TopicCreated"]
        self.ambiguous = {topic_id for topic_id in created if created.count(topic_id) > 1}
        self.ids = {line["topic"]: line["topic_id"] for line in self.metadata if line["type"] == "TopicCreated"}
        self.states: dict[Key, list[Line]] = defaultdict(list)
        for line in self.metadata:
            if line["type"] == "PartitionChanged":
                self.states[self._key(line)].append(line)
        self.has_settled = any(line["type"] == "ClusterSettled" for line in self.harness)
        self._ended_in_order = {
            (line["ended_node"], line["ended_incarnation"])
            for line in self.harness
            if line["type"] == "IncarnationEnded" and line["end"] == "stopped"
        }
        self.sends: list[Send] = []
        self.polls: list[Poll] = []
        self.transactions: dict[str, Line] = {}
        """The last line of each transaction, by its operation."""
        self.committed_reads: list[tuple[Key, Line]] = []
        self.final_reads: dict[Key, tuple[int, int]] = {}
        self._read_histories()
        self.takeovers: dict[Key, list[Takeover]] = defaultdict(list)
        self.commits: dict[Key, list[Commit]] = defaultdict(list)
        self.cuts: dict[Key, list[Cut]] = defaultdict(list)
        self.appended: dict[Key, list[tuple[int, str, Batch]]] = defaultdict(list)
        self.removed: dict[Key, set[Batch]] = defaultdict(set)
        """Batches that a leader that had them deleted as somebody asked, in their epoch or a later one.

        A follower that takes over a log start deletes what nobody may have asked for (S51).
        """
        self.lost_with_disk: dict[Key, set[tuple[int, tuple[int, int]]]] = defaultdict(set)
        """Node and place of batches that a power loss, or the replacement of its disk, took from a replica."""
        self.high_watermarks: dict[tuple[Key, int], list[tuple[int | None, int]]] = defaultdict(list)
        """By replica: its high watermarks, each with the leader epoch that it knew."""
        self._replay_logs()
        self.logs = self._final_logs()

    def kept(self) -> Iterator[Key]:
        """Yields the partitions whose topics were neither deleted nor mixed up with others of the name."""
        for key in self.states:
            if key.topic_id not in self.deleted and key.topic_id not in self.ambiguous:
                yield key

    def settled(self, key: Key) -> tuple[int, int] | None:
        """Returns leader and epoch whose log decides: the last that began to lead, if its process ended in order.

        Where no node writes events, it is who served the final consumer, else who led when all was over.
        """
        if self.takeovers[key]:
            last = max(self.takeovers[key], key=lambda each: (each.leader_epoch, each.incarnation))
            return (last.node, last.leader_epoch) if (last.node, last.incarnation) in self._ended_in_order else None
        for poll in reversed(self.polls):
            if poll.key == key and poll.phase == "final" and poll.error is None and poll.leader_epoch is not None:
                return poll.node, poll.leader_epoch
        shutdown = next((line["time_ns"] for line in self.harness if line["type"] == "ShutdownBegan"), None)
        states = [state for state in self.states[key] if shutdown is None or state["time_ns"] <= shutdown]
        if not states or states[-1]["leader"] is None:
            return None
        return states[-1]["leader"], states[-1]["leader_epoch"]

    def unclean_between(self, key: Key, after: int, until: int) -> bool:
        """Returns whether an unclean election, the last known leader's included, began an epoch in (after, until]."""
        return any(
            state["election"] in ("unclean", "last_known_leader") and after < state["leader_epoch"] <= until
            for state in self.states[key]
        )

    def _committed(self) -> list[Line]:
        found: dict[tuple[object, ...], Line] = {}
        for (node, _), lines in sorted(self.files.items()):
            if node not in self.controllers:
                continue
            for line in lines:
                if "metadata_offset" in line:
                    what = (line["metadata_offset"], line["type"], line.get("topic"), line.get("partition"))
                    found.setdefault((*what, line.get("path"), line.get("name"), line.get("broker_id")), line)
        return sorted(found.values(), key=lambda line: (line["metadata_offset"], line["sequence"]))

    def _key(self, line: Line) -> Key:
        """Returns the partition of a line; a topic that ZooKeeper gave an id later is the one that had none."""
        topic: str = line["topic"]
        known: str = line.get("topic_id") or ""
        if known in ("", f"~{topic}") and known not in self.deleted:
            known = self.ids.get(topic, known)
        return Key(topic, line["partition"], known)

    def _answered_ids(self) -> dict[tuple[str, str, int], str]:
        """Returns the id of the topic for which brokers answered, by operation and partition: the latest topic's."""
        found: dict[tuple[str, str, int], str] = {}
        created = [key.topic_id for key in self.states]
        for lines in self.files.values():
            for line in lines:
                if line["type"] == "ProduceAnswered" and line["topic_id"] in created:
                    what = line["cause_id"], line["topic"], line["partition"]
                    found[what] = max(found.get(what, created[0]), line["topic_id"], key=created.index)
        return found

    def _may_expire(self) -> bool:
        """Returns whether any record may have been too old or too many; clients have clocks that err by a day."""
        times = [line["time_ns"] for line in self.harness]
        oldest_ms = max(24 * 3600 * 1000, (max(times, default=0) - min(times, default=0)) // 1_000_000)
        limits = [limit for lines in self.files.values() for limit in lines[0].get("properties", {}).items()]
        limits += [(line["name"], line["value"]) for line in self.metadata if line["type"] == "ConfigChanged"]
        if any(line["type"] == "FaultInjected" and line["fault"].startswith("clock") for line in self.harness):
            return True
        return any(
            value is not None and int(value) >= 0 and (name.endswith("retention.bytes") or int(value) <= oldest_ms)
            for name, value in limits
            if name.removeprefix("log.") in ("retention.ms", "retention.bytes")
        )

    def _deletable(self) -> dict[str, float]:
        """Returns below which offset somebody wanted records to be deleted, by partition such as ``orders-0``."""
        found: dict[str, float] = defaultdict(lambda: math.inf if self._may_expire() else 0)
        for line in (each for lines in (self.harness, *self.files.values()) for each in lines):
            for asked in line.get("deletions", ()):
                below = math.inf if asked["offset"] is None else asked["offset"]
                found[asked["partition"]] = max(found[asked["partition"]], below)
        return found

    def _read_histories(self) -> None:
        files = [*self.directory.glob("history.*"), *sorted((self.directory / "history").glob("*"))]
        begun: dict[tuple[str, str], int] = {}
        answered = self._answered_ids()
        for file in files:
            for line in _lines(file):
                kind = line["f"]
                if kind == "sealed":
                    continue
                if kind == "transaction":
                    self.transactions[line["operation_id"]] = line
                if kind in ("session", "transaction") or "topic" not in line:
                    continue
                key = self._key(line)
                if kind == "send" and key.topic_id in self.deleted:  # its client may not know of the next topic
                    key = key._replace(topic_id=answered.get((line["operation_id"], *key[:2]), key.topic_id))
                if kind in ("committed_read", "group_read"):
                    self.committed_reads.append((key, line))
                elif kind == "send" and line["type"] == "invoke":
                    begun[line["process"], line["operation_id"]] = line["index"]
                elif kind == "send":
                    started = begun.pop((line["process"], line["operation_id"]), None)
                    attempts = tuple(line["attempts"])
                    self.sends.append(
                        Send(
                            line["process"], line["operation_id"], key, file.name,
                            line["index"] if started is None else started,
                            line["index"], line["acks"], line["type"], line["base_offset"], line["record_count"],
                            frozenset(attempt["crc"] for attempt in attempts), attempts,
                        )
                    )  # fmt: skip
                elif kind == "poll":
                    batches = tuple(
                        Batch(each["base_offset"], each["last_offset"], each["leader_epoch"], each["crc"])
                        for each in line["batches"]
                    )
                    self.polls.append(
                        Poll(
                            line["process"], line["phase"], key, line["node"], line["leader_epoch"], line["position"],
                            line["seek"], line["error"], batches,
                        )
                    )  # fmt: skip
                elif kind == "final_read" and line["error"] is None and line["end_offset"] is not None:
                    self.final_reads[key] = line["start_offset"], line["end_offset"]
        if begun:
            self.doubts.append(f"{len(begun)} sends were begun and never completed")

    def _replay_logs(self) -> None:
        held: dict[tuple[Key, int], list[Batch]] = defaultdict(list)
        below_start: dict[tuple[Key, int], list[Batch]] = defaultdict(list)
        """Batches that a log start left out: it may not have been on the disk when the process was killed."""
        deletable, may_expire = self._deletable(), self._may_expire()
        led: dict[tuple[Key, int], set[tuple[int, int]]] = defaultdict(set)
        for (node, incarnation), lines in sorted(self.files.items()):
            if node in self.controllers:
                continue
            ends: dict[Key, int] = {}
            starts: dict[Key, int] = defaultdict(int)
            leading: dict[Key, int] = {}
            following: dict[Key, int] = {}
            """Epochs of followers: what expires, each replica deletes by itself."""
            for line in lines:
                if "topic_id" not in line or "partition" not in line:
                    continue
                key = self._key(line)
                place = key, node
                match line["type"]:
                    case "LogOpened":
                        end = ends[key] = line["log_end_offset"]
                        starts[key] = line["log_start_offset"]
                        known = below_start.pop(place, []) + held[place]
                        held[place] = [each for each in known if starts[key] <= each.last_offset < end]
                        self.high_watermarks[place].append((None, line["high_watermark"]))
                    case "BatchAppended":
                        batch = Batch(
                            line["base_offset"], line["last_offset"], line["leader_epoch"], line["crc"],
                            -1 if line["producer_id"] is None else line["producer_id"], line["producer_epoch"],
                            line["base_sequence"],
                        )  # fmt: skip
                        held[place].append(batch)
                        self.lost_with_disk[key].discard((node, batch.place))
                        ends[key] = batch.last_offset + 1
                        self.appended[key].append((node, line["role"], batch))
                    case "LogTruncated":
                        end = ends[key] = line["new_end_offset"]
                        gone = tuple(each for each in held[place] if each.last_offset >= end)
                        if line["reason"] == "restarted":
                            gone, starts[key] = tuple(held[place]), end
                            below_start.pop(place, None)
                        held[place] = [each for each in held[place] if each not in gone]
                        marks = self.high_watermarks[place]
                        marks.append((line["leader_epoch"], min(marks[-1][1] if marks else 0, end)))
                        self.cuts[key].append(
                            Cut(node, line["leader_epoch"], line["old_end_offset"], end, line["reason"], gone)
                        )
                    case "LogDeleted" | "StrayDeleted":
                        held[place] = []
                        below_start.pop(place, None)
                    case "LogStartOffsetRaised":
                        starts[key] = line["new"]
                        led_in = leading.get(key, following.get(key, -1) if may_expire else -1)
                        gone = tuple(each for each in held[place] if each.last_offset < line["new"])
                        below_start[place].extend(gone)
                        below = min(line["new"], deletable[str(key)])
                        self.removed[key].update(
                            each
                            for each in gone
                            if line["old"] <= each.last_offset < below and each.leader_epoch <= led_in
                        )
                        held[place] = [each for each in held[place] if each not in gone]
                    case "BecameLeader":
                        epoch: int = line["leader_epoch"]
                        leading[key] = epoch
                        again = any(before == epoch and number < incarnation for before, number in led[place])
                        led[place].add((epoch, incarnation))
                        content = frozenset(each.place for each in held[place])
                        led_from: int = line["epoch_start_offset"]
                        self.takeovers[key].append(
                            Takeover(node, incarnation, epoch, starts[key], ends.get(key, led_from), content, again)
                        )
                        self.high_watermarks[place].append((epoch, line["high_watermark"]))
                    case "BecameFollower":
                        leading.pop(key, None)
                        following[key] = line["leader_epoch"]
                        self.high_watermarks[place].append((line["leader_epoch"], line["high_watermark"]))
                    case "HighWatermarkAdvanced":
                        new = line["new"]
                        risen = tuple(each for each in held[place] if line["old"] <= each.last_offset < new)
                        self.commits[key].append(Commit(node, incarnation, line["leader_epoch"], new, risen))
                        self.high_watermarks[place].append((line["leader_epoch"], new))
                    case "FollowerHighWatermarkUpdated":
                        self.high_watermarks[place].append((line["leader_epoch"], line["new"]))
            self._lose_with_disk(held, node, incarnation)

    def _lose_with_disk(self, held: dict[tuple[Key, int], list[Batch]], node: int, incarnation: int) -> None:
        """Records the batches that a replica lost when a process of its broker had ended."""
        for line in self.harness:
            if (line.get("lost_node"), line.get("lost_incarnation")) == (node, incarnation):
                for (key, holder), batches in held.items():
                    if holder == node and (line["topic"], line["partition"]) == (key.topic, key.partition):
                        self.lost_with_disk[key].update(
                            (node, each.place) for each in batches if each.last_offset >= line["new_end_offset"]
                        )

    def _final_logs(self) -> dict[Key, dict[int, FinalLog]]:
        logs: dict[Key, dict[int, FinalLog]] = defaultdict(dict)
        for node in sorted((self.directory / "nodes").glob("*")):
            data = node / "data"
            starts = read_checkpoint(data / "log-start-offset-checkpoint")
            for key in self.states:
                directory = data / str(key)
                if directory.is_dir():
                    log = read_log(directory, starts.get(str(key)))
                    if log.topic_id in ("", key.topic_id) or key.topic_id.startswith("~"):
                        logs[key][int(node.name)] = log
        return logs


def _lines(path: Path) -> Iterator[Line]:
    data = path.read_bytes()
    if path.suffix == ".packed":
        yield from read_packed(data)
        return
    for text in data.splitlines():
        try:
            yield json.loads(text)
        except ValueError:
            return  # the torn last line of a process that was killed
