"""Clients that know nothing of a tap are judged by what it wrote down, as by a cluster that knows itself."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from docs.examples.application.shop import place_orders
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.loss_report import OffsetRange
from laststand.emulator.verification.verdict.readers import Jump, JumpCause
from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.cluster.settings import PATIENT, QUICK
from tests.cluster.signals import default_signals
from tests.cluster.test_kafka_clients import consume, play_last_replica_standing

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180), pytest.mark.usefixtures("judged_here")]

ENDS_WITHIN_S = 60
BOOTSTRAP = "bootstrap.servers="


@contextmanager
def tapped(upstream: str, run: Path, *arguments: str) -> Iterator[str]:
    """Yields the addresses of a tap."""
    command = [sys.executable, "-m", "laststand.cli", "tap", "--upstream", upstream, "--out", str(run)]
    with default_signals():
        tap = subprocess.Popen([*command, "--listen", "127.0.0.1:0", *arguments], stderr=subprocess.PIPE, text=True)
    with tap:
        try:
            assert tap.stderr is not None
            line = tap.stderr.readline()
            assert line.startswith(BOOTSTRAP), line + tap.stderr.read()
            yield line.removeprefix(BOOTSTRAP).strip()
            tap.send_signal(signal.SIGINT)
            _, err = tap.communicate(timeout=ENDS_WITHIN_S)
        except BaseException:
            tap.kill()
            raise
    assert tap.returncode == 0, err
    assert "Traceback" not in err


async def read_for_group(servers: str, count: int, *, commits: int | None = None) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="buyers",
        client_id="buyer",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        for _ in range(count):
            await consumer.getone()
        if commits is not None:
            await consumer.commit({TopicPartition("orders", 0): commits})
    finally:
        await consumer.stop()


def test_an_application_runs_through_a_tap(tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path / "store", kafka=True, settings=PATIENT) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
        with tapped(cluster.bootstrap_servers, tmp_path / "run") as servers:
            asyncio.run(place_orders(servers, range(50)))
            assert len(asyncio.run(consume(servers, 50))) == 50
            asyncio.run(read_for_group(servers, 50, commits=20))
            asyncio.run(read_for_group(servers, 30))
        own = cluster.verify()
    assert own.verdict is Verdict.VALID
    report = judge_here(tmp_path / "run").report
    assert report.verdict is Verdict.VALID, (report.unknown_reasons, report.violated())
    assert (report.counts[0].acked, report.lost_records) == (50, 0)
    for each in (report, own):
        [reader] = [reader for reader in each.readers if reader.group_id == "buyers"]
        assert (reader.given, reader.twice, reader.never) == (50, (OffsetRange(first=20, last=49),), ())
        assert reader.jumps == (Jump(expected=50, position=20, cause=JumpCause.GROUP_POSITION),)


@pytest.mark.parametrize(("era", "lost"), [("kafka-3.9", 40), ("kip-966", 0)])
def test_it_is_found_what_a_cluster_knows_itself_to_have_lost(era: str, lost: int, tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path / "store", kafka=True, settings=QUICK, era=era) as cluster:
        with tapped(cluster.bootstrap_servers, tmp_path / "run", "--era", era, "--keys") as servers:
            play_last_replica_standing(cluster, servers)
        own = cluster.verify()
    report = judge_here(tmp_path / "run").report
    assert report.doubts == ()
    assert (report.counts[0].acked, report.lost_records) == (40, lost) == (own.counts[0].acked, own.lost_records)
    for each in (report, own):
        named = {key for loss in each.losses for key in loss.keys}
        assert named == ({f"order-{number}" for number in range(20)} if lost else set())
    assert report.verdict is (Verdict.VIOLATION if lost else Verdict.VALID)


def test_a_compacted_topic_whose_older_records_would_look_lost_is_not_judged(tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path / "store", kafka=True, settings=PATIENT) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3, config={"cleanup.policy": "compact"})
        with tapped(cluster.bootstrap_servers, tmp_path / "run") as servers:
            asyncio.run(place_orders(servers, range(5)))
    report = judge_here(tmp_path / "run").report
    assert (report.verdict, report.counts) == (Verdict.UNKNOWN, ())
    assert "no client wrote or read anything that can be judged" in " ".join(report.unknown_reasons)
