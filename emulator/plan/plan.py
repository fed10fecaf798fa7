"""A plan: a cluster, topics and actions, as text; seeds are drawn as plans, and regressions are kept as plans.

::

    # Why it is here.
    cluster brokers=3 era=kip-966 [switch=rule] [property=value]
    topic orders replicas=(0,1,2) min.insync.replicas=2
    produce orders-0 acks=all records=1     # comments may follow
    ...

Whatever the plan does not set has its simulated default (``PROPERTIES``): Kafka's defaults are for clusters that live
for months.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.eras import (
    ZOOKEEPER_RULES,
    era_rules,
    is_rule,
    is_zookeeper_era,
    strange_protocol,
    unanswered_protocol,
    with_rule,
)
from laststand.emulator.core.errors import ConfigError, EmulatorError
from laststand.emulator.core.properties import NodeProperties, is_node_property, node_properties
from laststand.emulator.core.release import check_metadata_version
from laststand.emulator.core.switches import DEFAULT_ERA, Switches
from laststand.emulator.core.topic_names import INTERNAL_TOPICS, TRANSACTIONS_TOPIC
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan.actions import Action, HealAll, HealLink, HealNodes, Release, Resume, Wait
from laststand.emulator.plan.lines import format_action, parse_action
from laststand.emulator.plan.names import FEW_BROKERS, NO_QUORUM_TO_JOIN, Names
from laststand.emulator.plan.nodes import CONTROLLER_COUNTS, STANDBY_CONTROLLERS_MAX
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.plan.unsupported_properties import NO_TIMED_FLUSH, NODE_FLUSH_TIME, TOPIC_FLUSH_TIME
from laststand.emulator.plan.yaml_cursor import too_long_number

_COMMENT: Final = re.compile(r"(^|\s)#.*")

PROPERTIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "broker.heartbeat.interval.ms": "100",
        "broker.session.timeout.ms": "400",
        "replica.lag.time.max.ms": "300",
        "replica.fetch.wait.max.ms": "100",
        "replica.fetch.backoff.ms": "50",
        "replica.high.watermark.checkpoint.interval.ms": "150",
        "leader.imbalance.check.interval.seconds": "2",
        "controller.quorum.election.timeout.ms": "100",
        "controller.quorum.fetch.timeout.ms": "200",
        "controller.quorum.request.timeout.ms": "200",
        "controller.quorum.append.linger.ms": "0",
    }
)
"""Times in a simulated cluster, unless the plan says otherwise."""


class PlanLineError(ConfigError):
    """A line of a plan is not understood.

    Attributes:
        line: number of the line, from 1.
    """

    def __init__(self, error: ConfigError, *, line: int) -> None:
        EmulatorError.__init__(self, f"line {line}: {error}")
        self.key = error.key
        self.value = error.value
        self.expected = error.expected
        self.line = line


class PlanIncompleteError(ConfigError):
    """A plan lacks a line."""

    def __init__(self, missing: str) -> None:
        EmulatorError.__init__(self, f"the plan lacks {missing}")
        self.key = "plan"
        self.value = None
        self.expected = missing


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides a simulated run.

    Attributes:
        brokers: their number.
        controllers: their number; several form a quorum.
        standby_controllers: number of further controllers that are down and not voters, until a user starts and adds
            them.
        combined: whether each controller shares a process with a broker.
        era: era whose rules they follow.
        switches: rules that differ from the era's, by name.
        properties: of every node, on top of ``PROPERTIES``.
        topics: in order of creation.
        actions: in order.
    """

    brokers: int
    controllers: int = 1
    standby_controllers: int = 0
    combined: bool = False
    era: str = DEFAULT_ERA
    switches: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    topics: tuple[PlannedTopic, ...]
    actions: tuple[Action, ...] = ()

    @property
    def all_controllers(self) -> int:
        """All controllers, including those that are down at first."""
        return self.controllers + self.standby_controllers

    @property
    def length(self) -> int:
        """The number of faults, client operations and late or reordered messages."""
        return sum(map(_is_counted, self.actions))

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(partition for topic in self.topics for partition in topic.partitions)

    @property
    def client_partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that clients write to and read."""
        return tuple(partition for partition in self.partitions if partition.topic not in INTERNAL_TOPICS)

    @property
    def has_transactions(self) -> bool:
        """The plan has the topic ``__transaction_state``."""
        return any(topic.name == TRANSACTIONS_TOPIC for topic in self.topics)

    def rules(self) -> Switches:
        """Returns the rules in force.

        Raises:
            ConfigError: unknown era, switch or rule.
        """
        switches = era_rules(self.era)
        for name, rule in self.switches:
            switches = with_rule(switches, name, rule)
        return switches

    def node_properties(self) -> NodeProperties:
        """Returns every node's properties.

        Raises:
            ConfigError: unknown property, or a value out of range.
        """
        return node_properties({**PROPERTIES, **dict(self.properties)})

    def with_actions(self, actions: Iterable[Action]) -> "Plan":
        """Returns the plan with other actions."""
        return msgspec.structs.replace(self, actions=tuple(actions))


def _is_counted(action: Action) -> bool:
    """Returns whether an action counts towards a plan's length: time and repairs do not."""
    match action:
        case Wait() | HealAll() | HealLink() | HealNodes() | Resume() | Release(count=None):
            return False
        case _:
            return True


