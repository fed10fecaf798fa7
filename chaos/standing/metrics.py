"""Reads the metrics of the nodes of a standing cluster."""

import urllib.error
import urllib.request
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from laststand.chaos.standing.status import NodeStatus

_TIMEOUT_S: Final = 2.0
_PREFIX: Final = "kafka_"


def read_metrics(node: NodeStatus) -> dict[str, float] | None:
    """Returns metrics of a node as a whole, by name; ``None`` where it has none, is down, paused or silent.

    Metrics of single partitions, and of the process, are left out: scrape the address for them.
    """
    if node.state != "running" or node.metrics_url is None:
        return None
    # Loopback: what the environment says of proxies for the world outside is not meant.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(node.metrics_url, timeout=_TIMEOUT_S) as response:
            text = response.read().decode()
    except (urllib.error.URLError, OSError):
        return None
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(_PREFIX) and not sample.labels
    }
