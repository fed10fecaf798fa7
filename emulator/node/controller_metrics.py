"""The controller's metrics: KIP-966's, and those of Kafka's controller under their exported names.

Gauges are computed from the committed state at each scrape; counters count the controller's events, and start at 0 with
the process, as KIP-966 specifies.
"""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric

from laststand.emulator.core import events
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.node.metric_families import counter, gauge, partition_gauge
from laststand.emulator.node.refusal_metrics import RefusalMetrics

_CONTROLLER = "kafka_controller_kafkacontroller"
_STATS = "kafka_controller_controllerstats"
_KIP_966 = "kafka_controller"


class ControllerMetrics:
    """Metrics of one controller.

    Args:
        active: returns the controller, at each scrape; ``None`` if another of several controllers is active.
    """

    def __init__(self, active: Callable[[], Controller | None]) -> None:
        self._active = active
        self._recoveries = 0
        self._unclean_elections = 0
        self._elections_from_elr = 0
        self._leader_changes = 0
        self._refusals = RefusalMetrics()

    def count(self, event: events.Event) -> None:
        """Counts an event, if a metric depends on it."""
        match event:
            case events.PartitionChanged():
                self._count_change(event)
            case events.UncleanLeaderElected(method=events.UncleanMethod.LONGEST_LOG):
                self._recoveries += 1
            case _:
                self._refusals.count(event)

    def _count_change(self, event: events.PartitionChanged) -> None:
        self._leader_changes += event.election is not events.Election.NONE
        match event.election:
            case events.Election.UNCLEAN | events.Election.LAST_KNOWN_LEADER:
                self._unclean_elections += 1
            case events.Election.ELR:
                self._elections_from_elr += 1
            case _:
                pass

    def collect(self) -> Iterable[Metric]:
        """Yields every metric as it is now."""
        yield from self._refusals.collect()
        controller = self._active()
        yield gauge(f"{_CONTROLLER}_activecontrollercount", "1: this controller decides", int(controller is not None))
        if controller is None:
            return
        health = controller.health()
        yield gauge(f"{_CONTROLLER}_activebrokercount", "brokers that may lead", health.active_brokers)
        yield gauge(f"{_CONTROLLER}_fencedbrokercount", "fenced brokers", health.fenced_brokers)
        yield gauge(f"{_CONTROLLER}_globaltopiccount", "topics", health.topics)
        yield gauge(f"{_CONTROLLER}_globalpartitioncount", "partitions", health.partitions)
        yield gauge(f"{_CONTROLLER}_offlinepartitionscount", "partitions without a leader", health.offline)
        yield gauge(
            f"{_CONTROLLER}_preferredreplicaimbalancecount",
            "partitions that another than the preferred replica leads",
            health.preferred_imbalance,
        )
        yield counter(f"{_STATS}_uncleanleaderelections", "unclean elections", self._unclean_elections)
        yield counter(
            f"{_STATS}_electionfromeligibleleaderreplicas", "elections of an ELR member", self._elections_from_elr
        )
        yield counter(
            "laststand_leader_changes", "partitions that got another leader, or lost theirs", self._leader_changes
        )
        yield gauge(
            f"{_KIP_966}_global_under_min_isr_partition_count", "ISR smaller than min ISR", health.under_min_isr
        )
        yield gauge(
            f"{_KIP_966}_unclean_recovery_partitions_count",
            "partitions under unclean recovery, or waiting for the last known ELR",
            health.unclean_recoveries,
        )
        yield gauge(
            f"{_KIP_966}_manual_leader_election_required_partition_count",
            "leaderless partitions that wait for an administrator",
            health.manual_election_required,
        )
        yield counter(f"{_KIP_966}_unclean_recovery_finished_count", "unclean recoveries done", self._recoveries)
        yield partition_gauge(
            f"{_KIP_966}_electable_leaders", "members of ISR and ELR together", health.electable_leaders.items()
        )
        yield from self._cluster(controller.image)

    def _cluster(self, image: MetadataImage) -> Iterable[Metric]:
        states = sorted(image.partitions.items())
        yield gauge("kafka_brokers", "brokers that are not fenced", sum(not b.fenced for b in image.brokers.values()))
        yield partition_gauge(
            "kafka_topic_partition_leader",
            "leader, -1 for none",
            ((name, -1 if state.leader is None else state.leader) for name, state in states),
        )
        yield partition_gauge(
            "kafka_topic_partition_in_sync_replica", "members of the ISR", ((name, len(s.isr)) for name, s in states)
        )
        yield partition_gauge(
            "laststand_partition_elr", "members of the ELR", ((name, len(state.elr)) for name, state in states)
        )
        yield partition_gauge(
            "kafka_topic_partition_under_replicated_partition",
            "1: a replica is not in the ISR",
            ((name, int(len(state.isr) < len(state.replicas))) for name, state in states),
        )
