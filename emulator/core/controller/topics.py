"""Creating, enlarging and deleting topics, and placing their partitions.

The ISR of a new partition is its active replicas in assignment order, the first of them leads. Automatic placement puts
replica i of partition p on the (p+i)-th unfenced broker by id: the core draws no random numbers. Brokers that are down
may be chosen once the others are used up; they join the ISR later. Kafka's ``ReplicationControlManager.createTopics``.
"""

from collections.abc import Iterable
from enum import Enum

import msgspec

from laststand.emulator.core import admin_messages, events, records
from laststand.emulator.core.controller.decision import Decision, PartitionCause
from laststand.emulator.core.controller.min_isr import MIN_ISR, MinIsr, configured_min_isr
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.properties import check_topic_properties
from laststand.emulator.core.topic_names import is_legal
from laststand.emulator.core.types import BrokerId, ChangeReason, ConfigResource, TopicId, TopicPartition


class TopicOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer for one topic, and what it writes."""

    error: ErrorCode
    message: str = ""
    decisions: tuple[Decision, ...] = ()


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas of each partition, or why there are none."""

    error: ErrorCode
    message: str = ""
    assignments: tuple[tuple[BrokerId, ...], ...] = ()


def create_topic(view: ClusterView, topic: admin_messages.CreatableTopic) -> TopicOutcome:
    """Decides on one topic of CreateTopics."""
    problem = _naming_problem(view, topic)
    if problem is not None:
        return problem
    try:
        check_topic_properties(dict(topic.configs))
    except ConfigError as error:
        return TopicOutcome(error=ErrorCode.INVALID_CONFIG, message=str(error))
    placement = _manual_placement(view, topic) if topic.assignments else _automatic_placement(view, topic)
    if placement.error is not ErrorCode.NONE:
        return TopicOutcome(error=placement.error, message=placement.message)
    decisions = [Decision(record=records.TopicRecord(name=topic.name, topic_id=topic.topic_id))]
    for name, value in topic.configs:
        record = records.ConfigRecord(resource=ConfigResource.TOPIC, resource_name=topic.name, name=name, value=value)
        decisions.append(Decision(record=record))
    # A new topic's partitions have as many replicas each, so it makes no difference whose count caps.
    min_isr = MinIsr(configured=_configured_min_isr(view, topic))
    for partition, replicas in enumerate(placement.assignments):
        decisions.append(
            create_partition(view, topic.topic_id, partition=partition, replicas=replicas, min_isr=min_isr)
        )
    return TopicOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


def add_partitions(view: ClusterView, asked: admin_messages.CreatablePartitions) -> TopicOutcome:
    """Decides on one topic of CreatePartitions; new partitions get as many replicas as partition 0 has."""
    topic_id = view.image.topics.get(asked.name)
    if topic_id is None:
        return TopicOutcome(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=f"there is no topic {asked.name!r}")
    present = len(view.image.partitions_of(asked.name))
    if asked.count <= present:
        message = f"topic {asked.name!r} has {present} partitions already"
        return TopicOutcome(error=ErrorCode.INVALID_PARTITIONS, message=message)
    numbers = range(present, asked.count)
    if asked.assignments and len(asked.assignments) != len(numbers):
        message = f"{len(numbers)} new partitions, but {len(asked.assignments)} assignments"
        return TopicOutcome(error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, message=message)
    factor = len(view.image.partitions[TopicPartition(asked.name, 0)].replicas)
    if asked.assignments:
        placement = _check_all(view, asked.assignments, chooser=Chooser.USER, required_replicas=factor)
    else:
        placement = _place_all(view, numbers, factor)
    if placement.error is not ErrorCode.NONE:
        return TopicOutcome(error=placement.error, message=placement.message)
    min_isr = view.min_isr(asked.name)
    return TopicOutcome(
        error=ErrorCode.NONE,
        decisions=tuple(
            create_partition(view, topic_id, partition=partition, replicas=replicas, min_isr=min_isr)
            for partition, replicas in zip(numbers, placement.assignments, strict=True)
        ),
    )


def delete_topic(view: ClusterView, name: str) -> TopicOutcome:
    """Decides on one topic of DeleteTopics: it is gone at once; brokers delete the logs when metadata reaches them."""
    topic_id = view.image.topics.get(name)
    if topic_id is None:
        return TopicOutcome(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=f"there is no topic {name!r}")
    return TopicOutcome(
        error=ErrorCode.NONE, decisions=(Decision(record=records.RemoveTopicRecord(topic_id=topic_id)),)
    )


class Chooser(Enum):
    """The author of a new partition's assignment; decides the error for a bad one."""

    USER = "user"
    CONTROLLER = "controller"


def manual_placement_problem(
    view: ClusterView, replicas: tuple[BrokerId, ...], *, required_replicas: int | None
) -> str | None:
    """Returns why a partition cannot be placed where somebody asked, or ``None``.

    Args:
        view: the cluster.
        replicas: brokers asked for, preferred one first.
        required_replicas: replica count of the topic's other partitions; ``None`` for the first.
    """
    if not replicas:
        return "an assignment may not be empty"
    if len(set(replicas)) < len(replicas):
        return f"assignment {list(replicas)} names a broker twice"
    missing = [broker_id for broker_id in replicas if broker_id not in view.image.brokers]
    if missing:
        return f"assignment {list(replicas)} names brokers {missing}, which are not registered"
    if required_replicas is not None and len(replicas) != required_replicas:
        return f"assignment {list(replicas)} has other than {required_replicas} replicas"
    return None


