"""A broker's metrics: Kafka's replica manager, fetcher, partitions and logs.

Names are Kafka's as its JMX exporter writes them. Gauges are computed from the partitions at each scrape. Counters
count the broker's events: an ISR change counts once the controller has committed it, as in Kafka's
``AlterPartitionListener``, even if the broker learns of it from metadata before the response. Kafka's quantiles of a
produce request's time are a histogram here, so that several brokers can be added up.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from laststand.emulator.core import events
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId
from laststand.emulator.node.metric_families import counter, gauge, partition_gauge
from laststand.emulator.node.produce_times import ProduceTimes
from laststand.emulator.node.refusal_metrics import RefusalMetrics

if TYPE_CHECKING:
    from laststand.emulator.core.broker.zookeeper.broker import ZooKeeperBroker

_MANAGER = "kafka_server_replicamanager"


class BrokerMetrics:
    """Metrics of one broker.

    Args:
        broker: read at each scrape.
        broker_id: its id.

    Attributes:
        produce_times: from arrival to answer, of produce requests.
    """

    def __init__(self, broker: "Broker | ZooKeeperBroker", broker_id: BrokerId) -> None:
        self.produce_times = ProduceTimes()
        self._broker = broker
        self._broker_id = broker_id
        self._growth: dict[tuple[str, int], int] = {}  # of the ISR, by what was proposed and is not answered yet
        self._shrinks = 0
        self._expands = 0
        self._failures = 0
        self._records = 0
        self._refusals = RefusalMetrics()

    def count(self, event: events.Event) -> None:
        """Counts an event, if a metric depends on it."""
        match event:
            case events.BatchAppended(role=events.AppendRole.LEADER):
                self._records += event.record_count
            case events.AlterPartitionProposed():
                growth = len(event.proposed_isr) - len(event.committed_isr)
                self._growth[event.topic, event.partition] = growth
            case events.AlterPartitionAnswered():
                growth = self._growth.pop((event.topic, event.partition), 0)
                if event.error != ErrorCode.NONE.name:
                    self._failures += 1
                elif growth < 0:
                    self._shrinks += 1
                elif growth > 0:
                    self._expands += 1
            case _:
                self._refusals.count(event)

    def collect(self) -> Iterable[Metric]:
        """Yields every metric as it is now."""
        partitions = sorted(self._broker.partitions, key=lambda partition: partition.name)
        led = [partition for partition in partitions if partition.is_leader]
        yield from self._replica_manager(partitions, led)
        yield gauge(
            "kafka_server_replicafetchermanager_maxlag",
            "records by which this broker trails the leader that it trails most",
            self._broker.max_fetch_lag,
        )
        yield counter(
            "kafka_server_brokertopicmetrics_messagesin", "records that producers brought to this leader", self._records
        )
        yield from self._refusals.collect()
        yield self.produce_times.collect()
        yield from _led_partitions(led)
        yield from _logs(partitions)

    def _replica_manager(self, partitions: Sequence[Partition], led: Sequence[Partition]) -> Iterable[Metric]:
        yield gauge(f"{_MANAGER}_partitioncount", "partitions hosted here", len(partitions))
        yield gauge(f"{_MANAGER}_leadercount", "partitions led here", len(led))
        yield gauge(
            f"{_MANAGER}_underreplicatedpartitions", "led here, not all replicas in the ISR", _count(led, _is_under)
        )
        yield gauge(
            f"{_MANAGER}_underminisrpartitioncount",
            "led here, ISR smaller than min ISR",
            _count(led, lambda partition: partition.is_under_min_isr),
        )
        yield gauge(
            f"{_MANAGER}_atminisrpartitioncount", "led here, ISR of exactly min ISR", _count(led, _is_at_min_isr)
        )
        yield gauge(
            f"{_MANAGER}_offlinereplicacount",
            "replicas placed here that no log serves",
            self._placed_here() - len(partitions),
        )
        yield counter(f"{_MANAGER}_isrshrinks", "ISRs that became smaller", self._shrinks)
        yield counter(f"{_MANAGER}_isrexpands", "ISRs that became larger", self._expands)
        yield counter(f"{_MANAGER}_failedisrupdates", "ISR changes that were refused", self._failures)

    def _placed_here(self) -> int:
        return sum(self._broker_id in state.replicas for state in self._broker.image.partitions.values())


def _led_partitions(led: Sequence[Partition]) -> Iterable[Metric]:
    partition = "kafka_cluster_partition"
    yield _each(f"{partition}_replicascount", "replicas assigned", led, lambda p: len(p.replicas))
    yield _each(f"{partition}_insyncreplicascount", "committed ISR", led, lambda p: len(p.committed_isr))
    yield _each(f"{partition}_underreplicated", "1: a replica is not in the ISR", led, _is_under)
    yield _each(f"{partition}_underminisr", "1: ISR smaller than min ISR", led, lambda p: p.is_under_min_isr)
    yield _each(f"{partition}_atminisr", "1: ISR of exactly min ISR", led, _is_at_min_isr)
    yield _each(
        "kafka_topic_partition_current_offset", "where consumers stop reading", led, lambda p: p.log.high_watermark
    )


def _logs(partitions: Sequence[Partition]) -> Iterable[Metric]:
    log = "kafka_log_log"
    yield _each(f"{log}_logstartoffset", "first offset", partitions, lambda p: p.log.log_start_offset)
    yield _each(f"{log}_logendoffset", "next offset", partitions, lambda p: p.log.log_end_offset)
    yield _each(
        "laststand_partition_high_watermark", "high watermark as known here", partitions, lambda p: p.log.high_watermark
    )


def _each(name: str, text: str, partitions: Sequence[Partition], read: Callable[[Partition], int]) -> Metric:
    return partition_gauge(name, text, ((partition.name, int(read(partition))) for partition in partitions))


def _count(partitions: Iterable[Partition], holds: Callable[[Partition], bool]) -> int:
    return sum(map(holds, partitions))


def _is_under(partition: Partition) -> bool:
    return len(partition.committed_isr) < len(partition.replicas)


def _is_at_min_isr(partition: Partition) -> bool:
    return len(partition.committed_isr) == partition.effective_min_isr
