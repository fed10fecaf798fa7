"""A cluster that has lived through something without an alarm, for tests that doctor it until a check must fire."""

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    ProducerEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.plan.nodes import CONTROLLER, HARNESS
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation

NAME: Final = TopicPartition("orders", 0)
CAUSE: Final = CauseId("test")
TOPIC: Final = TopicId("id-of-orders")
LEADER: Final = BrokerId(NodeId(0))
FOLLOWER: Final = BrokerId(NodeId(1))
OTHER: Final = BrokerId(NodeId(2))

CLUSTER: Final = """\
cluster brokers=3
topic orders replicas=(0,1,2) min.insync.replicas=2
"""
PLAN: Final = f"""\
{CLUSTER}produce orders-0 acks=all records=1
wait 10
produce orders-0 acks=all records=2
wait 200
"""

_APPENDED: Final = events.BatchAppended(
    cause_id=CAUSE,
    topic=NAME.topic,
    partition=NAME.partition,
    topic_id=TOPIC,
    role=events.AppendRole.LEADER,
    base_offset=Offset(3),
    last_offset=Offset(3),
    leader_epoch=LeaderEpoch(0),
    current_leader_epoch=LeaderEpoch(0),
    crc=99,
    record_count=1,
    producer_id=None,
    producer_epoch=ProducerEpoch(-1),
    base_sequence=-1,
)
_EventT = TypeVar("_EventT", bound=events.Event)


class World:
    """A simulation, its oracle, and its journal."""

    def __init__(self, plan: str = PLAN) -> None:
        self.journal = Journal()
        self.simulation = Simulation(parse_plan(plan), journal=self.journal)
        self.simulation.begin()
        for action in self.simulation.plan.actions:
            self.simulation.play(action)
        self.oracle = self.simulation.oracle
        self.cluster = self.simulation.cluster
        assert self.oracle.alarms == []

    @property
    def fired(self) -> set[str]:
        """Ids of the checks that fired."""
        return {alarm.check_id for alarm in self.oracle.alarms}

    def node(self, broker_id: BrokerId) -> BrokerNode:
        """Returns a broker."""
        return self.cluster.nodes[broker_id]

    def partition(self, broker_id: BrokerId) -> Partition:
        """Returns what a broker hosts."""
        broker = self.node(broker_id).broker
        assert broker is not None
        partition = broker.partition(NAME)
        assert partition is not None
        return partition

    def happens(self, event: events.Event, *, node: NodeId = CONTROLLER, incarnation: int = 0) -> None:
        """Lets the oracle see an event."""
        self.oracle.happened(node, incarnation, event, now_ms=self.cluster.now_ms)

    def last(self, kind: type[_EventT]) -> _EventT:
        """Returns the last event of a kind."""
        return [entry.event for entry in self.journal.entries if isinstance(entry.event, kind)][-1]

    def appends(self, *, broker: BrokerId = LEADER, **fields: object) -> None:
        """Lets the oracle see that a broker, as leader if nothing else is said, put a batch at its log's end."""
        self.happens(msgspec.structs.replace(_APPENDED, **fields), node=broker)

    def changes(self, **fields: object) -> None:
        """Lets the oracle see the partition's last change again as the controller's last record, with other values."""
        offset = self.cluster.controller_node.durable.next_offset - 1
        self.happens(
            msgspec.structs.replace(self.last(events.PartitionChanged), **{"metadata_offset": offset, **fields})
        )

    def commits(self, **fields: object) -> None:
        """Puts another state of the partition into the controller, and lets the oracle see it."""
        partitions = self.cluster.image.partitions
        state: PartitionState = msgspec.structs.replace(partitions[NAME], **fields)
        partitions[NAME] = state
        self.changes(**fields)

    def has_no_leader(self) -> None:
        """Takes the partition's leader away; every member of its ISR is eligible."""
        state = self.cluster.image.partitions[NAME]
        epochs = {"leader_epoch": state.leader_epoch + 1, "partition_epoch": state.partition_epoch + 1}
        self.commits(leader=None, isr=(), elr=state.isr, **epochs)

    def ends(self, node: NodeId, end: events.IncarnationEnd = events.IncarnationEnd.KILLED) -> None:
        """Lets the oracle see that a node's first process ended."""
        ended = events.IncarnationEnded(
            cause_id=CAUSE,
            ended_node=node,
            ended_incarnation=0,
            end=end,
            exit_code=None,
            metadata_offset=MetadataOffset(12),
        )
        self.happens(ended, node=HARNESS)

    def shorten(self, broker_id: BrokerId) -> None:
        """Takes a broker's last batch away, from its disk only."""
        log = self.node(broker_id).disk.logs[NAME]
        log.truncate(log.batches[-1].base_offset)


Doctor: TypeAlias = Callable[[World], None]


def firing(cases: tuple[tuple[str, Doctor], ...]) -> pytest.MarkDecorator:
    """Parametrizes a test with ``check_id`` and ``doctor``."""
    ids = [f"{check_id}-{doctor.__name__}" for check_id, doctor in cases]
    return pytest.mark.parametrize(("check_id", "doctor"), cases, ids=ids)


def assert_fires(check_id: str, doctor: Doctor) -> None:
    """A doctored world raises that alarm, and it is a finding."""
    world = World()
    doctor(world)
    assert check_id in world.fired
    assert check_id in {finding.check_id for finding in world.simulation.findings()}
