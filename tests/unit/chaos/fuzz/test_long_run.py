"""A long run is a scenario of whole minutes, with one fault at a time."""

from pathlib import Path

import pytest

from laststand.chaos.fuzz.long_run import LongRunOptions, long_run
from laststand.chaos.play.expressible import not_expressible
from laststand.chaos.scenario.conditions import Elapsed, PartitionIs, Until
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName

MINUTES = 4


def options(seed: int, *, is_simulated: bool = False) -> LongRunOptions:
    return LongRunOptions(seed=seed, era=DEFAULT_ERA, minutes=MINUTES, rate=2000, is_simulated=is_simulated)


def scenario(seed: int, *, is_simulated: bool = False) -> Scenario:
    return read_scenario(Path("long.yaml"), long_run(options(seed, is_simulated=is_simulated)))


def test_a_seed_gives_one_run() -> None:
    assert long_run(options(1)) == long_run(options(1))
    assert long_run(options(1)) != long_run(options(2))


def test_it_lasts_as_long_as_is_asked() -> None:
    paces = [step.action.condition for step in scenario(1).steps if isinstance(step.action, Until)]
    assert sum(pace.duration_ms for pace in paces if isinstance(pace, Elapsed)) == MINUTES * 60_000


@pytest.mark.parametrize("seed", range(4))
def test_no_fault_begins_before_the_cluster_is_whole_again(seed: int) -> None:
    broken: set[object] = set()
    for step in scenario(seed).steps:
        match step.action:
            case actions.Kill() | actions.Stop() | actions.PowerLoss() | actions.Pause():
                assert not broken, step.text
                broken |= {*step.action.nodes}
            case actions.Start() | actions.Resume():
                broken -= {*step.action.nodes}
            case actions.Cut() | actions.Isolate() | actions.Slow():
                assert not broken, step.text
                broken |= {"a link"}
            case actions.HealAll():
                broken -= {"a link"}
            case Until(condition=PartitionIs()):
                assert not broken, step.text
            case _:
                pass
    assert not broken


@pytest.mark.parametrize("seed", range(4))
def test_virtual_time_gets_only_faults_that_it_has(seed: int) -> None:
    assert not_expressible(scenario(seed, is_simulated=True), (), DriverName.SIMULATOR) == ()
