"""The book of how replicated logs lose data: a report for each row of ``docs/failures.md``, and an index of them.

``make gallery`` plays each failure: without the rule that prevents it, and with it. The report is that of the first
run, compared with the second. What a cluster with ZooKeeper does is played in an era that fails and in one that does
not. All is played in virtual time but what the simulator lacks (files, disks that take time): processes play that. Runs
are judged in this process, one after the other; no Spark is needed.
"""

import asyncio
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import jinja2
import msgspec
from markupsafe import Markup

from docs.failures_table import DOCUMENT, Failure, all_failures_of, reasons_of
from docs.portable import Story, stories
from laststand.chaos.drivers import make_driver
from laststand.chaos.play.expressible import not_expressible
from laststand.chaos.play.run_directory import create_run_directory_at
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import Run
from laststand.chaos.process.hosts import require_toxiproxy
from laststand.chaos.scenario.scenario import Scenario, VerdictName
from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.emulator.core.eras import era_rules, is_zookeeper_era
from laststand.emulator.core.switches import DEFAULT_ERA, Switches, era_switches, is_switch, with_switch
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.plan import Plan, parse_plan
from laststand.emulator.report.assets import asset, digest
from laststand.emulator.report.headline import headline
from laststand.emulator.report.page import tone_of, write_report
from laststand.emulator.report.run_files import ReportedRun, read_reported_run
from laststand.emulator.report.thumbnail import thumbnail
from laststand.emulator.report.worst_first import worst_first
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.forms import write_whole
from laststand.emulator.verification.verdict.report import Verdict

INDEX: Final = "index.html"
ROOT: Final = Path(__file__).parents[1]
_SCENARIOS: Final = ROOT / "chaos" / "scenarios"
_PLANS: Final = ROOT / "tests" / "simulation" / "regressions"
_PLANS_NAMED: Final = "tests/simulation/"
_SEED: Final = 1
_OTHER_ERA: Final = re.compile(r"^# does not happen in: (\S+)$", re.MULTILINE)
"""A comment of a plan: the era in which it goes well."""

_CODE: Final = re.compile(r"`([^`]+)`")


class Played(NamedTuple):
    """A way to show a failure: a plan of the simulator, or a scenario; and the rules that are off in the first run.

    Attributes:
        path: of the plan or scenario.
        rules: switches and their rules, of a scenario; a plan has its own.
        eras: with ZooKeeper, of a scenario: one in which it goes wrong, if there is one, and one in which it does not.
    """

    path: Path
    rules: tuple[tuple[str, str], ...] = ()
    eras: tuple[str, ...] = ()


class Unplayed(NamedTuple):
    """The reason why no run shows a failure."""

    reason: str


class _Cell(NamedTuple):
    svg: Markup
    tone: str
    words: str


class _Entry(NamedTuple):
    id: str
    source: Markup
    failure: Markup
    rule: Markup
    page: str | None
    without: _Cell | None
    kept: _Cell | None
    note: Markup
    story: Story


def played_by(failure: Failure) -> Played | Unplayed:
    """Returns what shows a failure: a plan that was kept without its rule, else a scenario, else another plan."""
    pairs = [name.partition("=") for name in failure.named]
    rules = tuple((name, rule or "off") for name, _, rule in pairs if is_switch(name))
    plans = [ROOT / name for name in failure.named if name.startswith(_PLANS_NAMED) and name.endswith(".txt")]
    plans += sorted(_PLANS.glob(f"{failure.id.lower()}-*.txt"))
    scenarios = [path for name in failure.named if "/" in name for path in sorted(_SCENARIOS.glob(f"{name}.yaml"))]
    without = [plan for plan in plans if set(rules) & set(_plan(plan).switches)]
    if without:
        return Played(without[0])
    if scenarios:
        return Played(scenarios[0], rules, _zookeeper_eras(load_scenario(scenarios[0])))
    if plans:
        return Played(plans[0])
    return Unplayed(reasons_of(DOCUMENT.read_text(encoding="utf-8"))[failure.id])


def _zookeeper_eras(scenario: Scenario) -> tuple[str, ...]:
    expected = [(era, wanted.verdict) for era, wanted in scenario.expect if is_zookeeper_era(era)]
    wrong = [era for era, verdict in expected if verdict is VerdictName.VIOLATION]
    right = [era for era, verdict in expected if verdict is VerdictName.VALID]
    return (*wrong[-1:], *right[-1:])


def _plan(path: Path) -> Plan:
    return parse_plan(path.read_text(encoding="utf-8"))


