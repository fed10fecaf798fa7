"""The judgement of one partition, in a form whose size does not depend on the partition's size.

A large run is judged partition by partition, in different processes; ``judge`` combines their results.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

import msgspec

from laststand.emulator.core.promises import PROMISES, Exemption, Keeper, is_promised_by_all
from laststand.emulator.verification.doubts.accounts import unseen_records
from laststand.emulator.verification.doubts.evidence import Readings, readings_of
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.reading.census import SendStream
from laststand.emulator.verification.rules.check import Evidence, Finding, PartitionCheck, Premise
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.rules.guarantee import Guarantee, judge_guarantee, worst_of
from laststand.emulator.verification.rules.premises import premises_of_partition
from laststand.emulator.verification.tables.timeline import Timeline
from laststand.emulator.verification.verdict.availability import PartitionAvailability, partition_availability
from laststand.emulator.verification.verdict.loss_report import Loss
from laststand.emulator.verification.verdict.loss_story import losses_of_partition
from laststand.emulator.verification.verdict.readers import Reader, readers_of_partition
from laststand.emulator.verification.verdict.report import Exempted

EXAMPLES_MAX: Final = 10
"""Findings of a check that a report lists per run; all are counted."""


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The number of findings of a check, and the sentences of the first of them.

    Attributes:
        guarantee: the worst kind of violation among them; ``None`` if they have none.
        exempted: findings that the check's promise leaves out; they do not count.
    """

    count: int
    examples: tuple[str, ...]
    guarantee: Guarantee | None = None
    exempted: tuple[Exempted, ...] = ()


NO_FINDINGS: Final = Findings(count=0, examples=())


def first_of(found: Iterable[Finding]) -> Findings:
    """Counts findings, and keeps the first by position."""
    ordered = sorted(found, key=itemgetter(0, 1))
    broken = [finding for finding in ordered if finding.exempted_by is None]
    return Findings(
        count=len(broken),
        examples=tuple(finding.sentence for finding in broken[:EXAMPLES_MAX]),
        exempted=sum_of_exempted(
            Exempted(exemption=finding.exempted_by, count=1, example=finding.sentence)
            for finding in ordered
            if finding.exempted_by is not None
        ),
    )


def sum_of_exempted(found: Iterable[Exempted]) -> tuple[Exempted, ...]:
    """Returns the number of findings of each exemption, with its first example."""
    sums: dict[Exemption, Exempted] = {}
    for each in found:
        before = sums.get(each.exemption)
        sums[each.exemption] = (
            each if before is None else msgspec.structs.replace(before, count=before.count + each.count)
        )
    return tuple(sums[exemption] for exemption in Exemption if exemption in sums) if sums else ()


class PartitionJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of one partition.

    Attributes:
        findings: by check, if it has any.
        lost: number of lost records by producer and acks.
        lost_crcs: CRCs of the lost batches.
        unseen: number of records that a broker acknowledged without a client that saw the acknowledgement.
        availability: the times for which it made its clients wait.
        readers: consumers that are no clients of this project.
    """

    topic: str
    partition: int
    findings: dict[str, Findings]
    premises: frozenset[Premise]
    readings: Readings
    losses: tuple[Loss, ...]
    lost: dict[SendStream, int]
    lost_crcs: frozenset[int]
    unseen: int
    availability: PartitionAvailability
    readers: tuple[Reader, ...]


def judge_partition(facts: PartitionFacts, timeline: Timeline, doubtful: frozenset[Evidence]) -> PartitionJudgement:
    """Runs every check of a partition that is promised in this run and whose evidence is complete.

    If the name stands for several topics and some events name no topic id, no check runs and no record counts as lost.

    Args:
        facts: of the partition.
        timeline: of its run.
        doubtful: evidence that is not whole.
    """
    findings = {}
    is_clear = not facts.has_unclear_id
    for check in CHECKS if is_clear else ():
        if isinstance(check, PartitionCheck) and not check.needs & doubtful:
            found = _find(check, facts, timeline)
            if found:
                findings[check.check_id] = msgspec.structs.replace(
                    first_of(found),
                    guarantee=_worst(facts, timeline, [finding for finding in found if finding.exempted_by is None]),
                )
    lost: Counter[SendStream] = Counter()
    for each in facts.lost if is_clear else ():
        batch = each.batch
        lost[SendStream(facts.topic, facts.partition, batch.process, batch.acks)] += batch.record_count
    for unplaced in facts.unplaced.lost if is_clear else ():
        lost[SendStream(facts.topic, facts.partition, unplaced.process, unplaced.acks)] += unplaced.record_count
    return PartitionJudgement(
        topic=facts.topic,
        partition=facts.partition,
        findings=findings,
        premises=premises_of_partition(facts),
        readings=readings_of(facts),
        losses=losses_of_partition(facts, timeline) if is_clear else (),
        lost=dict(lost),
        lost_crcs=frozenset(each.batch.crc for each in facts.lost if each.batch.crc is not None),
        unseen=unseen_records(facts),
        availability=partition_availability(facts),
        readers=readers_of_partition(facts) if is_clear else (),
    )


def _find(check: PartitionCheck, facts: PartitionFacts, timeline: Timeline) -> list[Finding]:
    """Returns a check's findings that count: all, if every process has the promised rules.

    Otherwise only findings count whose process had them, together with the other processes on whose rules the promise
    depends.
    """
    check_id, keeper = check.check_id, PROMISES[check.check_id].keeper
    if timeline.is_promised_by_all(check_id):
        return list(check.find(facts))
    if keeper is Keeper.CLUSTER or not any(is_promised_by_all(check_id, [each]) for each in timeline.members):
        return []
    return [
        finding
        for finding in check.find(facts)
        if finding.by is not None and is_promised_by_all(check_id, timeline.members_behind(finding.by, keeper))
    ]


def _worst(facts: PartitionFacts, timeline: Timeline, found: Sequence[Finding]) -> Guarantee | None:
    kinds = {each.guarantee for each in found if each.guarantee is not None}
    kinds |= {
        judge_guarantee(
            timeline,
            facts.cluster.configuration,
            topic_id=each.topic_id,
            partition=facts.partition,
            acked_at=each.committed_at,
            lacking_epoch=each.lacking_epoch,
            unelected_at=each.unelected_at,
        ).guarantee
        for each in {finding.lost for finding in found if finding.lost is not None}
    }
    return worst_of(kinds)
