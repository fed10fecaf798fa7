"""Leaders whose disks fail or have damaged a batch: what they could not store or no longer have is not given out."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import NotReadError, StandingCluster
from tests.cluster.settings import QUICK

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), pytest.mark.usefixtures("judged_here")]

DEADLINE_S = 30


@contextmanager
def armed(cluster: StandingCluster, step: str) -> Iterator[list[str]]:
    """Arms a fault of node 0's disk for the block; yields what was seen of it, once the block has ended."""
    seen: list[str] = []
    chaos = threading.Thread(target=lambda: seen.append(cluster.chaos(step)))
    chaos.start()
    deadline = time.monotonic() + DEADLINE_S
    while not any(b"failing" in path.read_bytes() for path in cluster.directory.rglob("disk-faults.json")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield seen
    chaos.join(DEADLINE_S)


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_leader_that_cannot_store_acknowledges_nothing(operation: str, tmp_path: Path) -> None:
    settings = {**QUICK, "log.flush.interval.messages": "1"}
    with StandingCluster(store=tmp_path / "store", brokers=1, settings=settings) as cluster:
        cluster.create_topic("orders")
        assert cluster.produce("orders", [b"before"]).acked == 1
        with armed(cluster, f"disk_error: {{node: 0, operation: {operation}}}") as seen:
            tally = cluster.produce("orders", [b"lost"] * 10, settings={"delivery.timeout.ms": "3000"})
        assert tally.acked == 0
        assert seen == ["process of 0 ended: Input/output error"]
        cluster.chaos("start: {node: 0}")
        cluster.until("partition: orders-0, leader: 0")
        assert cluster.produce("orders", [b"after"]).acked == 1
        assert {record.value for record in cluster.consume("orders", count=2)} <= {b"before", b"lost", b"after"}
        report = cluster.verify()
    assert (report.verdict, report.lost_records) == (Verdict.VALID, 0)


def test_a_damaged_batch_of_a_leader_is_refused_by_followers_and_consumers(tmp_path: Path) -> None:
    values = [f"record {number}".encode() for number in range(20)]
    with StandingCluster(store=tmp_path / "store", settings=QUICK) as cluster:
        cluster.create_topic("orders", replication_factor=3)
        for value in values:
            assert cluster.produce("orders", [value]).acked == 1
        cluster.until("partition: orders-0, leader: 0, isr: [0, 1, 2]")
        cluster.chaos("stop: {node: 0}")  # in order, so that nobody reads its log when it is started
        assert cluster.chaos("flip_bit: {node: 0, partition: orders-0}") == "batches at 19 fail their CRC"
        cluster.chaos("start: {node: 0}")
        cluster.until("partition: orders-0, isr: [0, 1, 2]")
        cluster.chaos("elect_leaders: {type: preferred, partition: orders-0}")
        cluster.chaos("replace_disk: {node: 2}")
        cluster.until("partition: orders-0, leader: 0, isr: [0, 1]")
        cluster.chaos("start: {node: 2}")
        with pytest.raises(NotReadError, match="of 20 records"):
            cluster.consume("orders", count=20, within_s=5)
        cluster.until("node: 2, log: orders-0, end: 0")  # all came in one answer, which it refuses
        cluster.until("partition: orders-0, leader: 0, isr: [0, 1]")

        cluster.chaos("kill: {node: 0}")  # its log is recovered, and ends before the batch
        cluster.until("partition: orders-0, leader: 1, isr: [1, 2]")
        assert [record.value for record in cluster.consume("orders", count=20)] == values
        report = cluster.verify()
    assert (report.verdict, report.lost_records) == (Verdict.VALID, 0)
