"""Turns values into families of metrics: one number, or one per partition."""

from collections.abc import Iterable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from laststand.emulator.core.types import TopicPartition


def gauge(name: str, text: str, value: int) -> Metric:
    """Returns a gauge; ``text`` is its help text."""
    return GaugeMetricFamily(name, text, value=value)


def counter(name: str, text: str, value: int) -> Metric:
    """Returns a counter since the process started; the exposition appends ``_total`` to its name."""
    return CounterMetricFamily(name, text, value=value)


def partition_gauge(name: str, text: str, values: Iterable[tuple[TopicPartition, int]]) -> Metric:
    """Returns a gauge with one value for each partition, in the order given."""
    family = GaugeMetricFamily(name, text, labels=("topic", "partition"))
    for partition, value in values:
        family.add_metric((partition.topic, str(partition.partition)), value)
    return family
