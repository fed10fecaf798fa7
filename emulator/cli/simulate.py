"""``laststand simulate``: explores seeded schedules in virtual time."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from emulator.cli.exit_codes import ExitCode
from emulator.cli.output import Output, json_option
from emulator.cli.user_error import UserError

if TYPE_CHECKING:
    from emulator.simulator.explorer import Orders, Schedule
    from emulator.simulator.sweep import SweepReport

_DEFAULT_SEEDS: Final = "1..1000"


@click.command(short_help="Explore seeded schedules in virtual time.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Play one schedule.")
@click.option("--seeds", metavar="A..B", help=f"Explore these seeds, both included.  [default: {_DEFAULT_SEEDS}]")
@click.option("--era", metavar="ERA", help="Protocol whose rules hold.  [default: kip-966]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a switch or a Kafka property.")
@click.option("--profile", "profiles", multiple=True, metavar="NAME", help="Kind of schedule; all if not given.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="How many processes."
)
@click.option("--keep-going", is_flag=True, help="Collect one example per distinct finding.")
@click.option("--limit", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop exploring after this.")
@click.option("--out", type=click.Path(path_type=Path), help="With --seed: write the run into this new directory.")
@json_option
def simulate(
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
    output: Output,
) -> int:
    """Explore schedules of faults on a simulated cluster; shrink and print the first that breaks a promise.

    Exit code: 0 nothing was found, 1 something was, 2 too little happened to prove anything, 254 for anything that you
    can fix.
    """
    from emulator.simulator.explorer import explore
    from emulator.simulator.sweep import sweep

    orders = _orders(era, settings, profiles)
    if seed is not None:
        if seeds is not None:
            raise UserError("--seed and --seeds exclude each other")
        return _play_one(explore(seed, orders), out, output)
    if out is not None:
        raise UserError("--out needs --seed: a sweep writes no runs")
    report = sweep(
        _range(seeds or _DEFAULT_SEEDS),
        orders,
        jobs=jobs,
        keep_going=keep_going,
        limit_s=limit,
        on_progress=_progress,
    )
    _print_report(report, output)
    for schedule in report.findings:
        _print_shrunk(schedule)
    if report.findings:
        return ExitCode.VIOLATION
    return ExitCode.UNKNOWN if report.too_little else ExitCode.VALID


def _orders(era: str | None, settings: tuple[str, ...], profiles: tuple[str, ...]) -> "Orders":
    from emulator.cli.overrides import parse_overrides
    from emulator.core.switches import DEFAULT_ERA, era_switches
    from emulator.simulator.explorer import Orders
    from emulator.simulator.profiles import PROFILES

    overrides = parse_overrides(settings)
    era_switches(era or DEFAULT_ERA)
    unknown = [name for name in profiles if name not in PROFILES]
    if unknown:
        raise UserError(f"--profile {unknown[0]}: allowed are {', '.join(PROFILES)}")
    return Orders(
        era=era or DEFAULT_ERA,
        switches=overrides.switches,
        properties=overrides.properties,
        profiles=tuple(dict.fromkeys(profiles)) or tuple(PROFILES),
    )


def _range(text: str) -> Iterator[int]:
    first, dots, last = text.partition("..")
    if not first.isdigit() or (dots and not last.isdigit()) or (dots and int(last) < int(first)):
        raise UserError(f"--seeds {text}: expected A..B with A not above B")
    return iter(range(int(first), int(last or first) + 1))


def _play_one(schedule: "Schedule", out: Path | None, output: Output) -> int:
    import msgspec

    from emulator.simulator.plan import format_plan
    from emulator.simulator.run_writer import write_run

    outcome = schedule.outcome
    if out is not None:
        try:
            write_run(schedule.plan, out, name=f"simulated/{schedule.seed}")
        except OSError as error:
            raise UserError(f"--out {out}: {error.strerror}") from None
    if output is Output.JSON:
        document = {"seed": schedule.seed, "plan": format_plan(schedule.plan), "outcome": outcome}
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
    else:
        click.echo(format_plan(schedule.plan, comment=f"seed {schedule.seed}, profile {schedule.profile}"))
        for finding in outcome.findings:
            click.echo(f"FOUND {finding}")
        click.echo(
            f"{outcome.steps} steps, {outcome.acks} acks, {outcome.elections} elections, "
            f"{len(outcome.alarms) - len(outcome.findings)} alarms outside of the guarantee"
        )
    return ExitCode.VIOLATION if outcome.findings else ExitCode.VALID


def _progress(report: "SweepReport") -> None:
    if report.schedules % 100 == 0:
        click.echo(_line(report), err=True)


def _line(report: "SweepReport") -> str:
    seconds = max(report.seconds, 1e-9)
    return (
        f"{report.schedules} schedules ({report.schedules / seconds:.0f}/s, {report.steps / seconds:.0f} steps/s), "
        f"{report.acks} acks, {report.elections} elections, {report.power_losses} power losses, "
        f"{len(report.marks)} coverage marks, {report.found} with findings"
    )


def _print_report(report: "SweepReport", output: Output) -> None:
    import msgspec

    if output is Output.JSON:
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
        return
    click.echo(_line(report))
    click.echo("medians per schedule: " + ", ".join(f"{name} {value:g}" for name, value in report.medians.items()))
    click.echo("coverage: " + ", ".join(f"{mark} {count}" for mark, count in report.marks.items()))
    if report.too_little:
        click.echo(f"unknown: too little of {', '.join(report.too_little)} to prove anything")
    if report.excuses:
        click.echo(f"{report.excuses} partitions ended without a candidate, as the protocol allows")
    if report.exceeded:
        alarms = ", ".join(f"{name} {count}" for name, count in report.exceeded.items())
        click.echo(f"outside of the guarantee, and no finding: {alarms}")


def _print_shrunk(schedule: "Schedule") -> None:
    from emulator.simulator.plan import format_plan
    from emulator.simulator.shrink import goal_of, shrink

    goal = goal_of(schedule.outcome.findings)
    shrunk = shrink(schedule.plan, goal)
    if shrunk is None:
        click.echo(f"seed {schedule.seed} does not replay: {schedule.outcome.findings[0]}")
        return
    comment = (
        f"seed {schedule.seed}, profile {schedule.profile}: {shrunk.finding}\n"
        f"length {shrunk.plan.length}, was {schedule.plan.length}; {shrunk.trials} trials in {shrunk.seconds:.1f} s"
    )
    click.echo(format_plan(shrunk.plan, comment=comment))
