"""A suite: its cells, and the drivers that play them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from laststand.chaos.kafka.program import judged_as, judged_by, kafka_program
from laststand.chaos.play.run_directory import check_store, create_run_directory
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.zookeeper_server import zookeeper_for
from laststand.chaos.process.hosts import require_host, require_toxiproxy
from laststand.chaos.scenario.requirements import rules_of
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.suite.cells import ALL, Cell, Shard, cells_of
from laststand.chaos.suite.results import read_report, to_play_again
from laststand.chaos.suite.selection import Selected, select
from laststand.emulator.cluster.kafka_distribution import KafkaProgram
from laststand.emulator.cluster.sync_shim import find_sync_shim
from laststand.emulator.core.eras import era_rules, is_zookeeper_era
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.overrides import Overrides, parse_overrides

_SEED_BITS: Final = 31


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The cells of a suite, and its settings.

    Attributes:
        cells: the cells, which may have no end.
        count: number of cells; ``None`` if they have no end.
        settings: ``KEY=VALUE``, on top of each era's rules and each scenario's properties.
        overrides: the parsed values of ``--set``.
        driver: driver of the cells that name none.
        store: store of the run directories.
        toxiproxies: the program, by driver, if a scenario needs it.
        kafka: the installed Apache Kafka for its cells; ``None`` if there are none.
        shard: the part of a suite that the cells are, as ``2/4``; ``None`` for all of it.
    """

    cells: Iterator[Cell]
    count: int | None
    settings: tuple[str, ...]
    overrides: Overrides
    driver: DriverName
    store: Path
    toxiproxies: Mapping[DriverName, Path | None]
    kafka: KafkaProgram | None = None
    shard: str | None = None

    def order(self, cell: Cell) -> RunOrder:
        """Makes a cell's run directory, and returns the order to play in it.

        Raises:
            ConfigError: the directory cannot be made.
        """
        driver = cell.driver or self.driver
        kafka = self.kafka if driver is DriverName.KAFKA else None
        properties = {**dict(cell.scenario.properties), **dict(self.overrides.properties)}
        return RunOrder(
            scenario=cell.scenario,
            directory=create_run_directory(self.store, cell.scenario, now=datetime.now(UTC)),
            era=cell.era,
            changed=cell.changed,
            switches=judged_by(self.overrides.apply(rules_of(cell.scenario, cell.era)), kafka),
            properties=tuple(properties.items()),
            seed=cell.seed,
            toxiproxy=self.toxiproxies[driver],
            driver=driver,
            kafka=kafka,
            zookeeper=zookeeper_for((cell.era,), driver, (cell.scenario,)),
        )


def make_suite(
    selected: Sequence[Selected],
    *,
    eras: Sequence[str] = (),
    settings: tuple[str, ...] = (),
    drivers: Sequence[DriverName] = (DriverName.PROCESS,),
    kafka: KafkaProgram | None = None,
    seed: int | None = None,
    store: Path,
    repetitions: int | None = 1,
    shard: Shard = ALL,
) -> Suite:
    """Finds all errors that a user can fix, before anything starts.

    Args:
        selected: the scenarios.
        eras: the eras to play; see ``cells_of`` for an empty list.
        settings: ``KEY=VALUE``, switches and properties.
        drivers: each cell is played by each of them.
        kafka: the installed Apache Kafka, if it is one of the drivers.
        seed: of the first repetition; random if not given.
        store: store of the run directories.
        repetitions: how often each cell is played; ``None`` for no end.
        shard: only the cells of this part.

    Raises:
        ConfigError: there is no such era or setting, the store cannot be used, or there is no cell in this part.
        MissingToolError: no toxiproxy-server, and a scenario needs it.
    """
    check_store(store)
    overrides = parse_overrides(settings)
    plays_zookeeper = any(driver.plays(ClusterKind.ZOOKEEPER) for driver in drivers)
    for era in eras:
        overrides.apply(era_rules(era) if plays_zookeeper else era_switches(era))
    scenarios = [each.scenario for each in selected]
    cells = cells_of(
        selected,
        eras=eras,
        repetitions=repetitions,
        seed=seed_of_all(seed, scenarios),
        drivers=drivers,
        kafka_era=None if kafka is None else judged_as(kafka.distribution),
        overrides=overrides,
        shard=shard,
    )
    count = None
    if repetitions is not None:
        listed = list(cells)
        played = [cell for cell in listed if cell.skipped is None]
        for driver in drivers:
            own = [cell for cell in played if cell.driver in (None, driver)]
            with_zookeeper = (cell.scenario for cell in own if is_zookeeper_era(cell.era))
            zookeeper_for((cell.era for cell in own), driver, with_zookeeper)
        count, cells = len(listed), iter(listed)
        if not listed:
            raise ConfigError(
                key="--shard", value=f"{shard.number}/{shard.count}", expected="a part of the suite that has a cell"
            )
    return Suite(
        cells=cells,
        count=count,
        settings=settings,
        overrides=overrides,
        driver=drivers[0],
        store=store,
        toxiproxies={driver: toxiproxy_for(scenarios, driver=driver) for driver in drivers},
        kafka=kafka,
        shard=None if shard.count == 1 else f"{shard.number}/{shard.count}",
    )


