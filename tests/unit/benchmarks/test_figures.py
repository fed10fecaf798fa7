"""The arithmetic of benchmarks: lines, windows, and what must not become a figure."""

import pytest

from benchmarks import console
from benchmarks.cluster import PARTITIONS, BenchmarkError
from benchmarks.failover import first_ack_after
from benchmarks.figure import Figure
from benchmarks.load import Completion, records_that_fit
from benchmarks.produce import Sample, figures

_SECOND = 10**9


def _acked(*, invoked_ms: int, acked_ms: int, records: int = 1024) -> Completion:
    return Completion(
        partition=PARTITIONS[0], records=records, invoked_ns=invoked_ms * 10**6, acked_ns=acked_ms * 10**6
    )


def _sample(second: int, *, broker_cpu_s: float = 0.0, producer_cpu_s: float = 0.0) -> Sample:
    return Sample(
        time_ns=second * _SECOND,
        broker_cpu_s=broker_cpu_s,
        producer_cpu_s=producer_cpu_s,
        broker_rss=3 << 20,
        controller_rss=1 << 20,
        producer_rss=2 << 20,
    )


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ((0.5,), "x=0.500 s (0.500-0.500, n=1)"),
        ((3.0, 1.0, 2.0), "x=2.00 s (1.00-3.00, n=3)"),
        ((-0.02, 0.01), "x=-0.005 s (-0.020-0.010, n=2)"),
        ((1234567.8, 99.999), "x=617334 s (100.00-1234568, n=2)"),
    ],
)
def test_line(values: tuple[float, ...], line: str) -> None:
    assert Figure(name="x", unit="s", values=values).line() == line


@pytest.mark.parametrize(("batch_size", "records"), [(1, 1), (16_384, 15), (102_400, 98), (1_048_576, 1014)])
def test_records_that_fit(batch_size: int, records: int) -> None:
    assert records_that_fit(batch_size) == records


def test_a_window_counts_what_was_acknowledged_in_it() -> None:
    completions = [
        _acked(invoked_ms=900, acked_ms=999),
        _acked(invoked_ms=900, acked_ms=1000),
        _acked(invoked_ms=1900, acked_ms=1999),
        _acked(invoked_ms=1990, acked_ms=2000),
    ]
    samples = [_sample(1), _sample(2, broker_cpu_s=0.5, producer_cpu_s=0.25)]
    measured = {figure.name: figure.values for figure in figures("p", samples, completions)}
    assert measured["p_throughput"] == (2.0,)
    assert measured["p_records"] == (2048.0,)
    assert measured["p_latency_p99"] == (100.0,)
    assert measured["p_broker_cpu"] == (250_000.0,)
    assert measured["p_producer_cpu"] == (125_000.0,)
    assert measured["p_broker_rss"] == (3.0,)


def test_an_empty_window_is_no_figure() -> None:
    with pytest.raises(BenchmarkError):
        list(figures("p", [_sample(1), _sample(2)], [_acked(invoked_ms=1, acked_ms=2)]))


def test_failover_counts_only_records_made_after_the_kill() -> None:
    completions = [_acked(invoked_ms=990, acked_ms=1500), _acked(invoked_ms=1001, acked_ms=3200)]
    assert first_ack_after(_SECOND, completions) == pytest.approx(2.2)


def test_no_ack_after_the_kill_is_no_figure() -> None:
    with pytest.raises(BenchmarkError):
        first_ack_after(_SECOND, [_acked(invoked_ms=1, acked_ms=2000)])


def test_figures_of_the_console_are_of_the_whole_input() -> None:
    throughput, cpu = console.figures("console_1k", [(10.0, 4.0), (20.0, 2.0)])
    assert (throughput.name, throughput.unit, throughput.values) == ("console_1k_throughput", "MB/s", (20.0, 10.0))
    assert (cpu.name, cpu.unit, cpu.values) == ("console_1k_producer_cpu", "us/MB", (20_000.0, 10_000.0))
