"""Whether a lost record was inside the guarantee (the protocol is wrong) or outside it (too much broke).

The guarantee holds for a record if, from its acknowledgement up to and including the committed election of the first
leader that lacks it,

- at most min(min ISR, replication factor) - 1 replicas of the partition were *outstanding* at a time, and
- no unclean election happened, that of a last-known leader included.

A replica is outstanding from the end of an incarnation without clean shutdown, whether bytes were lost or not, until a
committed ISR contains it after its new registration. Everything is placed by metadata offsets: an acknowledgement by
the metadata that its leader had applied by then (never later than the truth), an end by what the harness noted.
"""

from collections.abc import Iterator
from enum import Enum

import msgspec

from emulator.core.events import BrokerRegistered, Election, IncarnationEnd, IncarnationEnded, PartitionChanged
from emulator.verification.timeline import Timeline


class Guarantee(Enum):
    """Which kind of violation a loss is."""

    BROKEN = "broken"
    """Lost although the guarantee held: the protocol is wrong."""

    EXCEEDED = "exceeded"
    """Lost after more went wrong than the guarantee covers."""


class GuaranteeJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a loss, and the reason in plain words."""

    guarantee: Guarantee
    reason: str


class _Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A replica is outstanding in [since, until) of the metadata log; ``until`` is ``None`` if it never came back."""

    node: int
    since: int
    until: int | None


def judge_guarantee(
    timeline: Timeline, *, topic_id: str, partition: int, acked_at: int, lacking_epoch: int | None
) -> GuaranteeJudgement:
    """Judges the loss of records of one partition.

    Args:
        timeline: of the run.
        topic_id: of the partition's topic.
        partition: its number.
        acked_at: metadata offset that the acknowledging leader had applied (exclusive) when it answered.
        lacking_epoch: leader epoch of the first leader elected without the records; ``None`` if none was seen, then
            everything up to the end of the run counts.
    """
    changes = sorted(
        (c for c in timeline.of(PartitionChanged) if c.topic_id == topic_id and c.partition == partition),
        key=lambda c: c.metadata_offset,
    )
    until = next((c.metadata_offset for c in changes if c.leader_epoch == lacking_epoch and c.leader is not None), None)
    last = until if until is not None else max((c.metadata_offset for c in changes), default=acked_at)
    for change in changes:
        if acked_at <= change.metadata_offset <= last and change.election in (
            Election.UNCLEAN,
            Election.LAST_KNOWN_LEADER,
        ):
            how = "as last-known leader" if change.election is Election.LAST_KNOWN_LEADER else "uncleanly"
            return GuaranteeJudgement(
                guarantee=Guarantee.EXCEEDED,
                reason=f"broker {change.leader} was elected {how} at metadata offset {change.metadata_offset}",
            )
    before = [c for c in changes if c.metadata_offset < max(acked_at, 1)] or changes[:1]
    if not before:
        return GuaranteeJudgement(guarantee=Guarantee.BROKEN, reason="the controller never changed the partition")
    replicas = {replica for c in changes for replica in c.replicas}
    allowed = min(before[-1].effective_min_isr, len(before[-1].replicas)) - 1
    absences = [a for a in _absences(timeline, changes) if a.node in replicas]
    worst: frozenset[int] = frozenset()
    for moment in {acked_at, *(a.since for a in absences)}:
        if acked_at <= moment <= last:
            out = frozenset(a.node for a in absences if a.since <= moment and (a.until is None or moment < a.until))
            worst = max(worst, out, key=len)
    names = "no replica" if not worst else "brokers " + ", ".join(map(str, sorted(worst)))
    were = "was" if not worst else "were"
    if len(worst) == 1:
        names, were = f"broker {min(worst)}", "was"
    if len(worst) > allowed:
        return GuaranteeJudgement(
            guarantee=Guarantee.EXCEEDED,
            reason=f"{names} {were} outstanding at once, each since an end without clean shutdown; "
            f"min ISR allows {allowed}",
        )
    return GuaranteeJudgement(
        guarantee=Guarantee.BROKEN,
        reason=f"only {names} {were} outstanding, min ISR allows {allowed}, and no election was unclean"
        if worst
        else f"no replica was outstanding, min ISR allows {allowed}, and no election was unclean",
    )


def _absences(timeline: Timeline, changes: list[PartitionChanged]) -> Iterator[_Absence]:
    registrations = [
        (r.broker_id, timeline.incarnation_of(r.incarnation_id), r.metadata_offset)
        for r in timeline.of(BrokerRegistered)
    ]
    known = 0
    for end in timeline.of(IncarnationEnded):  # The harness's own order: an unknown offset is not below the last one.
        known = max(known, end.metadata_offset or 0)
        if end.end is IncarnationEnd.STOPPED:
            continue
        registered = min(
            (
                offset
                for broker, incarnation, offset in registrations
                if broker == end.ended_node and incarnation is not None and incarnation > end.ended_incarnation
            ),
            default=None,
        )
        back = (
            None
            if registered is None
            else min(
                (c.metadata_offset for c in changes if c.metadata_offset > registered and end.ended_node in c.isr),
                default=None,
            )
        )
        yield _Absence(node=end.ended_node, since=known, until=back)
