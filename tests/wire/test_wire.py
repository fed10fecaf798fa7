"""The listener answers as Apache Kafka 4.2.0 answered: every case that it can, against three brokers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from tests.wire.bad_frames import send_bad_frames
from tests.wire.player import Cluster
from tests.wire.run import VECTORS, cases_of, failure_of, known_difference, skip_reason, wire_cluster

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("wire"),
    pytest.mark.asyncio(loop_scope="module"),
]

FRAMES: Final = 2000
PLAYED = [case for case in cases_of(VECTORS) if skip_reason(case) is None]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with wire_cluster(tmp_path_factory.mktemp("wire")) as address:
        yield await asyncio.to_thread(Cluster, address)


@pytest.mark.parametrize("subject", sorted({case["id"].partition(".")[0] for case in PLAYED}))
async def test_answers_are_those_of_kafka(cluster: Cluster, subject: str) -> None:
    cases = [case for case in PLAYED if case["id"].partition(".")[0] == subject]
    failures = {case["id"]: await asyncio.to_thread(failure_of, cluster, case) for case in cases}
    assert {name: told for name, told in failures.items() if told is not None and known(name) is None} == {}
    assert [name for name, told in failures.items() if told is None and known(name) is not None] == []


async def test_a_consumer_above_its_quota_is_given_nothing_for_a_while(cluster: Cluster) -> None:
    entity = [{"entityType": "client-id", "entityName": "@q"}]
    quota = {"key": "consumer_byte_rate", "value": 1000.0, "remove": False}
    batch = {"index": 0, "records": {"$batch": {"size": 6000}}}
    partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 100}
    fetch = {
        "api": "Fetch",
        "version": 11,
        "request": {"maxWaitMs": 0, "minBytes": 0, "topics": [{"topic": "@a", "partitions": [partition]}]},
        "broker": 1,
        "clientId": "@q",
    }
    case = {
        "id": "consumer-quota",
        "steps": [
            {"topic": "a"},
            {
                "api": "Produce",
                "version": 9,
                "request": {"acks": -1, "timeoutMs": 10_000, "topicData": [{"name": "@a", "partitionData": [batch]}]},
                "broker": 1,
            },
            {
                "api": "AlterClientQuotas",
                "version": 1,
                "request": {"entries": [{"entity": entity, "ops": [quota]}], "validateOnly": False},
                "broker": 1,
                "expect": {"$partial": True, "entries": [{"errorCode": 0, "errorMessage": None, "entity": entity}]},
            },
            {
                "api": "DescribeClientQuotas",
                "version": 1,
                "request": {
                    "components": [{"entityType": "client-id", "matchType": 0, "match": "@q"}],
                    "strict": True,
                },
                "broker": 1,
                "withinMs": 5000,
                "until": {"path": "entries.0.values.0.value", "is": 1000.0},
            },
            {**fetch, "expect": {"$partial": True, "throttleTimeMs": 0, "responses": [{"$partial": True}]}},
            {**fetch, "expect": {"$partial": True, "throttleTimeMs": {"$ge": 1}, "sessionId": 0, "responses": []}},
        ],
    }
    assert await asyncio.to_thread(failure_of, cluster, case) is None


async def test_brokers_survive_frames_that_are_cut_changed_and_invented(cluster: Cluster) -> None:
    await asyncio.to_thread(send_bad_frames, cluster, FRAMES, seed=1)


def known(name: str) -> str | None:
    return known_difference({"id": name})
