"""Histories that others wrote are judged by what they say, and by no more."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from laststand.chaos.external.imported_history import import_history
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport

EXAMPLES = Path(__file__).parents[4] / "docs/examples/histories"
ORDERS = '"topic": "orders", "partition": 0'


def judged(paths: Sequence[Path], folder: Path, *, has_read_to_end: bool = False) -> VerdictReport:
    import_history(paths, folder / "run", era="kafka-4.2", has_read_to_end=has_read_to_end)
    return judge_here(folder / "run").report


def lines(folder: Path, *written: str) -> Path:
    path = folder / "history.jsonl"
    path.write_text("\n".join(written))
    return path


def send(number: int, offset: int | None, outcome: str = "ok") -> tuple[str, str]:
    start = f'{{"f": "send", "process": "p", "id": "{number}", {ORDERS}, "value": "{number}"'
    end = "" if offset is None else f', "offset": {offset}'
    return f'{start}, "type": "invoke"}}', f'{start}, "type": "{outcome}"{end}}}'


def poll(*records: tuple[int, int], process: str = "c", seek: bool = False) -> str:
    given = ", ".join(f'[{offset}, "{value}"]' for offset, value in records)
    return f'{{"f": "poll", "process": "{process}", {ORDERS}, "records": [{given}], "seek": {str(seek).lower()}}}'


def end(offset: int) -> str:
    return f'{{"f": "end", {ORDERS}, "end": {offset}}}'


THREE = (*send(0, 0), *send(1, 1), *send(2, 2))


def violated(report: VerdictReport) -> set[str]:
    return {check.check_id for check in report.violated()}


def test_the_documented_form_is_judged(tmp_path: Path) -> None:
    report = judged([EXAMPLES / "lossy.jsonl"], tmp_path)
    assert (report.verdict, violated(report), report.lost_records) == (Verdict.VIOLATION, {"D1"}, 1)
    assert report.counts[0].sent == 3


def test_a_jepsen_history_is_judged_by_key(tmp_path: Path) -> None:
    report = judged([EXAMPLES / "jepsen.edn"], tmp_path)
    assert (report.verdict, report.lost_records) == (Verdict.VIOLATION, 1)
    assert violated(report) == {"D1", "C1", "C2"}


@pytest.mark.parametrize("has_read_to_end", [False, True])
def test_what_kafkas_verifiable_clients_print_is_judged(tmp_path: Path, *, has_read_to_end: bool) -> None:
    paths = [EXAMPLES / "verifiable-producer.log", EXAMPLES / "verifiable-consumer.log"]
    report = judged(paths, tmp_path, has_read_to_end=has_read_to_end)
    assert (report.verdict, report.doubts) == (Verdict.VALID, ())
    assert (report.counts[0].acked, report.lost_records) == (3, 0)


def test_records_behind_the_last_one_that_was_read_are_lost_only_if_the_end_was_reached(tmp_path: Path) -> None:
    written = (*send(0, 0), *send(1, 1), poll((0, 0)))
    paths = [lines(tmp_path, *written)]
    for folder in ("open", "said", "told"):
        (tmp_path / folder).mkdir()
    assert judged(paths, tmp_path / "open").lost_records == 0
    assert judged(paths, tmp_path / "said", has_read_to_end=True).lost_records == 1
    assert judged([lines(tmp_path, *written, end(1))], tmp_path / "told").lost_records == 1


def test_nothing_is_called_lost_without_a_read_at_the_end(tmp_path: Path) -> None:
    report = judged([lines(tmp_path, *send(0, 0), poll((0, 0)), *send(1, 1))], tmp_path)
    durable = next(check for check in report.checks if check.check_id == "D1")
    assert durable.status is CheckStatus.NOT_ASKED


def test_offsets_without_a_record_may_be_left_out(tmp_path: Path) -> None:
    """They may hold the end of a transaction."""
    report = judged([lines(tmp_path, *send(0, 0), *send(1, 2), poll((0, 0), (2, 1)))], tmp_path)
    assert violated(report) == set()


def test_a_record_that_a_consumer_skips_is_found(tmp_path: Path) -> None:
    written = (
        *send(0, 0),
        *send(1, 1),
        *send(2, 2),
        poll((0, 0)),
        poll((2, 2)),
        poll((0, 0), (1, 1), (2, 2), process="d"),
    )
    assert violated(judged([lines(tmp_path, *written)], tmp_path)) == {"C1"}


def test_a_consumer_that_wanted_to_jump_skips_nothing(tmp_path: Path) -> None:
    written = (
        *send(0, 0),
        *send(1, 1),
        *send(2, 2),
        poll((0, 0)),
        poll((2, 2), seek=True),
        poll((0, 0), (1, 1), (2, 2), process="d"),
    )
    assert violated(judged([lines(tmp_path, *written)], tmp_path)) == set()


def timed(line: str, seconds: float) -> str:
    return f'{line[:-1]}, "time_ns": {round(seconds * 1e9)}}}'


def two_hosts(folder: Path, *, behind_s: float, gone: bool = False) -> list[Path]:
    """Writes the files of a producer, and of a consumer whose clock is behind by so much."""
    sends = [timed(line, 100 + number) for number, line in enumerate(THREE)]
    given = poll((0, 0), *(() if gone else ((1, 1),)), (2, 2))
    (folder / "producer.jsonl").write_text("\n".join(sends))
    (folder / "consumer.jsonl").write_text(timed(given, 110 - behind_s))
    return [folder / "producer.jsonl", folder / "consumer.jsonl"]


@pytest.mark.parametrize("behind_s", [0, 4])
def test_clocks_that_differ_by_less_than_anything_takes_change_nothing(behind_s: float, tmp_path: Path) -> None:
    report = judged(two_hosts(tmp_path, behind_s=behind_s, gone=True), tmp_path)
    assert (report.verdict, report.lost_records) == (Verdict.VIOLATION, 1)


@pytest.mark.parametrize(("behind_ms", "differ"), [(1001, False), (1020, True)])
def test_kafkas_producer_may_report_a_success_after_the_record_arrived(
    *, behind_ms: int, differ: bool, tmp_path: Path
) -> None:
    told = (EXAMPLES / "verifiable-consumer.log").read_text()
    consumer = tmp_path / "verifiable-consumer.log"
    consumer.write_text(re.sub(r'(?<="timestamp":)\d+', lambda time: str(int(time[0]) - behind_ms), told))
    report = judged([EXAMPLES / "verifiable-producer.log", consumer], tmp_path)
    assert any("clocks" in reason for reason in report.unknown_reasons) is differ


@pytest.mark.parametrize("gone", [False, True])
def test_clocks_that_differ_leave_a_run_unknown(*, gone: bool, tmp_path: Path) -> None:
    report = judged(two_hosts(tmp_path, behind_s=60, gone=gone), tmp_path)
    # Whoever is given the first and the third record in one answer was skipped the second by any clock.
    assert (report.verdict, violated(report)) == (
        Verdict.VIOLATION if gone else Verdict.UNKNOWN,
        {"C1"} if gone else set(),
    )
    assert report.lost_records == 0
    clocks = "the clocks of consumer.jsonl and producer.jsonl differ by 54 s or more"
    said = f"{clocks}: c was given a record of orders-0 before p sent it"
    assert any(said in reason for reason in report.unknown_reasons), report.unknown_reasons


def test_a_clock_that_is_set_back_leaves_a_run_unknown(tmp_path: Path) -> None:
    paths = two_hosts(tmp_path, behind_s=0)
    sends = [timed(line, 100 - number) for number, line in enumerate(THREE)]
    paths[0].write_text("\n".join(sends))
    report = judged(paths, tmp_path)
    assert report.verdict is Verdict.UNKNOWN
    assert any("the clock of producer.jsonl was set back by 1 s" in reason for reason in report.unknown_reasons)


def test_processes_may_write_one_file_out_of_order(tmp_path: Path) -> None:
    paths = two_hosts(tmp_path, behind_s=0)
    other = timed(poll((0, 0), process="d"), 104.5)
    paths[0].write_text("\n".join((paths[0].read_text(), other)))
    report = judged(paths, tmp_path)
    assert not any("clock" in reason for reason in report.unknown_reasons)


def test_files_without_times_are_not_merged(tmp_path: Path) -> None:
    paths = two_hosts(tmp_path, behind_s=0)
    paths[0].write_text("\n".join(THREE))
    with pytest.raises(ConfigError, match=r"producer.jsonl is not allowed; expected times in all lines"):
        judged(paths, tmp_path)


def test_a_record_that_nobody_sent_is_found(tmp_path: Path) -> None:
    assert "D10" in violated(judged([lines(tmp_path, *send(0, 0), poll((0, 0), (1, 9)))], tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("history.jsonl", '{"f": "sent"}', "history.jsonl:1"),
        ("history.jsonl", send(0, 0)[0].replace('"p"', "7"), "history.jsonl:1"),
        ("history.jsonl", "\n".join((*send(0, 0), send(1, 1)[1])), "an invocation for each outcome"),
        ("history.jsonl", "\n".join((*send(0, 0), send(0, 0)[1])), "one outcome for each invocation"),
        ("history.jsonl", "nothing of that sort", "a history with operations"),
        ("history.edn", "{:type :invoke, :f :send", "history.edn:1"),
        ("history.edn", "{:type :ok, :f :txn, :value [[:append 1 2]], :process 0}", "history.edn:1.*nothing begun"),
    ],
)
def test_what_is_no_history_is_refused_in_a_line_and_leaves_nothing(
    name: str, text: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=reason) as raised:
        import_history([path], tmp_path / "run", era="kafka-4.2", has_read_to_end=False)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()
