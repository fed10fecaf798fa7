"""The judges of a run, Spark and this process without it, write the same bytes."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.chaos.scenario.scenario_file import scenario_names
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.story.story_file import STORY_FILE, write_story
from laststand.emulator.verification.verdict.forms import VERDICT_FILE, write_verdict
from laststand.emulator.verification.verify import judge_runs
from tests.library import Library, eras_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_this_process_judges_each_scenario_as_spark_does(spark: SparkSession, library: Library, tmp_path: Path) -> None:
    # Of those that virtual time cannot play, tests/cluster/test_scenarios.py says it.
    runs = [library.run(name, eras_of(name)[-1]).directory for name in scenario_names() if eras_of(name)]
    plans = [plan_run(number, open_run_directory(run)) for number, run in enumerate(runs)]
    judgements = list(judge_runs(plans, spark=spark))
    assert any(judgement.report.exempted() for judgement in judgements)
    for judgement in judgements:
        run = runs[judgement.number]
        write_verdict(judgement.report, tmp_path)
        write_story(judgement.story, tmp_path)
        for name in (VERDICT_FILE, STORY_FILE):
            assert (tmp_path / name).read_bytes() == (run / name).read_bytes(), f"{name} of {run}"
