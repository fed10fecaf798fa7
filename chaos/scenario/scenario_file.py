"""Reads a scenario file: YAML in, a checked ``Scenario`` out; errors name the line, the key and the allowed values.

``chaos/README.md`` shows the grammar by example. Scenarios are found by path, or by name under ``chaos/scenarios``.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, cast

from laststand.chaos.scenario.conditions_yaml import ACKS
from laststand.chaos.scenario.requirements import read_requirements, requirements_of
from laststand.chaos.scenario.scenario import (
    Bound,
    Comparison,
    ConsumerPlan,
    Ending,
    Expectation,
    GroupPlan,
    MissedStep,
    ProducerPlan,
    Protocol,
    Rules,
    Scenario,
    Step,
    TransactionsPlan,
    VerdictName,
)
from laststand.chaos.scenario.step_reader import read_steps
from laststand.emulator.core.client.settings import (
    CONSUMER_PROPERTIES,
    MEMBER_PROPERTIES,
    PRODUCER_PROPERTIES,
    consumer_settings,
    member_settings,
    producer_settings,
)
from laststand.emulator.core.eras import ALL_ERAS, changes, era_label, era_rules, with_rule
from laststand.emulator.core.errors import ConfigError, suggestion
from laststand.emulator.core.promises import OUTCOME_CHECKS
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY, parse_ibps
from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import GROUP_NAME, milliseconds, read_enum
from laststand.emulator.plan.names import Names, read_combined, read_controllers, read_standby_controllers
from laststand.emulator.plan.nodes import check_kafka_clients
from laststand.emulator.plan.overrides import parse_overrides
from laststand.emulator.plan.path_words import PATH_WORD_RULE, is_path_name
from laststand.emulator.plan.topics import PlannedTopic, config_reason, read_topic
from laststand.emulator.plan.yaml_cursor import Cursor, ScenarioError, open_document
from laststand.emulator.user_files import read_document
from laststand.emulator.verification.verdict.requested import ACKS_COMPARISON

SCENARIOS: Final = Path(__file__).parents[1] / "scenarios"
"""The folder in which scenarios are found by name."""

BROKERS_MAX: Final = 100
"""Broker ids stay below the controllers'."""

TITLE_LENGTH_MAX: Final = 78
"""Characters of a scenario's title: a line of a terminal, indented."""

DEFAULT_RECORD_SIZE: Final = 100
DEFAULT_TRANSACTION_RATE: Final = 10

KAFKA_CLIENTS: Final = "kafka_clients"
"""Key of the clients of Kafka that have links of their own."""

_MEMBER_KINDS: Final = tuple(kind.value for kind in actions.MemberKind)
_PRODUCER_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")

_WITH: Final = " with "
"""Between an era and what is changed of it."""
_BOUND: Final = re.compile(r"(==|>=|<=|>|<)?\s*(.+)")


def find_scenario(name: str) -> Path:
    """Returns the file of a scenario, by path or by name.

    Raises:
        ConfigError: there is no such scenario.
    """
    for path in (Path(name), SCENARIOS / name, SCENARIOS / f"{name}.yaml"):
        if path.is_file():
            return path
    if name.endswith((".yaml", ".yml")):
        raise ConfigError(key="scenario", value=name, expected="a file that exists: there is none")
    raise ConfigError(
        key="scenario",
        value=name,
        expected=f"a file, or a name that laststand scenarios lists{suggestion(name, scenario_names())}",
    )


def scenario_names() -> list[str]:
    """Returns the names under which scenarios are found, sorted."""
    return sorted(path.relative_to(SCENARIOS).with_suffix("").as_posix() for path in SCENARIOS.rglob("*.yaml"))


def load_scenario(path: Path) -> Scenario:
    """Reads and checks a file.

    Raises:
        ScenarioError: the file cannot be played.
    """
    return read_scenario(path, read_text(path))