def suite_again(results: Path, *, store: Path) -> Suite:
    """Returns the cells of a suite before that did not pass, each with its seed.

    Args:
        results: of that suite.
        store: store of the run directories.

    Raises:
        ConfigError: the file has no results, every cell passed, or a scenario no longer exists.
        ScenarioError: a scenario can no longer be played.
        MissingToolError: no toxiproxy-server, and a scenario needs it.
    """
    before = read_report(results)
    again = to_play_again(before)
    if not again:
        raise ConfigError(key="--rerun", value=str(results), expected="results of which a cell did not pass")
    scenarios = {each.scenario.name: each.scenario for each in select([cell.path for cell in again])}
    for cell in again:
        if cell.scenario not in scenarios:
            raise ConfigError(key="--rerun", value=str(results), expected=f"{cell.path} to be {cell.scenario} still")
    cells = [
        Cell(
            scenario=scenarios[cell.scenario],
            era=cell.era,
            repetition=cell.repetition,
            seed=cell.seed,
            driver=None if cell.driver is None else DriverName(cell.driver),
            changed=cell.changed,
        )
        for cell in again
    ]
    kafka = None if before.kafka is None else kafka_program(before.kafka)
    return suite_of(cells, settings=before.settings, driver=DriverName(before.driver), store=store, kafka=kafka)


def suite_of(
    cells: Sequence[Cell],
    *,
    settings: tuple[str, ...] = (),
    driver: DriverName,
    store: Path,
    kafka: KafkaProgram | None = None,
) -> Suite:
    """Returns a suite of these cells.

    Args:
        cells: the cells to play.
        settings: ``KEY=VALUE``, switches and properties.
        driver: driver of the cells that name none.
        store: store of the run directories.
        kafka: the installed Apache Kafka for its cells.

    Raises:
        ConfigError: there is no such setting, or the store cannot be used.
        MissingToolError: no toxiproxy-server, and a scenario needs it.
    """
    check_store(store)
    return Suite(
        cells=iter(cells),
        count=len(cells),
        settings=settings,
        overrides=parse_overrides(settings),
        driver=driver,
        store=store,
        toxiproxies={
            each: toxiproxy_for([cell.scenario for cell in cells if cell.driver in (None, each)], driver=each)
            for each in {driver, *(cell.driver for cell in cells if cell.driver is not None)}
        },
        kafka=kafka,
    )


def toxiproxy_for(scenarios: Sequence[Scenario], *, driver: DriverName) -> Path | None:
    """Returns toxiproxy-server if scenarios need it, after a check that the driver can work at all.

    Raises:
        MissingToolError: there is no such program, no Docker engine, an image is missing, or no C compiler.
    """
    if not driver.has_processes:
        return None
    require_host(driver)
    if driver is DriverName.KAFKA and any(scenario.has_power_losses for scenario in scenarios):
        find_sync_shim()
    return require_toxiproxy(driver) if any(scenario.needs_proxies(driver) for scenario in scenarios) else None


def seed_of_all(seed: int | None, scenarios: Sequence[Scenario]) -> int:
    """Returns the requested seed, or that of the only scenario, or a random one."""
    if seed is not None:
        return seed
    if len(scenarios) == 1 and scenarios[0].seed is not None:
        return scenarios[0].seed
    return random.SystemRandom().getrandbits(_SEED_BITS)
