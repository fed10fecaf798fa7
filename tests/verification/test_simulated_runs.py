"""Verification takes a scenario's run in virtual time as it takes one on processes, and comes to what is expected."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from laststand.chaos.campaign import play_runs
from laststand.chaos.plans.lost_records import lost_records_of
from laststand.chaos.play.expectation import compare
from laststand.chaos.play.run_directory import create_run_directory
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario
from laststand.emulator.core.switches import era_switches
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.verdict.report import Expected
from tests.verification.conftest import Judge

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PLAYED = [
    ("last-replica-standing", "kafka-3.9"),
    ("last-replica-standing", "kip-966"),
    ("last-replica-standing-flush", "kafka-3.9"),
    ("last-replica-standing-kill", "kafka-3.9"),
]


def orders(store: Path) -> list[RunOrder]:
    found = []
    for name, era in PLAYED:
        scenario = load_scenario(find_scenario(f"kip-966/{name}"))
        found.append(
            RunOrder(
                scenario=scenario,
                directory=create_run_directory(store, scenario, now=datetime.now(UTC)),
                era=era,
                switches=era_switches(era),
                properties=scenario.properties,
                seed=1,
                toxiproxy=None,
                driver=DriverName.SIMULATOR,
            )
        )
    return found


def test_the_stories_have_the_same_verdicts_in_virtual_time_as_on_processes(tmp_path: Path, judge: Judge) -> None:
    played = orders(tmp_path)
    play_runs(played, on_status=lambda _status: None)
    reports = judge({str(order.directory): order.directory for order in played})
    for order in played:
        report = reports[str(order.directory)]
        assert report.unknown_reasons == ()
        assert compare(report, order.scenario.expectation(order.era)) == (Expected.MET, ()), order.directory
        assert report.lost_records == len(lost_records_of(order.directory))
