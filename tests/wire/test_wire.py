"""The listener answers as Apache Kafka 4.2.0 answered: every case that it can, against three brokers."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tests.wire.player import Cluster
from tests.wire.run import VECTORS, cases_of, failure_of, known_difference, skip_reason, wire_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), pytest.mark.xdist_group("wire")]

PLAYED = [case for case in cases_of(VECTORS) if skip_reason(case) is None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers, whose processes are watched by an event loop in a thread of its own."""
    started, stop = threading.Event(), asyncio.Event()
    found: list[tuple[str, int]] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with wire_cluster(tmp_path_factory.mktemp("wire")) as address:
            found.append(address)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(60)
    yield Cluster(found[0])
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


@pytest.mark.parametrize("subject", sorted({case["id"].partition(".")[0] for case in PLAYED}))
def test_answers_are_those_of_kafka(cluster: Cluster, subject: str) -> None:
    cases = [case for case in PLAYED if case["id"].partition(".")[0] == subject]
    failures = {case["id"]: failure_of(cluster, case) for case in cases}
    assert {name: told for name, told in failures.items() if told is not None and known(name) is None} == {}
    assert [name for name, told in failures.items() if told is None and known(name) is not None] == []


def known(name: str) -> str | None:
    return known_difference({"id": name})
