"""Fixtures of the tests of foreign clients: clusters that miss a broker soon, one per module where it will do."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from laststand.standing_cluster import StandingCluster
from tests.clients.results import print_table

QUICK: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "6000",
}


@pytest.fixture(autouse=True)
def _judged_here(judged_here: None) -> None:
    """No test of this folder is about Spark."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandingCluster]:
    """A cluster of three brokers that serve clients of Kafka."""
    with StandingCluster(store=tmp_path_factory.mktemp("store"), kafka=True, settings=QUICK) as standing:
        yield standing


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what became of each client."""
    print_table(terminalreporter)
