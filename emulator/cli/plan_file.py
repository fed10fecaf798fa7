"""A plan's file, as a user wrote or kept it: read, and checked for names of what its cluster does not have.

While it is played, an action that makes no sense at the moment is skipped. One that never can make sense is a slip, and
a plan with slips would end as one in which nothing was found.
"""

from pathlib import Path
from typing import Final, get_args

import msgspec

from emulator.cli.user_error import UserError
from emulator.core.errors import ConfigError
from emulator.core.messages import Request
from emulator.core.properties import check_topic_properties
from emulator.core.types import TopicPartition
from emulator.simulator.actions import Action, CrashWithin, ElrFeature, PowerLoss, Produce, Wait, format_action
from emulator.simulator.network import STREAM
from emulator.simulator.nodes import CLIENT, CONTROLLER
from emulator.simulator.plan import NumberedPlan, Plan, PlanLineError, PlannedTopic, parse_numbered

_APIS: Final = (*sorted(each.__name__.removesuffix("Request") for each in get_args(Request)), STREAM)
_NODE_FIELDS: Final = ("node", "source", "destination")


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
        complaint = _complaint(numbered.plan, action)
        if complaint is not None:
            raise UserError(f"{path}: line {line}: '{format_action(action)}': {complaint}")
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
            raise ConfigError(key="replicas", value=f"({ids})", expected=f"different {_brokers(plan)}")
    check_topic_properties(dict(topic.properties))


def _complaint(plan: Plan, action: Action) -> str | None:
    """Returns why an action can never do anything in this plan."""
    match action:
        case Wait(duration_ms=number) if number < 0:
            return "expected a time from 0 on"
        case Produce(records=number) if number < 1:
            return "expected a number of records from 1 on"
        case PowerLoss(kept=number) | CrashWithin(loss=PowerLoss(kept=number)) if number < 0:
            return "expected a number of batches from 0 on"
        case CrashWithin(after_effects=number) if number < 0:
            return "expected a number of changes from 0 on"
        case CrashWithin(node=node) if node not in range(plan.brokers):
            return f"no broker {node}; there are {_brokers(plan)}"
        case ElrFeature(level=level) if level not in (0, 1):
            return "expected level 0 or 1"
        case _:
            pass
    fields = msgspec.structs.asdict(action)
    partition, topic = fields.get("partition"), fields.get("topic")
    if isinstance(partition, TopicPartition) and partition not in plan.partitions:
        return f"no such partition; there are {', '.join(map(str, plan.partitions))}"
    if topic is not None and topic not in {each.name for each in plan.topics}:
        return f"no such topic; there are {', '.join(each.name for each in plan.topics)}"
    nodes = [*fields.get("nodes", ()), *(fields[name] for name in _NODE_FIELDS if name in fields)]
    if "channel" in fields:
        if fields["channel"].api not in _APIS:
            return f"no such kind of message; there are {', '.join(_APIS)}"
        nodes += [fields["channel"].source, fields["channel"].destination]
    known = {*range(plan.brokers), CONTROLLER, CLIENT}
    for node in nodes:
        if node not in known:
            return f"no node {node}; there are {_brokers(plan)}, the controller {CONTROLLER} and the clients {CLIENT}"
    for node in fields.get("replicas", ()):
        if node not in range(plan.brokers):
            return f"no broker {node}; there are {_brokers(plan)}"
    return None


def _brokers(plan: Plan) -> str:
    return "broker 0" if plan.brokers == 1 else f"brokers 0 to {plan.brokers - 1}"
