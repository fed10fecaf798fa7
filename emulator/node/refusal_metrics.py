"""Metrics of refusals by brokers and controllers: of failed authentication, and of denied operations."""

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from laststand.emulator.core import events
from laststand.emulator.node.metric_families import counter


class RefusalMetrics:
    """Counters of one node."""

    def __init__(self) -> None:
        """Starts both counters at 0."""
        self._denials = 0
        self._failed_authentications = 0

    def count(self, event: events.Event) -> None:
        """Counts an event, if it is a refusal."""
        match event:
            case events.AuthorizationDenied():
                self._denials += 1
            case events.AuthenticationFailed():
                self._failed_authentications += 1
            case _:
                pass

    def collect(self) -> Iterator[Metric]:
        """Yields both counters."""
        yield counter(
            "kafka_server_socketservermetrics_failed_authentication",
            "callers and clients that did not prove who they are",
            self._failed_authentications,
        )
        yield counter(
            "kafka_server_standardauthorizer_authorization_denied",
            "denials, each principal's of an operation once until access control lists change",
            self._denials,
        )
