"""Reads and writes the conditions of ``until`` in a scenario file.

- until: {acked: 500, acks: all, per: partition, within: 45 s}      # since: run counts from the beginning
- until: {consumed: 100}                                              # likewise
- until: {partition: orders-0, leader: 1, isr: [1, 2], elr: [0]}      # partition: all means each of them
- until: {partition: orders-0, leader_recovery_state: RECOVERING}     # also last_known_elr, last_known_leader
- until: {partition: orders-0, replicas: [3, 1], adding_replicas: []} # also removing_replicas
- until: {node: 2, unfenced: true}                                    # also fenced, registered
- until: {node: 2, log: orders-0, exists: false}                    # or end: 12, where it ends
- until: {topic: orders, exists: false}
- until: {feature: eligible.leader.replicas.version, level: 1}
- until: {error: NOT_LEADER_OR_FOLLOWER, count: 3}                    # what clients were answered
- until: {elapsed: 2 s}                                               # what "every" comes to; better wait for a state
- until: {intercepted: 1, requests: Fetch, from: 1, to: 0}            # messages that a fault has touched; or responses
"""

from collections.abc import Mapping
from typing import Final, assert_never

from laststand.chaos.scenario import conditions
from laststand.emulator.core.errors import suggestion
from laststand.emulator.core.types import Acks, LeaderRecoveryState, Offset, TopicPartition
from laststand.emulator.plan.administration_fields import FeatureLevel, level_text, read_level
from laststand.emulator.plan.fields import Messages, YamlValue, duration_ms, node_value, read_enum, read_error
from laststand.emulator.plan.names import ALL, Names
from laststand.emulator.plan.nodes import NodeRef
from laststand.emulator.plan.yaml_cursor import Cursor, Fields

ACKS: Final = {"all": Acks.ALL, "-1": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}
"""The notation of ``acks`` in a file."""

ANY: Final = "wait_for_any"
"""A barrier of several conditions."""

SUBJECTS: Final = ("acked", "consumed", "partition", "node", "topic", "feature", "error", "intercepted", "elapsed")
_MEMBERS: Final = ("isr", "elr", "last_known_elr", "replicas", "adding_replicas", "removing_replicas")
_BROKERS: Final = ("leader", "last_known_leader")
_RECOVERY: Final = "leader_recovery_state"
_CHANNEL: Final = Messages()

CONDITION_KEYS: Final = (
    *SUBJECTS,
    *_MEMBERS,
    *_BROKERS,
    _RECOVERY,
    *_CHANNEL.keys,
    "acks",
    "count",
    "end",
    "exists",
    "fenced",
    "level",
    "log",
    "per",
    "registered",
    "since",
    "unfenced",
    "within",
)
"""Every key that an ``until`` may have, beside one that it waits for."""


def read_until(argument: Cursor, names: Names) -> conditions.Until:
    """Returns the barrier in the argument of ``until``.

    Raises:
        ScenarioError: the argument is not a condition.
    """
    with argument.fields() as fields:
        within = fields.optional("within")
        within_ms = conditions.DEFAULT_WITHIN_MS if within is None else duration_ms(within)
        return conditions.Until(condition=read_condition(fields, names), within_ms=within_ms)


def read_any_of(argument: Cursor, names: Names) -> conditions.Until:
    """Returns the barrier in the argument of ``wait_for_any``: a list of conditions, ``of``, and ``within``.

    Raises:
        ScenarioError: an item is not a condition.
    """
    with argument.fields() as fields:
        listed, within = fields.required("of"), fields.optional("within")
        several = tuple(_one_of(each, names) for each in listed.items())
        if len(several) < 2:
            listed.fail("needs two conditions at least")
        return conditions.Until(
            condition=conditions.AnyOf(conditions=several),
            within_ms=conditions.DEFAULT_WITHIN_MS if within is None else duration_ms(within),
        )


def _one_of(cursor: Cursor, names: Names) -> conditions.Condition:
    with cursor.fields() as fields:
        return read_condition(fields, names)


