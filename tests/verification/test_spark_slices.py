"""A run that tasks of Spark read in slices is judged as one that a single process reads."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.slices.jobs import judge_sliced
from tests.verification.run_builder import healthy, last_replica_standing
from tests.verification.test_slices import planned, with_foreign_line

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("shares_disk", [True, False])
def test_spark_judges_in_slices_as_one_process_does(spark: SparkSession, tmp_path: Path, *, shares_disk: bool) -> None:
    for run in (
        last_replica_standing(tmp_path / "lost", era="kafka-3.9").finish(),
        last_replica_standing(tmp_path / "kept", era="kip-966").finish(),
    ):
        plan = planned(run)
        assert judge_sliced(plan, spark=spark, slice_bytes=4000, shares_disk=shares_disk) == judge(plan)


@pytest.mark.parametrize("shares_disk", [True, False])
def test_spark_leaves_a_run_with_a_fault_in_its_form_to_one_process(
    spark: SparkSession, tmp_path: Path, *, shares_disk: bool
) -> None:
    run = healthy(tmp_path / "run").finish()
    with_foreign_line(run / "events/1-0.jsonl")
    assert judge_sliced(planned(run), spark=spark, slice_bytes=4000, shares_disk=shares_disk) is None
