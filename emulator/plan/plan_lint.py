"""Finds actions that can never do anything on a cluster: what they are about does not exist, or a number is absurd."""

from collections.abc import Iterator
from typing import Final

from emulator.plan.actions import (
    Action,
    ActionTemplate,
    Kill,
    OnNodes,
    Pause,
    PowerLoss,
    Resume,
    Start,
    deed_of,
)
from emulator.plan.drivers import DriverName
from emulator.plan.names import Names
from emulator.plan.nodes import CONTROLLER
from emulator.plan.plan import Plan

_ON_SIMULATED_CONTROLLER: Final = (Kill, Start, Pause, Resume, PowerLoss)


def problems(action: ActionTemplate, names: Names) -> Iterator[str]:
    """Yields why an action can never do anything where these are the names."""
    for name, field in deed_of(action).fields.items():
        yield from field.problems(getattr(action, name), names)
    yield from action.problems()


def refusal(action: ActionTemplate, driver: DriverName) -> str | None:
    """Returns why a driver does not have an action; ``None`` if it has."""
    return deed_of(action).refused.get(driver)


def find_problem(plan: Plan, action: Action) -> str | None:
    """Returns why an action can never do anything in this plan; ``None`` if it can."""
    names = Names(brokers=plan.brokers, partitions=plan.partitions)
    return next(_simulated_problems(action, names), None)


def _simulated_problems(action: Action, names: Names) -> Iterator[str]:
    yield from problems(action, names)
    if isinstance(action, OnNodes) and CONTROLLER in action.nodes and not isinstance(action, _ON_SIMULATED_CONTROLLER):
        yield f"no broker {CONTROLLER}; there are {names.broker_range}"
