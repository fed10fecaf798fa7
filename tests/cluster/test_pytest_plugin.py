"""Scenarios as tests of pytest: what passes, fails and is skipped, and what is told of it."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SCENARIO = """\
name: {name}
cluster: {{brokers: 3, properties: {{{properties}}}}}
topics: [{{name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}}]
workload: {{producers: [{{acks: all, rate: 200}}]}}
steps:
  - until: {{acked: 50}}
expect:
  kip-966: {{verdict: valid, lost: "{lost}"}}
"""

_OPTIONS = ("-p", "no:cacheprovider", "--laststand-driver", "simulator")

FLUSH = "log.flush.interval.ms: 5"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A scenario that passes, one that does not, and one that virtual time cannot play."""
    for name, lost, properties in (
        ("kept", "0", ""),
        ("lost", "> 0", ""),
        ("flushed", "0", "log.flush.interval.ms: 5"),
    ):
        text = SCENARIO.format(name=name, lost=lost, properties=properties)
        (tmp_path / f"{name}.laststand.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text("no scenario of the plugin")
    return tmp_path


def run_pytest(project: Path, *arguments: str, judge: str = "here") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *_OPTIONS, "--laststand-judge", judge, *arguments],
        cwd=project,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.spark
@pytest.mark.parametrize(("workers", "judge"), [((), "here"), (("-n", "1"), "spark")], ids=["alone", "xdist"])
def test_a_scenario_passes_fails_or_is_skipped(workers: tuple[str, ...], judge: str, project: Path) -> None:
    code, said = run_pytest(project, "-ra", "--junitxml", "junit.xml", *workers, judge=judge)
    assert code == 1, said
    assert "1 failed, 1 passed, 1 skipped" in said
    assert "0 acks=all records lost, expected >0" in said
    assert "log.flush.interval.ms" in said
    assert "Traceback" not in said
    assert "run directory: " in said
    cases = {case.get("name"): case for case in ElementTree.parse(project / "junit.xml").iter("testcase")}
    assert set(cases) == {"kip-966"}
    assert len(list((project / "store").glob("*/2*/verdict.json"))) == 2


@pytest.mark.parametrize(
    ("changed", "arguments", "said"),
    [
        ("naem: broken\n", (), "broken.laststand.yaml:1: needs the key 'name'"),
        (SCENARIO.format(name="kept", lost="0", properties=""), (), "the scenario's name is that of"),
        (None, ("--laststand-era", "kafka-1.0"), "kafka-1.0"),
    ],
)
def test_mistakes_are_reported_without_a_traceback(
    changed: str | None, arguments: tuple[str, ...], said: str, project: Path
) -> None:
    if changed is not None:
        (project / "broken.laststand.yaml").write_text(changed)
    code, output = run_pytest(project, *arguments)
    assert code != 0
    assert said in output
    assert "Traceback" not in output


def test_an_era_without_expectation_is_skipped(project: Path) -> None:
    code, said = run_pytest(project, "-rs", "--laststand-era", "kafka-3.9")
    assert code == 0, said
    assert "3 skipped" in said
    assert "the scenario expects nothing of era kafka-3.9" in said


STANDING = """\
import pytest


@pytest.mark.laststand_cluster(brokers=2, settings={"default.replication.factor": "2"})
def test_kept(laststand_cluster):
    laststand_cluster.create_topic("orders")
    assert laststand_cluster.topics() == ("orders",)
    assert laststand_cluster.produce("orders", [b"a", b"b"], partition=0).acked == 2
    laststand_cluster.chaos("pause: {random: 2 of isr}")
    laststand_cluster.chaos("resume: {any: 2}")
    laststand_cluster.chaos("kill: {node: leader(orders-0)}")
    laststand_cluster.until("partition: orders-0, leader: 1", within="60 s")
    read = laststand_cluster.consume("orders", count=2, within_s=60)
    assert [record.value for record in read] == [b"a", b"b"]


@pytest.mark.laststand_cluster(brokers=1, settings={"default.replication.factor": "1", "min.insync.replicas": "1"})
def test_lost(laststand_cluster):
    laststand_cluster.create_topic("orders")
    assert laststand_cluster.produce("orders", [b"a"]).acked == 1
    laststand_cluster.chaos("power_loss: {node: 0, keep: none}")
"""


def test_a_standing_cluster_ends_with_its_test_and_is_verified(tmp_path: Path) -> None:
    (tmp_path / "test_standing.py").write_text(STANDING)
    code, said = run_pytest(tmp_path, "-n", "1")
    assert code == 1, said
    assert "2 passed, 1 error" in said
    assert "ERROR at teardown of test_lost" in said
    assert "VIOLATION, guarantee exceeded: test_standing.py-test_lost" in said
    assert "Traceback" not in said
    plans = [path.read_text() for path in (tmp_path / "store/standing").glob("*/2*/plan.yaml")]
    assert len(plans) == 2
    assert any("{pause: {nodes: [0, 1]}}" in plan for plan in plans), "what was drawn is recorded by id"
    assert not list(tmp_path.rglob("supervisor.sock"))
