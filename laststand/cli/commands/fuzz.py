"""``laststand fuzz``: plays plans that are drawn from seeds on real processes, and shrinks those that fail."""

import asyncio
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.options.judge import judge_option
from laststand.cli.options.settings import (
    check_profiles,
    kraft_era_option,
    kraft_profile_option,
    set_option,
    simulated_overrides,
    store_option,
)
from laststand.cli.options.suite import PlayChoice, play_options
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.cli.runs.suite import judging, play_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from laststand.chaos.fuzz.cells import DrawnCells
    from laststand.chaos.fuzz.drawing import DrawOptions
    from laststand.chaos.suite.cells import Cell
    from laststand.chaos.suite.player import Judge
    from laststand.chaos.suite.results import SuiteReport
    from laststand.chaos.suite.suite import Suite
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.plan.overrides import Overrides
    from laststand.emulator.simulator.profiles.profile import Budget
    from laststand.emulator.verification.judges import JudgeName

_SEEDS: Final = 1 << 31
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smh])")

_DEFAULT_DURATION_S: Final = 600.0
_DEFAULT_RATE: Final = 2_000

TIMES: Final = 3
"""The number of times that a shorter plan is played on processes before it counts as one that does not fail."""


class _DurationType(click.ParamType[float]):
    """A duration with a unit, in seconds."""

    name = "DURATION"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = _DURATION.fullmatch(str(value))
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is no duration, expected a number and a unit, such as 90s, 10m or 2h", param, ctx)
        return float(match[1]) * _UNITS_S[match[2]]


