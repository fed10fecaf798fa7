"""Every check of the oracle on a cluster in which it must fire, and on the same one untouched, in which none does."""

from collections.abc import Callable

import msgspec
import pytest

from emulator.core.client.steps import PollRecorded, SendRecorded
from emulator.core.errors import InvariantViolation
from emulator.core.events import (
    AlterPartitionDecided,
    AppendRole,
    Attempt,
    BatchAppended,
    BrokerRegistered,
    Election,
    HighWatermarkAdvanced,
    IncarnationEnd,
    IncarnationEnded,
    OperationType,
    PartitionChanged,
    PolledBatch,
    ReplicaProgress,
)
from emulator.core.types import (
    Acks,
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    TopicId,
    TopicPartition,
)
from emulator.simulator.journal import Journal
from emulator.simulator.oracle.finding import Guarantee
from emulator.simulator.oracle.liveness import missing
from emulator.simulator.plan import parse_plan
from emulator.simulator.simulation import Simulation

NAME = TopicPartition("orders", 0)
CAUSE = CauseId("test")
TOPIC = TopicId("id-of-orders")
LEADER = BrokerId(NodeId(0))
FOLLOWER = BrokerId(NodeId(1))
PLAN = """\
cluster brokers=3
topic orders replicas=(0,1,2) min.insync.replicas=2
produce orders-0 acks=all records=1
wait 10
produce orders-0 acks=all records=2
wait 200
"""


def played() -> tuple[Simulation, Journal]:
    journal = Journal()
    simulation = Simulation(parse_plan(PLAN), journal=journal)
    simulation.begin()
    for action in simulation.plan.actions:
        simulation.play(action)
    assert simulation.oracle.alarms == []
    return simulation, journal


def last_change(journal: Journal) -> PartitionChanged:
    return [entry.event for entry in journal.entries if isinstance(entry.event, PartitionChanged)][-1]


def shorten(simulation: Simulation, broker_id: BrokerId) -> None:
    log = simulation.cluster.nodes[broker_id].disk.logs[NAME]
    log.truncate(log.batches[-1].base_offset)


def d1(simulation: Simulation, _: Journal) -> None:
    shorten(simulation, LEADER)
    simulation.oracle.scan()


def d2(simulation: Simulation, _: Journal) -> None:
    simulation.oracle.truths[NAME].acked.clear()
    simulation.oracle.truths[NAME].exposed.clear()
    d1(simulation, _)


def d3(simulation: Simulation, _: Journal) -> None:
    shorten(simulation, FOLLOWER)
    simulation.oracle.scan()


def d4(simulation: Simulation, _: Journal) -> None:
    for broker_id in simulation.cluster.nodes:
        shorten(simulation, broker_id)
    simulation.oracle.finish()


def d5(simulation: Simulation, _: Journal) -> None:
    simulation.oracle.truths[NAME].acked.clear()
    d1(simulation, _)


def d6(simulation: Simulation, _: Journal) -> None:
    batches = simulation.cluster.nodes[FOLLOWER].disk.logs[NAME].batches
    batches[0] = msgspec.structs.replace(batches[0], crc=99)
    simulation.oracle.scan()


def appended(*, node: NodeId, crc: int, leader_epoch: int = 0) -> Callable[[Simulation, Journal], None]:
    def append(simulation: Simulation, _: Journal) -> None:
        event = BatchAppended(
            cause_id=CAUSE,
            topic=NAME.topic,
            partition=NAME.partition,
            topic_id=TOPIC,
            role=AppendRole.LEADER,
            base_offset=Offset(0),
            last_offset=Offset(0),
            leader_epoch=LeaderEpoch(leader_epoch),
            current_leader_epoch=LeaderEpoch(leader_epoch),
            crc=crc,
            record_count=1,
            producer_id=None,
            producer_epoch=ProducerEpoch(-1),
            base_sequence=-1,
        )
        simulation.oracle.happened(node, 0, event, now_ms=0)

    return append


def sent(type_: OperationType, *, offset: int | None, crc: int) -> SendRecorded:
    attempt = Attempt(
        node=NodeId(0),
        leader_epoch=LeaderEpoch(0),
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
        crc=crc,
        outcome="NONE",
    )
    return SendRecorded(
        type=type_,
        operation_id=CauseId("producer-all:9"),
        partition=NAME,
        topic_id=TOPIC,
        first_record_id=9,
        record_count=1,
        base_offset=None if offset is None else Offset(offset),
        attempts=(attempt,),
    )


