"""Plays a scenario under one or several eras at once, has all runs verified together, and compares.

The runs overlap, because they mostly wait for sessions to end; Spark starts at the lowest priority meanwhile.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chaos.drivers import make_driver
from chaos.play.expectation import Expected, compare
from chaos.play.run_directory import create_run_directory
from chaos.play.run_order import RunOrder
from chaos.play.runner import Run, RunStatus
from chaos.scenario.scenario import Scenario
from emulator.core.switches import Switches
from emulator.plan.drivers import DriverName
from emulator.verification.session import SparkSessionStarter
from emulator.verification.verdict import VerdictReport, write_verdict
from emulator.verification.verify import rehearse, verify_runs


@dataclass(frozen=True, kw_only=True)
class EraOrder:
    """An era to play: its name, and its rules with what was asked for on top."""

    era: str
    switches: Switches


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What to play.

    Attributes:
        properties: of every node, on top of the scenario's.
        store: where run directories go.
        seed: of all random choices of all runs.
        toxiproxy: the program; needed where processes play a scenario with network faults.
        driver: processes or simulator.
    """

    scenario: Scenario
    eras: tuple[EraOrder, ...]
    properties: tuple[tuple[str, str], ...]
    store: Path
    seed: int
    toxiproxy: Path | None
    driver: DriverName = DriverName.PROCESS


@dataclass(frozen=True, kw_only=True)
class EraResult:
    """One run's result: where it is, what was found, and whether that was expected."""

    era: str
    directory: Path
    report: VerdictReport
    outcome: Expected
    misses: tuple[str, ...]


def play_campaign(
    campaign: Campaign, *, on_status: Callable[[RunStatus], None], on_phase: Callable[[str], None]
) -> tuple[EraResult, ...]:
    """Plays and verifies; returns a result for each era, in order. Main thread only.

    Args:
        campaign: what to play.
        on_status: called for every step of every run.
        on_phase: called with a description of each phase of the campaign.

    Raises:
        ConfigError: the store cannot be used.
        MissingToolError: no Java, or no pyspark.
        SparkSessionError: Spark did not start.
    """
    return play_and_verify(run_orders(campaign), on_status=on_status, on_phase=on_phase)


def play_and_verify(
    orders: tuple[RunOrder, ...], *, on_status: Callable[[RunStatus], None], on_phase: Callable[[str], None]
) -> tuple[EraResult, ...]:
    """Plays orders side by side and verifies them together; as ``play_campaign``, whose directories are there."""
    directories = [order.directory for order in orders]
    starter = SparkSessionStarter(log_path=directories[0] / "spark.log", rehearsal=rehearse)
    starter.start()
    try:
        play_runs(orders, on_status=on_status)
        on_phase("verify")
        reports = verify_runs(directories, spark=starter.session())
    finally:
        starter.stop()
    return tuple(_result(order, report) for order, report in zip(orders, reports, strict=True))


def run_orders(campaign: Campaign) -> tuple[RunOrder, ...]:
    """Makes a run directory for each era, and returns what to play in it, in order.

    Raises:
        ConfigError: the store cannot be used.
    """
    properties = {**dict(campaign.scenario.properties), **dict(campaign.properties)}
    return tuple(
        RunOrder(
            scenario=campaign.scenario,
            directory=create_run_directory(campaign.store, campaign.scenario, now=datetime.now(UTC)),
            era=era.era,
            switches=era.switches,
            properties=tuple(properties.items()),
            seed=campaign.seed,
            toxiproxy=campaign.toxiproxy,
            driver=campaign.driver,
        )
        for era in campaign.eras
    )


def play_runs(orders: Sequence[RunOrder], *, on_status: Callable[[RunStatus], None]) -> None:
    """Plays runs side by side, to the end of the last of them. Main thread only."""
    asyncio.run(_play_all(orders, on_status))


def _result(order: RunOrder, report: VerdictReport) -> EraResult:
    write_verdict(report, order.directory)
    outcome, misses = compare(report, order.scenario.expectation(order.era))
    return EraResult(era=order.era, directory=order.directory, report=report, outcome=outcome, misses=misses)


async def _play_all(orders: Sequence[RunOrder], on_status: Callable[[RunStatus], None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for order in orders:
            tasks.create_task(Run(order, make_driver=make_driver, on_status=on_status).play(), name=order.era)


def worst(results: tuple[EraResult, ...]) -> Expected:
    """Returns the outcome of all: missed if any is missed, else undecided if any is, else met."""
    outcomes = {result.outcome for result in results}
    for outcome in (Expected.MISSED, Expected.UNDECIDED):
        if outcome in outcomes:
            return outcome
    return Expected.MET
