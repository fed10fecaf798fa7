"""A sweep on Spark gives what a sweep in processes of this machine gives."""

from functools import partial

import msgspec
import pytest
from pyspark.sql import SparkSession

from laststand.cli.spark import sweep as spark_sweep
from laststand.cli.spark.sweep import spark_batches
from laststand.emulator.simulator.search import sweep as search_sweep
from laststand.emulator.simulator.search.explorer import SweepOptions
from laststand.emulator.simulator.search.sweep import SweepReport, sweep

pytestmark = pytest.mark.spark

LOSING = SweepOptions(era="kafka-0.10", properties=(("min.insync.replicas", "1"),), profiles=("elections",))
HOLDING = SweepOptions(profiles=("steady",))
BATCH = 3
SEEDS = range(1, 16)
"""A wave of four tasks with so many seeds each, and a second one, which is not full."""


def told(report: SweepReport) -> SweepReport:
    """A report without what the machine says."""
    return msgspec.structs.replace(report, seconds=0.0, memory_mb=0.0)


@pytest.mark.parametrize(
    ("options", "keep_going", "found"), [(LOSING, False, True), (LOSING, True, True), (HOLDING, False, False)]
)
def test_spark_and_processes_report_the_same(
    spark: SparkSession, options: SweepOptions, monkeypatch: pytest.MonkeyPatch, *, keep_going: bool, found: bool
) -> None:
    for module in (search_sweep, spark_sweep):
        monkeypatch.setattr(module, "BATCH", BATCH)
    expected = sweep(iter(SEEDS), options, jobs=1, keep_going=keep_going)
    assert bool(expected.findings) is found
    distributed = sweep(iter(SEEDS), options, keep_going=keep_going, batches=partial(spark_batches, spark))
    assert told(distributed) == told(expected)
