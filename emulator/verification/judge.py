"""Judges one run, in one process: reads its evidence, applies every check, reports lost records.

A Spark task calls ``judge``. It raises no error about a run: a run that cannot be judged is ``unknown``, so that the
other runs are still judged.
"""

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

import msgspec

from laststand.emulator.core.promises import PROMISES
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.doubts.evidence import doubts_of, find_doubts
from laststand.emulator.verification.doubts.seals import alterations, newer_formats
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.reading.census import HistoryCensus, SendStream, by_acks
from laststand.emulator.verification.reading.run import RunEvidence, read_run
from laststand.emulator.verification.reading.run_directory import RunDirectory
from laststand.emulator.verification.reading.run_plan import RunPlan, differences
from laststand.emulator.verification.rules.check import Check, ClusterCheck, Evidence, PartitionCheck, Premise
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.rules.guarantee import worst_of
from laststand.emulator.verification.rules.premises import premises_of_cluster
from laststand.emulator.verification.story.cluster import run_story
from laststand.emulator.verification.story.partition import partition_story
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.tables.rows import PartitionName
from laststand.emulator.verification.verdict.acks_comparison import compare_acks
from laststand.emulator.verification.verdict.loss_report import Loss, OffsetRange, merged
from laststand.emulator.verification.verdict.loss_story import describe_leaders
from laststand.emulator.verification.verdict.lost_keys import with_keys
from laststand.emulator.verification.verdict.partition_judgement import (
    EXAMPLES_MAX,
    NO_FINDINGS,
    Findings,
    PartitionJudgement,
    first_of,
    judge_partition,
    sum_of_exempted,
)
from laststand.emulator.verification.verdict.report import (
    CheckResult,
    CheckStatus,
    GoneRange,
    PartitionCounts,
    ProducerCounts,
    RecordCounts,
    Verdict,
    VerdictReport,
    decide,
    expected_of,
)
from laststand.emulator.verification.verdict.requested import ACKS_COMPARISON


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of judging one run; ``number`` is its number in the plan."""

    number: int
    report: VerdictReport
    story: RunStory = RunStory(problem="the run was not judged")


def judge(plan: RunPlan) -> Judgement:
    """Judges a run whose files were listed before."""
    # The facts of a run have hardly any reference cycles, and garbage collection takes a third of the time.
    gc.disable()
    try:
        evidence = read_run(plan.run)
        unread = tuple(differences(plan, evidence.sizes))
        report = report_unjudged(plan.run, unread) if unread else report_on(plan.run, evidence)
    except Exception as error:
        report = report_unjudged(plan.run, (f"verification failed: {type(error).__name__}: {error}",))
        return Judgement(number=plan.number, report=report)
    else:
        return Judgement(number=plan.number, report=report, story=_story(evidence, report))
    finally:
        gc.enable()


def _story(evidence: RunEvidence, report: VerdictReport) -> RunStory:
    losses: dict[PartitionName, list[Loss]] = {}
    for loss in report.losses:
        losses.setdefault((loss.topic, loss.partition), []).append(loss)
    stories = [story_of(facts, losses.get((facts.topic, facts.partition), ())) for facts in evidence.facts.partitions()]
    return join_stories(evidence.facts.cluster, stories)


def story_of(facts: PartitionFacts, losses: Sequence[Loss]) -> PartitionStory | RunStory:
    """Returns the story of a partition, or, on an error, a run's story with the problem: the verdict stays the same."""
    try:
        return partition_story(facts, losses)
    except Exception as error:
        return _without_story(error)


def join_stories(cluster: ClusterFacts, stories: Sequence[PartitionStory | RunStory]) -> RunStory:
    """Returns the story of a run from those of its partitions; an error does not change the verdict."""
    without_story = next((story for story in stories if isinstance(story, RunStory)), None)
    if without_story is not None:
        return without_story
    try:
        return run_story(cluster, [story for story in stories if isinstance(story, PartitionStory)])
    except Exception as error:
        return _without_story(error)


def _without_story(error: Exception) -> RunStory:
    return RunStory(problem=f"{type(error).__name__}: {error}")


