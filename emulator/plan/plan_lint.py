"""Finds actions that can never have an effect: they name something that does not exist, or an absurd number."""

from collections.abc import Iterator

from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.external_refusals import refusal_on_external
from laststand.emulator.plan.kafka_refusals import refusal_on_kafka
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.plan import Plan


def problems(action: actions.ActionTemplate, names: Names) -> Iterator[str]:
    """Yields why an action can never have an effect on a cluster with these names."""
    for name, field in actions.spec_of(action).fields.items():
        yield from field.problems(getattr(action, name), names)
    yield from action.problems()


def refusal(action: actions.ActionTemplate, driver: DriverName) -> str | None:
    """Returns why a driver refuses an action; ``None`` if it does not."""
    match driver:
        case DriverName.KAFKA:
            return refusal_on_kafka(action)
        case DriverName.EXTERNAL:
            return refusal_on_external(action)
        case _:
            return action.refused_by(driver)


def find_problem(plan: Plan, action: actions.Action) -> str | None:
    """Returns why an action can never have an effect in this plan; ``None`` if it can."""
    names = Names(brokers=plan.brokers, controllers=plan.all_controllers, partitions=plan.partitions)
    for each in plan.actions:
        names.add_partitions(each.new_partitions)
    return refusal(action, DriverName.SIMULATOR) or next(problems(action, names), None)