def read_text(path: Path) -> str:
    """Returns the text of a scenario or suite file.

    Raises:
        ScenarioError: the file cannot be read.
    """
    try:
        return read_document(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(path=path, line=1, key=None, reason=f"cannot be read: {error}") from None


def read_scenario(path: Path, text: str) -> Scenario:
    """Reads and checks the text of a file; ``path`` is for messages.

    Raises:
        ScenarioError: the file cannot be played.
    """
    with open_document(path, text).fields() as top:
        name = _name(top.required("name"))
        titled = top.optional("title")
        title = "" if titled is None else _title(titled)
        source, report = top.optional("source"), top.optional("report")
        with top.required("cluster").fields() as cluster:
            brokers = cluster.required("brokers").integer(low=1, high=BROKERS_MAX)
            controllers = read_controllers(cluster.optional("controllers"))
            standby = cluster.optional("standby_controllers")
            standby_controllers = read_standby_controllers(standby, controllers=controllers)
            combined = read_combined(cluster.optional("combined"), brokers=brokers, controllers=controllers)
            node_cursor, protocol_cursor = cluster.optional("properties"), cluster.optional(PROPERTY)
            clients_cursor = cluster.optional(KAFKA_CLIENTS)
        kafka_clients, applications = ((), ()) if clients_cursor is None else _kafka_clients(clients_cursor)
        properties = () if node_cursor is None else _node_properties(node_cursor)
        topics = _topics(top.required("topics"), brokers)
        producers, consumers, transactions, groups = _workload(top.required("workload"), topics)
        names = Names(
            brokers=brokers,
            controllers=controllers + standby_controllers,
            partitions=[each for topic in topics for each in topic.partitions],
            producers=tuple(producer.name for producer, _ in producers),
            kafka_clients=kafka_clients,
        )
        steps = _steps(top.required("steps"), names, topics)
        first = tuple(topic.name for topic in topics if topic.name not in INTERNAL_TOPICS)
        pick = partial(_chosen_topics, default=first or names.topics, allowed=names.topics)
        end, seed, expect = top.optional("end"), top.optional("seed"), top.optional("expect")
        missed = top.optional("missed_step")
        missed_step = MissedStep.PROBLEM if missed is None else read_enum(missed, MissedStep)
        era, switches = top.optional("era"), top.optional("switches")
        requires = top.optional("requires")
        expected, expected_of_changes = ((), ()) if expect is None else _expectations(expect, properties)
        return Scenario(
            path=path,
            text=text,
            name=name,
            title=title,
            source="" if source is None else source.text(),
            brokers=brokers,
            controllers=controllers,
            standby_controllers=standby_controllers,
            combined=combined,
            properties=properties,
            protocol=None if protocol_cursor is None else _protocol(protocol_cursor),
            topics=topics,
            producers=tuple(replace(plan, topics=pick(cursor)) for plan, cursor in producers),
            consumers=tuple(replace(plan, topics=pick(cursor)) for plan, cursor in consumers),
            steps=steps,
            end=Ending.RESTORE if end is None else Ending(end.choice([each.value for each in Ending])),
            missed_step=missed_step,
            seed=None if seed is None else seed.integer(low=0),
            expect=expected,
            expect_changed=expected_of_changes,
            report=None if report is None else report.choice((ACKS_COMPARISON,)),
            rules=None if era is None else _rules(era, switches),
            requires=(
                *(() if requires is None else read_requirements(requires)),
                *(() if missed_step is MissedStep.END else requirements_of(steps)),
            ),
            zookeeper_at=names.zookeeper_at,
            kafka_clients=kafka_clients,
            applications=applications,
            transactions=transactions,
            groups=groups,
        )


def _name(cursor: Cursor) -> str:
    """Returns a scenario's name, which is a path in the store."""
    if not is_path_name(cursor.text()):
        cursor.fail(f"{cursor.text()!r} is no name, allowed: {PATH_WORD_RULE}, and '/' between such words")
    return cursor.text()


def _title(cursor: Cursor) -> str:
    """Returns a scenario's title, one line of a list."""
    if not 1 <= len(cursor.text()) <= TITLE_LENGTH_MAX or "\n" in cursor.text():
        cursor.fail(f"expected one line of at most {TITLE_LENGTH_MAX} characters")
    return cursor.text()


def _kafka_clients(cursor: Cursor) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Returns the names of Kafka clients, and the commands of those that the run starts."""
    applications: list[tuple[str, str]] = []
    if cursor.is_mapping:
        with cursor.fields() as fields:
            for name, command in fields.pop_rest():
                _check_command(command)
                applications.append((name, command.text()))
        names = tuple(name for name, _ in applications)
    else:
        names = tuple(each.text() for each in cursor.items())
    problem = check_kafka_clients(names)
    if problem is not None:
        cursor.fail(problem)
    return names, tuple((name, command) for name, command in applications if command)


def _check_command(cursor: Cursor) -> None:
    """Checks that a command can be split into words; with an empty one, the run starts no application."""
    command = cursor.text()
    try:
        words = shlex.split(command)
    except ValueError as error:
        cursor.fail(f"no command: {str(error).lower()}")
    if command and not words:
        cursor.fail("no command: it has no words")


def _rules(era: Cursor, switches: Cursor | None) -> Rules:
    rules = era_rules(era.choice(ALL_ERAS))
    if switches is not None:
        with switches.fields() as fields:
            for name, value in fields.pop_rest():
                try:
                    rules = with_rule(rules, name, value.text())
                except ConfigError as error:
                    value.fail(config_reason(error))
    return Rules(era=era.text(), switches=rules)


def _protocol(cursor: Cursor) -> Protocol:
    try:
        parse_ibps(cursor.text())
    except ConfigError as error:
        cursor.fail(config_reason(error))
    return Protocol(version=cursor.text(), line=cursor.line)


# --- Properties ---------------------------------------------------------------------------------------------------


def _texts(entries: Iterable[tuple[str, Cursor]]) -> tuple[tuple[str, str], ...]:
    return tuple((key, cursor.text()) for key, cursor in entries)


def _node_properties(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    with cursor.fields() as fields:
        entries = fields.pop_rest()
    for key, value in entries:
        try:
            node_properties({key: value.text()})
        except ConfigError as error:
            value.fail(config_reason(error))
    return _texts(entries)


# --- Topics -------------------------------------------------------------------------------------------------------


def _topics(cursor: Cursor, brokers: int) -> tuple[PlannedTopic, ...]:
    topics: list[PlannedTopic] = []
    for item in cursor.items():
        topic = _topic(item, brokers)
        if topic.name in (other.name for other in topics):
            item.fail(f"topic {topic.name!r} is there twice")
        topics.append(topic)
    return tuple(topics)


def _topic(cursor: Cursor, brokers: int) -> PlannedTopic:
    with cursor.fields() as fields:
        return read_topic(fields, brokers=brokers)


# --- Workload -----------------------------------------------------------------------------------------------------


def _workload(
    cursor: Cursor, topics: Sequence[PlannedTopic]
) -> tuple[
    tuple[tuple[ProducerPlan, Cursor | None], ...],
    tuple[tuple[ConsumerPlan, Cursor | None], ...],
    TransactionsPlan | None,
    tuple[GroupPlan, ...],
]:
    """Returns producers and consumers still without topics, since steps make some, and where theirs are listed."""
    with cursor.fields() as fields:
        producers, consumers = fields.required("producers"), fields.optional("consumers")
        transactions, groups = fields.optional("transactions"), fields.optional("groups")
    return (
        _producers(producers),
        () if consumers is None else tuple(map(_consumer, consumers.items())),
        None if transactions is None else _transactions(transactions, topics),
        () if groups is None else _groups(groups, topics),
    )


def _groups(cursor: Cursor, topics: Sequence[PlannedTopic]) -> tuple[GroupPlan, ...]:
    if all(topic.name != OFFSETS_TOPIC for topic in topics):
        cursor.fail(f"groups need a topic {OFFSETS_TOPIC}")
    plans: list[GroupPlan] = []
    for item in cursor.items():
        with item.fields() as fields:
            name, members, kind = fields.required("group"), fields.required("members"), fields.optional("kind")
            entries = fields.pop_all(MEMBER_PROPERTIES)
        for key, value in entries:
            try:
                member_settings({key: value.text()})
            except ConfigError as error:
                value.fail(config_reason(error))
        if GROUP_NAME.fullmatch(name.text()) is None:
            name.fail("expected a group: letters, digits, '.', '_' and '-'")
        if name.text() in (other.name for other in plans):
            name.fail(f"group {name.text()!r} is there twice")
        is_static = kind is not None and kind.choice(_MEMBER_KINDS) == actions.MemberKind.STATIC.value
        count, properties = members.integer(low=0, high=100), _texts(entries)
        plans.append(GroupPlan(name=name.text(), members=count, is_static=is_static, properties=properties))
    return tuple(plans)


def _transactions(cursor: Cursor, topics: Sequence[PlannedTopic]) -> TransactionsPlan:
    if all(topic.name != TRANSACTIONS_TOPIC for topic in topics):
        cursor.fail(f"transactions need a topic {TRANSACTIONS_TOPIC}")
    count = sum(len(topic.partitions) for topic in topics if topic.name not in INTERNAL_TOPICS)
    with cursor.fields() as fields:
        abort_every, rate = fields.optional("abort_every"), fields.optional("rate")
        return TransactionsPlan(
            partitions=fields.required("partitions").integer(low=1, high=max(1, count)),
            size=fields.required("size").integer(low=1, high=10_000),
            abort_every=0 if abort_every is None else abort_every.integer(low=0),
            rate=DEFAULT_TRANSACTION_RATE if rate is None else rate.integer(low=1, high=50),
        )


def _producers(cursor: Cursor) -> tuple[tuple[ProducerPlan, Cursor | None], ...]:
    plans: list[tuple[ProducerPlan, Cursor | None]] = []
    for index, item in enumerate(cursor.items()):
        plan, topics = _producer(item, default_name=f"producer-{index}")
        if plan.name in (other.name for other, _ in plans):
            item.fail(f"producer {plan.name!r} is there twice")
        plans.append((plan, topics))
    return tuple(plans)


def _producer(cursor: Cursor, *, default_name: str) -> tuple[ProducerPlan, Cursor | None]:
    with cursor.fields() as fields:
        name = fields.optional("name")
        if name is not None and _PRODUCER_NAME.fullmatch(name.text()) is None:
            name.fail(f"{name.text()!r} is no producer name, allowed: lower-case letters, digits and '-'")
        acks = ACKS[fields.required("acks").choice(ACKS)]
        rate = fields.required("rate").integer(low=0, high=1_000_000)
        topics = fields.optional("topics")
        size = fields.optional("record.size")
        entries = fields.pop_all(PRODUCER_PROPERTIES)
    properties = _texts(entries)
    for key, value in entries:
        try:
            producer_settings(acks, {key: value.text()})
        except ConfigError as error:
            value.fail(config_reason(error))
    plan = ProducerPlan(
        name=default_name if name is None else name.text(),
        acks=acks,
        rate=rate,
        topics=(),
        record_size=DEFAULT_RECORD_SIZE if size is None else size.integer(low=32, high=1_000_000),
        properties=properties,
    )
    return plan, topics


def _consumer(cursor: Cursor) -> tuple[ConsumerPlan, Cursor | None]:
    with cursor.fields() as fields:
        topics = fields.optional("topics")
        entries = fields.pop_all(CONSUMER_PROPERTIES)
    for key, value in entries:
        try:
            consumer_settings({key: value.text()})
        except ConfigError as error:
            value.fail(config_reason(error))
    return ConsumerPlan(topics=(), properties=_texts(entries)), topics


def _chosen_topics(cursor: Cursor | None, *, default: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a client's topics: those that it lists, else the default ones."""
    return default if cursor is None else tuple(each.choice(allowed) for each in cursor.items())


# --- Steps and expectations ---------------------------------------------------------------------------------------


def _steps(cursor: Cursor, names: Names, topics: tuple[PlannedTopic, ...]) -> tuple[Step, ...]:
    steps = read_steps(cursor, names)
    if not steps:
        cursor.fail("needs at least one step")
    if not topics and not any(isinstance(step.action, actions.CreateTopic) for step in steps):
        cursor.fail("there is no topic: name one in topics, or create one")
    return steps


def _expectations(
    cursor: Cursor, properties: tuple[tuple[str, str], ...]
) -> tuple[tuple[tuple[str, Expectation], ...], tuple[tuple[str, Expectation], ...]]:
    """Reads the expectations for eras, and for eras with changes."""
    with cursor.fields() as fields:
        eras = tuple((era, _expectation(value)) for era, value in fields.pop_all(ALL_ERAS))
        changed = (key for key in fields.keys if _WITH in key)
        return eras, tuple(
            (_label(value, key, properties), _expectation(value)) for key, value in fields.pop_all(changed)
        )


def _label(cursor: Cursor, key: str, properties: tuple[tuple[str, str], ...]) -> str:
    """Returns the label of an era with changes, as a run has it: ``kip-966 with elr=off, min.insync.replicas=1``."""
    era, _, settings = key.partition(_WITH)
    try:
        overrides = parse_overrides(tuple(settings.split(",")))
        rules = overrides.apply(era_rules(era))
    except ConfigError as error:
        cursor.fail(f"{key!r} is no era with changes, such as 'kip-966 with elr=off': {error}")
    changed = changes(rules, era_rules(era), overrides.properties, properties)
    if not changed:
        cursor.fail(f"{key!r} changes nothing of {era}, nor of this scenario")
    return era_label(era, changed)


def _expectation(cursor: Cursor) -> Expectation:
    with cursor.fields() as fields:
        verdict = VerdictName(fields.required("verdict").choice([each.value for each in VerdictName]))
        guarantee, checks, lost = fields.optional("guarantee"), fields.optional("checks"), fields.optional("lost")
        lost_acks_1 = fields.optional("lost_acks_1")
        unavailable, p99_ack = fields.optional("unavailable"), fields.optional("p99_ack")
    if verdict is not VerdictName.VIOLATION:
        for extra in (guarantee, checks):
            if extra is not None:
                extra.fail("means something only beside verdict: violation")
    return Expectation(
        line=cursor.line,
        verdict=verdict,
        guarantee=None
        if guarantee is None
        else cast(Literal["broken", "exceeded"], guarantee.choice(("broken", "exceeded"))),
        checks=() if checks is None else tuple(each.choice(OUTCOME_CHECKS) for each in checks.items()),
        lost=None if lost is None else _bound(lost, int, "a number"),
        lost_acks_1=None if lost_acks_1 is None else _bound(lost_acks_1, int, "a number"),
        unavailable=None if unavailable is None else _bound(unavailable, _seconds, "a duration such as 2 s"),
        p99_ack=None if p99_ack is None else _bound(p99_ack, _seconds, "a duration such as 40 ms"),
    )


def _bound(cursor: Cursor, read: Callable[[str], float], what: str) -> Bound:
    match = _BOUND.fullmatch(cursor.text().strip())
    try:
        comparison, limit = ("==", "") if match is None else (match[1] or "==", match[2])
        return Bound(comparison=cast(Comparison, comparison), limit=read(limit))
    except ValueError:
        cursor.fail(f"{cursor.text()!r} is no comparison, allowed: {what}, or one after ==, >=, <=, > or <")


def _seconds(text: str) -> float:
    return milliseconds(text) / 1000
