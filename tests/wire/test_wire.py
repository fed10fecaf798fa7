"""The listener answers as Apache Kafka 4.2.0 answered: every case that it can, against three brokers."""

import asyncio
import contextlib
import random
import struct
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from laststand.emulator.kafka_listener.message_codec import Writer, request_codec
from laststand.emulator.kafka_listener.messages import api_named
from tests.wire.player import Cluster, Connection
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


async def test_brokers_survive_frames_that_are_cut_changed_and_invented(cluster: Cluster) -> None:
    await asyncio.to_thread(send_bad_frames, cluster)


def send_bad_frames(cluster: Cluster) -> None:
    chance = random.Random(1)
    valid = [frame_of(case, step) for case in PLAYED for step in case["steps"] if "request" in step]
    for number in range(FRAMES):
        address = cluster.addresses[number % len(cluster.addresses) + 1]
        connection = Connection(address)
        connection.send_bytes(bad_frame(chance, valid))
        connection.close()
    for address in cluster.addresses.values():
        connection = Connection(address)
        assert len(connection.ask("Metadata", 12, {"topics": []})["brokers"]) == len(cluster.addresses)
        connection.close()


def frame_of(case: dict[str, Any], step: dict[str, Any]) -> bytes:
    """Returns a request of a case; names that only a play of it knows are as they are, and batches are empty."""
    api = api_named(step["api"])
    writer = Writer()
    writer.put(struct.pack(">hhih", api.key, step["version"], 1, 3) + b"vec")
    if step["version"] in api.flexible:
        writer.put(b"\0")
    head = b"".join(writer.buffers())
    with contextlib.suppress(struct.error, TypeError, ValueError, AttributeError, KeyError):
        request_codec(api.key, step["version"]).write(without_batches(step["request"]), writer)
        return b"".join(writer.buffers())
    return head


def without_batches(value: Any) -> Any:
    match value:
        case {"$batch": _} | {"$subscription": _} | {"$concat": _}:
            return b""
        case dict():
            return {name: without_batches(each) for name, each in value.items()}
        case list():
            return [without_batches(each) for each in value]
    return value


def bad_frame(chance: random.Random, valid: list[bytes]) -> bytes:
    """Returns a frame of random bytes, or one that was cut or changed; mostly of the size that it says."""
    if chance.random() < 0.2:
        content = chance.randbytes(chance.randrange(80))
    else:
        changed = bytearray(chance.choice(valid))
        for _ in range(chance.randrange(4)):
            changed[chance.randrange(4, len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        content = bytes(changed[: chance.randrange(len(changed) + 1)] if chance.random() < 0.3 else changed)
    size = chance.choice((0, -1, 1 << 30)) if chance.random() < 0.05 else len(content)
    return struct.pack(">i", size) + content


def known(name: str) -> str | None:
    return known_difference({"id": name})
