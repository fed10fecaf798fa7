"""The table of KIP-966's 'Ack=0/1 comparison' counts what happened while the ISR was below the minimum, no more."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from laststand.cli.output.acks_table import acks_table
from laststand.emulator.core import events as e
from laststand.emulator.verification.verdict.acks_comparison import AcksComparison
from laststand.emulator.verification.verdict.report import VerdictReport
from laststand.emulator.verification.verdict.requested import ACKS_COMPARISON
from tests.verification.conftest import Judge
from tests.verification.run_builder import RunBuilder, healthy


def below_min_isr(path: Path, *, moves: bool) -> Path:
    """20 records of acks=1 above min ISR, 30 below it; then the leader is gone and another one comes from the ELR."""
    run = RunBuilder(path, switches={} if moves is False else {"hw_requires_min_isr": "off"})
    run.report = ACKS_COMPARISON
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.create_topic("bills")
    run.send()
    for batch in [run.send("bills", acks=1) for _ in range(2)]:
        run.advance(batch.last_offset + 1, "bills")
        run.poll([batch], "bills")
    run.expand((0, 1), "bills")
    run.accept((0,), "bills")
    run.alter("bills", reason="alter_partition", broker=0, isr=(0,), elr=(1,))
    for batch in [run.send("bills", acks=1, to=(0, 1, 2)) for _ in range(3)]:
        if moves:
            run.advance(batch.last_offset + 1, "bills")
            run.poll([batch], "bills")
    run.fault("isolate", "0")
    run.fence(0)
    run.alter(
        "bills", reason="broker_fenced", broker=0, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=(0, 1)
    )
    run.alter(reason="broker_fenced", broker=0, leader=1, election=e.Election.ISR, isr=(1, 2))
    run.alter("bills", reason="broker_unfenced", broker=1, leader=1, election=e.Election.ELR, isr=(1,), elr=(0,))
    return run.finish()


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("acks")
    return judge(
        {
            "stands": below_min_isr(base / "stands" / "1", moves=False),
            "moves": below_min_isr(base / "moves" / "1", moves=True),
            "not asked": healthy(base / "healthy" / "1").finish(),
        }
    )


def comparison(report: VerdictReport) -> AcksComparison:
    assert report.acks_comparison is not None
    return report.acks_comparison


@pytest.mark.parametrize(("name", "read", "advance"), [("stands", 0, 0), ("moves", 30, 30)])
def test_only_what_happened_below_min_isr_is_counted(
    name: str, read: int, advance: int, reports: dict[str, VerdictReport]
) -> None:
    by_acks = {measure.acks: measure for measure in comparison(reports[name]).measures}
    assert set(by_acks) == {-1, 1}
    assert (by_acks[1].accepted, by_acks[1].read, by_acks[1].high_watermark_advance) == (30, read, advance)
    assert (by_acks[-1].accepted, by_acks[-1].read, by_acks[-1].high_watermark_advance) == (0, 0, 0)


def test_it_reports_who_came_back(reports: dict[str, VerdictReport]) -> None:
    (returned,) = comparison(reports["stands"]).returns
    assert (returned.acks, returned.topic, returned.leader, returned.election) == (1, "bills", 1, "elr")
    assert returned.log_end_offset == 50


def test_a_run_that_does_not_ask_has_none(reports: dict[str, VerdictReport]) -> None:
    assert reports["not asked"].acks_comparison is None


def test_the_table_has_the_cells_of_the_kip_beside_the_measured_ones(reports: dict[str, VerdictReport]) -> None:
    text = io.StringIO()
    table = acks_table([("old", comparison(reports["moves"])), ("new", comparison(reports["stands"]))])
    Console(file=text, width=400).print(table)
    lines = text.getvalue()
    for words in (
        "Clients can consume incoming messages if the ISR size is below min ISR.",
        "HWM can not move forward if the ISR size is below min ISR.",
        "acks=1: 30 of 30 read",
        "acks=1: 0 of 30 read",
        "acks=1: moved by 30",
        "acks=1: broker 1 led from the ELR, with a log of 50 records",
        "measured: old",
    ):
        assert words in lines
