"""Cells that a suite plays, and those that it plays again."""

from pathlib import Path

import pytest

from laststand.chaos.suite.cells import Cell
from laststand.chaos.suite.results import CellStatus, SuiteReport, unplayed_result, write_report
from laststand.chaos.suite.selection import select
from laststand.chaos.suite.suite import make_suite, suite_again, toxiproxy_for
from laststand.emulator.core.errors import MissingToolError
from laststand.emulator.plan.drivers import DriverName

STORY = "kip-966/last-replica-standing-kill"
DRIVERS = (DriverName.SIMULATOR, DriverName.PROCESS)


def test_each_cell_is_played_by_its_own_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laststand.chaos.suite.suite.require_toxiproxy", lambda _driver: tmp_path / "toxiproxy-server")
    suite = make_suite(select([STORY]), eras=("kip-966",), drivers=DRIVERS, store=tmp_path / "store", seed=1)
    orders = [suite.order(cell) for cell in suite.cells]
    assert [order.driver for order in orders] == list(DRIVERS)
    assert [order.toxiproxy is None for order in orders] == [True, False], "virtual time needs no proxies"


def test_what_did_not_pass_is_played_again_by_the_driver_that_played_it(tmp_path: Path) -> None:
    (story,) = select([STORY])
    cells = [
        unplayed_result(
            Cell(scenario=story.scenario, era="kip-966", repetition=1, seed=5, driver=driver), status=status
        )
        for driver, status in ((DriverName.PROCESS, CellStatus.PASSED), (DriverName.SIMULATOR, CellStatus.FAILED))
    ]
    report = SuiteReport(driver="process", settings=(), started="2026-11-23", duration_s=1.0, cells=tuple(cells))
    write_report(report, tmp_path / "results.json")
    (again,) = suite_again(tmp_path / "results.json", store=tmp_path / "store").cells
    assert (again.driver, again.name) == (DriverName.SIMULATOR, f"{STORY} kip-966 on simulator #1")


def test_a_power_loss_on_kafka_needs_a_compiler_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("laststand.chaos.suite.suite.require_toxiproxy", lambda _driver: tmp_path / "toxiproxy-server")
    stories = {name: select([f"kip-966/{name}"])[0].scenario for name in ("last-replica-standing", "unclean-election")}
    toxiproxy_for([stories["unclean-election"]], driver=DriverName.KAFKA)
    with pytest.raises(MissingToolError, match="a C compiler"):
        toxiproxy_for([stories["last-replica-standing"]], driver=DriverName.KAFKA)


def test_cells_on_kafka_need_the_version_that_played_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (story,) = select([STORY])
    cell = Cell(scenario=story.scenario, era="kafka-4.2", repetition=1, seed=5, driver=DriverName.KAFKA)
    report = SuiteReport(
        driver="process",
        kafka="4.2.0",
        settings=(),
        started="2026-11-23",
        duration_s=1.0,
        cells=(unplayed_result(cell, status=CellStatus.FAILED),),
    )
    write_report(report, tmp_path / "results.json")
    with pytest.raises(MissingToolError, match=r"4\.2\.0"):
        suite_again(tmp_path / "results.json", store=tmp_path / "store")
