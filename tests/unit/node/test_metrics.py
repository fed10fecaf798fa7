"""Metrics of a cluster that loses brokers, and how ``/metrics`` serves them."""

import asyncio
from collections.abc import Callable, Iterable

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from laststand.emulator.core import events, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.properties import NodeProperties, node_properties
from laststand.emulator.core.switches import ERAS, Switches
from laststand.emulator.core.types import (
    BrokerId,
    IsrAnswer,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    RecoveryStrategy,
    TopicId,
    TopicPartition,
)
from laststand.emulator.node.broker_metrics import BrokerMetrics
from laststand.emulator.node.controller_metrics import ControllerMetrics
from laststand.emulator.node.metric_families import counter, gauge
from laststand.emulator.node.metrics_server import ServedMetrics
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.observer import NullObserver
from tests.unit.core.controller.controller_driver import CAUSE, CONTROLLER, ControllerDriver, ids

ORDERS = TopicPartition("orders", 0)
BROKERS = tuple(BrokerId(NodeId(index)) for index in range(3))
PROPERTIES = NodeProperties(
    min_insync_replicas=2,
    broker_session_timeout_ms=1000,
    broker_heartbeat_interval_ms=200,
    replica_lag_time_max_ms=500,
    replica_fetch_wait_max_ms=100,
)
MANAGER = "kafka_server_replicamanager"


def samples(metrics: Iterable[Metric]) -> dict[str, float]:
    """Values by name, and by ``name orders-0`` where there is one per partition."""
    return {
        " ".join((sample.name, "-".join(sample.labels.values()))).strip(): sample.value
        for family in metrics
        for sample in family.samples
    }


class ObservedCluster(NullObserver):
    """A cluster in virtual time; the metrics of its controller and of broker 0 count the events that those write."""

    def __init__(self) -> None:
        self.counts: dict[NodeId, Callable[[events.Event], None]] = {}
        self.cluster = SimulatedCluster(brokers=3, switches=Switches(), properties=PROPERTIES, observer=self)
        for broker_id in BROKERS:
            self.cluster.processes.start(self.cluster.nodes[broker_id])
        registered = self.cluster.controller.image.brokers
        self.until(lambda: len(registered) == 3 and not any(broker.fenced for broker in registered.values()))
        self.cluster.clients.create_topic("orders", ((0, 1, 2),), {})
        self.cluster.run(300)
        self.controller = ControllerMetrics(lambda: self.cluster.controller)
        self.broker = BrokerMetrics(self.core(BROKERS[0]), BROKERS[0])
        self.counts = {CONTROLLER: self.controller.count, BROKERS[0]: self.broker.count}

    def core(self, broker_id: BrokerId) -> Broker:
        core = self.cluster.nodes[broker_id].broker
        assert isinstance(core, Broker)
        return core

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        if node_id in self.counts:
            self.counts[node_id](event)

    def produce(self) -> None:
        """One record of acks=1 to broker 0."""
        batch = BatchDescriptor(
            base_offset=Offset(0), last_offset=Offset(0), leader_epoch=LeaderEpoch(0), crc=1, size=100, record_count=1
        )
        partitions = (messages.ProducePartition(topic=ORDERS.topic, partition=ORDERS.partition, batch=batch),)
        request = messages.ProduceRequest(acks=1, timeout_ms=1000, partitions=partitions)
        request_id = self.cluster.clients.ask(BROKERS[0], request, cause="test")
        self.until(lambda: request_id in self.cluster.clients.answers)

    def until(self, condition: Callable[[], bool]) -> None:
        assert self.cluster.run_until(condition)

    def until_state(self, condition: Callable[[PartitionState], bool]) -> None:
        self.until(lambda: (state := self.cluster.state(ORDERS)) is not None and condition(state))


