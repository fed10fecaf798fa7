"""The front of a broker that a ZooKeeper controller speaks to, where no vector looks."""

from emulator.core.broker.config import BrokerConfig
from emulator.core.broker.control_fence import ControlFence
from emulator.core.broker.control_requests import ControlRequests
from emulator.core.broker.fetcher import FetcherPool
from emulator.core.broker.hosted import HostedPartitions
from emulator.core.broker.in_flight_requests import InFlightRequests
from emulator.core.broker.metadata_cache import MetadataCache, id_by_name, real_topic_id
from emulator.core.broker.stray_cleanup import StrayLogs
from emulator.core.broker.topic_configs import TopicConfigs
from emulator.core.broker.turn import Turn
from emulator.core.control_messages import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LiveBroker,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from emulator.core.effects import DeleteLog
from emulator.core.errors import ErrorCode
from emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from emulator.core.zookeeper.identifiers import ControllerEpoch
from emulator.core.zookeeper_rules import ZOOKEEPER_ERAS

ORDERS = TopicPartition("orders", 0)
OWN, OTHER = BrokerId(NodeId(0)), BrokerId(NodeId(1))
TERM = ControllerEpoch(3)


class Front:
    """A broker's front with nothing behind it but partitions."""

    def __init__(self) -> None:
        era = ZOOKEEPER_ERAS["kafka-3.9-zk"]
        config = BrokerConfig(
            broker_id=OWN,
            controller_id=NodeId(9),
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
        live = tuple(LiveBroker(broker_id=broker_id) for broker_id in (OWN, OTHER))
        self.cache.update(UpdateMetadataRequest(controller_id=OTHER, controller_epoch=TERM, live_brokers=live))
        self.turn = Turn(now_ms=0, cause_id=CauseId("unit"))

    def take(self, *, leader: BrokerId, leader_epoch: int = 0, is_new: bool = False) -> ErrorCode:
        role = LeaderAndIsrPartition(
            name=ORDERS,
            controller_epoch=TERM,
            leader=leader,
            leader_epoch=LeaderEpoch(leader_epoch),
            isr=(OWN, OTHER),
            partition_epoch=PartitionEpoch(leader_epoch),
            replicas=(OWN, OTHER),
            is_new=is_new,
        )
        request = LeaderAndIsrRequest(controller_id=OTHER, controller_epoch=TERM, partitions=(role,))
        (result,) = self.requests.handle_leader_and_isr(self.turn, request).response.partitions
        return result.error

    def stop(self, *, is_deleted: bool, leader_epoch: int = 1) -> ErrorCode:
        replica = StopReplicaPartition(name=ORDERS, leader_epoch=LeaderEpoch(leader_epoch), is_deleted=is_deleted)
        request = StopReplicaRequest(controller_id=OTHER, controller_epoch=TERM, partitions=(replica,))
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
    assert not any(isinstance(effect, DeleteLog) for effect in front.turn.effects())


def test_a_copy_of_a_deletion_finds_nothing_to_delete() -> None:
    front = Front()
    front.take(leader=OTHER)
    assert front.stop(is_deleted=True) is ErrorCode.NONE
    assert front.stop(is_deleted=True) is ErrorCode.NONE
    assert sum(isinstance(effect, DeleteLog) for effect in front.turn.effects()) == 1


def test_a_new_leader_does_not_fetch_any_more() -> None:
    front = Front()
    front.take(leader=OTHER)
    assert front.take(leader=OWN, leader_epoch=1) is ErrorCode.NONE
    assert ORDERS not in front.fetchers.followed
    assert front.requests.decider_of(ORDERS) == TERM


def test_a_later_incarnation_fences_what_was_meant_for_the_former() -> None:
    front = Front()
    front.fence.broker_epoch = BrokerEpoch(8)
    old = StopReplicaRequest(controller_id=OTHER, controller_epoch=TERM, broker_epoch=BrokerEpoch(7), partitions=())
    assert front.requests.handle_stop_replica(front.turn, old).error is ErrorCode.STALE_BROKER_EPOCH
    nameless = StopReplicaRequest(controller_id=OTHER, controller_epoch=TERM, partitions=())
    assert front.requests.handle_stop_replica(front.turn, nameless).error is ErrorCode.NONE


def test_a_topic_without_an_id_goes_by_its_name() -> None:
    assert id_by_name("a") == id_by_name("a") != id_by_name("b")
    assert real_topic_id(id_by_name("a")) is None
    assert real_topic_id(None) is None
    assert real_topic_id(TopicId("AAAAAAAAAAUAAAAAAAAABg")) == "AAAAAAAAAAUAAAAAAAAABg"
