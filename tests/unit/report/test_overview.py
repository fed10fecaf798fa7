"""Many runs on one page: a cell for each scenario and era, of several the worst, with links that lead to reports."""

import os
from pathlib import Path
from urllib.parse import unquote

import msgspec

from laststand.cli.output.pictures import leave_suite_reports
from laststand.emulator.report.overview import PlayedCell, UnplayedCell, write_overview
from laststand.emulator.report.page import REPORT_FILE
from laststand.emulator.verification.verdict.availability import WorkloadAvailability
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.report import Expected
from tests.unit.report.judged_runs import kept, left_by, lost
from tests.unit.report.test_page import EVIL, Page
from tests.verification.run_builder import healthy


def links(target: Path) -> list[Path]:
    page = Page(target.read_text())
    return [Path(os.path.normpath(target.parent / unquote(link))) for link in page.values("href")]


def test_each_scenario_and_era_has_a_cell_that_leads_to_the_worst_run(tmp_path: Path) -> None:
    runs = [
        kept(tmp_path / "demo/1").directory,
        lost(tmp_path / "demo/2").directory,
        kept(tmp_path / "demo/3").directory,
    ]
    calm = left_by(healthy(tmp_path / "calm" / "1"))
    pages = [PlayedCell(run, run / REPORT_FILE) for run in (*runs, calm)]
    target = tmp_path / "all" / "overview.html"
    target.parent.mkdir()
    unplayed = UnplayedCell("demo", "kafka-0.10", "<no ELR to wait for>", is_playable=False)
    write_overview(pages, target, unplayed=[unplayed])
    assert links(target) == [runs[1] / REPORT_FILE, runs[0] / REPORT_FILE, calm / REPORT_FILE]
    text = Page(target.read_text()).text
    assert "4 runs of 2 scenarios" in text
    assert "not playable <no ELR to wait for>" in text
    assert text.index("kafka-0.10 not played") < text.index("kafka-3.9 1 failed, 1 broken")
    assert text.index("kafka-3.9 1 failed, 1 broken") < text.index("kip-966 0 broken")
    assert "\N{MULTIPLICATION X} 100" in text


def test_what_is_not_as_expected_comes_first_and_an_expected_loss_is_distinguished_from_another(tmp_path: Path) -> None:
    runs = {name: lost(tmp_path / name / "1") for name in ("a-foreseen", "b-lost", "c-late")}
    foreseen = msgspec.structs.replace(runs["a-foreseen"].verdict, outcome=Expected.MET)
    late = msgspec.structs.replace(
        kept(tmp_path / "kept" / "1").verdict, outcome=Expected.MISSED, misses=("too late",), scenario="c-late"
    )
    write_verdict(foreseen, runs["a-foreseen"].directory)
    write_verdict(late, runs["c-late"].directory)
    target = tmp_path / "overview.html"
    cells = [PlayedCell(run.directory, run.directory / REPORT_FILE, "era", 2) for run in runs.values()]
    write_overview(cells, target)
    page = Page(target.read_text())
    assert [link.parent.parent.name for link in links(target)] == ["b-lost", "c-late", "a-foreseen"]
    assert "\N{MULTIPLICATION X} 100 as expected #2" in page.text
    assert "\N{MULTIPLICATION X} failed #2" in page.text
    assert any(title.startswith("FAILED: c-late") and "too late" in title for title in page.values("title"))


def test_names_of_scenarios_are_text(tmp_path: Path) -> None:
    run = left_by(healthy(tmp_path / EVIL.replace("/", "") / "1"))
    write_overview([PlayedCell(run, run / REPORT_FILE)], tmp_path / "overview.html")
    page = Page((tmp_path / "overview.html").read_text())
    assert "script" not in [tag for tag, _ in page.elements]
    assert links(tmp_path / "overview.html") == [run / REPORT_FILE]


def test_a_suite_without_a_judged_run_has_no_overview(tmp_path: Path) -> None:
    assert leave_suite_reports({}, tmp_path / "overview.html") is None
    assert leave_suite_reports({tmp_path: "kip-966"}, tmp_path / "overview.html") is None
    run = left_by(healthy(tmp_path / "calm" / "1"))
    columns = {tmp_path: "kip-966", run: "kip-966"}
    assert leave_suite_reports(columns, tmp_path / "overview.html") == tmp_path / "overview.html"


def test_each_driver_has_a_column(tmp_path: Path) -> None:
    runs = {}
    for driver in ("process", "simulator"):
        runs[driver] = left_by(healthy(tmp_path / "calm" / driver))
        with (runs[driver] / "cluster.yaml").open("a") as file:
            file.write(f"driver: {driver}\n")
    target = tmp_path / "overview.html"
    write_overview([PlayedCell(run, run / REPORT_FILE) for run in runs.values()], target)
    text = Page(target.read_text()).text
    assert "kip-966 on process 0 broken kip-966 on simulator 0 broken" in text
    assert len(links(target)) == 2
    columns = {run: f"kip-966 on {driver}" for driver, run in runs.items()}
    reason = "--driver kafka cannot play " + "what it cannot play, " * 9
    leave_suite_reports(columns, target, unplayed=[UnplayedCell("calm", "kip-966 on kafka", reason)])
    text = Page(target.read_text()).text
    assert "kip-966 on kafka not played kip-966 on process 0 broken" in text
    assert reason.strip() in text


def test_the_time_without_an_acknowledgement_is_the_verdicts(tmp_path: Path) -> None:
    run = lost(tmp_path / "demo" / "1")
    waits = (
        WorkloadAvailability(acks=acks, longest_without_ack_s=waited_s, p99_ack_s=None, slowest_after_fault=None)
        for acks, waited_s in ((-1, 4.478), (1, 0.3))
    )
    [partition] = run.verdict.availability
    slow = msgspec.structs.replace(partition, workloads=tuple(waits))
    write_verdict(msgspec.structs.replace(run.verdict, availability=(slow,)), run.directory)
    write_overview([PlayedCell(run.directory, run.directory / REPORT_FILE)], tmp_path / "overview.html")
    assert "none acked for 4.478 s" in Page((tmp_path / "overview.html").read_text()).text