def test_a_healthy_cluster() -> None:
    observed = ObservedCluster()
    broker, controller = samples(observed.broker.collect()), samples(observed.controller.collect())

    assert broker[f"{MANAGER}_leadercount"] == broker[f"{MANAGER}_partitioncount"] == 1
    for name in ("underreplicatedpartitions", "underminisrpartitioncount", "offlinereplicacount", "isrshrinks_total"):
        assert broker[f"{MANAGER}_{name}"] == 0
    assert broker["kafka_server_replicafetchermanager_maxlag"] == 0
    assert controller["kafka_brokers"] == 3
    assert controller["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert controller["kafka_controller_global_under_min_isr_partition_count"] == 0
    assert controller["kafka_controller_electable_leaders orders-0"] == 3
    assert controller["kafka_topic_partition_leader orders-0"] == 0
    assert controller["kafka_topic_partition_in_sync_replica orders-0"] == 3


def test_lost_followers_are_counted_at_their_leader() -> None:
    observed = ObservedCluster()
    observed.cluster.links.cut(BROKERS[2], BROKERS[0])
    observed.produce()
    observed.until_state(lambda state: len(state.isr) == 2)
    observed.cluster.run(100)
    once = samples(observed.broker.collect())
    assert once[f"{MANAGER}_isrshrinks_total"] == 1
    assert once[f"{MANAGER}_underreplicatedpartitions"] == once[f"{MANAGER}_atminisrpartitioncount"] == 1
    assert once["kafka_cluster_partition_insyncreplicascount orders-0"] == 2

    observed.cluster.links.cut(BROKERS[1], BROKERS[0])
    observed.produce()
    observed.until_state(lambda state: len(state.isr) == 1)
    observed.cluster.run(100)
    twice = samples(observed.broker.collect())
    assert twice[f"{MANAGER}_isrshrinks_total"] == 2
    assert twice[f"{MANAGER}_underminisrpartitioncount"] == twice["kafka_cluster_partition_underminisr orders-0"] == 1
    assert twice["kafka_log_log_logendoffset orders-0"] == 2
    assert twice["kafka_topic_partition_current_offset orders-0"] == 1
    assert twice["kafka_server_brokertopicmetrics_messagesin_total"] == 2
    under = samples(observed.controller.collect())
    assert under["kafka_controller_global_under_min_isr_partition_count"] == 1
    assert under["kafka_controller_electable_leaders orders-0"] == 2  # the leader, and whom it lost last
    assert under["laststand_partition_elr orders-0"] == 1
    assert under["laststand_leader_changes_total"] == 0

    observed.cluster.links.heal()
    observed.until_state(lambda state: len(state.isr) == 3)
    observed.cluster.run(100)
    healed = samples(observed.broker.collect())
    assert healed[f"{MANAGER}_isrexpands_total"] >= 1
    assert healed[f"{MANAGER}_underreplicatedpartitions"] == 0


def test_an_isr_change_that_is_refused_is_counted_as_failed() -> None:
    metrics = BrokerMetrics(ObservedCluster().core(BROKERS[0]), BROKERS[0])
    topic_id = TopicId("id-of-orders")
    isr = BROKERS[:2]
    for outcome in ("committed", "reverted"):
        metrics.count(
            events.AlterPartitionProposed(
                cause_id=CAUSE,
                topic="orders",
                partition=0,
                topic_id=topic_id,
                leader_epoch=LeaderEpoch(0),
                partition_epoch=PartitionEpoch(0),
                committed_isr=isr,
                proposed_isr=BROKERS,
                maximal_isr=BROKERS,
                broker_epochs=(None, None, None),
            )
        )
        metrics.count(
            events.AlterPartitionAnswered(
                cause_id=CAUSE,
                topic="orders",
                partition=0,
                topic_id=topic_id,
                error="NONE" if outcome == "committed" else "INELIGIBLE_REPLICA",
                outcome=IsrAnswer(outcome),
                committed_isr=isr,
                partition_epoch=PartitionEpoch(1),
            )
        )
    counted = samples(metrics.collect())
    assert (counted[f"{MANAGER}_isrexpands_total"], counted[f"{MANAGER}_failedisrupdates_total"]) == (1, 1)


# --- The controller's, by hand ------------------------------------------------------------------------------------


class Counted:
    """A controller of three brokers and ``orders-0``, and its metrics, which count what it writes."""

    def __init__(self, properties: NodeProperties, era: str = "kip-966") -> None:
        self.driver = ControllerDriver(ERAS[era], properties)
        self.driver.boot(0, 1, 2)
        self.driver.create_topic("orders", ids(0, 1, 2))

    def samples(self) -> dict[str, float]:
        metrics = ControllerMetrics(lambda: self.driver.controller)
        for event in self.driver.events:
            metrics.count(event)
        return samples(metrics.collect())

    def lose_everyone(self) -> None:
        """ISR [0], ELR [1], then broker 0 goes, too; all are fenced."""
        self.driver.alter(0, (0, 1))
        self.driver.alter(0, (0,))
        for broker_id in (2, 1, 0):
            self.driver.heartbeat(broker_id, "fence")


def test_a_leader_from_the_elr_is_counted_and_is_not_unclean() -> None:
    counted = Counted(NodeProperties(min_insync_replicas=2))
    counted.lose_everyone()
    offline = counted.samples()
    counted.driver.heartbeat(1)
    elected = counted.samples()

    assert offline["kafka_controller_kafkacontroller_offlinepartitionscount"] == 1
    assert offline["kafka_topic_partition_leader orders-0"] == -1
    assert offline["kafka_controller_manual_leader_election_required_partition_count"] == 0
    assert offline["kafka_brokers"] == 0
    assert offline["laststand_leader_changes_total"] == 2  # its first leader, and none
    assert elected["laststand_leader_changes_total"] == 3
    assert elected["kafka_topic_partition_leader orders-0"] == 1
    assert elected["kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total"] == 1
    assert elected["kafka_controller_controllerstats_uncleanleaderelections_total"] == 0


def test_an_unclean_leader_is_counted() -> None:
    counted = Counted(NodeProperties(min_insync_replicas=2, unclean_leader_election_enable=True))
    counted.lose_everyone()
    counted.driver.heartbeat(2)

    assert counted.samples()["kafka_controller_controllerstats_uncleanleaderelections_total"] == 1


@pytest.mark.parametrize(
    ("strategy", "manager", "recovering", "manual"),
    [
        ("None", "false", 0, 1),
        ("Balanced", "false", 0, 0),
        ("None", "true", 0, 1),
        ("Balanced", "true", 1, 0),
    ],
    ids=["nobody but people", "the last known leader", "strategy None", "Balanced waits for the last known ELR"],
)
def test_a_partition_without_candidates_waits_for_brokers_or_for_people(
    strategy: str, manager: str, recovering: int, manual: int
) -> None:
    given = {"unclean.recovery.strategy": strategy, "unclean.recovery.manager.enabled": manager}
    counted = Counted(node_properties({"min.insync.replicas": "2", **given}))
    counted.lose_everyone()
    counted.driver.now_ms += 20_000
    for broker_id in (0, 1):  # their new incarnations prove nothing, so both leave the ELR
        counted.driver.register(broker_id, f"unclean-{broker_id}")

    shown = counted.samples()

    assert shown["kafka_controller_unclean_recovery_partitions_count"] == recovering
    assert shown["kafka_controller_manual_leader_election_required_partition_count"] == manual
    assert shown["kafka_controller_electable_leaders orders-0"] == 0


def test_a_finished_unclean_recovery_is_counted() -> None:
    controller = Counted(NodeProperties()).driver.controller
    metrics = ControllerMetrics(lambda: controller)
    for method in events.UncleanMethod:
        metrics.count(
            events.UncleanLeaderElected(
                cause_id=CAUSE,
                topic="orders",
                partition=0,
                topic_id=TopicId("orders-id"),
                metadata_offset=MetadataOffset(9),
                leader=BROKERS[1],
                leader_epoch=LeaderEpoch(3),
                method=method,
                strategy=RecoveryStrategy.BALANCED,
                candidates=BROKERS,
                draw=None,
                must_hear_from=(),
                answers=(),
                discarded=(),
                why="",
            )
        )
    assert samples(metrics.collect())["kafka_controller_unclean_recovery_finished_count_total"] == 1


# --- Served -------------------------------------------------------------------------------------------------------


def test_refusals_are_counted_at_brokers_and_controllers() -> None:
    observed = ObservedCluster()
    denied = events.AuthorizationDenied(
        cause_id=CAUSE,
        api="AlterPartition",
        principal="User:broker-0",
        host="127.0.0.1",
        operation="CLUSTER_ACTION",
        resource="CLUSTER:kafka-cluster",
    )
    failed = events.AuthenticationFailed(cause_id=CAUSE, address="127.0.0.1:1", mechanism="token", reason="none")
    for metrics in (observed.broker, observed.controller):
        for event in (denied, failed, failed):
            metrics.count(event)
        found = samples(metrics.collect())
        assert found["kafka_server_standardauthorizer_authorization_denied_total"] == 1
        assert found["kafka_server_socketservermetrics_failed_authentication_total"] == 2


class TwoMetrics:
    def __init__(self) -> None:
        self.events = 0

    def count(self, event: events.Event) -> None:
        self.events += 1

    def collect(self) -> Iterable[Metric]:
        yield gauge("a_gauge", "what it is", 7)
        yield counter("a_counter", "what it counts", self.events)


async def _answer(served: ServedMetrics, request: bytes) -> tuple[bytes, bytes]:
    port = await served.start("127.0.0.1", 0, None)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    served.close()
    return head, body


def test_metrics_are_served_as_text() -> None:
    head, body = asyncio.run(_answer(ServedMetrics(TwoMetrics()), b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"))

    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"a_gauge 7.0" in body
    assert b"process_resident_memory_bytes" in body


def test_metrics_are_served_as_openmetrics_on_request() -> None:
    served = ServedMetrics(TwoMetrics())
    served.count(events.Event(cause_id=CAUSE))
    request = b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n"

    _, body = asyncio.run(_answer(served, request))

    parsed = text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]  # the library's own
    families = {family.name: family for family in parsed}
    assert [sample.value for sample in families["a_counter"].samples if sample.name == "a_counter_total"] == [1]
    assert body.endswith(b"# EOF\n")


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1", b"POST /metrics HTTP/1.1", b"nonsense"])
def test_anything_else_is_not_found(line: bytes) -> None:
    head, _ = asyncio.run(_answer(ServedMetrics(TwoMetrics()), line + b"\r\n\r\n"))

    assert head.startswith(b"HTTP/1.1 404")


def test_a_controller_that_is_not_active_shows_nothing_of_the_cluster() -> None:
    shown = samples(ControllerMetrics(lambda: None).collect())
    assert shown["kafka_controller_kafkacontroller_activecontrollercount"] == 0
    assert not any("topic" in name or "partition" in name for name in shown)