@click.command(short_help="Play random plans on real processes.")
@click.option("--duration", "duration_s", type=_DurationType(), help="Begin no plan after this time.  [default: 10m]")
@click.option("--plans", type=click.IntRange(min=1), metavar="N", help="Play N plans, however long that takes.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="The first seed; any if not given.")
@kraft_era_option
@set_option
@kraft_profile_option
@click.option(
    "--budget",
    type=click.Choice(["within", "beyond"]),
    default="within",
    show_default=True,
    help="Break no more than the guarantee covers, or also more.",
)
@click.option("--driver", type=click.Choice(["process", "simulator"]), default="process", show_default=True)
@store_option
@click.option("--shrink/--no-shrink", "is_shrunk", default=True, show_default=True, help="Shrink plans that fail.")
@click.option("--one-run", "is_one_run", is_flag=True, help="Play one run of that duration, with logs that expire.")
@click.option(
    "--rate",
    type=click.IntRange(min=1, max=1_000_000),
    metavar="N",
    help="Records per second of --one-run.  [default: 2000]",
)
@play_options
@judge_option
@json_option
def fuzz(
    duration_s: float | None,
    plans: int | None,
    seed: int | None,
    era: str | None,
    settings: tuple[str, ...],
    profiles: tuple[str, ...],
    budget: str,
    driver: str,
    store: Path,
    play_choice: PlayChoice,
    *,
    is_shrunk: bool,
    is_one_run: bool,
    rate: int | None,
    judge: "JudgeName",
    output: Output,
) -> ExitCode:
    """Draw plans of faults as `simulate` does, play them on real processes, and judge the runs.

    Each seed leads to a plan, by the same moves and within the same budget as in the simulator. It is played with
    barriers that keep its order; a plan with an action that a barrier cannot keep in order is passed over, and counted.
    Times given to --set are those of the simulator: on processes everything takes five times as long.

    Plans are files in the folder fuzz of the store. Within the budget every run must be valid. Beyond it a run may lose
    what the guarantee does not cover, and nothing else may be wrong. A plan whose barrier is not reached, because
    processes have other timing than the simulator, ends there, and the run is judged by what was played. A plan that
    fails is shrunk: in the simulator if it fails there, too, else by playing shorter ones, each three times.

    With --one-run there is one run with one verdict, as long as --duration in whole minutes: a producer at --rate, logs
    that roll and expire, and three faults a minute, one after the other, within the budget.

    Exit code: 0 every run was as expected, 1 one was not, 2 undecided, 254 for a user error.
    """
    from laststand.chaos.fuzz.cells import DrawnCells
    from laststand.chaos.play.run_directory import check_store, make_store
    from laststand.cli.output.results import outcome_exit_code
    from laststand.cli.program.requirements import require_judge
    from laststand.emulator.plan.drivers import DriverName

    overrides = simulated_overrides(settings)
    options = _options(seed, era, overrides, profiles, budget)
    if rate is not None and not is_one_run:
        raise UserError("--rate: only with --one-run")
    if is_one_run:
        _refuse_beside_one_run(
            {"--plans": plans, "--profile": profiles, "--budget beyond": budget == "beyond"}, duration_s
        )
    check_store(store)
    require_judge(judge)
    play_choice.forms.check()
    make_store(store)
    limit_s = _DEFAULT_DURATION_S if duration_s is None and plans is None else duration_s
    if is_one_run:
        is_simulated = DriverName(driver) is DriverName.SIMULATOR
        minutes = int((limit_s or 0) // 60)
        cell = _one_run(options, minutes, rate or _DEFAULT_RATE, store, is_simulated=is_simulated)
        with judging(store, judge) as judge_runs:
            suite = _suite(iter((cell,)), 1, overrides, DriverName(driver), store)
            report = play_cells(suite, play_choice, judge=judge_runs, is_reported=False, output=output)
        return outcome_exit_code(report.outcome)
    with (
        DrawnCells(options, store=store, count=plans, duration_s=limit_s) as cells,
        judging(store, judge) as judge_runs,
    ):
        click.echo(f"seeds from {options.first_seed} on, era {options.era}, {budget} the budget", err=True)
        suite = _suite(cells, plans, overrides, DriverName(driver), store)
        report = play_cells(suite, play_choice, judge=judge_runs, is_reported=False, output=output)
        _report_left_out(report)
        _report_passed_over(cells)
        if is_shrunk:
            _shrink_failures(report, cells, suite, judge_runs, options.budget)
    return outcome_exit_code(report.outcome)


def _options(
    seed: int | None, era: str | None, overrides: "Overrides", profiles: tuple[str, ...], budget: str
) -> "DrawOptions":
    from laststand.chaos.fuzz.drawing import DrawOptions
    from laststand.emulator.core.switches import DEFAULT_ERA, era_switches
    from laststand.emulator.simulator.profiles.profile import Budget
    from laststand.emulator.simulator.profiles.profiles import PROFILES

    chosen = DEFAULT_ERA if era is None else era
    overrides.apply(era_switches(chosen))
    check_profiles(profiles, PROFILES)
    for name in profiles:
        if PROFILES[name].budget is not Budget(budget):
            raise UserError(f"--profile {name}: its budget is {PROFILES[name].budget.value}, not {budget}")
    return DrawOptions(
        first_seed=secrets.randbelow(_SEEDS) if seed is None else seed,
        era=chosen,
        switches=overrides.switches,
        properties=overrides.properties,
        profiles=profiles,
        budget=Budget(budget),
    )


def _refuse_beside_one_run(only_plans: "Mapping[str, object]", duration_s: float | None) -> None:
    """Refuses options that only plans have, and a duration of less than a minute."""
    for option, given in only_plans.items():
        if given:
            raise UserError(f"{option}: not with --one-run")
    if duration_s is not None and duration_s < 60:  # a minute is what faults are drawn for
        raise UserError("--duration: a minute at least, with --one-run")


def _one_run(options: "DrawOptions", minutes: int, rate: int, store: Path, *, is_simulated: bool) -> "Cell":
    """Writes the scenario of a long run, and returns its cell."""
    from laststand.chaos.fuzz.drawing import FOLDER
    from laststand.chaos.fuzz.long_run import LongRunOptions, long_run
    from laststand.chaos.scenario.scenario_file import load_scenario
    from laststand.chaos.suite.cells import Cell

    seed = options.first_seed
    path = store / FOLDER / f"long-{seed}.yaml"
    path.parent.mkdir(exist_ok=True)
    drawn = LongRunOptions(seed=seed, era=options.era, minutes=minutes, rate=rate, is_simulated=is_simulated)
    path.write_text(long_run(drawn), encoding="utf-8")
    click.echo(f"{path}: {minutes} minutes at {rate} records a second, era {options.era}", err=True)
    return Cell(
        scenario=load_scenario(path),
        era=options.era,
        changed=tuple(f"{name}={text}" for name, text in options.switches),
        repetition=1,
        seed=seed,
    )


def _suite(
    cells: "Iterator[Cell]", count: int | None, overrides: "Overrides", driver: "DriverName", store: Path
) -> "Suite":
    """Returns the suite that plays drawn cells; each scenario has its properties, so only switches are set on top."""
    from laststand.chaos.suite.suite import Suite
    from laststand.cli.program.requirements import require_toxiproxy
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.plan.overrides import Overrides

    return Suite(
        cells=cells,
        count=count,
        settings=tuple(f"{name}={value}" for name, value in overrides.switches),
        overrides=Overrides(switches=overrides.switches, properties=()),
        driver=driver,
        store=store,
        toxiproxies={driver: require_toxiproxy() if driver is DriverName.PROCESS else None},
    )


def _report_left_out(report: "SuiteReport") -> None:
    for cell in report.cells:
        if cell.left_out is not None:
            click.echo(f"{cell.scenario} ended early, {cell.left_out}", err=True)


def _report_passed_over(cells: "DrawnCells") -> None:
    for reason, count in cells.not_playable.most_common():
        click.echo(f"passed over: {count}, because {reason}", err=True)


def _shrink_failures(
    report: "SuiteReport", cells: "DrawnCells", suite: "Suite", judge: "Judge", budget: "Budget"
) -> None:
    from laststand.chaos.fuzz.shrinking import shrink_failure
    from laststand.chaos.suite.results import CellStatus
    from laststand.emulator.plan.plan import format_plan, parse_plan

    for cell in report.cells:
        if cell.status is not CellStatus.FAILED:
            continue
        plan = parse_plan(cells.drawn[cell.scenario].plan)
        shrunk = shrink_failure(plan, fails=_Replays(suite, cell.era, judge), budget=budget)
        where = "in the simulator" if shrunk.is_simulated else "on processes"
        comment = f"{cell.name}, seed {cell.seed}; shrunk {where}, {shrunk.trials} plans tried"
        path = Path(cell.path).with_suffix(".shrunk.txt")
        path.write_text(format_plan(shrunk.plan, comment=comment), encoding="utf-8")
        click.echo(f"{path}: {shrunk.plan.length} actions, shrunk {where}", err=True)


class _Replays:
    """Plays a scenario several times, side by side, and returns whether one run failed."""

    def __init__(self, suite: "Suite", era: str, judge: "Judge") -> None:
        self._suite = suite
        self._era = era
        self._judge = judge

    def __call__(self, text: str) -> bool:
        from laststand.chaos.scenario.scenario_file import read_scenario
        from laststand.chaos.suite.cells import Cell
        from laststand.chaos.suite.player import Keep, Listener, SuitePlayer, SuiteSettings
        from laststand.chaos.suite.results import CellStatus

        scenario = read_scenario(Path("shrinking.yaml"), text)
        again = [Cell(scenario=scenario, era=self._era, repetition=each, seed=each) for each in range(1, TIMES + 1)]
        player = SuitePlayer(
            iter(again),
            settings=SuiteSettings(jobs=TIMES, stops_at_failure=True, keep=Keep.NONE),
            make_order=self._suite.order,
            judge=self._judge,
            listener=Listener(),
        )
        asyncio.run(player.play())
        return any(result.status is CellStatus.FAILED for result in player.results.values())
