"""``laststand run``: plays scenarios and verifies the runs."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.options.completion import complete_eras, complete_scenarios
from laststand.cli.options.deprecated import warn_of_deprecated
from laststand.cli.options.external import ExternalChoice, external_options
from laststand.cli.options.judge import verdict_options
from laststand.cli.options.settings import ERA_HELP, set_option, store_option
from laststand.cli.options.suite import SuiteChoice, suite_options
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.pictures import report_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.cli.runs.against import (
    AGAINST,
    CommandWithOtherRun,
    OtherRun,
    against_option,
    check_orders_differ,
    only_era,
)
from laststand.cli.runs.play import check_view, play_and_judge, play_only, view_option
from laststand.cli.runs.suite import play_suite

if TYPE_CHECKING:
    from laststand.chaos.campaign import Campaign, EraOrder
    from laststand.chaos.scenario.scenario import Scenario
    from laststand.chaos.suite.selection import Selected
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.verification.judges import JudgeName


@click.command(cls=CommandWithOtherRun, short_help="Play scenarios and verify the runs.")
@click.argument("names", metavar="[SCENARIO]...", nargs=-1, shell_complete=complete_scenarios)
@click.option(
    "--era",
    "eras",
    multiple=True,
    metavar="ERA",
    shell_complete=complete_eras,
    help=f"Protocol to play, repeat to compare several: {ERA_HELP}",
)
@set_option
@against_option
@click.option(
    "--driver",
    "drivers",
    type=click.Choice(["process", "docker", "simulator", "kafka", "external"]),
    multiple=True,
    default=("process",),
    show_default=True,
    help="Real processes, the same in containers, virtual time, Apache Kafka itself, or a cluster that somebody else "
    "runs; repeat to compare several.",
)
@click.option(
    "--kafka",
    "kafka_version",
    metavar="VERSION",
    help="Version for --driver kafka; the newest that is installed if not given.",
)
@external_options
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Seed of all random choices; random if not given."
)
@store_option
@suite_options
@verdict_options
@report_option
@view_option
@json_option
def run(
    names: tuple[str, ...],
    eras: tuple[str, ...],
    settings: tuple[str, ...],
    against: OtherRun | None,
    drivers: tuple[str, ...],
    kafka_version: str | None,
    external: ExternalChoice,
    seed: int | None,
    store: Path,
    suite_choice: SuiteChoice,
    *,
    judge: "JudgeName | None",
    is_reported: bool,
    is_viewed: bool,
    output: Output,
) -> ExitCode:
    """Play SCENARIO, a file or a name under chaos/scenarios, and verify the run.

    Several SCENARIOs, folders of scenarios, and suites (files that list scenarios, or names under chaos/suites) are
    played as a suite: each scenario under each era, with a matrix of results. Without --era those eras are played that
    a suite file names, or that a scenario has expectations for; one scenario alone is played under the default era,
    unless it has expectations only for others. Each of several --driver is a column of its own; with Apache Kafka, the
    version determines the era. chaos/README.md has more.

    With --against one scenario is played under two sets of rules at once: the options before it are the first set,
    --set and --era after it the second, in the same era if no other is given. The last lines say where the two runs
    first differ. The scenario's expectation for an era holds only for a run without changes of that era.

    Exit code: with an expectation for the era in the scenario, 0 met, 1 missed, 2 undecided; without one, 0 valid, 1
    violation, 2 unknown; that of a suite is its worst cell's. With --no-verify 0 played, 2 it did not reach its end.
    254 for a user error.
    """
    from laststand.chaos.kafka.program import kafka_program
    from laststand.chaos.suite.suite import make_suite, suite_again
    from laststand.cli.options.kafka_versions import era_on_kafka
    from laststand.cli.program.requirements import require_judge
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.plan.yaml_cursor import ScenarioError

    chosen = tuple(DriverName(driver) for driver in dict.fromkeys(drivers))
    if is_viewed:
        check_view(chosen[0])
    if against is not None and suite_choice.is_given:
        raise UserError(f"{AGAINST} takes no option of suites")
    if against is not None and judge is None:
        raise UserError(f"{AGAINST} says where two runs part, which takes verdicts: it excludes --no-verify")
    kafka = None
    if DriverName.KAFKA in chosen:
        kafka = kafka_program(kafka_version)
        is_alone = len(chosen) == 1
        era = era_on_kafka(kafka, eras, settings, is_alone=is_alone)
        eras = (era,) if is_alone else eras
        if against is not None:
            era_on_kafka(kafka, [era] if against.era is None else [against.era], against.settings, is_alone=is_alone)
    elif kafka_version is not None:
        raise UserError(f"--kafka {kafka_version}: only for --driver kafka")
    external.check(is_chosen=DriverName.EXTERNAL in chosen, is_alone=len(chosen) == 1 and not settings)
    try:
        if suite_choice.rerun is not None:
            if names or eras or settings or is_viewed:
                raise UserError("--rerun excludes SCENARIO, --era, --set and --view: the results name them")
            if judge is None:
                raise UserError(
                    "--rerun plays again what has not passed, which takes verdicts: it excludes --no-verify"
                )
            require_judge(judge)
            suite_choice.forms.check()
            again = suite_again(suite_choice.rerun, store=store)
            return play_suite(again, suite_choice, judge=judge, is_reported=is_reported, output=output)
        selected = _selected(names)
        if len(selected) > 1 or len(chosen) > 1 or suite_choice.is_given:
            if chosen == (DriverName.EXTERNAL,):
                raise UserError("--driver external plays one scenario, and takes no option of suites")
            if against is not None:
                raise UserError(f"{AGAINST} compares two runs of one scenario on one driver")
            if judge is None or is_viewed:
                option = "--view shows" if is_viewed else "--no-verify plays"
                raise UserError(f"{option} one scenario on one driver, and takes no option of suites")
            require_judge(judge)
            suite = make_suite(
                selected,
                eras=eras,
                settings=settings,
                drivers=chosen,
                kafka=kafka,
                seed=seed,
                store=store,
                repetitions=suite_choice.repetitions,
                shard=suite_choice.part,
            )
            suite_choice.forms.check()
            return play_suite(suite, suite_choice, judge=judge, is_reported=is_reported, output=output)
    except ScenarioError as error:
        raise UserError(str(error)) from None
    (only,) = selected
    found = None
    if chosen == (DriverName.EXTERNAL,):
        found, era = external.find(only.scenario)
        eras = eras or (era,)
    campaign = _campaign(
        only.scenario,
        eras or only.eras or only.scenario.eras,
        settings,
        against,
        driver=chosen[0],
        seed=seed,
        store=store,
        judge=judge,
    )
    campaign = dataclasses.replace(campaign, kafka=kafka, external=found)
    from laststand.chaos.campaign import run_orders, worst
    from laststand.cli.output.results import outcome_exit_code

    orders = run_orders(campaign)
    if judge is None:
        return play_only(campaign.scenario, orders, is_viewed=is_viewed, output=output)
    results = play_and_judge(
        campaign.scenario,
        orders,
        judge=judge,
        is_reported=is_reported,
        is_viewed=is_viewed,
        is_compared=against is not None,
        output=output,
    )
    return outcome_exit_code(worst(results))


def _selected(names: tuple[str, ...]) -> "tuple[Selected, ...]":
    from laststand.chaos.suite.selection import select

    if not names:
        raise UserError("expected a SCENARIO: a file, a folder, or a name; laststand scenarios lists them")
    return select(names)


def _campaign(
    scenario: "Scenario",
    eras: tuple[str, ...],
    settings: tuple[str, ...],
    against: OtherRun | None,
    *,
    driver: "DriverName",
    seed: int | None,
    store: Path,
    judge: "JudgeName | None",
) -> "Campaign":
    """Checks for all errors that the user can fix, before anything starts."""
    from laststand.chaos.campaign import Campaign
    from laststand.chaos.play.run_directory import check_store
    from laststand.chaos.play.zookeeper_server import zookeeper_for
    from laststand.chaos.suite.suite import seed_of_all, toxiproxy_for
    from laststand.cli.program.requirements import require_driver, require_judge, require_rules

    if against is None:
        orders = _orders(scenario, tuple(dict.fromkeys(eras)), settings, driver)
    else:
        (one,) = _orders(scenario, (only_era(eras),), settings, driver)
        (other,) = _orders(scenario, (against.era or one.era,), against.settings, driver)
        check_orders_differ(scenario, one, other)
        orders = (one, other)
    for order in orders:
        require_driver(driver, scenario, (*scenario.properties, *order.properties), eras=(order.era,))
        require_rules(scenario, order.era, order.switches, order.properties)
        of_topics = (each for topic in scenario.topics for each in topic.properties)
        warn_of_deprecated(dict((*scenario.properties, *order.properties, *of_topics)), era=order.era)
    if judge is not None:
        require_judge(judge)
    check_store(store)
    toxiproxy = toxiproxy_for((scenario,), driver=driver)
    zookeeper = zookeeper_for([order.era for order in orders], driver, (scenario,))
    return Campaign(
        scenario=scenario,
        eras=orders,
        store=store,
        seed=seed_of_all(seed, (scenario,)),
        toxiproxy=toxiproxy,
        driver=driver,
        zookeeper=zookeeper,
    )


def _orders(
    scenario: "Scenario", eras: Sequence[str], settings: tuple[str, ...], driver: "DriverName"
) -> "tuple[EraOrder, ...]":
    from laststand.chaos.campaign import EraOrder
    from laststand.chaos.scenario.requirements import rules_of
    from laststand.emulator.core.switches import era_switches
    from laststand.emulator.core.types import ClusterKind
    from laststand.emulator.plan.overrides import parse_overrides

    overrides = parse_overrides(settings)
    plays_zookeeper = driver.plays(ClusterKind.ZOOKEEPER)
    return tuple(
        EraOrder(
            era=era,
            switches=overrides.apply(rules_of(scenario, era) if plays_zookeeper else era_switches(era)),
            properties=overrides.properties,
        )
        for era in eras
    )
