"""The cells of a suite: one run each, of a scenario under an era."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from laststand.chaos.play.expressible import not_expressible, not_in_era
from laststand.chaos.scenario.requirements import changes_of, rules_of, unmet
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.suite.selection import Selected
from laststand.emulator.core.eras import era_kind, era_label
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.overrides import NO_OVERRIDES, Overrides


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run.

    Attributes:
        changed: changes of the era's rules and the scenario's properties, as ``name=value``.
        repetition: from 1.
        seed: of its random choices.
        driver: its driver, if the suite has several; ``None`` for the suite's only one.
        skipped: why it is not played; ``None`` if it is.
    """

    scenario: Scenario
    era: str
    repetition: int
    seed: int
    driver: DriverName | None = None
    changed: tuple[str, ...] = ()
    skipped: str | None = None

    @property
    def era_label(self) -> str:
        """The era with its changes."""
        return era_label(self.era, self.changed)

    @property
    def name(self) -> str:
        """The text that distinguishes the cell from all others."""
        column = column_of(self.era_label, None if self.driver is None else self.driver.value)
        return name_of_cell(self.scenario.name, column, self.repetition)


def column_of(label: str, driver: str | None) -> str:
    """Returns the column of a cell in a matrix: the label of an era, and a driver if there are several."""
    return label if driver is None else f"{label} on {driver}"


def name_of_cell(scenario: str, column: str, repetition: int) -> str:
    """Returns the name of a cell, by scenario, column and repetition."""
    return f"{scenario} {column} #{repetition}"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A part of a suite: cells are dealt out by a hash of their names, so that each machine takes the same ones."""

    number: int
    count: int

    def has(self, cell: Cell) -> bool:
        """Returns whether a cell belongs to the shard."""
        digest = hashlib.sha256(cell.name.encode()).digest()
        return int.from_bytes(digest[:8]) % self.count == self.number - 1


ALL = Shard(number=1, count=1)


def cells_of(
    selected: Sequence[Selected],
    *,
    eras: Sequence[str],
    repetitions: int | None,
    seed: int,
    drivers: Sequence[DriverName],
    kafka_era: str | None = None,
    overrides: Overrides = NO_OVERRIDES,
    shard: Shard = ALL,
) -> Iterator[Cell]:
    """Yields the cells, the first repetition of all before the second.

    Args:
        selected: the scenarios.
        eras: the eras to play; if empty those of the suite file, else those that a scenario has expectations for.
        repetitions: number of repetitions; ``None`` for no end.
        seed: of the first repetition; each further one has the next number.
        drivers: the drivers; cells that a driver cannot play are skipped.
        kafka_era: the only era that Apache Kafka plays.
        overrides: of the rules of each era, and of the properties of each scenario.
        shard: only the cells of this part.
    """
    reasons = {
        (each.scenario.name, driver): _unplayable(each.scenario, overrides.properties, driver)
        for each in selected
        for driver in drivers
    }
    for repetition in itertools.count(1) if repetitions is None else range(1, repetitions + 1):
        for each in selected:
            wanted = eras or each.eras or [era for era, _ in each.scenario.expect] or [DEFAULT_ERA]
            for era, driver in _columns(wanted, drivers, kafka_era):
                cell = Cell(
                    scenario=each.scenario,
                    era=era,
                    repetition=repetition,
                    seed=seed + repetition - 1,
                    driver=driver if len(drivers) > 1 else None,
                    changed=_changed(each.scenario, overrides, era),
                    skipped=reasons[each.scenario.name, driver]
                    or _unbuilt(each.scenario, overrides.properties, era, driver)
                    or _unmet(each.scenario, overrides, era)
                    or _unexpected(each.scenario, era),
                )
                if shard.has(cell):
                    yield cell


def _columns(
    eras: Sequence[str], drivers: Sequence[DriverName], kafka_era: str | None
) -> Iterator[tuple[str, DriverName]]:
    """Yields era and driver; the drivers of an era are adjacent."""
    for era in dict.fromkeys(eras):
        yield from ((era, driver) for driver in drivers if driver is not DriverName.KAFKA or era == kafka_era)
    if kafka_era is not None and kafka_era not in eras:
        yield kafka_era, DriverName.KAFKA


def _unplayable(scenario: Scenario, properties: tuple[tuple[str, str], ...], driver: DriverName) -> str | None:
    return _cannot_play(driver, not_expressible(scenario, (*scenario.properties, *properties), driver))


def _unbuilt(scenario: Scenario, properties: tuple[tuple[str, str], ...], era: str, driver: DriverName) -> str | None:
    if not driver.plays(era_kind(era)):
        return f"--driver {driver.value} cannot play eras with ZooKeeper"
    return _cannot_play(driver, not_in_era(scenario, (*scenario.properties, *properties), era, driver))


def _cannot_play(driver: DriverName, missing: Sequence[str]) -> str | None:
    return f"--driver {driver.value} cannot play {'; '.join(missing)}" if missing else None


def _unmet(scenario: Scenario, overrides: Overrides, era: str) -> str | None:
    return "; ".join(unmet(scenario, era, overrides.apply(rules_of(scenario, era)), overrides.properties)) or None


def _changed(scenario: Scenario, overrides: Overrides, era: str) -> tuple[str, ...]:
    return changes_of(scenario, era, overrides.apply(rules_of(scenario, era)), overrides.properties)


def _unexpected(scenario: Scenario, era: str) -> str | None:
    if scenario.expect and scenario.expectation(era) is None:
        return f"the scenario expects nothing of era {era}"
    return None
