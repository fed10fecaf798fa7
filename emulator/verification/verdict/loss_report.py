"""The report of lost records: number, place, the fate of each copy; and the story, line by line.

Each part of a report names the lines of the event log behind it, so that a reader can place it and look it up.
"""

from collections.abc import Iterable
from enum import Enum

import msgspec

from laststand.emulator.verification.facts.losses import CopyFate, LossClass
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.tables.timeline import EventPlace


class OffsetRange(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets that follow each other.

    Attributes:
        first: the first of them.
        last: the last of them, inclusive.
    """

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


class StoryKind(Enum):
    """The subject of a line of a story."""

    LOST = "lost"
    """The state of the lost records, the broker that acknowledged them, the replicas that held them."""

    POWER_LOST = "power lost"
    DISK_REPLACED = "disk replaced"
    REGISTERED = "registered uncleanly"
    METADATA_FORGOTTEN = "metadata forgotten"
    ELECTED = "elected"
    LED_AGAIN = "led again"
    TRUNCATED = "truncated"
    GUARANTEE = "guarantee"
    """The loss is within the guarantee or not, with the reason."""


class StoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of a story.

    Attributes:
        kind: of the step.
        text: in plain words.
        node: whom it is about: who acknowledged, lost power, got an empty disk, registered, was elected, led again or
            truncated.
        topic: name of the topic.
        partition: number of the partition.
        metadata_offset: of the record that committed it.
        events: behind it; empty where it follows from many.
    """

    kind: StoryKind
    text: str
    node: int | None = None
    topic: str
    partition: int
    metadata_offset: int | None = None
    events: tuple[EventPlace, ...] = ()


class LostCopy(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of some of the lost records on one replica that had them.

    Attributes:
        node: the replica.
        became: what became of them.
        records: how many.
        offsets: of the records; ``None`` where it is all of the loss.
        event: the one that records it; ``None`` where they were kept, or no event records it.
    """

    node: int
    became: CopyFate
    records: int
    offsets: tuple[OffsetRange, ...] | None
    event: EventPlace | None = None


class FirstLacking(msgspec.Struct, frozen=True, kw_only=True):
    """The first leader that took over without the records.

    Attributes:
        node: who it was.
        leader_epoch: that its election began.
        log_end_offset: where its log ended when it took over, exclusive.
        led_again: whether it was elected before, and was restarted since; else it was elected without them.
    """

    node: int
    leader_epoch: int
    log_end_offset: int
    led_again: bool = False


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """acks=all-acked records of one partition that share one fate.

    Attributes:
        topic: name of the topic.
        topic_id: its UUID.
        partition: number of the partition.
        records: how many.
        leader_epoch: in which they were appended; ``None`` where unrecorded.
        offsets: where they were acknowledged to be; none where no producer was told.
        acked_by: the broker that acknowledged them.
        isr: as it knew it then; ``None`` where its answer is missing.
        acked_at: metadata offset up to which it had applied metadata then, exclusive; that of the last of them.
        loss_class: what is left of them.
        holders: brokers whose final logs have them.
        copies: what became of each copy.
        first_lacking: the first leader without them, if there was one.
        settled_leader: the last broker that began to lead, if its process lasted to an orderly end; its log decides.
        settled_epoch: the epoch of that leader.
        guarantee: kind of the violation.
        reason: why it is of that kind.
        story: first who acknowledged and who held them, then what was not flushed, who was elected and why, who
            truncated; losses with other fates may share what follows the first.
        keys: of the records, as text, at most 100, where somebody wrote down keys (``laststand tap --keys``).

    """

    topic: str
    topic_id: str
    partition: int
    records: int
    leader_epoch: int | None
    offsets: tuple[OffsetRange, ...]
    acked_by: int | None
    isr: tuple[int, ...] | None
    acked_at: int | None
    loss_class: LossClass
    holders: tuple[int, ...]
    copies: tuple[LostCopy, ...]
    first_lacking: FirstLacking | None
    settled_leader: int | None
    settled_epoch: int | None
    guarantee: Guarantee
    reason: str
    story: tuple[StoryLine, ...]
    keys: tuple[str, ...] = ()


def merged(offsets: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Returns ranges in order, with those that follow each other as one."""
    found: list[OffsetRange] = []
    for span in sorted(offsets, key=lambda o: o.first):
        if found and span.first <= found[-1].last + 1:
            found[-1] = OffsetRange(first=found[-1].first, last=max(found[-1].last, span.last))
        else:
            found.append(span)
    return tuple(found)
