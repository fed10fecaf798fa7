"""Writes the log directories that the tests of ``laststand autopsy`` read: ``kafka-<version>.tar.xz`` beside this file.

    python -m tests.kafka_logs.make 4.2.0 path/to/jars

``path/to/jars`` is a folder with the jars of ``org.apache.kafka:kafka_2.13`` and ``org.apache.kafka:kafka-tools`` of
that version, for example of ``mvn dependency:copy-dependencies``. A controller (100) and brokers 1 to 3 write:

- ``orders-0``: 100 records on all brokers, 50 more on 1 and 2, 25 more on 1 alone; then 3 is elected uncleanly and
  gets 30.
- ``ledger-0``: two transactions of 5 records, the first committed, the second aborted; 4 more without 3.
- ``table-0``: compacted, so that its offsets have gaps.
- ``idle-0``: never written.

Broker 3 stops in order, the others are killed. Indexes are left out: they are large, and nobody reads them.
"""

import asyncio
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from aiokafka import AIOKafkaProducer

_HERE: Final = Path(__file__).parent
_CLUSTER_ID: Final = "bGFzdHN0YW5kLWxvZ3MtMQ"
_CONTROLLER: Final = 100
_BROKERS: Final = (1, 2, 3)
_DEADLINE_S: Final = 90.0
_LEFT_OUT: Final = (".index", ".timeindex", ".txnindex", ".lock")
_JAVA: Final = (
    "java",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


class Cluster:
    """Processes of Kafka on loopback ports."""

    def __init__(self, jars: Path, directory: Path, *, has_elr: bool) -> None:
        self._class_path = f"{jars}/*"
        self._directory = directory
        self._has_elr = has_elr
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def data(self, node: int) -> Path:
        return self._directory / f"node-{node}"

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{23790 + broker}" for broker in _BROKERS if broker in self._processes)

    def format(self, node: int) -> None:
        is_controller = node == _CONTROLLER
        lines = {
            "process.roles": "controller" if is_controller else "broker",
            "node.id": node,
            "controller.quorum.voters": f"{_CONTROLLER}@127.0.0.1:23790",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "listeners": "CONTROLLER://127.0.0.1:23790" if is_controller else f"PLAINTEXT://127.0.0.1:{23790 + node}",
            "log.dirs": self.data(node),
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "replica.lag.time.max.ms": 3000,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.min.isr": 1,
            "log.cleaner.backoff.ms": 500,
            "log.cleaner.dedupe.buffer.size": 4194304,
            "replica.high.watermark.checkpoint.interval.ms": 500,
            "metadata.log.max.record.bytes.between.snapshots": 4000,
        }
        if is_controller:
            lines |= {"metadata.max.idle.interval.ms": 0}
        properties = self._properties(node)
        properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        feature = ("--feature", "eligible.leader.replicas.version=1") if self._has_elr else ()
        self.run("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties), *feature)

    def start(self, node: int) -> None:
        log = (self._directory / f"{node}.out").open("ab")
        self._processes[node] = subprocess.Popen(
            [*_JAVA, "-cp", self._class_path, "kafka.Kafka", str(self._properties(node))], stdout=log, stderr=log
        )

    def end(self, node: int, how: signal.Signals) -> None:
        process = self._processes.pop(node)
        process.send_signal(how)
        process.wait(_DEADLINE_S)

    def end_all(self) -> None:
        for node in list(self._processes):
            self.end(node, signal.SIGKILL)

    def run(self, tool: str, *arguments: str) -> str:
        command = [*_JAVA, "-cp", self._class_path, tool, *arguments]
        done = subprocess.run(command, capture_output=True, timeout=_DEADLINE_S, check=False)
        if done.returncode:
            raise RuntimeError(f"{tool} {arguments}: {done.stdout.decode()} {done.stderr.decode()}")
        return done.stdout.decode()

    def topics(self, *arguments: str) -> str:
        return self.run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.bootstrap, *arguments)

    def create(self, topic: str, *configs: str) -> None:
        assignment = ":".join(map(str, _BROKERS))
        options = [word for config in ("min.insync.replicas=2", *configs) for word in ("--config", config)]
        self.topics("--create", "--topic", topic, "--replica-assignment", assignment, *options)

    def wait_for_isr(self, topic: str, isr: set[int]) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            seen = self.topics("--describe", "--topic", topic)
            found = re.search(r"\tIsr: ([\d,]*)", seen)
            if found is not None and found[1] and set(map(int, found[1].split(","))) == isr:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} should have ISR {isr}: {seen}")

    def elect_uncleanly(self, topic: str) -> None:
        self.run(
            "org.apache.kafka.tools.LeaderElectionCommand",
            *("--bootstrap-server", self.bootstrap, "--election-type", "unclean"),
            *("--topic", topic, "--partition", "0"),
        )

    def _properties(self, node: int) -> Path:
        return self._directory / f"{node}.properties"


