"""Measures the worth of acks 0, 1 and all below min ISR: KIP-966's 'Ack=0/1 comparison'.

A scenario requests it by ``report: acks-comparison``. Everything is counted from the run's events: an answer to a
producer has the committed ISR that the leader knew, and so does each advance of a high watermark. A batch that was
accepted while the ISR was below min ISR was *read* if a live consumer received it in the same leader epoch, and that
leader did not commit it later with enough members. The comparison assumes no rule of an era.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import NO_ERROR
from laststand.emulator.verification.facts.run import RunFacts


class AcksMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one acks level while the committed ISR was below the minimum.

    Attributes:
        acks: -1 (all), 0 or 1.
        accepted: appended and, but for acks=0, acknowledged.
        refused: answered with an error, attempt by attempt.
        read: accepted records that reached a consumer before the ISR was large enough again or the leader changed.
        high_watermark_advance: how far the high watermarks of these topics moved in that time, in records.
    """

    acks: int
    accepted: int
    refused: int
    read: int
    high_watermark_advance: int


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """The election of a leader for a leaderless partition.

    Attributes:
        acks: of its topic's producers.
        topic: name of the topic.
        partition: number of the partition.
        leader: the elected broker.
        leader_epoch: the epoch that the election began.
        election: how the leader was chosen.
        log_end_offset: its log end offset when it became leader; ``None`` if it never did.
    """

    acks: int
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    election: str
    log_end_offset: int | None


class AcksComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One run's part of the comparison; topics are distinguished by the acks of their producers.

    Attributes:
        measures: by acks.
        returns: by acks, topic and partition.
    """

    measures: tuple[AcksMeasure, ...]
    returns: tuple[Return, ...]


_JUDGED: Final = (NO_ERROR, "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")


def compare_acks(facts: RunFacts) -> AcksComparison:
    """Measures one run."""
    levels = _levels(facts)
    measured = [
        (levels[partition.topic], _measure(partition, levels[partition.topic]))
        for partition in facts.partitions()
        if partition.topic in levels
    ]
    return AcksComparison(
        measures=tuple(
            AcksMeasure(
                acks=acks,
                accepted=sum(measure.accepted for level, measure in measured if level == acks),
                refused=sum(measure.refused for level, measure in measured if level == acks),
                read=sum(measure.read for level, measure in measured if level == acks),
                high_watermark_advance=sum(m.high_watermark_advance for level, m in measured if level == acks),
            )
            for acks in sorted(set(levels.values()))
        ),
        returns=tuple(
            returned
            for partition in facts.partitions()
            if partition.topic in levels
            for returned in _returns(partition, levels[partition.topic])
        ),
    )


def _levels(facts: RunFacts) -> dict[str, int]:
    """Returns the acks of each topic; topics whose sends had several are left out."""
    levels: dict[str, set[int]] = {}
    for partition in facts.partitions():
        for sent in partition.sent:
            levels.setdefault(partition.topic, set()).add(sent.acks)
    return {topic: min(found) for topic, found in levels.items() if len(found) == 1}


def _measure(facts: PartitionFacts, acks: int) -> AcksMeasure:
    required = facts.required_isr
    committed: dict[int, int] = {}
    advance = 0
    for advanced in facts.events.of(events.HighWatermarkAdvanced):
        moved = advanced.event
        if moved.topic_id not in required:
            continue
        if len(moved.committed_isr) < required[moved.topic_id]:
            advance += moved.new - moved.old
        else:
            # Records that the leader later committed with enough members do not count as read.
            committed[moved.leader_epoch] = max(committed.get(moved.leader_epoch, 0), moved.new)
    received = {(batch.served_epoch, batch.base_offset) for batch in facts.received if batch.phase == "live"}
    accepted = refused = read = 0
    for answered in facts.events.of(events.ProduceAnswered):
        answer = answered.event
        if answer.error not in _JUDGED or len(answer.committed_isr) >= required.get(answer.topic_id, 0):
            continue
        if answer.error != NO_ERROR:
            refused += answer.record_count
            continue
        accepted += answer.record_count
        epoch, base_offset = answer.leader_epoch, answer.base_offset
        if epoch is None or base_offset is None or (epoch, base_offset) not in received:
            continue
        if committed.get(epoch, 0) <= base_offset:
            read += answer.record_count
    return AcksMeasure(acks=acks, accepted=accepted, refused=refused, read=read, high_watermark_advance=advance)


def _returns(facts: PartitionFacts, acks: int) -> Iterator[Return]:
    starts = {
        (led.event.topic_id, led.event.leader_epoch, led.node): led.event.epoch_start_offset
        for led in facts.events.of(events.BecameLeader)
    }
    for change in facts.changes:
        new, old = change.new, change.old
        if old is not None and old.leader is None and new.leader is not None:
            yield Return(
                acks=acks,
                topic=facts.topic,
                partition=facts.partition,
                leader=new.leader,
                leader_epoch=new.leader_epoch,
                election=new.election.value,
                log_end_offset=starts.get((new.topic_id, new.leader_epoch, new.leader)),
            )