def check_placement(
    view: ClusterView, replicas: tuple[BrokerId, ...], *, chooser: Chooser, required_replicas: int | None
) -> Placement:
    """Returns the placement of one new partition, or why it cannot be created there."""
    problem = None
    if chooser is Chooser.USER:
        problem = manual_placement_problem(view, replicas, required_replicas=required_replicas)
    if problem is None and not initial_isr(view, replicas):
        problem = f"assignment {list(replicas)} has no active broker"
    if problem is None:
        return Placement(error=ErrorCode.NONE, assignments=(replicas,))
    is_manual = chooser is Chooser.USER
    error = ErrorCode.INVALID_REPLICA_ASSIGNMENT if is_manual else ErrorCode.INVALID_REPLICATION_FACTOR
    return Placement(error=error, message=problem)


def initial_isr(view: ClusterView, replicas: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    """Returns the ISR of a new partition: its active replicas in order; empty means that it cannot be created."""
    active = view.active_brokers()
    return tuple(broker_id for broker_id in replicas if broker_id in active)


def create_partition(
    view: ClusterView, topic_id: TopicId, *, partition: int, replicas: tuple[BrokerId, ...], min_isr: MinIsr
) -> Decision:
    """Returns the record of a new partition whose placement was checked."""
    isr = initial_isr(view, replicas)
    record = records.PartitionRecord(topic_id=topic_id, partition=partition, replicas=replicas, isr=isr, leader=isr[0])
    cause = PartitionCause(
        reason=ChangeReason.CREATED,
        election=events.Election.ISR,
        broker_id=None,
        effective_min_isr=min_isr.effective(replicas),
    )
    return Decision(record=record, cause=cause)


def _configured_min_isr(view: ClusterView, topic: admin_messages.CreatableTopic) -> int:
    configured = dict(topic.configs).get(MIN_ISR)
    if configured is not None:
        return int(configured)
    return configured_min_isr(view.image, topic=topic.name, node_id=view.node_id, static=view.properties)


def _naming_problem(view: ClusterView, topic: admin_messages.CreatableTopic) -> TopicOutcome | None:
    if not is_legal(topic.name):
        message = "a topic name has 1 to 249 of a-z A-Z 0-9 . _ - and is neither . nor .."
        return TopicOutcome(error=ErrorCode.INVALID_TOPIC_EXCEPTION, message=message)
    if topic.name in view.image.topics:
        return TopicOutcome(error=ErrorCode.TOPIC_ALREADY_EXISTS, message=f"topic {topic.name!r} exists")
    # Metric names replace the dot, so Kafka lets no two topics differ by that alone.
    plain = topic.name.replace(".", "_")
    for other in view.image.topics:
        if other.replace(".", "_") == plain:
            message = f"topic {topic.name!r} collides with {other!r}"
            return TopicOutcome(error=ErrorCode.INVALID_TOPIC_EXCEPTION, message=message)
    if topic.topic_id in view.image.topic_names:
        return TopicOutcome(error=ErrorCode.INVALID_REQUEST, message=f"topic id {topic.topic_id} is taken")
    return None


def _manual_placement(view: ClusterView, topic: admin_messages.CreatableTopic) -> Placement:
    if topic.num_partitions is not None or topic.replication_factor is not None:
        message = "an assignment excludes a partition count and a replication factor"
        return Placement(error=ErrorCode.INVALID_REQUEST, message=message)
    required = len(topic.assignments[0])
    return _check_all(view, topic.assignments, chooser=Chooser.USER, required_replicas=required)


def _check_all(
    view: ClusterView, assignments: tuple[tuple[BrokerId, ...], ...], *, chooser: Chooser, required_replicas: int
) -> Placement:
    for replicas in assignments:
        checked = check_placement(view, replicas, chooser=chooser, required_replicas=required_replicas)
        if checked.error is not ErrorCode.NONE:
            return checked
    return Placement(error=ErrorCode.NONE, assignments=assignments)


def _automatic_placement(view: ClusterView, topic: admin_messages.CreatableTopic) -> Placement:
    partitions = view.properties.num_partitions if topic.num_partitions is None else topic.num_partitions
    factor = topic.replication_factor
    factor = view.properties.default_replication_factor if factor is None else factor
    if partitions < 1:
        message = "a topic has at least one partition"
        return Placement(error=ErrorCode.INVALID_PARTITIONS, message=message)
    return _place_all(view, range(partitions), factor)


def _place_all(view: ClusterView, partitions: Iterable[int], factor: int) -> Placement:
    registered = len(view.image.brokers)
    if not 1 <= factor <= registered:
        message = f"replication factor {factor} with {registered} registered brokers"
        return Placement(error=ErrorCode.INVALID_REPLICATION_FACTOR, message=message)
    unfenced = sorted(b.broker_id for b in view.image.brokers.values() if not b.fenced)
    if not unfenced:
        return Placement(error=ErrorCode.INVALID_REPLICATION_FACTOR, message="every broker is fenced")
    fenced = sorted(b.broker_id for b in view.image.brokers.values() if b.fenced)
    assignments = tuple(_place(partition, factor, unfenced, fenced) for partition in partitions)
    return _check_all(view, assignments, chooser=Chooser.CONTROLLER, required_replicas=factor)


def _place(partition: int, factor: int, unfenced: list[BrokerId], fenced: list[BrokerId]) -> tuple[BrokerId, ...]:
    up = [unfenced[(partition + index) % len(unfenced)] for index in range(min(factor, len(unfenced)))]
    down = [fenced[(partition + index) % len(fenced)] for index in range(factor - len(up))]
    return (*up, *down)
