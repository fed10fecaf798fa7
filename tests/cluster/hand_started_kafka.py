"""A cluster of Apache Kafka that nobody of this project runs: started, stopped and killed by commands of the shell."""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from laststand.emulator.cluster.kafka_cluster import format_log_directory
from laststand.emulator.cluster.kafka_distribution import KafkaProgram
from laststand.emulator.cluster.ports import ReservedPort
from laststand.emulator.core.types import NodeId

CLUSTER_ID: Final = "startedbyhandstarted00"
_CONTROLLER: Final = 100
_STARTS_WITHIN_S: Final = 120

HOOKS: Final = """\
nodes: {NODES}
hooks:
  stop: {command: 'kill -TERM $(cat {name}.pid)', within: 60 s}
  kill: {command: 'kill -KILL $(cat {name}.pid)', within: 60 s}
  start: {command: 'sh start-{name}.sh', within: 120 s}
"""


@contextmanager
def hand_started(kafka: KafkaProgram, folder: Path, *, brokers: int, properties: Mapping[str, str]) -> Iterator[str]:
    """Starts a controller and brokers; yields the addresses of these. ``HOOKS`` are in ``hooks.yaml`` of the folder."""
    nodes = (*range(brokers), _CONTROLLER)
    # Nobody else is given them while a node is down, or is not up yet.
    reserved = [ReservedPort() for _ in nodes]
    for each in reserved:
        each.lend()
    ports = [each.number for each in reserved]
    for node, port in zip(nodes, ports, strict=True):
        is_controller = node == _CONTROLLER
        data = folder / f"data-{node}"
        template = kafka.distribution.formatted(elr=True) if is_controller else None
        format_log_directory(data, template=template, node_id=NodeId(node), cluster_id=CLUSTER_ID)
        protocol = "CONTROLLER" if is_controller else "PLAINTEXT"
        values = {
            **properties,
            "node.id": node,
            "process.roles": "controller" if is_controller else "broker",
            "log.dirs": data,
            "listeners": f"{protocol}://127.0.0.1:{port}",
            "advertised.listeners": f"{protocol}://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{_CONTROLLER}@127.0.0.1:{ports[-1]}",
            "auto.create.topics.enable": "false",
            "log.cleaner.dedupe.buffer.size": 2097152,
        }
        path = folder / f"server-{node}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        archive = (f"-XX:SharedArchiveFile={kafka.distribution.class_archive}", "-Xshare:auto", "-Xlog:disable")
        options = ("-cp", kafka.distribution.class_path, *kafka.jvm_options, *archive)
        command = (str(kafka.java), *options, "kafka.Kafka", str(path))
        start = f"{shlex.join(command)} >>{node}.log 2>&1 &\necho $! >{node}.pid\n"
        (folder / f"start-{node}.sh").write_text(start)
    names = ", ".join(f"{broker}: '{broker}'" for broker in range(brokers))
    (folder / "hooks.yaml").write_text(HOOKS.replace("NODES", names))
    try:
        for node in (_CONTROLLER, *range(brokers)):
            subprocess.run(["/bin/sh", f"start-{node}.sh"], cwd=folder, check=True)
        for port in ports:
            await_listener(port)
        yield ",".join(f"127.0.0.1:{port}" for port in ports[:-1])
    finally:
        for path in folder.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)
        for each in reserved:
            each.close()


def await_listener(port: int) -> None:
    """Waits until somebody listens."""
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert time.monotonic() < deadline, f"nobody listens at port {port}"
        time.sleep(0.2)