async def _produce(cluster: Cluster, topic: str, records: range, *, acks: int | str, keys: int | None = None) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap, acks=acks, enable_idempotence=acks == "all", max_batch_size=400
    )
    await producer.start()
    for number in records:
        key = None if keys is None else f"k{number % keys}".encode()
        await producer.send_and_wait(topic, f"{topic} {number}".encode(), key=key)
    await producer.stop()


async def _transactions(cluster: Cluster) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="till")
    await producer.start()
    for number, is_committed in enumerate((True, False)):
        await producer.begin_transaction()
        for record in range(5):
            await producer.send("ledger", f"ledger {number} {record}".encode())
        await (producer.commit_transaction() if is_committed else producer.abort_transaction())
    await producer.stop()


def _play(cluster: Cluster) -> None:
    for node in (_CONTROLLER, *_BROKERS):
        cluster.format(node)
        cluster.start(node)
    for topic in ("orders", "ledger", "idle"):
        _until_done(partial(cluster.create, topic))
    cluster.create("table", "cleanup.policy=compact", "segment.ms=1000", "min.cleanable.dirty.ratio=0.01")
    cluster.wait_for_isr("idle", {1, 2, 3})
    asyncio.run(_produce(cluster, "orders", range(100), acks="all"))
    for start in (0, 40, 80):
        asyncio.run(_produce(cluster, "table", range(start, start + 40), acks="all", keys=7))
        time.sleep(2)  # a segment of this topic ends after a second, with the next record
    asyncio.run(_transactions(cluster))
    cluster.end(3, signal.SIGKILL)
    cluster.wait_for_isr("orders", {1, 2})
    asyncio.run(_produce(cluster, "orders", range(100, 150), acks="all"))
    asyncio.run(_produce(cluster, "ledger", range(4), acks="all"))
    cluster.end(2, signal.SIGKILL)
    cluster.wait_for_isr("orders", {1})
    asyncio.run(_produce(cluster, "orders", range(150, 175), acks=1))
    cluster.end(1, signal.SIGKILL)
    cluster.start(3)
    _until_done(partial(cluster.elect_uncleanly, "orders"))
    cluster.wait_for_isr("orders", {3})
    asyncio.run(_produce(cluster, "orders", range(200, 230), acks=1))
    cluster.end(3, signal.SIGTERM)


def _until_done(act: Callable[[], object]) -> None:
    """Tries again while brokers are starting."""
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            act()
        except (RuntimeError, subprocess.TimeoutExpired):
            if time.monotonic() > deadline:
                raise
        else:
            return


def main() -> None:
    version, jars = sys.argv[1], Path(sys.argv[2]).absolute()
    with tempfile.TemporaryDirectory() as directory:
        cluster = Cluster(jars, Path(directory), has_elr=not version.startswith("3."))
        try:
            _play(cluster)
        finally:
            cluster.end_all()
        with tarfile.open(_HERE / f"kafka-{version}.tar.xz", "w:xz") as archive:
            for node in (_CONTROLLER, *_BROKERS):
                archive.add(
                    cluster.data(node),
                    f"node-{node}",
                    filter=lambda entry: None if entry.name.endswith(_LEFT_OUT) else entry,
                )


if __name__ == "__main__":
    main()
