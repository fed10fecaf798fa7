"""By which rules a version of Apache Kafka is judged."""

from pathlib import Path

import pytest

from laststand.chaos.kafka.program import judged_as, judged_by
from laststand.chaos.suite.cells import Cell
from laststand.chaos.suite.selection import select
from laststand.chaos.suite.suite import Suite
from laststand.emulator.cluster.kafka_distribution import KafkaDistribution, KafkaProgram
from laststand.emulator.core.switches import era_switches
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.overrides import parse_overrides


@pytest.mark.parametrize(
    ("version", "era", "needs_all"),
    [("3.9.1", "kafka-3.9", True), ("4.2.0", "kafka-4.2", True), ("4.3.0", "kafka-4.2", False)],
)
def test_a_version_is_judged_by_the_era_nearest_to_it(version: str, era: str, *, needs_all: bool) -> None:
    distribution = KafkaDistribution(version=version, folder=Path(version))
    assert judged_as(distribution) == era
    kafka = KafkaProgram(distribution=distribution, java=Path("java"))
    assert judged_by(era_switches(era), kafka).reassignment_needs_all is needs_all


def test_the_rules_of_our_own_processes_are_those_of_the_era() -> None:
    assert judged_by(era_switches("kafka-4.2"), None) == era_switches("kafka-4.2")


def test_each_cell_of_a_suite_is_judged_by_what_plays_it(tmp_path: Path) -> None:
    kafka = KafkaProgram(distribution=KafkaDistribution(version="4.4.0", folder=tmp_path), java=Path("java"))
    (selected,) = select(["kip-966/reassignment"])
    drivers = (DriverName.PROCESS, DriverName.KAFKA)
    suite = Suite(
        cells=iter(()),
        count=0,
        settings=(),
        overrides=parse_overrides(()),
        driver=DriverName.PROCESS,
        store=tmp_path / "store",
        toxiproxies=dict.fromkeys(drivers),
        kafka=kafka,
    )
    cells = [
        Cell(scenario=selected.scenario, era="kafka-4.2", repetition=1, seed=1, driver=driver) for driver in drivers
    ]
    assert [suite.order(cell).switches.reassignment_needs_all for cell in cells] == [True, False]