def read_condition(fields: Fields, names: Names) -> conditions.Condition:
    """Returns the condition in the fields of an ``until``, without its deadline.

    Raises:
        ScenarioError: the fields are not a condition.
    """
    if "acked" in fields.keys:
        return _acked(fields, names)
    if "partition" in fields.keys:
        return _partition_is(fields, names)
    if "node" in fields.keys:
        return _node_is(fields, names)
    if "topic" in fields.keys:
        return conditions.TopicIs(topic=names.topic(fields.required("topic")), exists=_flag(fields.required("exists")))
    if "feature" in fields.keys:
        feature = fields.required("feature").text()
        return conditions.FeatureIs(feature=feature, level=read_level(fields.required("level"), feature))
    if "error" in fields.keys:
        error, count = read_error(fields.required("error")), fields.optional("count")
        return conditions.ClientSaw(error=error, count=1 if count is None else count.integer(low=1))
    if "consumed" in fields.keys:
        count, since = fields.required("consumed"), fields.optional("since")
        return conditions.Consumed(count=count.integer(low=1), since=_since(since))
    if "intercepted" in fields.keys:
        count_of = fields.required("intercepted").integer(low=1)
        return conditions.Intercepted(channel=_CHANNEL.read(fields, names), count=count_of)
    if "elapsed" in fields.keys:
        return conditions.Elapsed(duration_ms=duration_ms(fields.required("elapsed")))
    allowed = ", ".join(SUBJECTS)
    for key in fields.keys:
        fields.owner.fail(f"unknown key {key!r}, allowed: {allowed}{suggestion(key, SUBJECTS)}")
    fields.owner.fail(f"waits for nothing, allowed: {allowed}")


def _flag(cursor: Cursor) -> bool:
    return cursor.choice(("true", "false")) == "true"


def _acked(fields: Fields, names: Names) -> conditions.Acked:
    count = fields.required("acked").integer(low=1)
    acks, per, partition = fields.optional("acks"), fields.optional("per"), fields.optional("partition")
    since = fields.optional("since")
    return conditions.Acked(
        count=count,
        acks=None if acks is None else ACKS[acks.choice(ACKS)],
        partitions=names.partitions if partition is None else names.partition_set(partition),
        per=conditions.CountPer.TOTAL if per is None else read_enum(per, conditions.CountPer),
        since=_since(since),
    )


def _since(cursor: Cursor | None) -> conditions.Since:
    return conditions.Since.STEP if cursor is None else read_enum(cursor, conditions.Since)


def _partition_is(fields: Fields, names: Names) -> conditions.PartitionIs:
    partitions = names.partition_set(fields.required("partition"))
    wanted = {key: fields.optional(key) for key in (*_BROKERS, *_MEMBERS, _RECOVERY)}
    if not any(wanted.values()):
        fields.refuse_rest()
        fields.owner.fail(f"waits for nothing of the partition, allowed: {', '.join(wanted)}")

    def broker(key: str) -> NodeRef | conditions.NoLeader | None:
        cursor = wanted[key]
        if cursor is None:
            return None
        return conditions.NoLeader.NONE if cursor.text() == conditions.NoLeader.NONE.value else names.broker(cursor)

    def members(key: str) -> tuple[NodeRef, ...] | None:
        cursor = wanted[key]
        return None if cursor is None else names.broker_list(cursor)

    recovery = wanted[_RECOVERY]
    states = [each.name for each in LeaderRecoveryState]
    return conditions.PartitionIs(
        partitions=partitions,
        leader_recovery_state=None if recovery is None else LeaderRecoveryState[recovery.choice(states)],
        leader=broker("leader"),
        last_known_leader=broker("last_known_leader"),
        isr=members("isr"),
        elr=members("elr"),
        last_known_elr=members("last_known_elr"),
        replicas=members("replicas"),
        adding_replicas=members("adding_replicas"),
        removing_replicas=members("removing_replicas"),
    )


def _node_is(
    fields: Fields, names: Names
) -> conditions.BrokerIs | conditions.RegistrationIs | conditions.LogIs | conditions.LogEnds:
    node = names.broker(fields.required("node"))
    log = fields.optional("log")
    end = None if log is None else fields.optional("end")
    if log is not None and end is not None:
        return conditions.LogEnds(node=node, partition=names.partition(log), end=Offset(end.integer(low=0)))
    if log is not None:
        return conditions.LogIs(node=node, partition=names.partition(log), exists=_flag(fields.required("exists")))
    states = {key: fields.optional(key) for key in ("unfenced", "fenced", "registered")}
    match [(key, cursor) for key, cursor in states.items() if cursor is not None]:
        case [("unfenced", cursor)]:
            return conditions.BrokerIs(node=node, unfenced=_flag(cursor))
        case [("fenced", cursor)]:
            return conditions.BrokerIs(node=node, unfenced=not _flag(cursor))
        case [(_, cursor)]:
            return conditions.RegistrationIs(node=node, exists=_flag(cursor))
        case _:
            fields.refuse_rest()
            fields.owner.fail("needs one of unfenced, fenced, registered and log")


