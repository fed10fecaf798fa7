"""Tells, from query results only, how acknowledged records were lost and how leadership moved.

Lost batches are grouped by fate: who acknowledged them in which epoch with which ISR, who held them, which leader first
lacked them, what is left. Each group becomes one ``Loss``: its numbers and a handful of sentences. Sentences about the
controller are ordered by metadata offset, those about one node by its own sequence; nothing is ordered by a clock.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from emulator.core.events import BrokerRegistered, Election, LogTruncated, PartitionChanged, PowerLost
from emulator.verification.guarantee import judge_guarantee
from emulator.verification.losses import LossClass
from emulator.verification.timeline import Timeline
from emulator.verification.verdict import Loss, OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEADER_LINES_MAX: Final = 60
"""Committed states that a report lists per run; further ones are counted."""

_RANGES_TOLD_MAX: Final = 4

# A leader may answer for one offset twice, after a truncation: the answer that belongs to a batch is the one with the
# send's cause id, else the first after the batch was appended.
_FATES: Final = """
    WITH held AS (
        SELECT l.run, l.operation_id, l.base_offset, array_sort(collect_set(b.node)) AS held_by,
               min(IF(b.node = l.node, struct(b.incarnation, b.sequence), NULL)) AS appended
        FROM lost_batch l
        JOIN batch_appended b ON b.run = l.run AND b.topic_id = l.topic_id AND b.partition = l.partition
             AND b.base_offset = l.base_offset AND b.crc = l.crc
        GROUP BY l.run, l.operation_id, l.base_offset),
    answer AS (
        SELECT run, topic_id, partition, node, base_offset, committed_isr, cause_id, applied,
               struct(incarnation, sequence) AS answered
        FROM (SELECT *, max(end_offset) OVER (PARTITION BY run, node, incarnation ORDER BY sequence) AS applied
              FROM (SELECT run, topic_id, partition, node, incarnation, sequence, base_offset, committed_isr, acks,
                           error, cause_id, CAST(NULL AS BIGINT) AS end_offset FROM produce_answered
                    UNION ALL
                    SELECT run, NULL, NULL, node, incarnation, sequence, NULL, NULL, NULL, NULL, NULL, end_offset
                    FROM metadata_applied))
        WHERE acks = -1 AND error = 'NONE'),
    acknowledgement AS (
        SELECT l.run, l.operation_id, l.base_offset,
               min_by(p.committed_isr, struct(p.cause_id <> l.operation_id, answered)) AS isr,
               min_by(p.applied, struct(p.cause_id <> l.operation_id, answered)) AS acked_at
        FROM lost_batch l
        JOIN held h ON h.run = l.run AND h.operation_id = l.operation_id AND h.base_offset = l.base_offset
        JOIN answer p ON p.run = l.run AND p.topic_id = l.topic_id AND p.partition = l.partition AND p.node = l.node
             AND p.base_offset = l.base_offset AND p.answered > h.appended
        GROUP BY l.run, l.operation_id, l.base_offset)
    SELECT l.run, l.topic, l.topic_id, l.partition, l.node, l.leader_epoch, a.isr, max(a.acked_at) AS acked_at,
           h.held_by, array_sort(l.holders) AS holders, l.lacking_epoch, l.lacking_node,
           max(l.lacking_end_offset) AS lacking_end_offset,
           l.leader, l.settled_epoch, l.loss_class, sum(l.record_count) AS records,
           array_sort(collect_list(struct(l.base_offset AS first, l.last_offset AS last))) AS offsets
    FROM lost_batch l
    LEFT JOIN acknowledgement a ON a.run = l.run AND a.operation_id = l.operation_id AND a.base_offset = l.base_offset
    LEFT JOIN held h ON h.run = l.run AND h.operation_id = l.operation_id AND h.base_offset = l.base_offset
    WHERE l.acks = -1
    GROUP BY l.run, l.topic, l.topic_id, l.partition, l.node, l.leader_epoch, a.isr, h.held_by, l.holders,
             l.lacking_epoch, l.lacking_node, l.leader, l.settled_epoch, l.loss_class
