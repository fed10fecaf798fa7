"""``laststand simulate``: explores seeded schedules in virtual time."""

import dataclasses
import math
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from laststand.cli.options.completion import complete_scenarios
from laststand.cli.options.settings import check_profiles, era_option, profile_option, set_option, simulated_overrides
from laststand.cli.options.spark import SparkChoice, spark_options
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.pictures import report_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.requirements import check_new, require_driver
from laststand.cli.program.user_error import UserError
from laststand.emulator.plan.plan import Plan

if TYPE_CHECKING:
    from laststand.emulator.plan.plan import Plan
    from laststand.emulator.simulator.search.explorer import Schedule, SweepOptions
    from laststand.emulator.simulator.search.shrink import Shrunk
    from laststand.emulator.simulator.search.sweep import SweepReport

_DEFAULT_SEEDS: Final = "1..1000"
_PROGRESS_S: Final = 5.0


@click.command(short_help="Explore seeded schedules in virtual time.")
@click.argument("scenario", required=False, shell_complete=complete_scenarios)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Play one schedule.")
@click.option("--seeds", metavar="A..B", help=f"Explore these seeds, both included.  [default: {_DEFAULT_SEEDS}]")
@era_option
@set_option
@profile_option
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Number of processes."
)
@click.option("--keep-going", is_flag=True, help="Collect one example per distinct finding.")
@click.option("--limit", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop exploring after this time.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the run of --seed into this new directory; of a sweep, each finding's.",
)
@click.option(
    "--keep",
    type=click.Choice(["findings", "all"]),
    default="findings",
    show_default=True,
    help="Which runs of a sweep --out keeps.",
)
@click.option("--coverage", "is_coverage_listed", is_flag=True, help="List how often each rule was seen at work.")
@report_option
@spark_options
@json_option
def simulate(
    scenario: str | None,
    seed: int | None,
    seeds: str | None,
    era: str | None,
    settings: tuple[str, ...],
    profiles: tuple[str, ...],
    jobs: int,
    *,
    keep_going: bool,
    limit: float | None,
    out: Path | None,
    keep: str,
    is_coverage_listed: bool,
    is_reported: bool,
    spark_choice: SparkChoice,
    output: Output,
) -> int:
    """Explore schedules of faults on a simulated cluster; shrink and print the first that breaks a promise.

    With SCENARIO, a file or a name under chaos/scenarios, the cluster and its topics are that scenario's, except for
    the timeouts that simulated clusters set themselves; its steps are not played (run --driver simulator does that). An
    interrupted sweep prints its results so far, with findings as whole plans. With --master a Spark cluster plays the
    seeds (docs/scale.md); the results are the same. With --out each finding of a sweep is shrunk and written as a run
    directory with verdict, story and report: DIRECTORY/seed-N. With --keep all every other schedule is written, too, as
    it was played.

    Exit code of a sweep: 0 nothing was found, 1 something was, 2 too little happened to prove anything, 130
    interrupted. A finding breaks a promise although the guarantee held. With --seed: 0 the run is valid, 1 it is a
    violation, also where the guarantee was exceeded, 2 undecided. 254 for a user error.
    """
    from laststand.emulator.simulator.search.explorer import explore
    from laststand.emulator.simulator.search.sweep import sweep

    if limit is not None and math.isnan(limit):
        raise UserError("--limit nan: expected a number of seconds")
    options = msgspec.structs.replace(_sweep_options(era, settings, profiles), cluster=_cluster(scenario))
    if out is not None:
        check_new(out)
    if keep == "all" and (out is None or spark_choice.master is not None or seed is not None):
        raise UserError("--keep all needs --out and --seeds, and no --master")
    if seed is not None:
        if seeds is not None:
            raise UserError("--seed and --seeds exclude each other")
        if jobs > 1 or keep_going or limit is not None or spark_choice.master is not None:
            raise UserError("--seed plays one schedule; --jobs, --keep-going, --limit and --master need --seeds")
        return _play_one(explore(seed, options), out, is_reported=is_reported, output=output)
    if jobs > 1 and spark_choice.master is not None:
        raise UserError("--jobs and --master exclude each other")
    if spark_choice.master is None and spark_choice.is_given:
        raise UserError("--conf, --driver-address and --work-dir need --master")
    played: list[Schedule] = []
    if keep == "all":
        options = msgspec.structs.replace(options, are_plans_kept=True)
    play = partial(
        sweep,
        _range(_DEFAULT_SEEDS if seeds is None else seeds),
        options,
        keep_going=keep_going,
        limit_s=limit,
        on_progress=_progress(),
        on_schedule=played.append if keep == "all" else lambda _: None,
    )
    report = play(jobs=jobs) if spark_choice.master is None else _on_spark(spark_choice, play)
    if output is Output.TEXT:
        _print_report(report, is_coverage_listed=is_coverage_listed)
    found = _shrink_all(report)
    runs = [] if out is None else list(_leave_runs(report, found, out, is_reported=is_reported))
    if out is not None:
        from laststand.emulator.report.numbers import plural

        others = _leave_others(report, played, out, is_reported=is_reported)
        kept = sum(run is not None for run in runs)
        click.echo(f"kept in {out}: {plural(kept, 'finding')}, {plural(others, 'other run')}", err=True)
    if output is Output.JSON:
        click.echo(msgspec.json.format(msgspec.json.encode(_document(report, found, runs))))
    else:
        for schedule, shrunk, run in zip_longest(report.findings[: len(found)], found, runs):
            _print_shrunk(schedule, shrunk, _command(schedule, scenario, options), run)
        for schedule in report.findings[len(found) :]:
            _print_whole(schedule, _command(schedule, scenario, options))
    if report.is_interrupted:
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    if report.findings:
        return ExitCode.VIOLATION
    return ExitCode.UNKNOWN if report.too_little else ExitCode.VALID