def report_on(run: RunDirectory, evidence: RunEvidence) -> VerdictReport:
    """Returns the report on a run that one process has read."""
    doubtful = frozenset(doubt.about for doubt in find_doubts(evidence) if doubt.about is not None)
    judged = [judge_partition(facts, evidence.timeline, doubtful) for facts in evidence.facts.partitions()]
    return compose_report(run, evidence, judged)


def compose_report(run: RunDirectory, evidence: RunEvidence, judged: Sequence[PartitionJudgement]) -> VerdictReport:
    """Returns the report on a run, from the judgements of its partitions.

    Args:
        run: the run.
        evidence: the run's cluster, timeline, files and history; of its partitions only what a comparison by acks
            needs.
        judged: the judged partitions, by name.
    """
    timeline, cluster = evidence.timeline, evidence.facts.cluster
    doubts = doubts_of(evidence, [partition.readings for partition in judged])
    if any(newer_formats(evidence)) or any(alterations(evidence)):
        return _report_of_nothing(run, doubts)
    doubtful = frozenset(doubt.about for doubt in doubts if doubt.about is not None)
    premises = premises_of_cluster(cluster).union(*(partition.premises for partition in judged))

    def ask(check: PartitionCheck | ClusterCheck) -> CheckResult:
        if Premise.NODES not in premises and not check.is_of_clients:
            return _result(check, CheckStatus.NOT_ASKED, missing=Premise.NODES)
        if not timeline.is_promised_by_all(check.check_id):
            # Partitions of a run that is read in slices are judged before anybody knows what is doubtful.
            found = NO_FINDINGS
            if isinstance(check, PartitionCheck) and not check.needs & doubtful:
                found = _findings_of(check, judged)
            return _result(check, CheckStatus.VIOLATED if found.count else CheckStatus.NOT_PROMISED, findings=found)
        if check.needs & doubtful:
            return _result(check, CheckStatus.UNKNOWN, doubtful=check.needs & doubtful)
        lacking = check.premises - premises
        if Premise.OWN_WORD in lacking:
            return _result(check, CheckStatus.NOT_ASKED, missing=Premise.OWN_WORD)
        findings = _findings(check, cluster, judged)
        if findings.count or findings.exempted:
            return _result(check, CheckStatus.VIOLATED if findings.count else CheckStatus.EXEMPT, findings=findings)
        missing = next((premise for premise in Premise if premise in lacking), None) if lacking else None
        return _result(check, CheckStatus.OK if missing is None else CheckStatus.NOT_ASKED, missing=missing)

    checks = tuple(map(ask, CHECKS))
    losses = tuple(loss for partition in judged for loss in partition.losses)
    kinds = {loss.guarantee for loss in losses}
    verdict = decide(checks, doubts)
    return VerdictReport(
        run=str(run.path),
        scenario=run.scenario,
        era=run.era,
        changed=run.changed,
        switches=dict(timeline.switches()),
        verdict=verdict,
        guarantee=worst_of(kinds),
        doubts=doubts,
        checks=checks,
        counts=tuple(_record_counts(evidence.history, judged)),
        partitions=tuple(_partition_counts(evidence.history, judged)),
        availability=tuple(each.availability for each in judged),
        losses=with_keys(losses, run.path, frozenset().union(*(partition.lost_crcs for partition in judged))),
        leaders=describe_leaders(timeline, evidence.facts.cluster),
        acks_comparison=compare_acks(evidence.facts) if run.report == ACKS_COMPARISON else None,
        readers=tuple(reader for each in judged for reader in each.readers),
        seed=run.seed,
        started=run.started,
        duration_s=run.duration_s,
        outcome=expected_of(verdict),
    )


def report_unjudged(run: RunDirectory, reasons: tuple[str, ...]) -> VerdictReport:
    """Returns the report on a run that cannot be judged, for ``reasons``."""
    return _report_of_nothing(run, tuple(Doubt(about=None, sentence=reason) for reason in reasons))


def _report_of_nothing(run: RunDirectory, doubts: tuple[Doubt, ...]) -> VerdictReport:
    return VerdictReport(
        run=str(run.path),
        scenario=run.scenario,
        era=run.era,
        changed=run.changed,
        switches={},
        verdict=Verdict.UNKNOWN,
        guarantee=None,
        doubts=doubts,
        checks=tuple(_result(check, CheckStatus.UNKNOWN) for check in CHECKS),
        counts=(),
        partitions=(),
        losses=(),
        leaders=(),
        seed=run.seed,
        started=run.started,
        duration_s=run.duration_s,
        outcome=expected_of(Verdict.UNKNOWN),
    )