def d11(simulation: Simulation, _: Journal) -> None:
    stored = simulation.cluster.nodes[LEADER].disk.logs[NAME].batches[0].crc
    simulation.oracle.recorded("producer-all", sent(OperationType.FAIL, offset=None, crc=stored), now_ms=0)
    simulation.oracle.finish()


def d12(simulation: Simulation, _: Journal) -> None:
    batches = simulation.cluster.nodes[LEADER].disk.logs[NAME].batches
    batches.insert(0, batches[0])
    simulation.oracle.finish()


def d14(simulation: Simulation, _: Journal) -> None:
    simulation.oracle.recorded("producer-all", sent(OperationType.INVOKE, offset=None, crc=5), now_ms=0)
    simulation.oracle.recorded("producer-all", sent(OperationType.OK, offset=0, crc=5), now_ms=0)


def c1(simulation: Simulation, _: Journal) -> None:
    batch = PolledBatch(
        base_offset=Offset(0),
        last_offset=Offset(0),
        leader_epoch=LeaderEpoch(0),
        crc=1,
        producer="producer-all",
        first_record_id=0,
        record_count=1,
    )
    poll = PollRecorded(
        type=OperationType.OK,
        operation_id=CAUSE,
        partition=NAME,
        topic_id=TOPIC,
        node=NodeId(0),
        position=Offset(0),
        leader_epoch=LeaderEpoch(0),
        seek=False,
        batches=(batch,),
    )
    simulation.oracle.recorded("consumer-0", poll, now_ms=0)


def changed(**fields: object) -> Callable[[Simulation, Journal], None]:
    def change(simulation: Simulation, journal: Journal) -> None:
        event = msgspec.structs.replace(last_change(journal), **fields)
        simulation.oracle.happened(NodeId(100), 0, event, now_ms=0)

    return change


def unclean_registration(simulation: Simulation) -> None:
    event = BrokerRegistered(
        cause_id=CAUSE,
        metadata_offset=MetadataOffset(90),
        broker_id=FOLLOWER,
        broker_epoch=BrokerEpoch(90),
        incarnation_id=IncarnationId("incarnation-1-1"),
        previous_broker_epoch=None,
        stored_broker_epoch=BrokerEpoch(4),
        is_clean=False,
    )
    simulation.oracle.happened(NodeId(100), 0, event, now_ms=0)


def m5(simulation: Simulation, journal: Journal) -> None:
    unclean_registration(simulation)
    changed(partition_epoch=PartitionEpoch(9), reason="elect_leaders")(simulation, journal)


def m10(simulation: Simulation, _: Journal) -> None:
    event = AlterPartitionDecided(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        broker_id=LEADER,
        broker_epoch=BrokerEpoch(3),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        proposed_isr=(LEADER, FOLLOWER),
        broker_epochs=(BrokerEpoch(3), BrokerEpoch(1)),
        error="NONE",
    )
    simulation.oracle.happened(NodeId(100), 0, event, now_ms=0)


def advanced(*, isr: tuple[BrokerId, ...], follower_end: int) -> Callable[[Simulation, Journal], None]:
    def advance(simulation: Simulation, _: Journal) -> None:
        event = HighWatermarkAdvanced(
            cause_id=CAUSE,
            topic=NAME.topic,
            partition=NAME.partition,
            topic_id=TOPIC,
            old=Offset(2),
            new=Offset(3),
            leader_epoch=LeaderEpoch(0),
            log_end_offset=Offset(3),
            committed_isr=isr,
            maximal_isr=(LEADER, FOLLOWER),
            joiners=(),
            effective_min_isr=2,
            replicas=(
                ReplicaProgress(LEADER, Offset(3), LeaderEpoch(0)),
                ReplicaProgress(FOLLOWER, Offset(follower_end), LeaderEpoch(0)),
            ),
        )
        simulation.oracle.happened(LEADER, 0, event, now_ms=0)

    return advance


def h4(simulation: Simulation, _: Journal) -> None:
    partitions = simulation.cluster.controller.image.partitions
    partitions[NAME] = msgspec.structs.replace(partitions[NAME], elr=(BrokerId(NodeId(7)),))
    simulation.oracle._leaders.check_superset(NAME)