def format_plan(plan: Plan, *, comment: str = "") -> str:
    """Returns a plan's text."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    settings = [f"{name}={value}" for name, value in (*plan.switches, *plan.properties)]
    nodes = f"brokers={plan.brokers}" + ("" if plan.controllers == 1 else f" controllers={plan.controllers}")
    if plan.standby_controllers:
        nodes += f" standby_controllers={plan.standby_controllers}"
    if plan.combined:
        nodes += " combined=true"
    lines.append(" ".join([f"cluster {nodes} era={plan.era}", *settings]))
    for topic in plan.topics:
        replicas = ";".join("(" + ",".join(map(str, each)) + ")" for each in topic.replicas)
        configs = [f"{name}={value}" for name, value in topic.properties]
        lines.append(" ".join([f"topic {topic.name} replicas={replicas}", *configs]))
    lines += [format_action(action) for action in plan.actions]
    return "\n".join(lines) + "\n"


class NumberedPlan(NamedTuple):
    """A plan, and on which lines of its text its parts are, from 1 on."""

    plan: Plan
    cluster_line: int
    topic_lines: tuple[int, ...]
    action_lines: tuple[int, ...]


def parse_plan(text: str) -> Plan:
    """Inverse of ``format_plan``; comments and blank lines are skipped.

    Raises:
        PlanLineError: a line is not understood.
        PlanIncompleteError: a line is missing.
    """
    return parse_numbered(text).plan


def parse_numbered(text: str) -> NumberedPlan:
    """Returns a text's plan and the lines of its parts.

    Raises:
        PlanLineError: a line is not understood.
        PlanIncompleteError: a line is missing.
    """
    cluster: tuple[int, Plan] | None = None
    topics: dict[int, PlannedTopic] = {}
    actions: dict[int, Action] = {}
    for number, written in enumerate(text.splitlines(), start=1):
        if too_long_number(written):
            error = ConfigError(key=written, value=None, expected="numbers of fewer digits")
            raise PlanLineError(error, line=number)
        line = _COMMENT.sub("", written).strip()
        words = line.split()
        if not words:
            continue
        try:
            if words[0] == "cluster":
                if cluster is not None:
                    raise ConfigError(key="cluster", value=line, expected=f"one such line, and line {cluster[0]} is it")
                cluster = number, _parse_cluster(line)
            elif words[0] == "topic":
                topics[number] = _parse_topic(line)
            else:
                actions[number] = parse_action(line, _names(cluster, topics, actions))
        except ConfigError as error:
            raise PlanLineError(error, line=number) from None
    if cluster is None:
        raise PlanIncompleteError("a line such as 'cluster brokers=3 era=kip-966'")
    if not topics:
        raise PlanIncompleteError("a line such as 'topic orders replicas=(0,1,2) min.insync.replicas=2'")
    plan = msgspec.structs.replace(cluster[1], topics=tuple(topics.values()), actions=tuple(actions.values()))
    return NumberedPlan(plan, cluster[0], tuple(topics), tuple(actions))


def _names(
    cluster: tuple[int, Plan] | None, topics: Mapping[int, PlannedTopic], actions: Mapping[int, Action]
) -> Names:
    partitions = [partition for topic in topics.values() for partition in topic.partitions]
    partitions += [partition for action in actions.values() for partition in action.new_partitions]
    brokers, controllers = (0, 1) if cluster is None else (cluster[1].brokers, cluster[1].all_controllers)
    return Names(brokers=brokers, controllers=controllers, partitions=partitions)


def _pairs(line: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for name, value in (word.split("=", 1) for word in line.split() if "=" in word):
        if name in pairs:
            raise ConfigError(key=name, value=value, expected=f"one value, and {pairs[name]} is it")
        pairs[name] = value
    return pairs


def _check_stray(line: str, *, named: int) -> None:
    """Checks that after the given number of words there are only settings."""
    for word in line.split()[named:]:
        if "=" not in word:
            raise ConfigError(key=word, value=None, expected="name=value")


def _check_timed_flush(name: str, pairs: Mapping[str, str]) -> None:
    if name in pairs:
        raise ConfigError(key=name, value=pairs[name], expected=f"it not at all: {NO_TIMED_FLUSH}")


def _parse_cluster(line: str) -> Plan:
    _check_stray(line, named=1)
    pairs = _pairs(line)
    try:
        brokers = int(pairs.pop("brokers"))
    except (KeyError, ValueError):
        raise ConfigError(key="cluster", value=line, expected="brokers=N") from None
    era = pairs.pop("era", DEFAULT_ERA)
    controllers = _parse_controllers(pairs.pop("controllers", "1"), era=era)
    standby_controllers = _parse_standby_controllers(pairs.pop("standby_controllers", "0"), controllers=controllers)
    combined = _parse_combined(pairs.pop("combined", "false"), brokers=brokers, controllers=controllers, era=era)
    for name in pairs:
        if not is_rule(name) and not is_node_property(name):
            switches = ", ".join((*Switches.__struct_fields__, *ZOOKEEPER_RULES))
            raise ConfigError(key=name, value=None, expected=f"a Kafka property of a node or a switch: {switches}")
    plan = Plan(
        brokers=brokers,
        controllers=controllers,
        standby_controllers=standby_controllers,
        combined=combined,
        era=era,
        switches=tuple((name, value) for name, value in pairs.items() if is_rule(name)),
        properties=tuple((name, value) for name, value in pairs.items() if not is_rule(name)),
        topics=(),
    )
    rules = plan.rules()
    stranger = strange_protocol(rules, brokers=plan.brokers)
    if stranger is not None:
        raise ConfigError(key=PROPERTY, value=stranger, expected=f"brokers 0 to {plan.brokers - 1}")
    unanswered = unanswered_protocol(rules)
    if unanswered is not None:
        raise ConfigError(key=PROPERTY, value=unanswered, expected=f"a version that the release of {era} knows")
    plan.node_properties()
    check_metadata_version(dict(plan.properties), rules)
    _check_timed_flush(NODE_FLUSH_TIME, pairs)
    return plan


def _parse_controllers(text: str, *, era: str) -> int:
    if text not in map(str, CONTROLLER_COUNTS):
        raise ConfigError(key="controllers", value=text, expected=" or ".join(map(str, CONTROLLER_COUNTS)))
    if text != "1" and is_zookeeper_era(era):
        raise ConfigError(key="controllers", value=text, expected=f"1 in era {era}, whose metadata is in ZooKeeper")
    return int(text)


def _parse_standby_controllers(text: str, *, controllers: int) -> int:
    if not text.isdecimal() or int(text) > STANDBY_CONTROLLERS_MAX:
        raise ConfigError(key="standby_controllers", value=text, expected=f"0 to {STANDBY_CONTROLLERS_MAX}")
    if int(text) and controllers == 1:
        raise ConfigError(key="standby_controllers", value=text, expected=f"0: {NO_QUORUM_TO_JOIN}")
    return int(text)


def _parse_combined(text: str, *, brokers: int, controllers: int, era: str) -> bool:
    if text not in ("true", "false"):
        raise ConfigError(key="combined", value=text, expected="true or false")
    if text == "true" and is_zookeeper_era(era):
        raise ConfigError(key="combined", value=text, expected=f"false in era {era}, which has no controllers")
    if text == "true" and brokers < controllers:
        raise ConfigError(key="combined", value=text, expected=f"at least {controllers} brokers: {FEW_BROKERS}")
    return text == "true"


def _parse_topic(line: str) -> PlannedTopic:
    _check_stray(line, named=2)
    pairs = _pairs(line)
    try:
        replicas = tuple(
            tuple(BrokerId(NodeId(int(broker))) for broker in each.strip("()").split(","))
            for each in pairs.pop("replicas").split(";")
        )
        _check_timed_flush(TOPIC_FLUSH_TIME, pairs)
        return PlannedTopic(name=line.split()[1], replicas=replicas, properties=tuple(pairs.items()))
    except (KeyError, ValueError, IndexError):
        raise ConfigError(key="topic", value=line, expected="topic NAME replicas=(0,1,2);(1,2,0)") from None
