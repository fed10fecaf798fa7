"""Barriers and roles, judged on a small committed state."""

import pytest

from laststand.chaos.play.barriers import View, observe
from laststand.chaos.play.roles import resolve
from laststand.chaos.scenario import conditions
from laststand.emulator.client.control import AckedCount, ClientCounts, ErrorCount
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.records import (
    BrokerRegistrationChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)
from laststand.emulator.core.types import (
    Acks,
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
    Way,
)
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.nodes import CONTROLLER, NamedNode, NodeRef, ReplicaRole, RoleNode, parse_node

FULL, SMALL, EMPTY, MOVING = (TopicPartition("orders", number) for number in range(4))
TOPIC_ID = TopicId("AAAAAAAAAAAAAAAAAAAAAA")


def broker(number: int) -> BrokerId:
    return BrokerId(NodeId(number))


def node(number: int) -> NodeId:
    return NodeId(number)


def partition(number: int, isr: tuple[int, ...], elr: tuple[int, ...], leader: int | None) -> PartitionRecord:
    return PartitionRecord(
        topic_id=TOPIC_ID,
        partition=number,
        replicas=(broker(0), broker(1), broker(2)),
        isr=tuple(broker(each) for each in isr),
        elr=tuple(broker(each) for each in elr),
        leader=None if leader is None else broker(leader),
    )


def image() -> MetadataImage:
    registrations = [
        RegisterBrokerRecord(
            broker_id=broker(number),
            incarnation_id=IncarnationId(str(number)),
            broker_epoch=BrokerEpoch(number),
            log_dirs=(),
        )
        for number in range(2)
    ]
    records: list[Record] = [
        *registrations,
        BrokerRegistrationChangeRecord(broker_id=broker(0), broker_epoch=BrokerEpoch(0), fenced=False),
        TopicRecord(name="orders", topic_id=TOPIC_ID),
        partition(0, (2, 0, 1), (), 2),
        partition(1, (1,), (0, 2), 1),
        partition(2, (), (), None),
        PartitionRecord(
            topic_id=TOPIC_ID,
            partition=3,
            replicas=(broker(1), broker(2)),
            isr=(broker(2),),
            leader=broker(2),
            adding_replicas=(broker(1),),
            removing_replicas=(broker(2),),
            last_known_elr=(broker(0),),
            last_known_leader=broker(0),
            leader_recovery_state=LeaderRecoveryState.RECOVERING,
        ),
    ]
    folded = MetadataImage()
    for offset, record in enumerate(records):
        folded.replay(record, offset=MetadataOffset(offset))
    return folded


def progress(*counts: tuple[int, TopicPartition, int], consumed: int, fenced: int) -> ClientCounts:
    acked = tuple(
        AckedCount(acks=acks, topic=where.topic, partition=where.partition, records=records)
        for acks, where, records in counts
    )
    errors = (ErrorCount(error=ErrorCode.NOT_LEADER_OR_FOLLOWER.name, count=fenced),)
    return ClientCounts(acked=acked, failed=0, unknown=0, consumed=consumed, errors=errors)


ANSWERS: Channel[NodeRef] = Channel(NodeId(0), CONTROLLER, "AlterPartition", Way.RESPONSE)
VIEW = View(
    image=image(),
    counts=progress((-1, FULL, 90), (-1, SMALL, 30), (1, FULL, 50), consumed=8, fenced=5),
    counts_at_start=progress((-1, FULL, 60), consumed=1, fenced=3),
    names={"first": NodeId(2)},
    log_end=lambda node_id, partition: Offset(7 if node_id == 0 and partition == FULL else 0),
    log_names=lambda node_id: frozenset({"orders-0"} if node_id == 0 else ()),
    intercepted=lambda channel: 2 if str(channel) == "0->100 AlterPartition response" else 0,
    elapsed_ms=lambda steps: 500 if steps else 20,
)


