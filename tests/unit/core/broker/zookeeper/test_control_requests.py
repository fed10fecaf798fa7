"""The front of a broker that a ZooKeeper controller speaks to, where no vector looks."""

import msgspec
import pytest

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.batch import InvalidBatch
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.stray_cleanup import StrayLogs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.zookeeper.control_fence import ControlFence
from laststand.emulator.core.broker.zookeeper.control_requests import ControlRequests, RolesTaken
from laststand.emulator.core.broker.zookeeper.late_topic_ids import by_known_ids
from laststand.emulator.core.broker.zookeeper.metadata_cache import MetadataCache, id_by_name, real_topic_id
from laststand.emulator.core.broker.zookeeper.topic_configs import TopicConfigs
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from tests.unit.core.broker.hosting import events_of, found_log

ORDERS = TopicPartition("orders", 0)
OWN, OTHER = BrokerId(NodeId(0)), BrokerId(NodeId(1))
ORDERS_ID = TopicId("AAAAAAAAAAUAAAAAAAAABg")
TERM = ControllerEpoch(3)
OLD, NEW = TopicId("AAAAAAAAAAUAAAAAAAAABg"), TopicId("AAAAAAAAAAcAAAAAAAAACA")


def role(*, leader: BrokerId, leader_epoch: int, **fields: object) -> control_messages.LeaderAndIsrPartition:
    as_usual = control_messages.LeaderAndIsrPartition(
        name=ORDERS,
        controller_epoch=TERM,
        leader=leader,
        leader_epoch=LeaderEpoch(leader_epoch),
        isr=(OWN, OTHER),
        partition_epoch=PartitionEpoch(leader_epoch),
        replicas=(OWN, OTHER),
    )
    return msgspec.structs.replace(as_usual, **fields)


class Front:
    """A broker's front with nothing behind it but partitions."""

    def __init__(self, era_name: str = "kafka-3.9-zk") -> None:
        era = ZOOKEEPER_ERAS[era_name]
        config = BrokerConfig(
            broker_id=OWN,
            controller_ids=(NodeId(9),),
            cluster_id="unit",
            incarnation_id=IncarnationId("unit"),
            switches=era.switches,
        )
        self.fence = ControlFence(era.rules)
        self.cache = MetadataCache(era.rules)
        self.hosted = HostedPartitions(self.cache.image)
        self.fetchers = FetcherPool(config, InFlightRequests())
        self.requests = ControlRequests(
            config,
            era.rules,
            fence=self.fence,
            cache=self.cache,
            hosted=self.hosted,
            fetchers=self.fetchers,
            strays=StrayLogs(config),
            configs=TopicConfigs(),
        )
        live = tuple(control_messages.LiveBroker(broker_id=broker_id) for broker_id in (OWN, OTHER))
        self.cache.update(
            control_messages.UpdateMetadataRequest(controller_id=OTHER, controller_epoch=TERM, live_brokers=live)
        )
        self.turn = Turn(now_ms=0, cause_id=CauseId("unit"))

    def take(self, *, leader: BrokerId, leader_epoch: int = 0, **fields: object) -> ErrorCode:
        (result,) = self.hear(role(leader=leader, leader_epoch=leader_epoch, **fields)).response.partitions
        return result.error

    def hear(self, *roles: control_messages.LeaderAndIsrPartition, **fields: object) -> RolesTaken:
        request = control_messages.LeaderAndIsrRequest(controller_id=OTHER, controller_epoch=TERM, partitions=roles)
        return self.requests.handle_leader_and_isr(self.turn, msgspec.structs.replace(request, **fields))

    def hosts(self) -> TopicId | None:
        partition = self.hosted.get(ORDERS)
        return None if partition is None else partition.log.topic_id

    def stop(self, *, is_deleted: bool, leader_epoch: int = 1) -> ErrorCode:
        replica = control_messages.StopReplicaPartition(
            name=ORDERS, leader_epoch=LeaderEpoch(leader_epoch), is_deleted=is_deleted
        )
        request = control_messages.StopReplicaRequest(controller_id=OTHER, controller_epoch=TERM, partitions=(replica,))
        (result,) = self.requests.handle_stop_replica(self.turn, request).partitions
        return result.error


def test_a_missing_log_may_lie_in_a_directory_that_failed() -> None:
    front = Front()
    front.requests.has_failed_directory = True
    assert front.take(leader=OTHER) is ErrorCode.KAFKA_STORAGE_ERROR
    assert front.hosted.get(ORDERS) is None
    assert front.take(leader=OTHER, is_new=True) is ErrorCode.NONE


def test_a_replica_that_is_stopped_only_stops_to_fetch() -> None:
    front = Front()
    front.take(leader=OTHER)
    assert ORDERS in front.fetchers.followed
    assert front.stop(is_deleted=False) is ErrorCode.NONE
    assert ORDERS not in front.fetchers.followed
    assert front.hosted.get(ORDERS) is not None
    assert not any(isinstance(effect, effects.DeleteLog) for effect in front.turn.effects())


