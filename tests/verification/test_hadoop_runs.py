"""Runs that are named by a URI of a Hadoop file system: here ``viewfs``, a table of mounts, which needs no server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verification.run_builder import healthy, last_replica_standing

pytestmark = pytest.mark.spark


@pytest.mark.timeout(240)
def test_a_run_at_a_uri_is_judged_as_one_on_this_machine(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    healthy(runs / "kept" / "1").finish()
    last_replica_standing(runs / "lost" / "1", era="kafka-3.9").finish()
    mount = f"spark.hadoop.fs.viewfs.mounttable.evidence.link./runs={runs.as_uri()}"
    uris = [f"viewfs://evidence/runs/{name}" for name in ("kept/1", "none/1", "lost/1")]
    options = ("--conf", mount, "--work-dir", str(tmp_path / "work"))
    command = [sys.executable, "-m", "laststand.cli", "verify", *uris, *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert result.returncode == 1, result.stderr
    assert "not judged: run=viewfs://evidence/runs/none/1 is not allowed; expected a run directory" in result.stderr
    verdicts = [json.loads((runs / name / "1" / "verdict.json").read_bytes()) for name in ("kept", "lost")]
    assert [(each["verdict"], each["run"]) for each in verdicts] == [("valid", uris[0]), ("violation", uris[2])]
    left = {path.name for path in (runs / "lost" / "1").iterdir() if path.is_file()}
    assert {"verdict.json", "junit.xml", "story.json"} <= left
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["spark.log"]