def state(
    where: TopicPartition,
    *,
    leader: NodeRef | conditions.NoLeader | None = None,
    isr: tuple[NodeRef, ...] | None = None,
    elr: tuple[NodeRef, ...] | None = None,
) -> conditions.PartitionIs:
    return conditions.PartitionIs(partitions=(where,), leader=leader, isr=isr, elr=elr)


def acked(count: int, acks: Acks | None, per: conditions.CountPer = conditions.CountPer.TOTAL) -> conditions.Acked:
    return conditions.Acked(count=count, acks=acks, partitions=(FULL, SMALL), per=per)


REACHED = [
    acked(60, Acks.ALL),
    acked(50, Acks.LEADER),
    acked(110, None),
    acked(30, Acks.ALL, conditions.CountPer.PARTITION),
    state(FULL, leader=node(2), isr=(node(0), node(1), node(2)), elr=()),
    state(FULL, leader=NamedNode(name="first")),
    state(SMALL, elr=(node(2), node(0))),
    state(SMALL, isr=(RoleNode(role=ReplicaRole.LEADER, partition=SMALL),)),
    state(EMPTY, leader=conditions.NoLeader.NONE, isr=()),
    conditions.BrokerIs(node=node(0), unfenced=True),
    conditions.BrokerIs(node=node(1), unfenced=False),
    conditions.RegistrationIs(node=node(1), exists=True),
    conditions.RegistrationIs(node=node(2), exists=False),
    conditions.LogIs(node=node(0), partition=FULL, exists=True),
    conditions.LogIs(node=node(1), partition=FULL, exists=False),
    conditions.LogEnds(node=node(0), partition=FULL, end=Offset(7)),
    conditions.LogEnds(node=node(1), partition=FULL, end=Offset(0)),
    conditions.Acked(
        count=170, acks=None, partitions=(FULL, SMALL), per=conditions.CountPer.TOTAL, since=conditions.Since.RUN
    ),
    conditions.TopicIs(topic="orders", exists=True),
    conditions.TopicIs(topic="refunds", exists=False),
    conditions.FeatureIs(feature="metadata.version", level=0),
    conditions.ClientSaw(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, count=2),
    conditions.Consumed(count=7),
    conditions.Consumed(count=8, since=conditions.Since.RUN),
    conditions.Intercepted(channel=ANSWERS, count=2),
    conditions.Elapsed(duration_ms=20),
    conditions.Elapsed(duration_ms=500, steps=1),
    conditions.AnyOf(conditions=(conditions.Consumed(count=8), conditions.Consumed(count=7))),
    conditions.PartitionIs(
        partitions=(MOVING,),
        replicas=(node(1), node(2)),
        adding_replicas=(node(1),),
        removing_replicas=(node(2),),
        last_known_elr=(node(0),),
        last_known_leader=node(0),
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
    ),
    conditions.PartitionIs(partitions=(FULL,), last_known_leader=conditions.NoLeader.NONE),
]