def test_a_copy_of_a_deletion_finds_nothing_to_delete() -> None:
    front = Front()
    front.take(leader=OTHER)
    assert front.stop(is_deleted=True) is ErrorCode.NONE
    assert front.stop(is_deleted=True) is ErrorCode.NONE
    assert sum(isinstance(effect, effects.DeleteLog) for effect in front.turn.effects()) == 1


def test_a_new_leader_does_not_fetch_any_more() -> None:
    front = Front()
    front.take(leader=OTHER)
    assert front.take(leader=OWN, leader_epoch=1) is ErrorCode.NONE
    assert ORDERS not in front.fetchers.followed
    assert front.requests.decider_of(ORDERS) == TERM


def test_a_later_incarnation_fences_what_was_meant_for_the_former() -> None:
    front = Front()
    front.fence.broker_epoch = BrokerEpoch(8)
    old = control_messages.StopReplicaRequest(
        controller_id=OTHER, controller_epoch=TERM, broker_epoch=BrokerEpoch(7), partitions=()
    )
    assert front.requests.handle_stop_replica(front.turn, old).error is ErrorCode.STALE_BROKER_EPOCH
    nameless = control_messages.StopReplicaRequest(controller_id=OTHER, controller_epoch=TERM, partitions=())
    assert front.requests.handle_stop_replica(front.turn, nameless).error is ErrorCode.NONE


def test_a_follower_that_learns_its_topics_id_asks_anew() -> None:
    front = Front()
    front.take(leader=OTHER)
    before = front.fetchers.followed[ORDERS]
    assert front.take(leader=OTHER) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert front.fetchers.followed[ORDERS] is before
    assert front.take(leader=OTHER, topic_id=ORDERS_ID) is ErrorCode.NONE
    partition = front.hosted.get(ORDERS)
    assert partition is not None
    assert partition.log.topic_id == ORDERS_ID
    assert front.fetchers.followed[ORDERS] is not before
    assert front.take(leader=OTHER, topic_id=ORDERS_ID) is ErrorCode.STALE_CONTROLLER_EPOCH


def test_a_leader_that_learns_its_topics_id_stays_leader() -> None:
    front = Front()
    front.take(leader=OWN)
    assert front.take(leader=OWN, topic_id=ORDERS_ID) is ErrorCode.NONE
    assert ORDERS not in front.fetchers.followed


@pytest.mark.parametrize(
    ("known", "asked", "meant"),
    [
        (None, ORDERS_ID, None),
        (None, id_by_name("orders"), id_by_name("orders")),
        (ORDERS_ID, id_by_name("orders"), None),
        (ORDERS_ID, ORDERS_ID, ORDERS_ID),
        (ORDERS_ID, TopicId("another"), TopicId("another")),
        (ORDERS_ID, None, None),
    ],
)
def test_an_id_that_one_side_does_not_know_is_not_compared(
    known: TopicId | None, asked: TopicId | None, meant: TopicId | None
) -> None:
    front = Front()
    front.take(leader=OWN, topic_id=known)
    read = messages.FetchPartition(topic="orders", topic_id=asked, partition=0, fetch_offset=Offset(0))
    (fetched,) = by_known_ids(messages.FetchRequest(partitions=(read,)), front.hosted).partitions
    assert fetched == msgspec.structs.replace(read, topic_id=meant)
    bad = InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason="unit")
    batch = messages.ProducePartition(topic="orders", topic_id=asked, partition=0, batch=bad)
    request = messages.ProduceRequest(acks=1, timeout_ms=1, partitions=(batch,))
    (produced,) = by_known_ids(request, front.hosted).partitions
    assert produced == msgspec.structs.replace(batch, topic_id=meant)


def test_a_topic_without_an_id_is_known_by_its_name() -> None:
    assert id_by_name("a") == id_by_name("a") != id_by_name("b")
    assert real_topic_id(id_by_name("a")) is None
    assert real_topic_id(None) is None
    assert real_topic_id(TopicId("AAAAAAAAAAUAAAAAAAAABg")) == "AAAAAAAAAAUAAAAAAAAABg"


def test_a_leadership_is_new_once() -> None:
    front = Front()
    assert front.hear(role(leader=OTHER, leader_epoch=0)).new_leaderships == ()
    taken = front.hear(role(leader=OWN, leader_epoch=1))
    assert [partition.name for partition in taken.new_leaderships] == [ORDERS]
    assert front.hear(role(leader=OWN, leader_epoch=2)).new_leaderships == ()


