"""Which driver plays an order."""

import logging
from collections.abc import Callable
from typing import assert_never

from chaos.driver import Driver
from chaos.process_driver import ProcessDriver
from chaos.run_order import DriverName, RunOrder
from chaos.simulator_driver import SimulatorDriver


def make_driver(order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> Driver:
    """Returns the driver that an order names; ``on_problem`` is told of processes that end by themselves."""
    match order.driver:
        case DriverName.PROCESS:
            return ProcessDriver(order, logger=logger, on_problem=on_problem)
        case DriverName.SIMULATOR:
            return SimulatorDriver(order)
        case _:
            assert_never(order.driver)
