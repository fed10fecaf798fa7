"""The files that describe a cluster to Prometheus and Grafana: targets, and one dashboard.

The dashboard shows exactly the table ``PANELS``. Its queries name metrics of ``laststand.emulator.node``; a test runs
each query on a Prometheus after a cluster has worked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import yaml

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

SCRAPE_INTERVAL: Final = "1s"
RATE_INTERVAL: Final = "$__rate_interval"
"""Grafana puts a duration in its place that covers several scrapes."""

ANNOTATION_TAG: Final = "laststand"
"""The tag of the harness's annotations."""

_PER_PARTITION: Final = "{{topic}}-{{partition}}"
_PROMETHEUS: Final[dict[str, Json]] = {"type": "prometheus", "uid": "prometheus"}
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture.

    Attributes:
        title: the text above it.
        queries: in PromQL, with the legend of their lines.
        unit: of its values, as Grafana calls it.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"


def _produce_quantile(quantile: float) -> str:
    rate = f'rate(kafka_network_requestmetrics_totaltimems_bucket{{request="Produce"}}[{RATE_INTERVAL}])'
    return f"histogram_quantile({quantile}, sum by (le) ({rate}))"


PANELS: Final = (
    Panel(title="ISR size", queries=(("kafka_topic_partition_in_sync_replica", _PER_PARTITION),)),
    Panel(title="ELR size", queries=(("laststand_partition_elr", _PER_PARTITION),)),
    Panel(
        title="Partitions under min ISR, and without a leader",
        queries=(
            ("kafka_controller_global_under_min_isr_partition_count", "under min ISR"),
            ("kafka_controller_kafkacontroller_offlinepartitionscount", "without a leader"),
        ),
    ),
    Panel(
        title="Leader changes",
        queries=(
            (f"increase(laststand_leader_changes_total[{RATE_INTERVAL}])", "all"),
            (f"increase(kafka_controller_controllerstats_uncleanleaderelections_total[{RATE_INTERVAL}])", "unclean"),
        ),
    ),
    Panel(
        title="High watermark lag: records behind the leader's log end",
        queries=(
            (
                "kafka_log_log_logendoffset - on (node, topic, partition) kafka_topic_partition_current_offset",
                _PER_PARTITION,
            ),
        ),
    ),
    Panel(title="Brokers that are not fenced", queries=(("kafka_brokers", "brokers"),)),
    Panel(
        title="Produce rate by leader",
        queries=((f"rate(kafka_server_brokertopicmetrics_messagesin_total[{RATE_INTERVAL}])", "{{node}}"),),
        unit="cps",
    ),
    Panel(
        title="Produce latency, of requests with acks",
        queries=((_produce_quantile(0.5), "median"), (_produce_quantile(0.99), "99 %")),
        unit="ms",
    ),
)


def prometheus_config(addresses: Mapping[str, str]) -> str:
    """Returns ``prometheus.yml``.

    Args:
        addresses: ``host:port`` of ``/metrics`` by the node's name, which becomes the label ``node``.
    """
    document = {
        "global": {"scrape_interval": SCRAPE_INTERVAL},
        "scrape_configs": [
            {
                "job_name": "laststand",
                "static_configs": [
                    {"targets": [address], "labels": {"node": name}} for name, address in addresses.items()
                ],
            }
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)


def grafana_datasource(prometheus_url: str) -> str:
    """Returns the provisioning file of Grafana's source."""
    source = {
        "name": "Prometheus",
        "uid": _PROMETHEUS["uid"],
        "type": "prometheus",
        "access": "proxy",
        "url": prometheus_url,
        "isDefault": True,
        "jsonData": {"timeInterval": SCRAPE_INTERVAL},
    }
    return yaml.safe_dump({"apiVersion": 1, "datasources": [source]}, sort_keys=False)


def grafana_provider(folder: str) -> str:
    """Returns the provisioning file that has Grafana look for dashboards in a folder."""
    provider = {"name": "laststand", "type": "file", "options": {"path": folder}}
    return yaml.safe_dump({"apiVersion": 1, "providers": [provider]}, sort_keys=False)


def dashboard() -> str:
    """Returns the dashboard's JSON, a line for each panel."""
    panels = [_panel(index, panel) for index, panel in enumerate(PANELS)]
    document: dict[str, Json] = {
        "uid": "laststand",
        "title": "Laststand",
        "tags": ["laststand"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "annotations": {"list": [_faults()]},
        "templating": {"list": []},
    }
    head = json.dumps(document, indent=1).removesuffix("\n}")
    return f'{head},\n "panels": [\n  ' + ",\n  ".join(map(json.dumps, panels)) + "\n ]\n}"


def _faults() -> Json:
    return {
        "name": "Faults and repairs",
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "iconColor": "red",
        "target": {"type": "tags", "tags": [ANNOTATION_TAG], "matchAny": False, "limit": 1000},
    }


def _panel(index: int, panel: Panel) -> Json:
    row, column = divmod(index, _COLUMNS)
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _PROMETHEUS,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend, "datasource": _PROMETHEUS}
            for number, (expression, legend) in enumerate(panel.queries)
        ],
    }
