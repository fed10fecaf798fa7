"""A plan's file, as a user wrote or kept it: read, and checked for names of what its cluster does not have.

While it is played, an action that makes no sense at the moment is skipped. One that never can make sense is a slip, and
a plan with slips would end as one in which nothing was found.
"""

from pathlib import Path

from emulator.cli.slips import brokers_of, find_slip
from emulator.cli.user_error import UserError
from emulator.core.errors import ConfigError
from emulator.core.properties import check_topic_properties
from emulator.simulator.actions import format_action
from emulator.simulator.nodes import CONTROLLER
from emulator.simulator.plan import NumberedPlan, Plan, PlanLineError, PlannedTopic, parse_numbered


def read_plan(path: Path) -> NumberedPlan:
    """Returns the plan of a file, with its lines.

    Raises:
        UserError: it cannot be read, is no plan, or speaks of what its cluster does not have.
    """
    try:
        numbered = parse_numbered(path.read_text(encoding="utf-8-sig"))
        _check_topics(numbered)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text, so it is no plan") from None
    except ConfigError as error:
        raise UserError(f"{path}: {error}") from None
    for line, action in zip(numbered.action_lines, numbered.plan.actions, strict=True):
        slip = find_slip(numbered.plan, action)
        if slip is not None:
            raise UserError(f"{path}: line {line}: '{format_action(action)}': {slip}")
    return numbered


def _check_topics(numbered: NumberedPlan) -> None:
    plan = numbered.plan
    if not 1 <= plan.brokers <= CONTROLLER:
        error = ConfigError(key="brokers", value=str(plan.brokers), expected=f"1 to {CONTROLLER}")
        raise PlanLineError(error, line=numbered.cluster_line)
    lines: dict[str, int] = {}
    for line, topic in zip(numbered.topic_lines, plan.topics, strict=True):
        try:
            _check_topic(plan, topic)
            if (first := lines.setdefault(topic.name, line)) != line:
                raise ConfigError(key="topic", value=topic.name, expected=f"one such line, and line {first} is it")
        except ConfigError as error:
            raise PlanLineError(error, line=line) from None


def _check_topic(plan: Plan, topic: PlannedTopic) -> None:
    if "=" in topic.name:
        raise ConfigError(key="topic", value=topic.name, expected="a name first")
    for replicas in topic.replicas:
        if len(set(replicas)) < len(replicas) or not set(replicas) <= set(range(plan.brokers)):
            ids = ",".join(map(str, replicas))
            raise ConfigError(key="replicas", value=f"({ids})", expected=f"different {brokers_of(plan)}")
    check_topic_properties(dict(topic.properties))