def _on_spark(choice: SparkChoice, play: "Callable[..., SweepReport]") -> "SweepReport":
    """Plays the sweep of ``play`` on a Spark cluster."""
    from laststand.cli.program.failure import CommandFailedError
    from laststand.cli.program.requirements import require_spark
    from laststand.cli.spark.sweep import spark_batches
    from laststand.emulator.verification.spark.class_archive import ArchiveUse
    from laststand.emulator.verification.spark.session import SparkLostError, SparkSessionError

    require_spark()
    with tempfile.TemporaryDirectory(prefix="laststand-") as log_directory:
        starter = choice.starter(
            log_directory=Path(log_directory),
            archive_use=ArchiveUse.READ,
            imported="laststand.emulator.simulator.search.sweep",
        )
        starter.start()
        try:
            with starter.tasks_at_work() as spark:
                return play(batches=partial(spark_batches, spark))
        except (SparkSessionError, SparkLostError) as error:
            raise CommandFailedError(f"unknown: {error}", exit_code=ExitCode.UNKNOWN) from None
        finally:
            starter.stop()


def _sweep_options(era: str | None, settings: tuple[str, ...], profiles: tuple[str, ...]) -> "SweepOptions":
    from laststand.emulator.core.eras import era_rules, is_zookeeper_era
    from laststand.emulator.core.switches import DEFAULT_ERA
    from laststand.emulator.simulator.profiles.profiles import ALL_PROFILES, profiles_of
    from laststand.emulator.simulator.search.explorer import SweepOptions

    overrides = simulated_overrides(settings)
    overrides.apply(era_rules(era or DEFAULT_ERA))
    check_profiles(profiles, ALL_PROFILES)
    if any(ALL_PROFILES[name].controllers > 1 for name in profiles) and is_zookeeper_era(era or DEFAULT_ERA):
        raise UserError(f"--era {era}: its metadata is in ZooKeeper, so that it has no quorum of controllers")
    return SweepOptions(
        era=era or DEFAULT_ERA,
        switches=overrides.switches,
        properties=overrides.properties,
        profiles=tuple(dict.fromkeys(profiles)) or profiles_of(era or DEFAULT_ERA),
    )


def _cluster(scenario: str | None) -> "Plan | None":
    if scenario is None:
        return None
    from laststand.chaos.plans.cluster_plan import cluster_plan
    from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.plan.yaml_cursor import ScenarioError

    try:
        found = load_scenario(find_scenario(scenario))
    except ScenarioError as error:
        raise UserError(str(error)) from None
    require_driver(DriverName.SIMULATOR, dataclasses.replace(found, steps=()), found.properties, eras=())
    return cluster_plan(found)


