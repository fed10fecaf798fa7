"""``laststand run``: plays a scenario and verifies the run."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from emulator.cli.completion import complete_eras, complete_scenarios
from emulator.cli.output import Output, json_option
from emulator.cli.play import play_and_judge, play_only, verify_option
from emulator.cli.settings import ERA_HELP, set_option
from emulator.cli.user_error import UserError

if TYPE_CHECKING:
    from chaos.campaign import Campaign

_SEED_BITS: Final = 31


@click.command(short_help="Play a scenario and verify the run.")
@click.argument("scenario", shell_complete=complete_scenarios)
@click.option(
    "--era",
    "eras",
    multiple=True,
    metavar="ERA",
    shell_complete=complete_eras,
    help=f"Protocol to play, repeat to compare several: {ERA_HELP}",
)
@set_option
@click.option(
    "--driver",
    type=click.Choice(["process", "docker", "simulator"]),
    default="process",
    show_default=True,
    help="Real processes, or virtual time.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Seed of all random choices; random if not given."
)
@click.option(
    "--out",
    "store",
    type=click.Path(path_type=Path),
    default=Path("store"),
    show_default=True,
    help="Store of the run directories.",
)
@verify_option
@json_option
def run(
    scenario: str,
    eras: tuple[str, ...],
    settings: tuple[str, ...],
    driver: str,
    seed: int | None,
    store: Path,
    *,
    is_judged: bool,
    output: Output,
) -> int:
    """Play SCENARIO, a file or a name under chaos/scenarios, and verify the run.

    Exit code: with an expectation for the era in the scenario, 0 met, 1 missed, 2 undecided; without one, 0 valid, 1
    violation, 2 unknown. With --no-verify 0 played, 2 the plan did not reach its end. 254 for a user error.
    """
    campaign = _prepare(scenario, eras, settings, driver, seed, store, is_judged=is_judged)
    from chaos.campaign import run_orders, worst
    from emulator.cli.results import outcome_exit_code

    orders = run_orders(campaign)
    if not is_judged:
        return play_only(campaign.scenario, orders, output=output)
    return outcome_exit_code(worst(play_and_judge(campaign.scenario, orders, output=output)))


def _prepare(
    name: str,
    eras: tuple[str, ...],
    settings: tuple[str, ...],
    driver: str,
    seed: int | None,
    store: Path,
    *,
    is_judged: bool,
) -> "Campaign":
    """Finds everything that the user can fix, before anything starts."""
    from chaos.campaign import Campaign, EraOrder
    from chaos.play.run_directory import check_store
    from chaos.scenario.scenario_file import find_scenario, load_scenario
    from emulator.cli.overrides import parse_overrides
    from emulator.cli.requirements import require_driver, require_spark, require_toxiproxy
    from emulator.core.switches import DEFAULT_ERA, era_switches
    from emulator.plan.drivers import DriverName
    from emulator.plan.yaml_cursor import ScenarioError

    if driver == "docker":
        raise UserError("--driver docker is not implemented; allowed: process, simulator")
    try:
        scenario = load_scenario(find_scenario(name))
    except ScenarioError as error:
        raise UserError(str(error)) from None
    overrides = parse_overrides(settings)
    chosen = tuple(dict.fromkeys(eras)) or (DEFAULT_ERA,)
    orders = tuple(EraOrder(era=era, switches=overrides.apply(era_switches(era))) for era in chosen)
    chosen_driver = DriverName(driver)
    require_driver(chosen_driver, scenario, (*scenario.properties, *overrides.properties))
    check_store(store)
    if is_judged:
        require_spark()
    if seed is None:
        seed = scenario.seed if scenario.seed is not None else random.SystemRandom().getrandbits(_SEED_BITS)
    needs_proxies = scenario.has_network_faults and chosen_driver is DriverName.PROCESS
    return Campaign(
        scenario=scenario,
        eras=orders,
        properties=overrides.properties,
        store=store,
        seed=seed,
        toxiproxy=require_toxiproxy() if needs_proxies else None,
        driver=chosen_driver,
    )
