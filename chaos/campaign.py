"""Plays a scenario under one or several eras, or sets of rules, at once, and has all runs verified together.

The runs overlap, because they mostly wait for sessions to end; Spark starts at the lowest priority meanwhile.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from laststand.chaos.drivers import make_driver
from laststand.chaos.kafka.program import judged_by
from laststand.chaos.play.expectation import compare
from laststand.chaos.play.run_directory import create_run_directory
from laststand.chaos.play.run_order import ExternalOrder, RunOrder
from laststand.chaos.play.runner import Run, RunStatus
from laststand.chaos.scenario.requirements import changes_of
from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.cluster.kafka_distribution import KafkaProgram
from laststand.emulator.cluster.zookeeper_program import ZooKeeperProgram
from laststand.emulator.core.eras import is_zookeeper_era
from laststand.emulator.core.switches import Switches
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.report.failure_picture import failure_picture
from laststand.emulator.verification.judges import JudgeName, NoSession, SessionSource
from laststand.emulator.verification.spark.session import SparkSessionStarter
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.report import Expected, VerdictReport
from laststand.emulator.verification.verify import rehearse, verify_runs

Watch = Callable[[Sequence[Run]], AbstractAsyncContextManager[None]]
"""Watches runs while they are played."""


@dataclass(frozen=True, kw_only=True)
class EraOrder:
    """An era to play.

    Attributes:
        era: name of the era.
        switches: its rules, with the user's changes.
        properties: of every node, on top of the scenario's.
    """

    era: str
    switches: Switches
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """One scenario to play under several eras.

    Attributes:
        store: store of the run directories.
        seed: of all random choices of all runs.
        toxiproxy: the program; needed if processes play a scenario with network faults.
        driver: the driver of the runs.
        kafka: the installed Apache Kafka, if it plays them.
        zookeeper: the program of the server, if one runs on this machine.
        external: the cluster, if another party runs it, with its own properties.
    """

    scenario: Scenario
    eras: tuple[EraOrder, ...]
    store: Path
    seed: int
    toxiproxy: Path | None
    driver: DriverName = DriverName.PROCESS
    kafka: KafkaProgram | None = None
    zookeeper: ZooKeeperProgram | None = None
    external: ExternalOrder | None = None


@dataclass(frozen=True, kw_only=True)
class EraResult:
    """One run's result, compared with its expectation."""

    order: RunOrder
    report: VerdictReport


def play_and_verify(
    orders: tuple[RunOrder, ...],
    *,
    judge: JudgeName = JudgeName.SPARK,
    on_status: Callable[[RunStatus], None],
    on_phase: Callable[[str], None],
    watch: Watch | None = None,
) -> tuple[EraResult, ...]:
    """Plays orders side by side and verifies them together; returns a result for each, in order. Main thread only.

    Args:
        orders: the orders to play.
        judge: the judge to use.
        on_status: called with every step of every run.
        on_phase: called with the phase that all runs together have reached, in words.
        watch: entered with the runs before they begin, and left when the last of them has ended.

    Raises:
        MissingToolError: no Java, or no pyspark.
        SparkSessionError: Spark did not start.
        SparkLostError: Spark ended before the verification was complete.
        OSError: a verdict could not be written.
    """
    directories = [order.directory for order in orders]
    starter: SessionSource = NoSession()
    if judge is JudgeName.SPARK:
        starter = SparkSessionStarter(log_path=directories[0] / "spark.log", rehearsal=rehearse)
    starter.start()
    try:
        play_runs(orders, on_status=on_status, watch=watch)
        on_phase("verify")
        with starter.tasks_at_work() as spark:
            reports = verify_runs(directories, spark=spark)
        return tuple(_result(order, report) for order, report in zip(orders, reports, strict=True))
    finally:
        starter.stop()


def run_orders(campaign: Campaign) -> tuple[RunOrder, ...]:
    """Makes a run directory for each era, and returns the orders to play in them.

    Raises:
        ConfigError: the store cannot be used.
    """
    return tuple(
        RunOrder(
            scenario=campaign.scenario,
            directory=create_run_directory(campaign.store, campaign.scenario, now=datetime.now(UTC)),
            era=era.era,
            switches=judged_by(era.switches, campaign.kafka),
            properties=_properties(campaign, era),
            seed=campaign.seed,
            toxiproxy=campaign.toxiproxy,
            driver=campaign.driver,
            kafka=campaign.kafka,
            zookeeper=campaign.zookeeper if is_zookeeper_era(era.era) else None,
            external=campaign.external,
            changed=changes_of(campaign.scenario, era.era, era.switches, era.properties),
        )
        for era in campaign.eras
    )


def _properties(campaign: Campaign, era: EraOrder) -> tuple[tuple[str, str], ...]:
    """Returns the properties of every node: the scenario's and the user's; none for another party's nodes."""
    if campaign.external is not None:
        return ()
    return tuple({**dict(campaign.scenario.properties), **dict(era.properties)}.items())


def play_runs(
    orders: Sequence[RunOrder], *, on_status: Callable[[RunStatus], None], watch: Watch | None = None
) -> tuple[str | None, ...]:
    """Plays runs side by side, to the end of the last of them. Main thread only.

    Args:
        orders: the orders to play.
        on_status: called with every step of every run.
        watch: entered with the runs before they begin, and left when the last of them has ended.

    Returns:
        For each run, why its plan did not reach its end; ``None`` if it did.
    """
    return asyncio.run(_play_all(orders, on_status, watch))


def _result(order: RunOrder, report: VerdictReport) -> EraResult:
    """Writes the result of a run into its directory."""
    final = held_against(order, report)
    write_verdict(final, order.directory, picture=failure_picture(final, order.directory))
    return EraResult(order=order, report=final)


def held_against(order: RunOrder, report: VerdictReport) -> VerdictReport:
    """Returns a verdict with the result of its comparison with the scenario's expectation for the era."""
    outcome, misses = compare(report, order.scenario.expectation(order.name))
    return msgspec.structs.replace(report, outcome=outcome, misses=misses)


async def _play_all(
    orders: Sequence[RunOrder], on_status: Callable[[RunStatus], None], watch: Watch | None
) -> tuple[str | None, ...]:
    runs = [Run(order, make_driver=make_driver, on_status=on_status) for order in orders]
    async with contextlib.nullcontext() if watch is None else watch(runs), asyncio.TaskGroup() as tasks:
        for order, run in zip(orders, runs, strict=True):
            tasks.create_task(run.play(), name=order.name)
    return tuple(run.problem for run in runs)


def worst(results: tuple[EraResult, ...]) -> Expected:
    """Returns the outcome of all: missed if any is missed, else undecided if any is, else met."""
    outcomes = {result.report.outcome for result in results}
    for outcome in (Expected.MISSED, Expected.UNDECIDED):
        if outcome in outcomes:
            return outcome
    return Expected.MET
