"""D9 Bounds: a log start is not above the high watermark, that is not above the log's end, and a log has no gaps.

Judged by each broker's events as it opens a log, appends, deletes, and moves its high watermark, and by final logs. If
a broker does not record its high watermark, a rise of its log start is no finding.
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.types import TruncationReason
from laststand.emulator.verification.facts.log_walk import appended_elsewhere
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.tables.final_logs import successive
from laststand.emulator.verification.tables.timeline import CollectedEvent


@partition_check("D9", "Bounds", source="Kafka's UnifiedLog", premises={Premise.LOG_OPENED})
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for collected, problem in _problems(facts):
        yield Finding(collected.sequence, f"{facts}: broker {collected.node} {problem}")
    for before, after in successive(facts.final_batches):
        is_apart = after["base_offset"] != before["last_offset"] + 1
        for left, found in zip(before.rows(is_apart), after.rows(is_apart), strict=True):
            yield Finding(
                found.base_offset,
                f"{facts}: the final log of broker {found.node} (topic id {found.topic_id}) goes on at "
                f"{found.base_offset} after {left.last_offset}",
            )


def _problems(facts: PartitionFacts) -> Iterator[tuple[CollectedEvent[events.Event], str]]:
    for appended, end_offset in appended_elsewhere(facts):
        yield appended, f"appended at {appended.event.base_offset} to a log that ended at {end_offset}"
    for moves in (
        facts.events.rows(events.HighWatermarkAdvanced),
        facts.events.rows(events.FollowerHighWatermarkUpdated),
    ):
        for moved in moves.rows(moves["new"] > moves["log_end_offset"]):
            event = moved.event
            yield moved, f"moved its high watermark to {event.new}, and its log ends at {event.log_end_offset}"
    for raised in () if facts.cluster.is_seen_from_outside else facts.events.of(events.LogStartOffsetRaised):
        high_watermark = _high_watermark_before(facts, raised)
        if raised.event.new > high_watermark:
            yield raised, f"deleted records below {raised.event.new}, and its high watermark was {high_watermark}"
    roles: list[CollectedEvent[events.LogOpened | events.BecameFollower]] = [
        *facts.events.of(events.LogOpened),
        *facts.events.of(events.BecameFollower),
    ]
    for collected in roles:
        problem = _problem(collected.event)
        if problem is not None:
            yield collected, problem


def _high_watermark_before(facts: PartitionFacts, raised: CollectedEvent[events.LogStartOffsetRaised]) -> int:
    """Returns the largest high watermark that a process has recorded before it raised a log start."""
    moves = (facts.events.rows(events.HighWatermarkAdvanced), facts.events.rows(events.FollowerHighWatermarkUpdated))
    known = [
        int(new)
        for moved in moves
        for new in moved["new"][
            moved.has("node", raised.node)
            & (moved["incarnation"] == raised.incarnation)
            & (moved["sequence"] < raised.sequence)
        ]
    ]
    for kind in (
        events.LogOpened,
        events.BecameLeader,
        events.BecameFollower,
        events.LogTruncated,
        events.LogStartOffsetRaised,
    ):
        known += [
            _least_high_watermark(collected.event)
            for collected in facts.events.of(kind)
            if (collected.node, collected.incarnation) == (raised.node, raised.incarnation)
            and collected.sequence < raised.sequence
        ]
    return max(known, default=0)


def _least_high_watermark(event: events.PartitionEvent) -> int:
    match event:
        case events.LogOpened() | events.BecameLeader() | events.BecameFollower():
            return event.high_watermark
        case events.LogTruncated(reason=TruncationReason.RESTARTED):
            return event.new_end_offset
        case events.LogStartOffsetRaised():
            return event.new
        case _:
            return 0


def _problem(event: events.LogOpened | events.BecameFollower) -> str | None:
    match event:
        case events.LogOpened() if not event.log_start_offset <= event.high_watermark <= event.log_end_offset:
            return (
                f"opened a log from {event.log_start_offset} to {event.log_end_offset} with its high watermark at "
                f"{event.high_watermark}"
            )
        case events.BecameFollower() if event.high_watermark > event.log_end_offset:
            return (
                f"follows with its high watermark at {event.high_watermark}, and its log ends at {event.log_end_offset}"
            )
        case _:
            return None
