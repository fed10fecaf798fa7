"""A plan as a YAML document: the format of a scenario, without ``workload`` and ``expect``.

::

    name: simulated/4711
    era: kip-966
    switches: {elr: "off"}
    cluster: {brokers: 3, properties: {broker.session.timeout.ms: 500}}
    topics:
    - {name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}
    steps:
    - {produce: {partition: orders-0, producer: producer-all, records: 1}}
    - {kill: {node: 1}}

A plan without ``workload`` brings the simulator's own clients (``fields.PLANNED_PRODUCERS``). Nodes are ids: a plan
leaves nothing to be found out while it is played.
"""

from pathlib import Path
from typing import Final

from laststand.emulator.core.eras import era_rules, with_rule
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.administration_fields import TopicSpec
from laststand.emulator.plan.fields import PLANNED_PRODUCERS, YamlValue, plain
from laststand.emulator.plan.names import Names, read_combined, read_controllers, read_standby_controllers
from laststand.emulator.plan.nodes import CONTROLLER, NodeRef
from laststand.emulator.plan.plan import NumberedPlan, Plan
from laststand.emulator.plan.steps import VERBS, action_text, flow_text, read_action, unknown_step
from laststand.emulator.plan.topics import PlannedTopic, config_reason, read_topic
from laststand.emulator.plan.unsupported_properties import NO_TIMED_FLUSH, NODE_FLUSH_TIME, TOPIC_FLUSH_TIME
from laststand.emulator.plan.yaml_cursor import Cursor, open_document

_WORKLOAD: Final = "workload"


def format_plan_yaml(plan: Plan, *, name: str) -> str:
    """Returns a plan's document, a line for each topic and each step."""
    cluster: dict[str, YamlValue] = {"brokers": plan.brokers}
    if plan.controllers != 1:
        cluster["controllers"] = plan.controllers
    if plan.standby_controllers:
        cluster["standby_controllers"] = plan.standby_controllers
    if plan.combined:
        cluster["combined"] = True
    if plan.properties:
        cluster["properties"] = {key: plain(text) for key, text in plan.properties}
    head: list[dict[str, YamlValue]] = [{"name": name}, {"era": plan.era}]
    if plan.switches:
        head.append({"switches": dict(plan.switches)})
    head.append({"cluster": cluster})
    lines = [flow_text(entry).removeprefix("{").removesuffix("}") for entry in head]
    spec = TopicSpec()
    lines += ["topics:", *(f"- {flow_text(spec.write(topic))}" for topic in plan.topics)]
    steps = [f"- {action_text(action)}" for action in plan.actions]
    lines += ["steps:", *steps] if steps else ["steps: []"]
    return "\n".join(lines) + "\n"


def has_workload(path: Path, text: str) -> bool:
    """Returns whether a document has its own clients, so that it is a scenario.

    Raises:
        ScenarioError: the document is no mapping.
    """
    fields = open_document(path, text).fields()
    return _WORKLOAD in fields.keys


def read_plan_yaml(path: Path, text: str) -> Plan:
    """Inverse of ``format_plan_yaml``; ``path`` is for messages.

    Raises:
        ScenarioError: the document is no plan.
    """
    return read_numbered_yaml(path, text).plan


def read_numbered_yaml(path: Path, text: str) -> NumberedPlan:
    """Returns a document's plan and the lines of its parts.

    Raises:
        ScenarioError: the document is no plan.
    """
    with open_document(path, text).fields() as top:
        top.required("name").text()
        era = _era(top.optional("era"))
        switches = _switches(top.optional("switches"), era)
        cluster = top.required("cluster")
        with cluster.fields() as fields:
            brokers = fields.required("brokers").integer(low=1, high=CONTROLLER)
            controllers = read_controllers(fields.optional("controllers"))
            standby = fields.optional("standby_controllers")
            standby_controllers = read_standby_controllers(standby, controllers=controllers)
            combined = read_combined(fields.optional("combined"), brokers=brokers, controllers=controllers)
            properties = _properties(fields.optional("properties"))
        topic_list, step_list = top.required("topics"), top.required("steps")
        top.allow((_WORKLOAD,))
        topics = _topics(topic_list, brokers)
        steps = step_list.items()
        plan = Plan(
            brokers=brokers,
            controllers=controllers,
            standby_controllers=standby_controllers,
            combined=combined,
            era=era,
            switches=switches,
            properties=properties,
            topics=topics,
        )
        names = Names(
            brokers=brokers,
            controllers=plan.all_controllers,
            partitions=plan.partitions,
            producers=tuple(PLANNED_PRODUCERS.values()),
        )
        actions = tuple(_step(step, names) for step in steps)
    return NumberedPlan(
        plan=plan.with_actions(actions),
        cluster_line=cluster.line,
        topic_lines=tuple(topic.line for topic in topic_list.items()),
        action_lines=tuple(step.line for step in steps),
    )


def _era(cursor: Cursor | None) -> str:
    if cursor is None:
        return DEFAULT_ERA
    try:
        era_rules(cursor.text())
    except ConfigError as error:
        cursor.fail(config_reason(error))
    return cursor.text()


def _switches(cursor: Cursor | None, era: str) -> tuple[tuple[str, str], ...]:
    if cursor is None:
        return ()
    with cursor.fields() as fields:
        entries = fields.pop_rest()
    for name, rule in entries:
        try:
            with_rule(era_rules(era), name, rule.text())
        except ConfigError as error:
            rule.fail(config_reason(error))
    return tuple((name, rule.text()) for name, rule in entries)


def _properties(cursor: Cursor | None) -> tuple[tuple[str, str], ...]:
    if cursor is None:
        return ()
    with cursor.fields() as fields:
        entries = fields.pop_rest()
    for name, value in entries:
        if name == NODE_FLUSH_TIME:
            value.fail(NO_TIMED_FLUSH)
        try:
            node_properties({name: value.text()})
        except ConfigError as error:
            value.fail(config_reason(error))
    return tuple((name, value.text()) for name, value in entries)


def _topics(cursor: Cursor, brokers: int) -> tuple[PlannedTopic, ...]:
    topics: list[PlannedTopic] = []
    for item in cursor.items():
        with item.fields() as fields:
            topic = read_topic(fields, brokers=brokers)
        if TOPIC_FLUSH_TIME in dict(topic.properties):
            item.fail(NO_TIMED_FLUSH)
        if topic.name in (other.name for other in topics):
            item.fail(f"topic {topic.name!r} is there twice")
        topics.append(topic)
    if not topics:
        cursor.fail("needs at least one topic")
    return tuple(topics)


def _step(cursor: Cursor, names: Names) -> actions.Action:
    with cursor.fields() as verbs:
        if len(verbs.keys) != 1:
            cursor.fail(f"a step is one of {', '.join(VERBS)}, found {', '.join(verbs.keys) or 'nothing'}")
        ((verb, argument),) = verbs.pop_rest()
    if verb not in VERBS:
        argument.fail(unknown_step(verb, VERBS))
    action, bind = read_action(verb, argument, names)
    if bind is not None:
        argument.fail("a plan names nodes by their ids, so no step gives one a name")

    def known(node: NodeRef) -> NodeId:
        if not isinstance(node, int):
            argument.fail(f"a plan names nodes by their ids, not {node}")
        return node

    return actions.with_nodes(action, known)
