"""The page on what min ISR protects from, ``docs/min-isr.md``: its tables are measured.

``make min-isr`` plays the scenarios of ``guarantees/`` in virtual time under each era of the tables, judges the runs in
this process, and writes the page; its argument is the directory for the runs, their reports, and an overview of them.
Each scenario has a topic per min ISR with a producer per acks, so that one run fills a row.
"""

import asyncio
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from docs.rule_tables import table
from laststand.chaos.campaign import held_against
from laststand.chaos.drivers import make_driver
from laststand.chaos.play.run_directory import create_run_directory_at
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import Run
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.types import Acks
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.report.overview import PlayedCell, write_overview
from laststand.emulator.report.page import REPORT_FILE, write_report
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.rules.guarantee import Guarantee, worst_of
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport

PAGE: Final = Path(__file__).parent / "min-isr.md"
ERAS: Final = ("kafka-3.9", "kafka-4.2", "kip-966")
MIN_ISRS: Final = (1, 2, 3)
SCENARIOS: Final = (
    "one-power-loss",
    "rack",
    "last-replica",
    "disk",
    "two-power-losses",
    "unclean-election",
    "site",
)
_FOLDER: Final = "guarantees"
_SEED: Final = 966
_TABLES: Final = re.compile(r"(?<=<!-- measured -->\n).*(?=<!-- end -->)", re.DOTALL)


class Measured(NamedTuple):
    """The measurement of one run: its verdict, and where it is."""

    directory: Path
    scenario: Scenario
    report: VerdictReport


def play(name: str, era: str, directory: Path) -> Measured:
    """Plays a scenario of ``guarantees/`` in virtual time, and judges it.

    Raises:
        ValueError: the run is undecided, so that its figures prove nothing.
    """
    scenario = load_scenario(find_scenario(f"{_FOLDER}/{name}"))
    order = RunOrder(
        scenario=scenario,
        directory=create_run_directory_at(directory, scenario),
        era=era,
        switches=era_rules(era),
        properties=scenario.properties,
        seed=_SEED,
        toxiproxy=None,
        driver=DriverName.SIMULATOR,
    )
    asyncio.run(Run(order, make_driver=make_driver, on_status=lambda _: None).play())
    report = held_against(order, judge_here(directory).report)
    write_verdict(report, directory)
    if report.verdict is Verdict.UNKNOWN:
        raise ValueError(f"{name} under {era}: {'; '.join(report.unknown_reasons)}")
    return Measured(directory, scenario, report)


def cell(report: VerdictReport, min_isr: int, acks: Acks) -> str:
    """Returns the lost of the acknowledged records of one topic and acks, and whether that breaks the guarantee."""
    topic = f"min-isr-{min_isr}"
    (partition,) = (each for each in report.partitions if each.topic == topic)
    (counts,) = (each for each in partition.producers if each.acks == acks.value)
    if not counts.lost:
        return "0"
    kinds = {loss.guarantee for loss in report.losses if loss.topic == topic and acks is Acks.ALL}
    mark = "**" if worst_of(kinds) is Guarantee.BROKEN else ""
    return f"{mark}{counts.lost} of {counts.acked}{mark}"


def tables(runs: Mapping[tuple[str, str], Measured]) -> str:
    """Returns a table for each era: a row per scenario, a column per acks and min ISR."""
    parts = [_table(f"### {era}", [row(name, runs[name, era]) for name in SCENARIOS]) for era in ERAS]
    return "\n" + "\n".join(parts) + "\n"


def _table(heading: str, rows: Iterable[Iterable[str]]) -> str:
    columns = [f"`{acks}`, min ISR {each}" for acks in ("acks=all", "acks=1") for each in MIN_ISRS]
    return f"{heading}\n\n{table(('What breaks', *columns), rows)}"


def row(name: str, run: Measured) -> Iterable[str]:
    """Yields the cells of a scenario: its title, and what is lost by acks and min ISR."""
    yield f"[{run.scenario.title}](../chaos/scenarios/{_FOLDER}/{name}.yaml)"
    for acks in (Acks.ALL, Acks.LEADER):
        for min_isr in MIN_ISRS:
            yield cell(run.report, min_isr, acks)


def page(runs: Mapping[tuple[str, str], Measured]) -> str:
    """Returns the page with the tables of these runs."""
    return _TABLES.sub(lambda _: tables(runs), PAGE.read_text(encoding="utf-8"))


def main(target: Path) -> None:
    """Plays everything, and writes the page, the reports of the runs, and an overview of them."""
    shutil.rmtree(target, ignore_errors=True)
    runs = {(name, era): play(name, era, target / name / era) for name in SCENARIOS for era in ERAS}
    cells = []
    for (_, era), run in runs.items():
        write_report(run.directory, run.directory / REPORT_FILE, against=None)
        cells.append(PlayedCell(run.directory, run.directory / REPORT_FILE, era, None))
    write_overview(cells, target / "index.html", unplayed=())
    PAGE.write_text(page(runs), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n{target / 'index.html'}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
