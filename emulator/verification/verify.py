"""Verifies runs: loads them, asks every check, decides.

All runs go through Spark together, keyed by run, so a hundred small runs cost little more than one. Independent queries
run side by side: on small inputs most of a query's time is planning, which one thread does.
"""

import tempfile
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from emulator.core.promises import PROMISES, is_promised
from emulator.verification.acks_comparison import REPORT, AcksComparison, compare_acks
from emulator.verification.check import Check, Evidence, Premise
from emulator.verification.checks import CHECKS
from emulator.verification.evidence import Doubt, find_doubts
from emulator.verification.facts import define_facts
from emulator.verification.guarantee import Guarantee
from emulator.verification.line_reader import RunLines
from emulator.verification.premise_census import settled_premises
from emulator.verification.reader import load_runs
from emulator.verification.run_directory import RunDirectory, open_run_directory
from emulator.verification.story import describe_leaders, describe_losses
from emulator.verification.timeline import Timeline
from emulator.verification.verdict import (
    CheckResult,
    CheckStatus,
    Loss,
    RecordCounts,
    VerdictReport,
    decide,
    outcome_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES_MAX: Final = 10
"""Findings of a check that a report lists per run; all are counted."""

_QUERIES_AT_ONCE: Final = 3
_Answer = TypeVar("_Answer")


class _Finding(msgspec.Struct, frozen=True, kw_only=True):
    run: int
    check_id: str
    total: int
    sentence: str


def verify_runs(paths: Sequence[Path], *, spark: "SparkSession") -> tuple[VerdictReport, ...]:
    """Judges any number of runs in one go.

    Args:
        paths: run directories; the reports come in the same order.
        spark: the session; it is left without views' data.

    Raises:
        ConfigError: one of ``paths`` is no run directory.
    """
    runs = tuple(open_run_directory(path) for path in paths)
    if not runs:
        return ()
    with tempfile.TemporaryDirectory(prefix="laststand-verify-") as work:
        try:
            with ThreadPoolExecutor(_QUERIES_AT_ONCE, thread_name_prefix="verify") as pool:
                scale, lines = load_runs(runs, spark=spark, work=Path(work), pool=pool)
                define_facts(spark, scale)
                return _reports(runs, lines, spark, pool)
        finally:
            spark.catalog.clearCache()


def rehearse(spark: "SparkSession") -> None:
    """Verifies a run without content, which loads what every verification needs; the next one takes half the time."""
    with tempfile.TemporaryDirectory(prefix="laststand-rehearsal-") as directory:
        run = Path(directory)
        (run / "events").mkdir()
        (run / "events" / "nothing.jsonl").touch()
        (run / "history.jsonl").touch()
        verify_runs([run], spark=spark)


def _reports(
    runs: tuple[RunDirectory, ...], lines: tuple[RunLines, ...], spark: "SparkSession", pool: Executor
) -> tuple[VerdictReport, ...]:
    timelines = tuple(run.timeline for run in lines)
    found = [pool.submit(_findings, check, spark) for check in CHECKS]
    doubted = pool.submit(find_doubts, lines, spark=spark)
    counted = pool.submit(_record_counts, spark, lines)
    settled = pool.submit(settled_premises, spark, runs=len(runs))
    lost = pool.submit(describe_losses, timelines, spark=spark)
    compared = {
        number: pool.submit(compare_acks, number, spark=spark)
        for number, run in enumerate(runs)
        if run.report == REPORT
    }
    doubts, losses, counts = doubted.result(), lost.result(), counted.result()
    premises = tuple(
        run.census.premises(run.timeline) | of_settled for run, of_settled in zip(lines, settled.result(), strict=True)
    )
    findings: dict[tuple[int, str], list[_Finding]] = {}
    for finding in (finding for future in found for finding in future.result()):
        findings.setdefault((finding.run, finding.check_id), []).append(finding)
    return tuple(
        _report(
            run,
            timelines[number],
            doubts[number],
            losses[number],
            counts[number],
            premises[number],
            {check.check_id: findings.get((number, check.check_id), []) for check in CHECKS},
            compared[number].result() if number in compared else None,
        )
        for number, run in enumerate(runs)
    )


def _report(
    run: RunDirectory,
    timeline: Timeline,
    doubts: tuple[Doubt, ...],
    losses: tuple[Loss, ...],
    counts: tuple[RecordCounts, ...],
    premises: frozenset[Premise],
    findings: dict[str, list[_Finding]],
    acks_comparison: AcksComparison | None,
) -> VerdictReport:
    switches = dict(timeline.switches())
    doubtful = frozenset(doubt.about for doubt in doubts if doubt.about is not None)
    checks = tuple(_result(check, findings[check.check_id], switches, doubtful, premises) for check in CHECKS)
    unknown_reasons = tuple(doubt.sentence for doubt in doubts)
    kinds = {loss.guarantee for loss in losses}
    verdict = decide(checks, unknown_reasons)
    return VerdictReport(
        run=str(run.path),
        scenario=run.scenario,
        era=run.era,
        switches=switches,
        verdict=verdict,
        guarantee=next((kind for kind in Guarantee if kind in kinds), None),
        unknown_reasons=unknown_reasons,
        checks=checks,
        counts=counts,
        losses=losses,
        leaders=describe_leaders(timeline),
        acks_comparison=acks_comparison,
        seed=run.seed,
        started=run.started,
        duration_s=run.duration_s,
        outcome=outcome_of(verdict),
    )


def _result(
    check: Check,
    findings: list[_Finding],
    switches: dict[str, str],
    doubtful: frozenset[Evidence],
    premises: frozenset[Premise],
) -> CheckResult:
    missing = tuple(premise for premise in Premise if premise in check.premises - premises)
    if not is_promised(check.check_id, switches):
        status, count = CheckStatus.NOT_PROMISED, 0
    elif check.needs & doubtful:
        status, count = CheckStatus.UNKNOWN, 0
    elif findings:
        status, count = CheckStatus.VIOLATED, findings[0].total
    elif missing:
        status, count = CheckStatus.NOT_ASKED, 0
    else:
        status, count = CheckStatus.OK, 0
    return CheckResult(
        check_id=check.check_id,
        name=check.name,
        kind=PROMISES[check.check_id].kind,
        statement=PROMISES[check.check_id].statement,
        status=status,
        count=count,
        examples=tuple(f.sentence for f in findings) if status is CheckStatus.VIOLATED else (),
        not_asked_because=missing[0].value if status is CheckStatus.NOT_ASKED else None,
    )


def _findings(check: Check, spark: "SparkSession") -> list[_Finding]:
    """Asks a check. Most find nothing, and that question is cheaper than to count and sort."""
    if not spark.sql(f"SELECT run FROM ({check.query}) LIMIT 1").collect():
        return []
    return _ask(
        spark,
        f"""
        SELECT run, '{check.check_id}' AS check_id, total, sentence
        FROM (SELECT *, count(*) OVER (PARTITION BY run) AS total,
                     row_number() OVER (PARTITION BY run ORDER BY topic, partition, position, sentence) AS place
              FROM ({check.query}))
        WHERE place <= {EXAMPLES_MAX} ORDER BY run, place
        """,
        _Finding,
    )


class _Lost(msgspec.Struct, frozen=True, kw_only=True):
    run: int
    acks: int
    lost: int


def _record_counts(spark: "SparkSession", lines: tuple[RunLines, ...]) -> tuple[tuple[RecordCounts, ...], ...]:
    rows = _ask(spark, "SELECT run, acks, sum(record_count) AS lost FROM lost_batch GROUP BY run, acks", _Lost)
    lost = {(row.run, row.acks): row.lost for row in rows}
    return tuple(
        tuple(
            RecordCounts(
                acks=acks,
                sent=sent,
                acked=history.acked.get(acks, 0),
                lost=lost.get((number, acks), 0),
                never_acked=max(sent - history.acked.get(acks, 0), 0),
            )
            for acks, sent in sorted(history.sent.items())
        )
        for number, history in enumerate(run.history for run in lines)
    )


def _ask(spark: "SparkSession", query: str, kind: type[_Answer]) -> list[_Answer]:
    return [msgspec.convert(row.asDict(recursive=True), kind) for row in spark.sql(query).collect()]
