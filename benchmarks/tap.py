"""The processor time that a tap takes for a request, beside that of a program that only forwards bytes.

One client sends each request once the one before is answered, the most expensive case: no two share a wakeup. The
broker behind is the tests' own, in this process, so that its time is not counted.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.cluster import BenchmarkError
from benchmarks.figure import Figure
from laststand.emulator.core.address import host_and_port
from laststand.emulator.kafka_listener.message_codec import Writer, request_codec
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.parent_death import die_with_parent
from laststand.emulator.storage.value_batch import build_value_batch
from tests.fake_kafka import VERSIONS, FakeCluster, Fault, topic_id

REPETITIONS: Final = 5
_REQUESTS: Final = 2000
_WARM_UP: Final = 200
_WRITTEN: Final = "written"
_READ: Final = "read"
_VALUE: Final = bytes(1024)
_BOOTSTRAP: Final = re.compile(r"bootstrap\.servers=(\S+)")


class _Way(NamedTuple):
    """A program that connections pass, and a connection through it."""

    pid: int
    connection: socket.socket


def measure() -> Iterator[Figure]:
    """Yields the figures.

    Raises:
        BenchmarkError: a program did not start.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as name, ExitStack() as stack:
        folder = Path(name)
        cluster = FakeCluster(folder, broker_ids=(0,), fault=Fault())
        stack.enter_context(cluster.running())
        command = ["laststand.cli", "tap", "--upstream", cluster.bootstrap, "--out", str(folder / "run")]
        ways = {
            "": stack.enter_context(_way([*command, "--listen", "127.0.0.1:0"])),
            "_forwarder": stack.enter_context(_way(["benchmarks.plain_forwarder", cluster.bootstrap])),
        }
        for way in ways.values():
            for request in (_create_topics(), _metadata(), _produce(_READ)):
                _ask(way.connection, request)
        for kind, request in (("produce", _produce(_WRITTEN)), ("fetch", _fetch())):
            rounds: dict[str, list[float]] = {who: [] for who in ways}
            for _ in range(REPETITIONS):
                for who, way in ways.items():
                    rounds[who].append(_cpu_us(way, request))
            for who, values in rounds.items():
                yield Figure(name=f"tap{who}_{kind}_cpu", unit="us", values=tuple(values))


@contextmanager
def _way(arguments: list[str]) -> Iterator[_Way]:
    """Yields a program that was started with ``python -m``, once it has printed where it listens."""
    with subprocess.Popen(
        die_with_parent([sys.executable, "-m", *arguments]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = _BOOTSTRAP.search(line)
        try:
            if address is None and not line.strip().isdecimal():
                raise BenchmarkError(f"{arguments[0]} said: {line}{process.stdout.read()}")
            place = f"127.0.0.1:{line.strip()}" if address is None else address[1]
            with socket.create_connection(host_and_port(place)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                yield _Way(process.pid, connection)
        finally:
            process.kill()


def _cpu_us(way: _Way, request: bytes) -> float:
    """Returns user and system time of the program, per request."""
    for _ in range(_WARM_UP):
        _ask(way.connection, request)
    clock = ~way.pid << 3 | 2  # the process's CPU-time clock: clock_getcpuclockid(3)
    began = time.clock_gettime_ns(clock)
    for _ in range(_REQUESTS):
        _ask(way.connection, request)
    return (time.clock_gettime_ns(clock) - began) / _REQUESTS / 1000


def _ask(connection: socket.socket, request: bytes) -> None:
    connection.sendall(request)
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    connection.recv(size, socket.MSG_WAITALL)


def _frame(api: str, body: Message) -> bytes:
    key, version = api_named(api).key, VERSIONS[api]
    writer = Writer()
    request_codec(key, version).write(body, writer)
    header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\0\4perf\0"
    content = b"".join((header, *writer.buffers()))
    return len(content).to_bytes(4, "big") + content


def _create_topics() -> bytes:
    topic = {"numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    topics = [{**topic, "name": name} for name in (_WRITTEN, _READ)]
    return _frame("CreateTopics", {"topics": topics, "timeoutMs": 1000})


def _metadata() -> bytes:
    return _frame("Metadata", {"topics": [{"name": name} for name in (_WRITTEN, _READ)]})


def _produce(topic: str) -> bytes:
    batch = build_value_batch((_VALUE,), timestamp_ms=0, producer_id=None, producer_epoch=None, base_sequence=None)
    topics = [{"name": topic, "partitionData": [{"index": 0, "records": batch}]}]
    return _frame("Produce", {"acks": -1, "timeoutMs": 1000, "topicData": topics})


def _fetch() -> bytes:
    entry = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
    return _frame(
        "Fetch",
        {"maxWaitMs": 0, "minBytes": 1, "topics": [{"topicId": topic_id(_READ), "partitions": [entry]}], "rackId": ""},
    )
