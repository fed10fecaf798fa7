"""Reads the metrics of the nodes of a standing cluster."""

import urllib.error
import urllib.request
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from laststand.chaos.standing.status import NodeStatus
from laststand.emulator.rpc.run_token import RunToken

_TIMEOUT_S: Final = 2.0
_PREFIX: Final = "kafka_"


def read_metrics(node: NodeStatus, token: RunToken) -> dict[str, float] | None:
    """Returns metrics of a whole node, by name; ``None`` if it has none, is down, paused or silent.

    Metrics of single partitions, and of the process, are left out: scrape the address for them.
    """
    if node.state != "running" or node.metrics_url is None:
        return None
    # Loopback: what the environment says of proxies for the world outside is not meant.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if token.certificates is not None:
        handlers.append(urllib.request.HTTPSHandler(context=token.dialling_context))
    opener = urllib.request.build_opener(*handlers)
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
