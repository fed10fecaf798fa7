"""One verification for all hand-written runs of a module."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.emulator.verification.verdict.report import VerdictReport
from laststand.emulator.verification.verify import verify_runs
from tests.verdict_files import check_report

Judge = Callable[[Mapping[str, Path]], dict[str, VerdictReport]]


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Verifies named run directories in this process; ``test_judges`` has Spark come to the same."""
    return _judge_with(None)


@pytest.fixture(scope="session")
def judge_by_spark(spark: SparkSession) -> Judge:
    """Verifies named run directories in one go."""
    return _judge_with(spark)


def _judge_with(spark: SparkSession | None) -> Judge:
    def judge_all(runs: Mapping[str, Path]) -> dict[str, VerdictReport]:
        reports = dict(zip(runs, verify_runs(tuple(runs.values()), spark=spark), strict=True))
        for report in reports.values():
            check_report(report)
        return reports

    return judge_all