def _range(text: str) -> Iterator[int]:
    match = re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+))?", text)
    if match is not None:
        first, last = int(match[1]), int(match[2] or match[1])
        if first <= last:
            return iter(range(first, last + 1))
    raise UserError(f"--seeds {text}: expected A..B with A not above B, or one seed")


def _play_one(schedule: "Schedule", out: Path | None, *, is_reported: bool, output: Output) -> int:
    from laststand.cli.output.replay_report import ReplayReport
    from laststand.cli.runs.simulated import leave_run, print_places
    from laststand.emulator.plan.plan import format_plan
    from laststand.emulator.simulator.run.writer import play_and_stop

    outcome = schedule.outcome
    if out is None:
        simulation = play_and_stop(schedule.plan)
    else:
        name = f"simulated/{schedule.seed}"
        simulation = leave_run(schedule.plan, out, name=name, seed=schedule.seed, is_reported=is_reported)
    judgement = simulation.judgement()
    report = ReplayReport(schedule.plan, outcome, judgement, simulation.skipped)
    if output is Output.JSON:
        document = {
            "seed": schedule.seed,
            "plan": format_plan(schedule.plan),
            "outcome": outcome,
            "judgement": judgement,
            "skipped": report.skipped,
            "unknown": report.unknown,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
    else:
        click.echo(format_plan(schedule.plan, comment=f"seed {schedule.seed}, profile {schedule.profile}"))
        for finding in outcome.findings:
            click.echo(f"FOUND {finding}")
        click.echo(
            f"{outcome.steps} steps, {outcome.acks} acks, {outcome.elections} elections, "
            f"{len(outcome.alarms) - len(outcome.findings)} alarms outside of the guarantee"
        )
        click.echo(f"verdict: {judgement}")
        if out is not None:
            print_places(out)
    report.print()
    return report.exit_code


def _progress() -> "Callable[[SweepReport], None]":
    """Returns a callback that prints the progress of a sweep every few seconds."""
    printed = time.monotonic()

    def show(report: "SweepReport") -> None:
        nonlocal printed
        if time.monotonic() - printed >= _PROGRESS_S:
            printed = time.monotonic()
            click.echo(_line(report), err=True)

    return show


def _line(report: "SweepReport") -> str:
    seconds = max(report.seconds, 1e-9)
    return (
        f"{report.schedules} schedules ({report.schedules / seconds:.0f}/s, {report.steps / seconds:.0f} steps/s), "
        f"{report.acks} acks, {report.elections} elections, {report.power_losses} power losses, "
        f"{len(report.marks)} coverage marks, {report.memory_mb:.0f} MB, {report.found} with findings"
    )


def _print_report(report: "SweepReport", *, is_coverage_listed: bool) -> None:
    click.echo(_line(report))
    click.echo("medians per schedule: " + ", ".join(f"{name} {value:g}" for name, value in report.medians.items()))
    if is_coverage_listed:
        click.echo("coverage: " + (", ".join(f"{mark} {count}" for mark, count in report.marks.items()) or "none"))
    if report.too_little:
        click.echo(f"unknown: too little of {', '.join(report.too_little)} to prove anything")
    if report.gaps:
        click.echo(f"conjunctions that never occurred: {', '.join(report.gaps)}")
    if report.excuses:
        click.echo(f"partitions left without a candidate, as the protocol allows: {report.excuses}")
    if report.exceeded:
        alarms = ", ".join(f"{name} {count}" for name, count in report.exceeded.items())
        click.echo(f"outside of the guarantee, and no finding: {alarms}")


def _shrink_all(report: "SweepReport") -> "list[Shrunk | None]":
    """Returns the shrunk plan of each finding, as far as there was time before an interruption."""
    found: list[Shrunk | None] = []
    try:
        if not report.is_interrupted:
            for schedule in report.findings:
                found.append(_shrink(schedule))  # noqa: PERF401 - what is there is kept when it is interrupted
    except KeyboardInterrupt:
        report.is_interrupted = True
    return found


def _shrink(schedule: "Schedule") -> "Shrunk | None":
    from laststand.emulator.simulator.search.shrink import TRIALS_MAX, goal_of, shrink

    click.echo(f"shrinking the plan of seed {schedule.seed}, in {TRIALS_MAX} trials at most", err=True)
    return shrink(schedule.plan, goal_of(schedule.outcome.findings))


def _leave_runs(
    report: "SweepReport", found: "list[Shrunk | None]", out: Path, *, is_reported: bool
) -> Iterator[Path | None]:
    """Writes the run of each finding's shrunk plan; yields its directory, ``None`` if the finding does not replay."""
    from laststand.cli.runs.simulated import leave_run

    for schedule, shrunk in zip(report.findings, found, strict=False):
        if shrunk is None:
            yield None
            continue
        directory = out / f"seed-{schedule.seed}"
        leave_run(shrunk.plan, directory, name=f"simulated/{schedule.seed}", is_reported=is_reported)
        yield directory


def _leave_others(report: "SweepReport", played: "Sequence[Schedule]", out: Path, *, is_reported: bool) -> int:
    """Writes the run of each schedule without a finding; returns their number."""
    from laststand.cli.runs.simulated import leave_run

    findings = {schedule.seed for schedule in report.findings}
    others = [schedule for schedule in played if schedule.seed not in findings]
    for schedule in others:
        directory = out / f"seed-{schedule.seed}"
        name = f"simulated/{schedule.seed}"
        leave_run(schedule.plan, directory, name=name, seed=schedule.seed, is_reported=is_reported)
    return len(others)


def _print_shrunk(schedule: "Schedule", shrunk: "Shrunk | None", again: str, run: Path | None) -> None:
    if shrunk is None:
        click.echo(f"seed {schedule.seed} does not replay: {schedule.outcome.findings[0]}\nwhole: {again}")
        return
    length = f"{shrunk.plan.length}, was {schedule.plan.length}; {shrunk.trials} trials in {shrunk.seconds:.1f} s"
    _print_plan(schedule, shrunk.plan, finding=str(shrunk.finding), length=length, again=again, run=run)


def _print_whole(schedule: "Schedule", again: str) -> None:
    """Prints a finding that was not shrunk."""
    length = f"{schedule.plan.length}, not shrunk"
    _print_plan(schedule, schedule.plan, finding=str(schedule.outcome.findings[0]), length=length, again=again)


def _print_plan(
    schedule: "Schedule", plan: "Plan", *, finding: str, length: str, again: str, run: Path | None = None
) -> None:
    from laststand.emulator.plan.plan import format_plan

    lines = [f"seed {schedule.seed}, profile {schedule.profile}: {finding}", f"length {length}", f"whole: {again}"]
    if run is not None:
        lines.append(f"run directory: {run}")
    click.echo(format_plan(plan, comment="\n".join(lines)))


def _command(schedule: "Schedule", scenario: str | None, options: "SweepOptions") -> str:
    """Returns the command that plays a schedule whole."""
    from laststand.emulator.simulator.profiles.profiles import profiles_of

    words = ["laststand", "simulate", *([] if scenario is None else [scenario])]
    words += ["--seed", str(schedule.seed), "--era", options.era]
    for name, value in (*options.switches, *options.properties):
        words += ["--set", f"{name}={value}"]
    if options.profiles != profiles_of(options.era):
        for profile in options.profiles:
            words += ["--profile", profile]
    return shlex.join(words)


def _document(report: "SweepReport", found: "list[Shrunk | None]", runs: "Sequence[Path | None]") -> dict[str, object]:
    """Returns a report with plans as text, each with its shrunk plan and that plan's run, if one was written."""
    from laststand.emulator.plan.plan import format_plan

    findings = [
        {
            "seed": schedule.seed,
            "profile": schedule.profile,
            "findings": schedule.outcome.findings,
            "plan": format_plan(schedule.plan),
            "shrunk": None if shrunk is None else {"plan": format_plan(shrunk.plan), "finding": shrunk.finding},
            "run": None if run is None else str(run),
        }
        for schedule, shrunk, run in zip_longest(report.findings, found, runs)
    ]
    return {**msgspec.structs.asdict(report), "findings": findings}
