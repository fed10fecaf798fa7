"""Reads what a step of a scenario file waits for.

- until: {acked: 500, acks: all, per: partition, within: 45 s}      # since: run counts from the beginning
- until: {consumed: 100}
- until: {partition: orders-0, leader: 1, isr: [1, 2], elr: [0]}      # partition: all means each of them
- until: {partition: orders-0, leader_recovery_state: RECOVERING}     # also last_known_elr, last_known_leader
- until: {partition: orders-0, replicas: [3, 1], adding_replicas: []} # also removing_replicas
- until: {node: 2, unfenced: true}                                    # also fenced, registered
- until: {node: 2, log: orders-0, exists: false}                    # or end: 12, where it ends
- until: {topic: orders, exists: false}
- until: {feature: eligible.leader.replicas.version, level: 1}
- until: {error: NOT_LEADER_OR_FOLLOWER, count: 3}                    # what clients were answered
"""

from typing import Final

from chaos.feature_level import read_level
from chaos.name_reader import NameReader
from chaos.scenario import (
    Acked,
    BrokerIs,
    ClientSaw,
    Condition,
    Consumed,
    Count,
    FeatureIs,
    LogEnds,
    LogIs,
    NodeRef,
    NoLeader,
    PartitionIs,
    RegistrationIs,
    Since,
    TopicIs,
)
from chaos.yaml_cursor import Cursor, Fields
from emulator.core.errors import ErrorCode
from emulator.core.types import Acks, LeaderRecoveryState, Offset

ACKS: Final = {"all": Acks.ALL, "-1": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}
"""How a file writes ``acks``."""

_SUBJECTS: Final = ("acked", "consumed", "partition", "node", "topic", "feature", "error")
_MEMBERS: Final = ("isr", "elr", "last_known_elr", "replicas", "adding_replicas", "removing_replicas")
_BROKERS: Final = ("leader", "last_known_leader")
_RECOVERY: Final = "leader_recovery_state"


def read_condition(fields: Fields, names: NameReader) -> Condition:
    """Returns what the fields of an ``until`` say, but for its deadline.

    Raises:
        ScenarioError: it is nothing to wait for.
    """
    if "acked" in fields.keys:
        return _acked(fields, names)
    if "partition" in fields.keys:
        return _partition_is(fields, names)
    if "node" in fields.keys:
        return _node_is(fields, names)
    if "topic" in fields.keys:
        return TopicIs(topic=names.topic(fields.required("topic")), exists=_flag(fields.required("exists")))
    if "feature" in fields.keys:
        feature = fields.required("feature").text()
        return FeatureIs(feature=feature, level=read_level(fields.required("level"), feature))
    if "error" in fields.keys:
        error, count = read_error(fields.required("error")), fields.optional("count")
        return ClientSaw(error=error, count=1 if count is None else count.integer(low=1))
    if "consumed" in fields.keys:
        return Consumed(count=fields.required("consumed").integer(low=1))
    fields.owner.fail(f"waits for nothing, allowed: {', '.join(_SUBJECTS)}")


def read_error(cursor: Cursor) -> ErrorCode:
    """Returns one of Kafka's errors by its name."""
    return ErrorCode[cursor.choice([each.name for each in ErrorCode])]


def _flag(cursor: Cursor) -> bool:
    return cursor.choice(("true", "false")) == "true"


def _acked(fields: Fields, names: NameReader) -> Acked:
    count = fields.required("acked").integer(low=1)
    acks, per, partition = fields.optional("acks"), fields.optional("per"), fields.optional("partition")
    since = fields.optional("since")
    return Acked(
        count=count,
        acks=None if acks is None else ACKS[acks.choice(ACKS)],
        partitions=names.partitions if partition is None else names.partition_set(partition),
        per=Count.TOTAL if per is None else Count(per.choice([each.value for each in Count])),
        since=Since.STEP if since is None else Since(since.choice([each.value for each in Since])),
    )


def _partition_is(fields: Fields, names: NameReader) -> PartitionIs:
    partitions = names.partition_set(fields.required("partition"))
    wanted = {key: fields.optional(key) for key in (*_BROKERS, *_MEMBERS, _RECOVERY)}
    if not any(wanted.values()):
        fields.owner.fail(f"waits for nothing of the partition, allowed: {', '.join(wanted)}")

    def broker(key: str) -> NodeRef | NoLeader | None:
        cursor = wanted[key]
        return None if cursor is None else names.broker_or_none(cursor)

    def members(key: str) -> tuple[NodeRef, ...] | None:
        cursor = wanted[key]
        return None if cursor is None else names.broker_list(cursor)

    recovery = wanted[_RECOVERY]
    states = [each.name for each in LeaderRecoveryState]
    return PartitionIs(
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


def _node_is(fields: Fields, names: NameReader) -> BrokerIs | RegistrationIs | LogIs | LogEnds:
    node = names.broker(fields.required("node"))
    log = fields.optional("log")
    end = None if log is None else fields.optional("end")
    if log is not None and end is not None:
        return LogEnds(node=node, partition=names.partition(log), end=Offset(end.integer(low=0)))
    if log is not None:
        return LogIs(node=node, partition=names.partition(log), exists=_flag(fields.required("exists")))
    states = {key: fields.optional(key) for key in ("unfenced", "fenced", "registered")}
    match [(key, cursor) for key, cursor in states.items() if cursor is not None]:
        case [("unfenced", cursor)]:
            return BrokerIs(node=node, unfenced=_flag(cursor))
        case [("fenced", cursor)]:
            return BrokerIs(node=node, unfenced=not _flag(cursor))
        case [(_, cursor)]:
            return RegistrationIs(node=node, exists=_flag(cursor))
        case _:
            fields.owner.fail("needs one of unfenced, fenced, registered and log")
