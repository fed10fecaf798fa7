"""A run that is written is the run that is played without a directory, and its plan can be played again."""

from pathlib import Path

import pytest

from laststand.emulator.core.client.steps import BatchContent
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan.plan import Plan, parse_plan
from laststand.emulator.plan.plan_yaml import read_plan_yaml
from laststand.emulator.simulator.nodes.batch_registry import batch_size
from laststand.emulator.simulator.run.evidence import BatchBytes
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.run.writer import write_run

SEGMENTS = """\
cluster brokers=3 log.retention.check.interval.ms=100
topic orders replicas=(0,1,2) segment.bytes=1024 retention.bytes=0
produce orders-0 acks=all records=100
wait 50
produce orders-0 acks=1 records=3
wait 500
kill 1
"""


@pytest.fixture
def plan() -> Plan:
    return parse_plan(SEGMENTS)


def test_a_run_is_the_same_whether_it_is_written_or_not(plan: Plan, tmp_path: Path) -> None:
    played = Simulation(plan)
    played.play_plan()
    written = write_run(plan, tmp_path / "run", name="a")
    assert written.outcome() == played.outcome()
    assert written.cluster.steps > played.cluster.steps, "it was stopped in order afterwards"


def test_the_plan_is_in_the_directory(plan: Plan, tmp_path: Path) -> None:
    write_run(plan, tmp_path / "run", name="a")
    path = tmp_path / "run/plan.yaml"
    assert read_plan_yaml(path, path.read_text()) == plan


@pytest.mark.parametrize("records", [1, 2, 64, 65, 100, 8192, 8193, 10_000])
def test_a_batch_is_as_long_with_bytes_as_without(records: int) -> None:
    content = BatchContent(
        partition=TopicPartition("orders", 0),
        first_record_id=0,
        record_count=records,
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
    )
    assert BatchBytes({}).encode("producer-leader", content).size == batch_size(records)


def test_a_log_that_begins_later_says_so(tmp_path: Path) -> None:
    plan = parse_plan(
        "cluster brokers=3\n"
        "topic orders replicas=(0,1,2)\n"
        "produce orders-0 acks=all records=5\n"
        "wait 50\n"
        "delete_records: {partition: orders-0, offset: 3}\n"
        "wait 50\n"
    )
    write_run(plan, tmp_path / "run", name="a")
    for node in (0, 1, 2):
        path = tmp_path / f"run/nodes/{node}/data/log-start-offset-checkpoint"
        assert path.read_text() == "0\n1\norders 0 3\n"
