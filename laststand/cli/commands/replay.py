"""``laststand replay``: plays a saved plan again, in the simulator or on real processes."""

import dataclasses
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from laststand.cli.options.judge import verdict_options
from laststand.cli.options.run_argument import RUN
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.pictures import report_option
from laststand.cli.program.requirements import check_new
from laststand.cli.program.user_error import UserError
from laststand.cli.runs.play import play_and_judge, play_only
from laststand.emulator.plan.path_words import as_path_word

if TYPE_CHECKING:
    from laststand.chaos.plans.scenario_of_plan import Missing
    from laststand.chaos.play.run_order import RunOrder
    from laststand.chaos.scenario.scenario import Scenario
    from laststand.emulator.core.switches import Switches
    from laststand.emulator.plan.plan import NumberedPlan, Plan
    from laststand.emulator.verification.judges import JudgeName

_STORE: Final = Path("store")
_SEED_BITS: Final = 31


@click.command(short_help="Play a saved plan again.")
@click.argument("file", type=RUN)
@click.option("--driver", type=click.Choice(["simulator", "process", "docker"]), default="simulator", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Write the run into this new directory.")
@click.option(
    "--own-waits",
    "keeps_waits",
    is_flag=True,
    help="On processes: keep the plan's own waits, five times as long, also if its result depends on them.",
)
@verdict_options
@report_option
@json_option
def replay(
    file: Path,
    driver: str,
    out: Path | None,
    *,
    keeps_waits: bool,
    judge: "JudgeName | None",
    is_reported: bool,
    output: Output,
) -> int:
    """Play FILE: a plan as ``simulate`` prints it, the plan.yaml of a run, or the directory of a run.

    On real processes, in containers or not, a plan of the simulator is played with barriers that keep its order; if the
    plan has actions that processes cannot play, those are listed and nothing is played. The plan.yaml of a scenario
    that was run is played under the rules in the cluster.yaml beside it; that of a simulated plan contains its rules.

    Only the verdict decides: a scenario's expectation applies to its own run, not to a replay.

    In the simulator, actions that are impossible at the time are skipped, and listed on stderr.

    Exit code: 0 the run is valid, 1 it is a violation, 2 undecided (for example, every action was skipped, or nothing
    was acknowledged), 254 for a user error. With --no-verify, which a plan of the simulator accepts only with --driver
    process or docker, 0 played, 2 it did not reach its end.
    """
    path = _plan_file(file)
    from laststand.cli.runs.plan_file import is_scenario, read_plan

    if keeps_waits and (driver == "simulator" or is_scenario(path)):
        raise UserError("--own-waits is for plans of the simulator, played with --driver process or docker")
    if is_scenario(path):
        recorded = _recorded(path, driver, out, judge=judge)
        return _play_order(recorded, judge=judge, is_reported=is_reported, output=output)
    numbered, name = read_plan(path), as_path_word(file.resolve().name if file.is_dir() else file.stem)
    if driver != "simulator":
        order = _translated(numbered.plan, name, driver, out, keeps_waits=keeps_waits, judge=judge, output=output)
        return _play_order(order, judge=judge, is_reported=is_reported, output=output)
    return _simulate(path, numbered, name, out, is_reported=is_reported, output=output)


def _plan_file(file: Path) -> Path:
    if not file.is_dir():
        return file
    if (file / "plan.yaml").is_file():
        return file / "plan.yaml"
    raise UserError(f"{file}: not a run directory, it has no plan.yaml")


def _simulate(
    path: Path, numbered: "NumberedPlan", name: str, out: Path | None, *, is_reported: bool, output: Output
) -> int:
    from laststand.cli.output.replay_report import ReplayReport
    from laststand.cli.runs.simulated import leave_run, print_places
    from laststand.emulator.core.errors import ConfigError
    from laststand.emulator.simulator.run.writer import play_and_stop

    plan = numbered.plan
    try:
        if out is None:
            simulation = play_and_stop(plan)
        else:
            check_new(out)
            simulation = leave_run(plan, out, name=f"replayed/{name}", is_reported=is_reported)
    except ConfigError as error:
        raise UserError(f"{path}: {error}") from None
    outcome = simulation.outcome()
    judgement = simulation.judgement()
    report = ReplayReport(plan, outcome, judgement, simulation.skipped, numbered.action_lines)
    if output is Output.JSON:
        document = {
            **msgspec.structs.asdict(outcome),
            "judgement": judgement,
            "skipped": report.skipped,
            "unknown": report.unknown,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
    else:
        for alarm in outcome.alarms:
            click.echo(f"{'FOUND' if alarm in outcome.findings else 'not promised:'} {alarm}")
        click.echo(f"{outcome.steps} steps, {outcome.acks} acks, {outcome.elections} elections")
        click.echo(f"verdict: {judgement}")
        if out is not None:
            print_places(out)
    report.print()
    return report.exit_code


def _translated(
    plan: "Plan",
    name: str,
    driver: str,
    out: Path | None,
    *,
    keeps_waits: bool,
    judge: "JudgeName | None",
    output: Output,
) -> "RunOrder":
    from laststand.chaos.plans.scenario_of_plan import as_it_is_or_missing, scenario_of, settled_or_missing
    from laststand.chaos.plans.settle_times import SettledPlan
    from laststand.chaos.scenario.scenario_file import read_scenario

    settled = as_it_is_or_missing(plan) if keeps_waits else settled_or_missing(plan)
    if not isinstance(settled, SettledPlan):
        _print_missing(settled, output)
        raise UserError(f"--driver {driver}: the listed actions cannot be played there, so nothing was played")
    text = scenario_of(settled, name=f"replayed/{name}", keeps_waits=keeps_waits)
    scenario = read_scenario(Path(f"{name}.yaml"), text)
    return _order(scenario, plan.era, plan.rules(), scenario.properties, driver, out, judge=judge)


def _print_missing(missing: "tuple[Missing, ...]", output: Output) -> None:
    if output is Output.JSON:
        document = {"not_expressible": [{"what": each.what, "why": each.why} for each in missing]}
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
        return
    for each in missing:
        click.echo(f"not expressible: {each.what}: {each.why}")


def _recorded(path: Path, driver: str, out: Path | None, *, judge: "JudgeName | None") -> "RunOrder":
    from laststand.chaos.play.run_directory import read_cluster_file
    from laststand.chaos.scenario.scenario_file import load_scenario
    from laststand.emulator.core.errors import ConfigError
    from laststand.emulator.core.properties import node_properties
    from laststand.emulator.core.switches import DEFAULT_ERA, era_switches
    from laststand.emulator.plan.yaml_cursor import ScenarioError

    try:
        scenario = load_scenario(path)
    except ScenarioError as error:
        raise UserError(str(error)) from None
    if scenario.rules is not None:
        return _order(
            scenario, scenario.rules.era, scenario.rules.switches, scenario.properties, driver, out, judge=judge
        )
    cluster_file = path.with_name("cluster.yaml")
    if not cluster_file.is_file():
        return _order(scenario, DEFAULT_ERA, era_switches(DEFAULT_ERA), scenario.properties, driver, out, judge=judge)
    try:
        rules = read_cluster_file(cluster_file)
        node_properties(dict(rules.properties))
    except ConfigError as error:
        raise UserError(f"{cluster_file}: {error}") from None
    return _order(scenario, rules.era, rules.switches, rules.properties, driver, out, judge=judge)


def _order(
    scenario: "Scenario",
    era: str,
    switches: "Switches",
    properties: tuple[tuple[str, str], ...],
    driver: str,
    out: Path | None,
    *,
    judge: "JudgeName | None",
) -> "RunOrder":
    """Checks for all other errors that the user can fix, and makes the run's directory."""
    from laststand.chaos.play.run_directory import check_store, create_run_directory, create_run_directory_at
    from laststand.chaos.play.run_order import RunOrder
    from laststand.chaos.play.zookeeper_server import zookeeper_for
    from laststand.chaos.scenario.requirements import changes_of
    from laststand.chaos.suite.suite import toxiproxy_for
    from laststand.cli.program.requirements import require_driver, require_judge
    from laststand.emulator.plan.drivers import DriverName

    chosen = DriverName(driver)
    require_driver(chosen, scenario, properties, eras=(era,))
    if judge is not None:
        require_judge(judge)
    toxiproxy = toxiproxy_for((scenario,), driver=chosen)
    zookeeper = zookeeper_for((era,), chosen, (scenario,))
    if out is None:
        check_store(_STORE)
        directory = create_run_directory(_STORE, scenario, now=datetime.now(UTC))
    else:
        directory = create_run_directory_at(out, scenario)
    return RunOrder(
        scenario=dataclasses.replace(scenario, expect=(), expect_changed=()),
        directory=directory,
        era=era,
        changed=changes_of(scenario, era, switches, properties),
        switches=switches,
        properties=properties,
        seed=scenario.seed if scenario.seed is not None else random.SystemRandom().getrandbits(_SEED_BITS),
        toxiproxy=toxiproxy,
        driver=chosen,
        zookeeper=zookeeper,
    )


def _play_order(order: "RunOrder", *, judge: "JudgeName | None", is_reported: bool, output: Output) -> int:
    from laststand.cli.output.results import verdicts_exit_code

    if judge is None:
        return play_only(order.scenario, (order,), output=output)
    results = play_and_judge(order.scenario, (order,), judge=judge, is_reported=is_reported, output=output)
    return verdicts_exit_code([result.report for result in results])