# --- Writing ------------------------------------------------------------------------------------------------------

_ACKS_TEXT: Final[Mapping[Acks, YamlValue]] = {Acks.ALL: "all", Acks.LEADER: 1, Acks.NONE: 0}


def until_entry(until: conditions.Until) -> dict[str, YamlValue]:
    """Returns a barrier as an entry of a document, which ``read_until`` reads."""
    verb = ANY if isinstance(until.condition, conditions.AnyOf) else "until"
    entries = _entries(until.condition)
    if until.within_ms != conditions.DEFAULT_WITHIN_MS:
        entries["within"] = f"{until.within_ms} ms"
    return {verb: entries}


def _entries(condition: conditions.Condition) -> dict[str, YamlValue]:
    match condition:
        case conditions.Acked():
            return _acked_entries(condition)
        case conditions.PartitionIs():
            return _partition_entries(condition)
        case conditions.BrokerIs(node=node, unfenced=unfenced):
            return {"node": node_value(node), "unfenced": unfenced}
        case conditions.RegistrationIs(node=node, exists=exists):
            return {"node": node_value(node), "registered": exists}
        case conditions.LogIs(node=node, partition=partition, exists=exists):
            return {"node": node_value(node), "log": str(partition), "exists": exists}
        case conditions.LogEnds(node=node, partition=partition, end=end):
            return {"node": node_value(node), "log": str(partition), "end": int(end)}
        case conditions.TopicIs(topic=topic, exists=exists):
            return {"topic": topic, "exists": exists}
        case conditions.FeatureIs(feature=feature, level=level):
            return {"feature": feature, "level": level_text(FeatureLevel(feature, level))}
        case conditions.ClientSaw(error=error, count=count):
            return {"error": error.name, "count": count}
        case conditions.Consumed(count=count):
            return {"consumed": count, **_since_entry(condition.since)}
        case conditions.Intercepted(channel=channel, count=count):
            return {"intercepted": count, **_CHANNEL.write(channel)}
        case conditions.Elapsed(duration_ms=elapsed_ms):
            return {"elapsed": f"{elapsed_ms} ms"}
        case conditions.AnyOf(conditions=several):
            return {"of": [_entries(each) for each in several]}
        case _:
            assert_never(condition)


def _acked_entries(condition: conditions.Acked) -> dict[str, YamlValue]:
    entries: dict[str, YamlValue] = {"acked": condition.count}
    if condition.acks is not None:
        entries["acks"] = _ACKS_TEXT[condition.acks]
    if len(condition.partitions) == 1:
        entries["partition"] = str(condition.partitions[0])
    if condition.per is not conditions.CountPer.TOTAL:
        entries["per"] = condition.per.value
    return {**entries, **_since_entry(condition.since)}


def _since_entry(since: conditions.Since) -> dict[str, YamlValue]:
    return {} if since is conditions.Since.STEP else {"since": since.value}


def _partition_entries(condition: conditions.PartitionIs) -> dict[str, YamlValue]:
    entries: dict[str, YamlValue] = {"partition": _partition_set(condition.partitions)}
    for key in _BROKERS:
        broker: NodeRef | conditions.NoLeader | None = getattr(condition, key)
        if broker is not None:
            entries[key] = conditions.NoLeader.NONE.value if broker is conditions.NoLeader.NONE else node_value(broker)
    for key in _MEMBERS:
        members: tuple[NodeRef, ...] | None = getattr(condition, key)
        if members is not None:
            entries[key] = [node_value(member) for member in members]
    if condition.leader_recovery_state is not None:
        entries[_RECOVERY] = condition.leader_recovery_state.name
    return entries


def _partition_set(partitions: tuple[TopicPartition, ...]) -> str:
    return str(partitions[0]) if len(partitions) == 1 else ALL