def d9(simulation: Simulation, _: Journal) -> None:
    broker = simulation.cluster.nodes[FOLLOWER].broker
    assert broker is not None
    partition = broker.partition(NAME)
    assert partition is not None
    partition.log.high_watermark = Offset(50)
    simulation.oracle.scan()


def crash(simulation: Simulation, _: Journal) -> None:
    simulation.oracle.crashed(InvariantViolation("D0: a bug"))


CASES = {
    "D1": d1,
    "D2": d2,
    "D3": d3,
    "D4": d4,
    "D5": d5,
    "D6": d6,
    "D7": appended(node=NodeId(0), crc=99),
    "D9": d9,
    "D11": d11,
    "D12": d12,
    "D14": d14,
    "C1": c1,
    "H1": advanced(isr=(LEADER, FOLLOWER), follower_end=2),
    "H2": advanced(isr=(LEADER,), follower_end=3),
    "H4": h4,
    "M5": m5,
    "M6": changed(
        partition_epoch=PartitionEpoch(9),
        leader_epoch=LeaderEpoch(9),
        leader=BrokerId(NodeId(7)),
        election=Election.ISR,
    ),
    "M8": appended(node=NodeId(1), crc=1),
    "M9": changed(partition_epoch=PartitionEpoch(0)),
    "M10": m10,
    "InvariantViolation": crash,
}


@pytest.mark.parametrize("check_id", CASES)
def test_it_fires(check_id: str) -> None:
    simulation, journal = played()
    CASES[check_id](simulation, journal)
    assert check_id in {alarm.check_id for alarm in simulation.oracle.alarms}
    assert check_id in {finding.check_id for finding in simulation.findings()}


def test_nothing_fires_by_itself() -> None:
    simulation, _ = played()
    simulation.finish()
    assert simulation.oracle.alarms == []
    assert simulation.oracle.tally.acks == 3


def ended(simulation: Simulation, node: int) -> None:
    event = IncarnationEnded(
        cause_id=CAUSE,
        ended_node=NodeId(node),
        ended_incarnation=0,
        end=IncarnationEnd.POWER_LOST,
        exit_code=None,
        metadata_offset=MetadataOffset(12),
    )
    simulation.oracle.happened(NodeId(2000), 0, event, now_ms=0)


@pytest.mark.parametrize(("nodes", "guarantee"), [((1,), Guarantee.HOLDS), ((1, 2), Guarantee.EXCEEDED)])
def test_a_loss_counts_only_within_the_guarantee(nodes: tuple[int, ...], guarantee: Guarantee) -> None:
    simulation, journal = played()
    for node in nodes:
        ended(simulation, node)
    elected = msgspec.structs.replace(
        last_change(journal), leader_epoch=LeaderEpoch(1), partition_epoch=PartitionEpoch(1)
    )
    simulation.oracle.happened(NodeId(100), 0, elected, now_ms=0)
    simulation.cluster.controller.image.partitions[NAME] = msgspec.structs.replace(
        simulation.cluster.controller.image.partitions[NAME], leader_epoch=LeaderEpoch(1)
    )
    simulation.oracle._promises._lost(
        "D1", NAME, next(iter(simulation.oracle.truths[NAME].acked.values())), simulation.cluster.nodes[LEADER]
    )
    assert simulation.oracle.alarms[-1].guarantee is guarantee


@pytest.mark.parametrize(
    ("line", "expected"),
    [("kill 1", "L2"), ("hold 1->100 Stream response", "L1"), ("expire 1", "L4"), ("kill 0,1,2", "L3")],
)
def test_liveness(line: str, expected: str) -> None:
    simulation, _ = played()
    assert list(missing(simulation.cluster)) == []
    plan = parse_plan(PLAN.partition("produce")[0] + line + "\nexpire 2\nwait 1\n")
    for action in plan.actions:
        simulation.play(action)
    assert expected in {check_id for check_id, _, _ in missing(simulation.cluster)}


def test_l5_and_l6() -> None:
    simulation, _ = played()
    simulation.cluster.produce(simulation.cluster.producers[Acks.ALL], NAME, 1)
    assert {"L5"} == {check_id for check_id, _, _ in missing(simulation.cluster)}
    simulation.cluster.run(100)
    shorten(simulation, FOLLOWER)
    assert {"L6"} == {check_id for check_id, _, _ in missing(simulation.cluster)}
