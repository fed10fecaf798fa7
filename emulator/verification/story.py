"""Tells how acknowledged records were lost and how leadership moved.

Lost batches are grouped by fate: who acknowledged them in which epoch with which ISR, who held them, which leader first
lacked them, what is left. Each group becomes one ``Loss``: its numbers and a handful of sentences. Sentences about the
controller are ordered by metadata offset, those about one node by its own sequence; nothing is ordered by a clock.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from emulator.core.events import (
    BatchAppended,
    BrokerRegistered,
    Election,
    LogTruncated,
    PartitionChanged,
    PowerLost,
    ProduceAnswered,
)
from emulator.verification.guarantee import judge_guarantee
from emulator.verification.losses import LossClass
from emulator.verification.partition_facts import ACKS_ALL, AckedBatch, LostBatch, PartitionFacts
from emulator.verification.timeline import CollectedEvent, Timeline
from emulator.verification.verdict import Loss, OffsetRange

LEADER_LINES_MAX: Final = 60
"""Committed states that a report lists per run; further ones are counted."""

_RANGES_TOLD_MAX: Final = 4

_Place = tuple[int, int]
"""Incarnation and sequence of one node."""


class _Identity(NamedTuple):
    """What batches that share one fate have in common; ``isr`` as the acknowledging leader knew it."""

    node: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    held_by: tuple[int, ...]
    holders: tuple[int, ...]
    lacking_epoch: int | None
    lacking_node: int | None
    leader: int | None
    settled_epoch: int | None
    loss_class: LossClass


class _Fate(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    topic_id: str
    partition: int
    node: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    acked_at: int | None
    held_by: tuple[int, ...]
    holders: tuple[int, ...]
    lacking_epoch: int | None
    lacking_node: int | None
    lacking_end_offset: int | None
    leader: int | None
    settled_epoch: int | None
    loss_class: LossClass
    records: int
    offsets: tuple[OffsetRange, ...]


class _Holding(msgspec.Struct):
    """Who appended a lost batch, and where in its own events the one who acknowledged it did."""

    nodes: set[int] = msgspec.field(default_factory=set)
    appended: dict[int, _Place] = msgspec.field(default_factory=dict)


def losses_of_partition(facts: PartitionFacts, timeline: Timeline) -> tuple[Loss, ...]:
    """Returns the lost acks=all records of a partition, by offsets and fate."""
    return tuple(_loss(fate, timeline) for fate in sorted(_fates(facts), key=lambda fate: fate.offsets[0].first))


def _fates(facts: PartitionFacts) -> Iterator[_Fate]:
    lost = [each for each in facts.lost if each.batch.acks == ACKS_ALL]
    holdings = _holdings(facts, lost)
    groups: dict[tuple[str, _Identity], list[tuple[LostBatch, int | None]]] = {}
    for each in lost:
        batch, lacking, settled = each.batch, each.lacking, each.settled
        holding = holdings[batch.topic_id, batch.base_offset, batch.crc]
        answer = _acknowledgement(facts, batch, holding)
        identity = _Identity(
            node=batch.node,
            leader_epoch=batch.leader_epoch,
            isr=None if answer is None else answer.event.committed_isr,
            held_by=tuple(sorted(holding.nodes)),
            holders=each.holders,
            lacking_epoch=None if lacking is None else lacking.leader_epoch,
            lacking_node=None if lacking is None else lacking.node,
            leader=None if settled is None else settled.leader,
            settled_epoch=None if settled is None else settled.leader_epoch,
            loss_class=each.loss_class,
        )
        acked_at = (
            None if answer is None else facts.cluster.applied_before(answer.node, answer.incarnation, answer.sequence)
        )
        groups.setdefault((batch.topic_id or "", identity), []).append((each, acked_at))
    for (topic_id, identity), members in groups.items():
        ends = [each.lacking.log_end_offset for each, _ in members if each.lacking is not None]
        spans = sorted((each.batch.base_offset, each.batch.last_offset) for each, _ in members)
        yield _Fate(
            topic=facts.topic,
            topic_id=topic_id,
            partition=facts.partition,
            acked_at=max((acked_at for _, acked_at in members if acked_at is not None), default=None),
            lacking_end_offset=max(ends, default=None),
            records=sum(each.batch.record_count for each, _ in members),
            offsets=tuple(OffsetRange(first=first, last=last) for first, last in spans),
            **identity._asdict(),
        )


def _holdings(facts: PartitionFacts, lost: list[LostBatch]) -> dict[tuple[str | None, int, int | None], _Holding]:
    holdings = {(each.batch.topic_id, each.batch.base_offset, each.batch.crc): _Holding() for each in lost}
    for appended in facts.events.of(BatchAppended) if lost else ():
        event = appended.event
        holding = holdings.get((event.topic_id, event.base_offset, event.crc))
        if holding is not None:
            holding.nodes.add(appended.node)
            holding.appended.setdefault(appended.node, (appended.incarnation, appended.sequence))
    return holdings


def _acknowledgement(
    facts: PartitionFacts, batch: AckedBatch, holding: _Holding
) -> CollectedEvent[ProduceAnswered] | None:
    """The answer that acknowledged a batch.

    A leader may answer for one offset twice, after a truncation: the answer that belongs to a batch is the one with the
    send's cause id, else the first after the batch was appended.
    """
    if batch.node is None or batch.node not in holding.appended:
        return None
    answers = [
        answer
        for answer in facts.answers.get((batch.node, batch.base_offset), ())
        if answer.event.acks == ACKS_ALL
        and answer.event.topic_id == batch.topic_id
        and (answer.incarnation, answer.sequence) > holding.appended[batch.node]
    ]
    return min(
        answers,
        key=lambda answer: (answer.event.cause_id != batch.operation_id, answer.incarnation, answer.sequence),
        default=None,
    )


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
        if event.new_end_offset <= last and event.old_end_offset > first and cut.node in fate.held_by:
            yield (
                f"Broker {cut.node} truncated its log from {event.old_end_offset} to {event.new_end_offset} "
                f"({event.reason.replace('_', ' ')}), following leader {_or_unknown(event.leader)} "
                f"in epoch {event.leader_epoch}."
            )


def _power_loss_sentence(lost: PowerLost, fate: _Fate) -> Iterator[str]:
    if lost.old_end_offset <= lost.new_end_offset or lost.lost_node not in fate.held_by:
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
