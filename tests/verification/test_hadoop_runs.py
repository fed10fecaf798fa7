"""Runs that are named by a URI of a Hadoop file system: here ``viewfs``, a table of mounts, which needs no server."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from laststand.cli.main import cli
from tests.verification.run_builder import healthy, last_replica_standing

pytestmark = pytest.mark.spark


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("one_session")
def test_a_run_at_a_uri_is_judged_as_one_on_this_machine(spark: SparkSession, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    healthy(runs / "kept" / "1").finish()
    last_replica_standing(runs / "lost" / "1", era="kafka-3.9").finish()
    # As ``--conf`` does for a session of its own: ``test_standalone_cluster`` has that, and an empty work directory.
    mounts = spark.sparkContext._jsc.hadoopConfiguration()
    mounts.set("fs.viewfs.mounttable.evidence.link./runs", runs.as_uri())
    uris = [f"viewfs://evidence/runs/{name}" for name in ("kept/1", "none/1", "lost/1")]
    work = tmp_path / "work"
    result = CliRunner().invoke(cli, ["verify", *uris, "--work-dir", str(work)], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 1), result.stderr
    assert "not judged: run=viewfs://evidence/runs/none/1 is not allowed; expected a run directory" in result.stderr
    verdicts = [json.loads((runs / name / "1" / "verdict.json").read_bytes()) for name in ("kept", "lost")]
    assert [(each["verdict"], each["run"]) for each in verdicts] == [("valid", uris[0]), ("violation", uris[2])]
    left = {path.name for path in (runs / "lost" / "1").iterdir() if path.is_file()}
    assert {"verdict.json", "junit.xml", "story.json"} <= left
    assert [path.name for path in work.iterdir() if path.name != "spark.log"] == []
