"""The data that pictures need besides ``verdict.json``: actions, decisions, and the logs over time.

``story.json`` is ``RunStory`` as JSON, field by field. Fields are added, never renamed, within one ``version``;
``docs/story.md`` describes them, ``story.schema.json`` beside this file is its JSON Schema. It is small however long a
run is: curves are thinned (``thinning``). It proves nothing: the lost records are in ``verdict.json``.

All times are microseconds since ``RunStory.origin_ns``, by the clocks of the nodes that recorded them: on one machine,
and in virtual time, these are one clock.
"""

from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.tables.timeline import EventPlace

STORY_VERSION: Final = 1


class Point(msgspec.Struct, frozen=True, array_like=True):
    """A point of a curve, written as a list of two numbers.

    Attributes:
        time_us: the time.
        value: the value reached by then.
    """

    time_us: int
    value: int


class NodeProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a node.

    Attributes:
        node: id of the node.
        role: of the node, in words.
        incarnation: number of the process.
        started_us: when the harness started it.
        running_us: when it began to work; ``None`` if it never did, or has no such state.
        ended_us: when it ended; ``None`` if unrecorded.
        end: its kind of end; ``None`` if unrecorded.
        started_event: that records the start; ``None`` if none does.
        ended_event: that records the end; ``None`` if none does.
    """

    node: int
    role: str
    incarnation: int
    started_us: int
    running_us: int | None
    ended_us: int | None
    end: events.IncarnationEnd | None
    started_event: EventPlace | None = None
    ended_event: EventPlace | None = None


class BrokenLink(msgspec.Struct, frozen=True, kw_only=True):
    """Connections that one node dials to another; 1000 are the clients, 1001 and up ``kafka_clients``.

    Attributes:
        source: the node that dials.
        target: the node that is dialled.
    """

    source: int
    target: int


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that was injected on purpose.

    Attributes:
        fault: name of the fault.
        target: its target, in words.
        nodes: its target, if that is a node.
        links: its target, if that is a link.
        begun_us: when it was done.
        proved_us: when its effect was observed; ``None`` if it had none.
        healed_us: when it was healed; ``None`` if it was not.
        effect: its observed effect; ``None`` if it had none.
        event: the event that records it.
    """

    fault: str
    target: str
    nodes: tuple[int, ...]
    links: tuple[BrokenLink, ...]
    begun_us: int
    proved_us: int | None
    healed_us: int | None
    effect: str | None
    event: EventPlace


class Heal(msgspec.Struct, frozen=True, kw_only=True):
    """The healing of one or more faults.

    Attributes:
        fault: name of the healed fault; ``heal`` is every fault of a link, ``all`` every fault there is.
        target: a node or a link in words, or ``all``.
        begun_us: when it was done.
        step: the step of the plan; ``None`` after the plan.
        event: the event that records it.
    """

    fault: str
    target: str
    begun_us: int
    step: int | None
    event: EventPlace


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the plan that was done.

    Attributes:
        step: its number, from 1.
        text: of the step.
        seen: what the harness observed in the step.
        time_us: when it was done.
    """

    step: int
    text: str
    seen: str
    time_us: int


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that was registered.

    Attributes:
        broker: id of the broker.
        time_us: when that was committed.
        metadata_offset: of the record.
        is_first: whether the controller did not know the broker before.
        is_clean: the controller's judgement of the end of the previous process.
        event: the event that records it.
    """

    broker: int
    time_us: int
    metadata_offset: int
    is_first: bool
    is_clean: bool
    event: EventPlace


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a partition that the controller committed, and why.

    Attributes:
        time_us: when it was committed.
        metadata_offset: of the record.
        topic_id: of the partition's topic.
        reason: the reason of the change.
        broker: the broker that the reason concerns, or the sender of the AlterPartition.
        election: how the leader was chosen, if it was.
        leader: the leader; ``None`` without one.
        leader_epoch: the leader epoch.
        partition_epoch: the partition epoch.
        replicas: the assignment.
        isr: in-sync replicas.
        elr: eligible leader replicas.
        last_known_elr: members of the last ELR, while the partition waits for them.
        min_isr: the min ISR by which the controller decided.
        is_recovering: whether the leader may lack records, and says so (KIP-704).
        event: the event that records it.
        writer: the broker that wrote the state into ZooKeeper; ``None`` in a KRaft cluster.
        controller_epoch: the writer's epoch as controller; ``None`` for a leader that wrote its ISR itself.

    """

    time_us: int
    metadata_offset: int
    topic_id: str
    reason: str
    broker: int | None
    election: events.Election
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    min_isr: int
    is_recovering: bool
    event: EventPlace
    writer: int | None = None
    controller_epoch: int | None = None
    last_known_elr: tuple[int, ...] = ()


class Leadership(msgspec.Struct, frozen=True, kw_only=True):
    """The leadership that a broker claimed, from some time on.

    Attributes:
        node: the broker.
        time_us: time of its beginning.
        topic_id: of the partition's topic.
        leader_epoch: the epoch that it knew.
        is_leading: whether it led, by its own knowledge.
        event: the event that records it.
    """

    node: int
    time_us: int
    topic_id: str
    leader_epoch: int
    is_leading: bool
    event: EventPlace


class HeldRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one leader epoch in a replica's log, over time.

    Attributes:
        node: the replica.
        topic_id: of the partition's topic.
        leader_epoch: in which the records were appended.
        first: the first offset of the epoch that the log ever held.
        ends: where these records ended in the log (exclusive), over time; ``first`` if it held none any more.
    """

    node: int
    topic_id: str
    leader_epoch: int
    first: int
    ends: tuple[Point, ...]


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Records that a log lost.

    Attributes:
        node: the replica.
        time_us: time of the loss.
        topic_id: of the partition's topic.
        became: how the records were lost.
        old_end: the log end offset before.
        new_end: the log end offset after it.
        leader: the leader for which the replica truncated its log; ``None`` if it was no truncation.
        leader_epoch: the epoch of this leader.
        reason: of a truncation, in words.
        event: the event that records it.
    """

    node: int
    time_us: int
    topic_id: str
    became: CopyFate
    old_end: int
    new_end: int
    leader: int | None = None
    leader_epoch: int | None = None
    reason: str | None = None
    event: EventPlace


class FinalRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one leader epoch in a replica's final log.

    Attributes:
        node: the replica.
        topic_id: of the partition's topic.
        leader_epoch: in which the records were appended.
        first: the first offset.
        last: the last offset, inclusive.
    """

    node: int
    topic_id: str
    leader_epoch: int
    first: int
    last: int


