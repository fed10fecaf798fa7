"""The report of lost records: number, place, the fate of each copy; and the story, line by line.

Each part of a report names the lines of the event log that prove it, so that a reader can look them up.
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
        first: the first offset.
        last: the last offset, inclusive.
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
        node: the broker that acknowledged, lost power, got an empty disk, registered, was elected, led again or
            truncated.
        topic: name of the topic.
        partition: number of the partition.
        metadata_offset: of the record that committed it.
        events: the events that prove it; empty if it follows from many.
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
        became: the fate of the copy.
        records: number of records.
        offsets: of the records; ``None`` if they are all records of the loss.
        event: the event that took them; ``None`` if they were kept, or no event records it.
    """

    node: int
    became: CopyFate
    records: int
    offsets: tuple[OffsetRange, ...] | None
    event: EventPlace | None = None


class FirstLacking(msgspec.Struct, frozen=True, kw_only=True):
    """The first leader that took over without the records.

    Attributes:
        node: the leader.
        leader_epoch: the epoch that its election began.
        log_end_offset: its log end offset when it became leader.
        led_again: whether it became leader again in its epoch after a restart; else it lacked them when elected.
    """

    node: int
    leader_epoch: int
    log_end_offset: int
    led_again: bool = False


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Lost records of one partition, acknowledged with acks=all, that share one fate.

    Attributes:
        topic: name of the topic.
        topic_id: UUID of the topic.
        partition: number of the partition.
        records: number of records.
        leader_epoch: in which they were appended; ``None`` if unrecorded.
        offsets: their acknowledged offsets; empty if the acknowledgements have none.
        acked_by: the broker that acknowledged them.
        isr: the ISR as that broker then knew it; ``None`` if its answer is missing.
        acked_at: end of the metadata (exclusive) that this broker had applied then; the highest of all records.
        loss_class: what is left of them.
        holders: brokers whose final logs have them.
        copies: the fate of each copy.
        first_lacking: the first leader without them, if there was one.
        settled_leader: the last broker that became leader, if its process stopped in order; its log decides.
        settled_epoch: the epoch of that leader.
        guarantee: kind of the violation.
        reason: the reason of the loss class.
        story: first the acknowledgement and the holders, then power losses, elections and truncations; losses with
            other fates may share the lines after the first one.
        keys: of the records, as text, at most 100, if a tap recorded keys (``laststand tap --keys``).

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
    """Returns ranges in order, with adjacent ones joined."""
    found: list[OffsetRange] = []
    for span in sorted(offsets, key=lambda o: o.first):
        if found and span.first <= found[-1].last + 1:
            found[-1] = OffsetRange(first=found[-1].first, last=max(found[-1].last, span.last))
        else:
            found.append(span)
    return tuple(found)