def _findings(
    check: PartitionCheck | ClusterCheck, cluster: ClusterFacts, judged: Sequence[PartitionJudgement]
) -> Findings:
    """Returns all findings of a check, over the cluster or over all partitions."""
    match check:
        case ClusterCheck():
            return first_of(check.find(cluster))
        case PartitionCheck():
            return _findings_of(check, judged)
        case _:
            assert_never(check)


def _findings_of(check: PartitionCheck, judged: Sequence[PartitionJudgement]) -> Findings:
    found = [each for partition in judged if (each := partition.findings.get(check.check_id)) is not None]
    if not found:
        return NO_FINDINGS
    examples = tuple(sentence for each in found for sentence in each.examples)
    return Findings(
        count=sum(each.count for each in found),
        examples=examples[:EXAMPLES_MAX],
        guarantee=worst_of({each.guarantee for each in found if each.guarantee is not None}),
        exempted=sum_of_exempted(exempted for each in found for exempted in each.exempted),
    )


def _result(
    check: Check,
    status: CheckStatus,
    *,
    findings: Findings = NO_FINDINGS,
    missing: Premise | None = None,
    doubtful: frozenset[Evidence] = frozenset(),
) -> CheckResult:
    promise = PROMISES[check.check_id]
    return CheckResult(
        check_id=check.check_id,
        name=check.name,
        kind=promise.kind,
        statement=promise.statement,
        status=status,
        count=findings.count,
        examples=findings.examples,
        guarantee=findings.guarantee,
        exempted=findings.exempted,
        not_asked_because=None if missing is None else missing.value,
        unknown_because=tuple(kind for kind in Evidence if kind in doubtful),
    )


def _record_counts(history: HistoryCensus, judged: Sequence[PartitionJudgement]) -> Iterator[RecordCounts]:
    all_acked, lost = by_acks(history.acked), by_acks(_lost(judged))
    for acks, sent in sorted(by_acks(history.sent).items()):
        acked = all_acked.get(acks, 0)
        yield RecordCounts(acks=acks, sent=sent, acked=acked, lost=lost.get(acks, 0), never_acked=max(sent - acked, 0))


def _lost(judged: Sequence[PartitionJudgement]) -> Counter[SendStream]:
    lost: Counter[SendStream] = Counter()
    for partition in judged:
        lost.update(partition.lost)
    return lost


def _partition_counts(history: HistoryCensus, judged: Sequence[PartitionJudgement]) -> Iterator[PartitionCounts]:
    lost = _lost(judged)
    producers: dict[tuple[str, int], list[ProducerCounts]] = {}
    for stream, sent in sorted(history.sent.items()):
        acked = history.acked.get(stream, 0)
        counts = ProducerCounts(
            process=stream.process,
            acks=stream.acks,
            sent=sent,
            acked=acked,
            lost=lost[stream],
            never_acked=max(sent - acked, 0),
        )
        producers.setdefault((stream.topic, stream.partition), []).append(counts)
    for each in judged:
        name = (each.topic, each.partition)
        yield PartitionCounts(
            topic=each.topic,
            partition=each.partition,
            producers=tuple(producers.get(name, ())),
            gone=tuple(_gone(each.losses)),
            unseen=each.unseen,
        )


def _gone(losses: Sequence[Loss]) -> Iterator[GoneRange]:
    """Yields the records that no final log has, by epoch and offset."""
    ranges: dict[tuple[str, int | None], list[OffsetRange]] = {}
    for loss in losses:
        if loss.loss_class in (LossClass.GONE_EVERYWHERE, LossClass.GONE_FOR_CONSUMERS):
            ranges.setdefault((loss.topic_id, loss.leader_epoch), []).extend(loss.offsets)
    for topic_id, leader_epoch in sorted(ranges, key=lambda key: (key[0], -1 if key[1] is None else key[1])):
        for span in merged(ranges[topic_id, leader_epoch]):
            yield GoneRange(topic_id=topic_id, leader_epoch=leader_epoch, first=span.first, last=span.last)