def write_gallery(target: Path, failures: Sequence[Failure]) -> None:
    """Plays failures, and writes their reports and the index into a directory.

    Raises:
        OSError: a file cannot be written.
    """
    runs = target / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    entries = []
    for failure in failures:
        entries.append(_entry(failure, runs / failure.id, target))
        cell = entries[-1].without or entries[-1].kept
        said = cell.words if cell else entries[-1].note
        sys.stdout.write(f"{failure.id}: {said}\n")
        sys.stdout.flush()
    style = asset("report.css")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    page = environment.from_string((Path(__file__).parent / "gallery.html.j2").read_text(encoding="utf-8"))
    html = page.render(
        entries=entries,
        has_overview=(target / "overview.html").is_file(),
        patterns=Markup(asset("patterns.svg")),
        style=Markup(style),
        style_digest=digest(style),
    )
    write_whole(target / INDEX, html.encode())


def _entry(failure: Failure, runs: Path, target: Path) -> _Entry:
    shown = played_by(failure)
    page, without, kept, note = None, None, None, Markup("")
    if isinstance(shown, Unplayed):
        note = _code(shown.reason)
    else:
        first, second = _play(shown, runs)
        page = f"{failure.id}.html"
        write_report(first, target / page, against=second)
        alone = read_reported_run(first)
        if second is not None:
            without, kept = _cell(alone), _cell(read_reported_run(second))
        elif alone.verdict.verdict is Verdict.VALID:
            kept = _cell(alone)
        else:
            without = _cell(alone)
    return _Entry(
        failure.id,
        _code(failure.source),
        _code(failure.failure),
        _code(failure.rule),
        page,
        without,
        kept,
        note,
        stories()[failure.id],
    )


def _code(words: str) -> Markup:
    """Returns text of the document with its quoted names as code."""
    parts = _CODE.split(words.replace("<br>", " "))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


def _cell(run: ReportedRun) -> _Cell:
    partitions = worst_first(run.verdict, run.story)
    head = headline(run.verdict, partitions, run.story)
    drawn = thumbnail(run.verdict, next(iter(partitions), None), run.story)
    said = head.cause if run.verdict.verdict is Verdict.UNKNOWN else f"{head.figure} {head.rest}"
    return _Cell(drawn, tone_of(run.verdict), f"{head.guarantee.rstrip('.,')}: {said}")


def _play(shown: Played, runs: Path) -> tuple[Path, Path | None]:
    """Plays a failure without its rule and with it; returns both run directories, the second where there is a rule."""
    if shown.path.suffix == ".txt":
        plan = _plan(shown.path)
        plans = [plan, *_plans_that_go_well(plan, shown.path)]
        directories = [runs / name for name, _ in zip(("without", "with"), plans, strict=False)]
        for each, directory in zip(plans, directories, strict=True):
            write_run(each, directory, name=f"failures/{runs.name}")
    else:
        eras = [(era, era_rules(era)) for era in shown.eras]
        eras = eras or [(DEFAULT_ERA, switches) for switches in _rules(shown.rules)]
        directories = [
            _play_scenario(shown.path, era, rules, runs / name)
            for name, (era, rules) in zip(("without", "with"), eras, strict=False)
        ]
    for directory in directories:
        judge_here(directory)
    return directories[0], directories[1] if len(directories) > 1 else None


def _plans_that_go_well(plan: Plan, path: Path) -> Iterator[Plan]:
    era = _OTHER_ERA.search(path.read_text(encoding="utf-8"))
    if plan.switches:
        yield msgspec.structs.replace(plan, switches=())
    elif era is not None:
        yield msgspec.structs.replace(plan, era=era[1])


def _rules(off: Sequence[tuple[str, str]]) -> Iterator[Switches]:
    switches = era_switches(DEFAULT_ERA)
    if off:
        without = switches
        for name, rule in off:
            without = with_switch(without, name, rule)
        yield without
    yield switches


def _play_scenario(path: Path, era: str, rules: Switches, directory: Path) -> Path:
    scenario = load_scenario(path)
    is_simulated = not not_expressible(scenario, scenario.properties, DriverName.SIMULATOR)
    driver = DriverName.SIMULATOR if is_simulated else DriverName.PROCESS
    order = RunOrder(
        scenario=scenario,
        directory=create_run_directory_at(directory, scenario),
        era=era,
        switches=rules,
        properties=scenario.properties,
        seed=scenario.seed if scenario.seed is not None else _SEED,
        toxiproxy=require_toxiproxy(driver) if scenario.needs_proxies(driver) else None,
        driver=driver,
    )
    asyncio.run(Run(order, make_driver=make_driver, on_status=lambda _: None).play())
    return directory


def main(target: Path) -> None:
    """Writes the gallery of all failures."""
    document = DOCUMENT.read_text(encoding="utf-8")
    write_gallery(target, all_failures_of(document))
    sys.stdout.write(f"{target / INDEX}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
