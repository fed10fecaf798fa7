"""Orders of runs in virtual time, and a cluster whose brokers are unfenced and whose topics exist, to play steps on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.topics import create_topics
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.simulated.driver import SimulatorDriver
from laststand.chaos.simulated.target import SimulatedTarget
from laststand.emulator.core.switches import Switches
from laststand.emulator.plan.drivers import DriverName


def order_of(scenario: Scenario, directory: Path, *, seed: int) -> RunOrder:
    """Returns the order to play a scenario in virtual time, in era ``kip-966``."""
    return RunOrder(
        scenario=scenario,
        directory=directory,
        era="kip-966",
        switches=Switches(),
        properties=scenario.properties,
        seed=seed,
        toxiproxy=None,
        driver=DriverName.SIMULATOR,
    )


@asynccontextmanager
async def ready(scenario: Scenario, directory: Path, *, seed: int) -> AsyncIterator[SimulatedTarget]:
    """Yields the scenario's cluster before its first step, in era ``kip-966``."""

    def unfenced() -> Observation:
        active = [broker for broker in target.image.brokers.values() if not broker.fenced]
        return Observation(reached=len(active) == scenario.brokers, text=f"{len(active)} brokers")

    async with SimulatorDriver(order_of(scenario, directory, seed=seed)).open() as target:
        await target.wait(unfenced, timeout_s=30)
        await create_topics(target.ask_controller, scenario.topics, chance=Random(1))
        await target.wait(lambda: Observation(reached=bool(target.image.partitions), text=""), timeout_s=30)
        yield target
