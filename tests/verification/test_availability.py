"""Times that clients waited, by hand-written runs whose sums can be done in the head."""

from pathlib import Path

import pytest

from laststand.emulator.core.history import OperationType
from laststand.emulator.verification.verdict.availability import FaultToAck, PartitionAvailability, WorkloadAvailability
from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.report import VerdictReport
from tests.analysis.stories import failover, sent_at
from tests.verification.conftest import Judge
from tests.verification.run_builder import RunBuilder

SLOW = "{slow: {from: 0, to: 1, latency: 5 ms}}"


def steady(path: Path, *, fails_from_s: float | None = None) -> Path:
    """A batch every second from 2.0 on, acknowledged after 0.25 s, but for those from ``fails_from_s`` on."""
    run = RunBuilder(path, begin_s=1.0)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    for second in (2.0, 3.0, 4.0, 5.0):
        if second == 4.0:
            run.at(3.5)
            run.fault("slow", "0->1")
            run.step(SLOW)
        if fails_from_s is None or second < fails_from_s:
            run.poll([sent_at(run, second, second + 0.25)])
        else:
            run.at(second + 1.5)
            run.operate(run.new_batch(), outcome=OperationType.FAIL, begun_s=second)
    run.at(8.0)
    run.step("{until: {acked: 4}}")
    return run.finish()


def never_sent(path: Path) -> Path:
    run = RunBuilder(path, begin_s=1.0)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    return run.finish()


def one_replica(path: Path, *, cap: str) -> Path:
    """A partition with one replica and a min ISR of two, for seven seconds."""
    run = RunBuilder(path, begin_s=1.0, switches={"min_isr_capped": cap})
    run.start_brokers(0, 1, 2)
    run.create_topic(replicas=(0,))
    run.at(8.0)
    run.step("{until: {elapsed: 7 s}}")
    return run.finish()


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("availability")
    return judge(
        {
            "failover": failover(base / "failover" / "1"),
            "steady": steady(base / "steady" / "1"),
            "fails": steady(base / "fails" / "1", fails_from_s=4.0),
            "capped": one_replica(base / "capped" / "1", cap="on"),
            "as configured": one_replica(base / "as-configured" / "1", cap="off"),
            "never sent": never_sent(base / "never-sent" / "1"),
        }
    )


def workload(report: VerdictReport, *, acks: int = -1) -> WorkloadAvailability:
    [partition] = report.availability
    [found] = [each for each in partition.workloads if each.acks == acks]
    return found


@pytest.mark.parametrize(("cap", "below_min_isr_s"), [("capped", 0.0), ("as configured", 7.0)])
def test_a_partition_with_fewer_replicas_than_min_isr_is_below_it_where_brokers_do_not_cap_it(
    reports: dict[str, VerdictReport], cap: str, below_min_isr_s: float
) -> None:
    assert reports[cap].below_min_isr_s == pytest.approx(below_min_isr_s)


def test_a_steady_workload_waits_for_its_answers_only(reports: dict[str, VerdictReport]) -> None:
    found = workload(reports["steady"])
    assert found.longest_without_ack_s == pytest.approx(0.25)
    assert found.p99_ack_s == pytest.approx(0.25)
    assert found.slowest_after_fault == FaultToAck(fault="slow", target="0->1", seconds=0.75)


def test_a_failed_send_keeps_waiting_until_the_last_one_failed(reports: dict[str, VerdictReport]) -> None:
    found = workload(reports["fails"])
    assert found.longest_without_ack_s == pytest.approx(2.5)
    assert found.longest_after_step == f"step 1 {SLOW}"
    assert found.p99_ack_s == pytest.approx(0.25)
    assert found.slowest_after_fault == FaultToAck(fault="slow", target="0->1", seconds=None)


def test_a_failover_is_reported_from_the_first_send_that_had_to_wait(reports: dict[str, VerdictReport]) -> None:
    [partition] = reports["failover"].availability
    assert (partition.leaderless_s, partition.below_min_isr_s) == pytest.approx((3.0, 4.0))
    found = workload(reports["failover"])
    assert found.longest_without_ack_s == pytest.approx(7.2)
    assert found.slowest_after_fault == FaultToAck(fault="isolate", target="1", seconds=9.7)
    assert workload(reports["failover"], acks=1).longest_without_ack_s == pytest.approx(0.1)
    report = reports["failover"]
    assert report.unavailable_s == pytest.approx(7.2)
    assert (report.leaderless_s, report.below_min_isr_s) == pytest.approx((3.0, 4.0))
    assert report.fault_to_ack_s == pytest.approx(9.7)
    assert reports["fails"].fault_to_ack_s is None


def test_the_summary_reports_the_worst(reports: dict[str, VerdictReport]) -> None:
    [line] = [line for line in summary(reports["failover"]).splitlines() if "availability" in line]
    assert line == (
        "  availability: at most 7.20 s without an ack (orders-0, acks=all), 99 % acked within 0.500 s, "
        "3.00 s without a leader, 4.00 s below min ISR, first ack 9.70 s after isolate 1"
    )
    assert "no ack after slow 0->1" in summary(reports["fails"])


def test_where_nothing_was_sent_nothing_is_said(reports: dict[str, VerdictReport]) -> None:
    report = reports["never sent"]
    assert report.availability == (
        PartitionAvailability(topic="orders", partition=0, leaderless_s=0.0, below_min_isr_s=0.0, workloads=()),
    )
    assert report.unavailable_s is None
    assert "availability" not in summary(report)