NOT_REACHED = [
    conditions.LogEnds(node=node(0), partition=FULL, end=Offset(6)),
    conditions.LogEnds(node=node(0), partition=SMALL, end=Offset(7)),
    conditions.Acked(
        count=171, acks=None, partitions=(FULL, SMALL), per=conditions.CountPer.TOTAL, since=conditions.Since.RUN
    ),
    acked(61, Acks.ALL),
    acked(51, Acks.LEADER),
    acked(1, Acks.NONE),
    acked(31, Acks.ALL, conditions.CountPer.PARTITION),
    state(FULL, leader=node(1)),
    state(FULL, leader=conditions.NoLeader.NONE),
    state(FULL, isr=(node(0), node(2))),
    state(SMALL, elr=(node(0),)),
    state(EMPTY, leader=node(0)),
    state(EMPTY, leader=RoleNode(role=ReplicaRole.LEADER, partition=EMPTY)),
    state(TopicPartition("refunds", 0), leader=conditions.NoLeader.NONE),
    conditions.PartitionIs(partitions=(FULL, SMALL), leader=node(2), isr=None, elr=None),
    conditions.BrokerIs(node=node(0), unfenced=False),
    conditions.BrokerIs(node=node(1), unfenced=True),
    conditions.BrokerIs(node=node(2), unfenced=True),
    conditions.BrokerIs(node=node(2), unfenced=False),
    conditions.RegistrationIs(node=node(1), exists=False),
    conditions.LogIs(node=node(0), partition=FULL, exists=False),
    conditions.LogIs(node=node(0), partition=SMALL, exists=True),
    conditions.TopicIs(topic="orders", exists=False),
    conditions.FeatureIs(feature="metadata.version", level=1),
    conditions.ClientSaw(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, count=3),
    conditions.ClientSaw(error=ErrorCode.FENCED_LEADER_EPOCH, count=1),
    conditions.Consumed(count=8),
    conditions.Consumed(count=9, since=conditions.Since.RUN),
    conditions.Intercepted(channel=ANSWERS, count=3),
    conditions.Elapsed(duration_ms=21),
    conditions.AnyOf(conditions=(conditions.Consumed(count=8), conditions.Consumed(count=9))),
    conditions.Intercepted(
        channel=ANSWERS._replace(source=RoleNode(role=ReplicaRole.LEADER, partition=EMPTY)), count=1
    ),
    conditions.PartitionIs(partitions=(MOVING,), adding_replicas=()),
    conditions.PartitionIs(partitions=(MOVING,), removing_replicas=()),
    conditions.PartitionIs(partitions=(MOVING,), replicas=(node(1),)),
    conditions.PartitionIs(partitions=(MOVING,), last_known_elr=()),
    conditions.PartitionIs(partitions=(MOVING,), last_known_leader=conditions.NoLeader.NONE),
    conditions.PartitionIs(partitions=(MOVING,), leader_recovery_state=LeaderRecoveryState.RECOVERED),
]


@pytest.mark.parametrize("condition", REACHED)
def test_a_condition_that_holds_is_reached(condition: conditions.Condition) -> None:
    assert observe(condition, VIEW).reached


@pytest.mark.parametrize("condition", NOT_REACHED)
def test_a_condition_that_does_not_hold_is_not_reached_and_reports_the_state(condition: conditions.Condition) -> None:
    sight = observe(condition, VIEW)
    assert not sight.reached
    assert sight.text


@pytest.mark.parametrize(
    ("role", "where", "holder"),
    [
        (ReplicaRole.LEADER, FULL, 2),
        (ReplicaRole.FOLLOWER, FULL, 0),
        (ReplicaRole.LAST_ISR, FULL, None),
        (ReplicaRole.LAST_ISR, SMALL, 1),
        (ReplicaRole.ELR, SMALL, 0),
        (ReplicaRole.ELR, FULL, None),
        (ReplicaRole.LEADER, EMPTY, None),
        (ReplicaRole.FOLLOWER, SMALL, None),
        (ReplicaRole.LEADER, TopicPartition("refunds", 0), None),
    ],
)
def test_a_role_stands_for_the_node_that_has_it(role: ReplicaRole, where: TopicPartition, holder: int | None) -> None:
    assert resolve(RoleNode(role=role, partition=where), VIEW.image, VIEW.names) == holder


@pytest.mark.parametrize(("active", "follower"), [(None, 101), (100, 101), (102, 100)])
def test_controllers_have_roles_among_each_other(active: int | None, follower: int) -> None:
    image = MetadataImage()
    image.controller_id = None if active is None else NodeId(active)
    assert resolve(parse_node("leader(controllers)"), image, {}) == (active or 100)
    assert resolve(parse_node("follower(controllers)"), image, {}) == follower


def test_a_role_that_a_step_names_twice_stands_for_two_controllers() -> None:
    image = MetadataImage()
    image.controller_id = NodeId(101)
    follower, taken = parse_node("follower(controllers)"), [NodeId(100)]
    assert resolve(follower, image, {}, taken=taken) == 102
    assert resolve(follower, image, {}, taken=[*taken, NodeId(102)]) is None
    assert resolve(parse_node("leader(controllers)"), image, {}, taken=[NodeId(101)]) == 101
