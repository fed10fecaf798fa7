"""The cells of a suite: one run each, of a scenario under an era."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.play.expressible import not_expressible, not_in_era
from chaos.scenario.scenario import Scenario
from chaos.suite.selection import Selected
from emulator.core.eras import is_zookeeper_era
from emulator.core.switches import DEFAULT_ERA
from emulator.plan.drivers import DriverName


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run.

    Attributes:
        repetition: from 1.
        seed: of its random choices.
        skipped: why it is not played; ``None`` if it is.
    """

    scenario: Scenario
    era: str
    repetition: int
    seed: int
    skipped: str | None = None

    @property
    def name(self) -> str:
        """What tells the cell from all others."""
        return name_of_cell(self.scenario.name, self.era, self.repetition)


def name_of_cell(scenario: str, era: str, repetition: int) -> str:
    """Returns the name of a cell, by scenario, era and repetition."""
    return f"{scenario} {era} #{repetition}"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A part of a suite: cells are dealt out by a hash of their names, so that each machine takes the same ones."""

    number: int
    count: int

    def has(self, cell: Cell) -> bool:
        """Whether a cell belongs to it."""
        digest = hashlib.sha256(cell.name.encode()).digest()
        return int.from_bytes(digest[:8]) % self.count == self.number - 1


ALL = Shard(number=1, count=1)


def cells_of(
    selected: Sequence[Selected],
    *,
    eras: Sequence[str],
    repetitions: int | None,
    seed: int,
    driver: DriverName,
    properties: tuple[tuple[str, str], ...] = (),
    shard: Shard = ALL,
) -> Iterator[Cell]:
    """Yields the cells, the first repetition of all before the second.

    Args:
        selected: the scenarios.
        eras: to play; where it is empty those of the suite file, else those that a scenario has expectations for.
        repetitions: how often; ``None`` for without end.
        seed: of the first repetition; each further one has the next number.
        driver: what it cannot play is skipped.
        properties: of every node, on top of the scenario's.
        shard: only the cells of this part.
    """
    reasons = {each.scenario.name: _unplayable(each.scenario, properties, driver) for each in selected}
    for repetition in itertools.count(1) if repetitions is None else range(1, repetitions + 1):
        for each in selected:
            for era in dict.fromkeys(eras or each.eras or [era for era, _ in each.scenario.expect] or [DEFAULT_ERA]):
                cell = Cell(
                    scenario=each.scenario,
                    era=era,
                    repetition=repetition,
                    seed=seed + repetition - 1,
                    skipped=reasons[each.scenario.name]
                    or _unbuilt(each.scenario, era, driver)
                    or _unexpected(each.scenario, era),
                )
                if shard.has(cell):
                    yield cell


def _unplayable(scenario: Scenario, properties: tuple[tuple[str, str], ...], driver: DriverName) -> str | None:
    missing = not_expressible(scenario, (*scenario.properties, *properties), driver)
    return f"--driver {driver.value} cannot play {'; '.join(missing)}" if missing else None


def _unbuilt(scenario: Scenario, era: str, driver: DriverName) -> str | None:
    if is_zookeeper_era(era) and not driver.has_zookeeper:
        return f"--driver {driver.value} cannot play eras with ZooKeeper"
    missing = not_in_era(scenario, era, driver)
    return f"--driver {driver.value} cannot play {'; '.join(missing)}" if missing else None


def _unexpected(scenario: Scenario, era: str) -> str | None:
    if scenario.expect and scenario.expectation(era) is None:
        return f"the scenario expects nothing of era {era}"
    return None
