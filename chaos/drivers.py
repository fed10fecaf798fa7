"""Chooses the driver that plays an order."""

import logging
from collections.abc import Callable
from typing import assert_never

from laststand.chaos.play.driver import Driver
from laststand.chaos.play.run_order import RunOrder
from laststand.emulator.plan.drivers import DriverName


def make_driver(order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> Driver:
    """Returns the driver that an order names; ``on_problem`` is called with processes that end by themselves.

    Only what that driver needs is imported: half of it would be for the others.
    """
    match order.driver:
        case DriverName.PROCESS | DriverName.DOCKER if order.has_zookeeper:
            from laststand.chaos.zookeeper.driver import ZooKeeperDriver

            return ZooKeeperDriver(order, logger=logger, on_problem=on_problem)
        case DriverName.PROCESS | DriverName.DOCKER:
            from laststand.chaos.process.driver import ProcessDriver

            return ProcessDriver(order, logger=logger, on_problem=on_problem)
        case DriverName.KAFKA:
            from laststand.chaos.kafka.driver import KafkaDriver

            return KafkaDriver(order, logger=logger, on_problem=on_problem)
        case DriverName.EXTERNAL:
            from laststand.chaos.external.driver import ExternalDriver

            return ExternalDriver(order, logger=logger, on_problem=on_problem)
        case DriverName.SIMULATOR:
            from laststand.chaos.simulated.driver import SimulatorDriver

            return SimulatorDriver(order)
        case _:
            assert_never(order.driver)