def test_a_new_term_under_the_same_version_of_the_state_is_taken() -> None:
    front = Front()
    front.take(leader=OTHER, partition_epoch=PartitionEpoch(5))
    front.take(leader=OWN, leader_epoch=1, partition_epoch=PartitionEpoch(5))
    partition = front.hosted.get(ORDERS)
    assert partition is not None
    assert partition.is_leader


def test_an_id_comes_with_the_next_role_to_a_log_that_has_none() -> None:
    # KIP-516, an upgrade.
    front = Front()
    front.take(leader=OTHER)
    assert front.hosts() == id_by_name("orders")
    front.take(leader=OTHER, leader_epoch=1, topic_id=OLD)
    assert front.hosts() == OLD


def test_before_kip_516_ids_are_not_looked_at() -> None:
    front = Front("kafka-2.6-zk")
    assert front.take(leader=OTHER, topic_id=OLD) is ErrorCode.NONE
    assert front.hosts() == id_by_name("orders")


def test_a_log_that_was_found_keeps_its_id_where_the_role_names_none() -> None:
    front = Front()
    front.requests.add_logs([found_log(OLD, is_clean=True)])
    front.take(leader=OTHER)
    assert front.hosts() == OLD


def test_a_log_that_was_found_with_its_topics_name_for_an_id_has_none() -> None:
    front = Front()
    front.requests.add_logs([found_log(id_by_name("orders"), is_clean=True)])
    assert front.take(leader=OTHER, topic_id=OLD) is ErrorCode.NONE
    assert front.hosts() == OLD


def test_a_complete_list_puts_the_log_of_a_replica_aside_that_is_none() -> None:
    # KIP-550.
    front = Front("kip-550-zk")
    front.take(leader=OTHER, topic_id=OLD)
    front.turn.turned.clear()
    front.hear(contains_all_replicas=True)
    assert front.hosted.get(ORDERS) is None
    assert ORDERS not in front.fetchers.followed
    assert ORDERS in front.turn.turned
    (stray,) = [event for event in events_of(front.turn) if isinstance(event, events.StrayDetected)]
    assert stray.topic_id == OLD


def test_a_complete_list_puts_a_log_aside_that_waits_for_a_role() -> None:
    front = Front("kip-550-zk")
    front.requests.add_logs([found_log(OLD, is_clean=True)])
    front.hear(contains_all_replicas=True)
    assert front.requests.waiting == {}
    assert front.turn.turned == {}


def test_a_complete_list_puts_the_log_of_the_topic_before_aside() -> None:
    front = Front("kip-550-zk")
    front.take(leader=OTHER, topic_id=OLD)
    front.hear(role(leader=OTHER, leader_epoch=1, topic_id=NEW), contains_all_replicas=True)
    assert front.hosts() == NEW
    assert sum(isinstance(event, events.StrayDetected) for event in events_of(front.turn)) == 1


def test_a_broker_that_does_not_migrate_believes_no_full_list_of_a_kraft_controller() -> None:
    front = Front()
    front.take(leader=OTHER, topic_id=OLD)
    front.hear(is_kraft_controller=True, request_type=control_messages.LeaderAndIsrType.FULL)
    assert front.hosts() == OLD


def test_a_role_of_an_older_partition_epoch_is_not_taken() -> None:
    front = Front()
    front.take(leader=OTHER, partition_epoch=PartitionEpoch(5))
    assert front.take(leader=OWN, leader_epoch=1, partition_epoch=PartitionEpoch(4)) is ErrorCode.NONE
    partition = front.hosted.get(ORDERS)
    assert partition is not None
    assert not partition.is_leader
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 5)
    assert ORDERS in front.fetchers.followed


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_role_in_another_topic_of_the_name_is_refused(*, is_waiting: bool) -> None:
    front = Front()
    if is_waiting:
        front.requests.add_logs([found_log(OLD, is_clean=True)])
    else:
        front.take(leader=OTHER, topic_id=OLD)
    assert front.take(leader=OWN, leader_epoch=1, topic_id=NEW) is ErrorCode.INCONSISTENT_TOPIC_ID
    partition = front.hosted.get(ORDERS)
    assert partition is None or (partition.log.topic_id, partition.is_leader) == (OLD, False)


@pytest.mark.parametrize(
    ("era", "leader", "known"),
    [
        ("kafka-3.9-zk", OTHER, LeaderRecoveryState.RECOVERING),
        ("kafka-3.9-zk", OWN, LeaderRecoveryState.RECOVERED),
        ("kafka-2.6-zk", OTHER, LeaderRecoveryState.RECOVERED),
    ],
)
def test_a_released_follower_knows_that_its_leader_recovers_and_a_leader_calls_itself_recovered(
    era: str, leader: BrokerId, known: LeaderRecoveryState
) -> None:
    front = Front(era)
    front.take(leader=leader, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    assert front.requests.recovery_state_of(ORDERS) is known