"""


class _Fate(msgspec.Struct, frozen=True, kw_only=True):
    run: int
    topic: str
    topic_id: str
    partition: int
    node: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    acked_at: int | None
    held_by: tuple[int, ...] | None
    holders: tuple[int, ...]
    lacking_epoch: int | None
    lacking_node: int | None
    lacking_end_offset: int | None
    leader: int | None
    settled_epoch: int | None
    loss_class: LossClass
    records: int
    offsets: tuple[OffsetRange, ...]


def describe_losses(timelines: tuple[Timeline, ...], *, spark: "SparkSession") -> tuple[tuple[Loss, ...], ...]:
    """Returns the lost acks=all records of each run, by partition, offsets and fate."""
    losses: list[list[Loss]] = [[] for _ in timelines]
    fates = [msgspec.convert(row.asDict(recursive=True), _Fate) for row in spark.sql(_FATES).collect()]
    for fate in sorted(fates, key=lambda f: (f.run, f.topic, f.partition, f.offsets[0].first)):
        losses[fate.run].append(_loss(fate, timelines[fate.run]))
    return tuple(map(tuple, losses))


def _loss(fate: _Fate, timeline: Timeline) -> Loss:
    lacking_epoch = fate.lacking_epoch if fate.lacking_epoch is not None else fate.settled_epoch
    judgement = judge_guarantee(
        timeline,
        topic_id=fate.topic_id,
        partition=fate.partition,
        acked_at=fate.acked_at if fate.acked_at is not None else _epoch_start(fate, timeline),
        lacking_epoch=lacking_epoch,
    )
    return Loss(
        topic=fate.topic,
        partition=fate.partition,
        records=fate.records,
        offsets=_merged(fate.offsets),
        loss_class=fate.loss_class,
        guarantee=judgement.guarantee,
        reason=judgement.reason,
        story=(
            " ".join(_head(fate)),
            *_what_happened(fate, timeline),
            f"Guarantee {judgement.guarantee.value}: {judgement.reason}.",
        ),
    )


def _epoch_start(fate: _Fate, timeline: Timeline) -> int:
    """Where the epoch began in which the batch was appended: the ack came later."""
    return min(
        (
            change.metadata_offset
            for change in timeline.of(PartitionChanged)
            if change.topic_id == fate.topic_id
            and change.partition == fate.partition
            and change.leader_epoch == fate.leader_epoch
        ),
        default=0,
    )


def _head(fate: _Fate) -> Iterator[str]:
    name = f"{fate.topic}-{fate.partition}"
    ranges = _merged(fate.offsets)
    offsets = ", ".join(map(str, ranges))
    if len(ranges) > _RANGES_TOLD_MAX:
        offsets = f"{ranges[0].first} to {ranges[-1].last} in {len(ranges)} ranges"
    yield (
        f"{fate.records:,} records of {name} acknowledged with acks=all, offsets {offsets}, "
        f"are {fate.loss_class.value}{f' (on {_brokers(fate.holders)})' if fate.holders else ''}."
    )
    isr = "unknown" if fate.isr is None else str(list(fate.isr))
    yield (
        f"Broker {_or_unknown(fate.node)} acknowledged them, with ISR {isr}; "
        f"they were appended in epoch {_or_unknown(fate.leader_epoch)}."
    )
    if fate.held_by:
        yield f"They were in the logs of {_brokers(fate.held_by)}."


def _what_happened(fate: _Fate, timeline: Timeline) -> Iterator[str]:
    first = fate.offsets[0].first
    last = max(span.last for span in fate.offsets)
    for lost in timeline.of(PowerLost):
        if (lost.topic_id, lost.partition) == (fate.topic_id, fate.partition) and lost.new_end_offset <= last:
            yield from _power_loss_sentence(lost, fate)
    for registered in timeline.of(BrokerRegistered):
        returned = registered.stored_broker_epoch is not None
        if returned and not registered.is_clean and registered.broker_id == fate.lacking_node:
            yield (
                f"Broker {registered.broker_id} registered again at metadata offset {registered.metadata_offset}, "
                "and the controller took its shutdown for unclean."
            )
    yield from _election_sentence(fate, timeline)
    for cut in timeline.events:
        event = cut.event
        if not isinstance(event, LogTruncated) or (event.topic_id, event.partition) != (fate.topic_id, fate.partition):
            continue
        if event.new_end_offset <= last and event.old_end_offset > first and cut.node in (fate.held_by or ()):
            yield (
                f"Broker {cut.node} truncated its log from {event.old_end_offset} to {event.new_end_offset} "
                f"({event.reason.replace('_', ' ')}), following leader {_or_unknown(event.leader)} "
                f"in epoch {event.leader_epoch}."
            )


def _power_loss_sentence(lost: PowerLost, fate: _Fate) -> Iterator[str]:
    if lost.old_end_offset <= lost.new_end_offset or lost.lost_node not in (fate.held_by or ()):
        return
    kept = "none of it had been flushed" if lost.new_end_offset == 0 else f"kept up to offset {lost.new_end_offset}"
    yield (
        f"Broker {lost.lost_node} lost power (keep: {lost.keep}): its log ended at {lost.old_end_offset} before and at "
        f"{lost.new_end_offset} after, {kept}."
    )


def _election_sentence(fate: _Fate, timeline: Timeline) -> Iterator[str]:
    epoch = fate.lacking_epoch if fate.lacking_epoch is not None else fate.settled_epoch
    for change in timeline.of(PartitionChanged):
        if (
            (change.topic_id, change.partition, change.leader_epoch) == (fate.topic_id, fate.partition, epoch)
            and change.election is not Election.NONE
            and change.leader is not None
        ):
            end = "" if fate.lacking_end_offset is None else f", with a log that ended at {fate.lacking_end_offset}"
            yield (
                f"The controller elected broker {change.leader} in epoch {change.leader_epoch} "
                f"({_election_words(change.election)}; cause: {_cause(change)}){end}; "
                f"ISR {list(change.isr)}, ELR {list(change.elr)}."
            )


def describe_leaders(timeline: Timeline) -> tuple[str, ...]:
    """Returns the partitions' committed states in the controller's order, in plain words."""
    changes = sorted(timeline.of(PartitionChanged), key=lambda c: c.metadata_offset)
    lines = [
        f"{c.topic}-{c.partition} epoch {c.leader_epoch}: leader {_or_none(c.leader)}, ISR {list(c.isr)}, "
        f"ELR {list(c.elr)} ({_cause(c)}{_elected(c)})"
        for c in changes
    ]
    if len(lines) > LEADER_LINES_MAX:
        lines = [*lines[:LEADER_LINES_MAX], f"and {len(lines) - LEADER_LINES_MAX} more changes"]
    return tuple(lines)


def _elected(change: PartitionChanged) -> str:
    return "" if change.election is Election.NONE else f"; {_election_words(change.election)}"


def _election_words(election: Election) -> str:
    match election:
        case Election.NONE:
            return "no election"
        case Election.ISR:
            return "elected as a member of the ISR"
        case Election.ELR:
            return "elected as an eligible leader replica"
        case Election.LAST_KNOWN_LEADER:
            return "elected as the last known leader"
        case Election.UNCLEAN:
            return "elected uncleanly"
        case Election.NO_CANDIDATE:
            return "no candidate left"


def _cause(change: PartitionChanged) -> str:
    who = "" if change.broker_id is None else f" {change.broker_id}"
    return f"{change.reason.replace('_', ' ')}{who}"


def _brokers(nodes: tuple[int, ...]) -> str:
    if len(nodes) == 1:
        return f"broker {nodes[0]}"
    return f"brokers {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"


def _or_none(node: int | None) -> str:
    return "none" if node is None else str(node)


def _or_unknown(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _merged(offsets: tuple[OffsetRange, ...]) -> tuple[OffsetRange, ...]:
    merged: list[OffsetRange] = []
    for span in sorted(offsets, key=lambda o: o.first):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = OffsetRange(first=merged[-1].first, last=max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return tuple(merged)