class Flushed(msgspec.Struct, frozen=True, kw_only=True):
    """The offset up to which a replica's log is known to be on the disk, over time.

    Attributes:
        node: the replica.
        topic_id: of the partition's topic.
        points: the recovery point since each time; it falls when the log is truncated.
    """

    node: int
    topic_id: str
    points: tuple[Point, ...]


class Promised(msgspec.Struct, frozen=True, kw_only=True):
    """The offset up to which records of one leader epoch had been acknowledged with acks=all, over time.

    Attributes:
        topic_id: of the partition's topic.
        leader_epoch: in which the records were appended.
        ends: the offset after the highest acknowledged one, over time.
    """

    topic_id: str
    leader_epoch: int
    ends: tuple[Point, ...]


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """The number of records acknowledged over time, with one kind of acks.

    Attributes:
        acks: -1 (all) or 1.
        records: number of acknowledged records so far.
        pauses: begin and length of every time longer than half a second between two acknowledgements.
    """

    acks: int
    records: tuple[Point, ...]
    pauses: tuple[Point, ...]


class NamedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that ``verdict.json`` names for the partition, and its time.

    Attributes:
        event: place of the event.
        time_us: time of the event.
    """

    event: EventPlace
    time_us: int


class CausedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, in words.

    Attributes:
        node: the node that records it.
        time_us: time of the event.
        text: in the form of logs.
        event: place of the event.

    """

    node: int
    time_us: int
    text: str
    event: EventPlace


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The events that followed from one cause, such as a request.

    Attributes:
        cause_id: the cause id in the events.
        events: the earliest of them, ordered by time.
        left_out: number of further events.
    """

    cause_id: str
    events: tuple[CausedEvent, ...]
    left_out: int = 0


class Controllership(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a broker was controller, in a cluster with ZooKeeper.

    Attributes:
        broker: the elected broker; ``None`` if unrecorded.
        controller_epoch: its controller epoch.
        begun_us: when it was elected.
        ended_us: when ``/controller`` was deleted; ``None`` if it was not.
        metadata_offset: zxid of the election.
        event: the event that records it.
    """

    broker: int | None
    controller_epoch: int
    begun_us: int
    ended_us: int | None
    metadata_offset: int
    event: EventPlace


class PartitionStory(msgspec.Struct, frozen=True, kw_only=True):
    """The story of one partition.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        changes: committed states in the controller's order, the first ``CHANGES_MAX`` of them.
        changes_left_out: number of further changes.
        leaderships: the roles that brokers took, by node and in its order.
        held: records held in logs, by node and epoch.
        cuts: records lost from logs, by node and in its order.
        final: records in final logs.
        promised: records acknowledged with acks=all, by epoch.
        acknowledged: numbers of acknowledged records, by acks.
        named_events: named ``told`` in the file; events that the losses in ``verdict.json`` name.
        flushed: the offsets up to which logs are on disks, by node.
        causes: the events that followed from the causes of the recorded events, those of losses first; in a run with
            more than 200 partitions empty for partitions without losses.
    """

    topic: str
    partition: int
    changes: tuple[StateChange, ...]
    changes_left_out: int
    leaderships: tuple[Leadership, ...]
    held: tuple[HeldRecords, ...]
    cuts: tuple[Cut, ...]
    final: tuple[FinalRecords, ...]
    promised: tuple[Promised, ...]
    acknowledged: tuple[Acknowledged, ...]
    named_events: tuple[NamedEvent, ...] = msgspec.field(name="told")
    flushed: tuple[Flushed, ...] = ()
    causes: tuple[Cause, ...] = ()


class RunStory(msgspec.Struct, frozen=True, kw_only=True):
    """The story of one run.

    Attributes:
        version: of this form.
        problem: why nothing is recorded; ``None`` if there is no problem.
        origin_ns: the clocks' time at time 0: when the first partition was created, else at the first line.
        end_us: when the cluster had settled, or else the last line of the harness.
        processes: of nodes, by node.
        faults: in the harness's order.
        heals: in the harness's order.
        steps: of the plan.
        registrations: of brokers, in the controller's order.
        partitions: by name.
        controllers: the controllers in the order of their epochs; empty in a KRaft cluster.
        kafka_clients: names of the clients of Kafka that had links of their own, by their ids.
    """

    version: int = STORY_VERSION
    problem: str | None = None
    origin_ns: int = 0
    end_us: int = 0
    processes: tuple[NodeProcess, ...] = ()
    faults: tuple[Fault, ...] = ()
    heals: tuple[Heal, ...] = ()
    steps: tuple[Step, ...] = ()
    registrations: tuple[Registration, ...] = ()
    partitions: tuple[PartitionStory, ...] = ()
    controllers: tuple[Controllership, ...] = ()
    kafka_clients: dict[int, str] = {}
