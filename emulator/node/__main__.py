"""``python -m laststand.emulator.node broker|controller [--config FILE]``: one process of a node.

``broker,controller`` with two files is a process with both roles (combined mode): each has its own core, port, event
log and directory, and they share the process's faults. It stops its broker first, as Kafka's does. At SIGUSR2 it stops
the broker alone, and the controller at SIGTERM: when a whole cluster ends, each broker then finds a controller.

The event log is opened before anything slow is imported, so that a process that is killed early still has a file. Exit
codes: 0 after an orderly end (SIGTERM), 254 for an invalid configuration, 255 for everything else. A bug ends the
process at once, with its traceback on standard error: if the node continued, the run would prove nothing. Only a bug in
an operation of one of several controllers merely ends its leadership, as in Kafka.
"""

import argparse
import asyncio
import gc
import os
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, Final, NamedTuple

from laststand.emulator.core.eras import rule_texts
from laststand.emulator.core.errors import ConfigError, UnsupportedFeatureError
from laststand.emulator.core.events import AuthenticationFailed, NodeStarted, NodeStopped
from laststand.emulator.core.types import CauseId, IncarnationId, NodeRole
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.node.cause_ids import CauseIds
from laststand.emulator.node.config import NodeConfig, read_config
from laststand.emulator.node.controller_host import await_controller
from laststand.emulator.node.environment import config_from_environment
from laststand.emulator.node.event_writer import EventWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laststand.emulator.node.broker_shell import BrokerShell
    from laststand.emulator.node.controller_shell import ControllerShell
    from laststand.emulator.storage.filesystem import FileSystem

_EXIT_CONFIG: Final = 254
_EXIT_FAILURE: Final = 255

_ROLES: Final = {
    NodeRole.BROKER.value: (NodeRole.BROKER,),
    NodeRole.CONTROLLER.value: (NodeRole.CONTROLLER,),
    f"{NodeRole.BROKER.value},{NodeRole.CONTROLLER.value}": (NodeRole.BROKER, NodeRole.CONTROLLER),
}
"""Roles of a process by its argument, in the order in which they stop."""


class _Node(NamedTuple):
    """One role of a process."""

    role: NodeRole
    config: NodeConfig
    events: EventWriter
    causes: CauseIds
    incarnation_id: IncarnationId


def main() -> int:
    """Runs a node, or a broker and a controller, and returns the exit code."""
    arguments = _arguments()
    try:
        given = list(zip(_ROLES[arguments.role], arguments.config or [None], strict=True))
        configs = [(role, _config(role, path)) for role, path in given]
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_CONFIG
    except ValueError:
        sys.stderr.write(f"{arguments.role} takes a --config for each role\n")
        return _EXIT_CONFIG
    nodes = [_started(role, config) for role, config in configs]
    unsupported: ExceptionGroup[UnsupportedFeatureError] | None = None
    try:
        asyncio.run(_serve(nodes))
    except* UnsupportedFeatureError as group:
        unsupported = group
    if unsupported is not None:
        sys.stderr.write(f"{_first(unsupported)}\n")
        return _EXIT_FAILURE
    for node in nodes:
        node.events.add(NodeStopped(cause_id=node.causes.shutdown()))
        node.events.close()
    return 0


def _first(group: ExceptionGroup[UnsupportedFeatureError]) -> UnsupportedFeatureError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first


def _config(role: NodeRole, path: str | None) -> NodeConfig:
    config = config_from_environment(role, os.environ) if path is None else read_config(path)
    config.node_properties()
    config.token()
    _check_certificates(config)
    if path is None and role is NodeRole.BROKER and config.incarnation == 0:
        await_controller(os.environ)
    return config


def _check_certificates(config: NodeConfig) -> None:
    """Reads the certificates of the listener for clients of Kafka, if it speaks TLS.

    Raises:
        ConfigError: they cannot be read, or do not belong together.
    """
    properties = config.node_properties()
    if config.kafka is not None and properties.has_tls:
        from laststand.emulator.kafka_listener.tls import server_context

        server_context(properties)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m laststand.emulator.node", description="Runs one node of a cluster."
    )
    parser.add_argument("role", choices=list(_ROLES))
    parser.add_argument(
        "--config",
        action="append",
        help="a node's configuration, a JSON file, once for each role; by default, the environment has it",
    )
    return parser.parse_args()


def _started(role: NodeRole, config: NodeConfig) -> _Node:
    """Opens a node's event log."""
    events = EventWriter(config.event_file, run=config.run, node_id=config.node_id, incarnation=config.incarnation)
    causes = CauseIds(node_id=config.node_id, incarnation=config.incarnation)
    incarnation_id = IncarnationId(uuid_text(os.urandom(16)))
    events.add(
        NodeStarted(
            cause_id=causes.start(),
            role=role,
            incarnation_id=incarnation_id,
            switches=rule_texts(config.rules()),
            properties=config.property_texts(),
            wall_time_ns=time.time_ns(),
        )
    )
    events.flush()
    return _Node(role, config, events, causes, incarnation_id)


def _handshake_failed(reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(cause_id=CauseId("tls"), address="", mechanism="SSL", reason=reason)


async def _serve(nodes: "Sequence[_Node]") -> None:
    # Imported here, and only for the roles of this process: the event log must exist before anything slow is imported.
    from laststand.emulator.node.handshake import report_ready
    from laststand.emulator.node.logging_setup import configure_logging
    from laststand.emulator.storage.os_filesystem import OsFileSystem

    shells: list[ControllerShell | BrokerShell] = []
    if nodes[0].config.node_properties().has_tls_between_nodes:
        from laststand.emulator.rpc.handshake_failures import watch_handshakes

        watch_handshakes(lambda reason: shells[0].record_between_turns(_handshake_failed(reason)))
    configure_logging(nodes[0].role, nodes[0].config)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_stop_on_bug)
    filesystems = [OsFileSystem(ledger_folder=node.config.ledger_dir) for node in nodes]
    for node, filesystem in zip(nodes, filesystems, strict=True):
        shells.append(await _shell(node, filesystem))
    ports = [await shell.listen() for shell in shells]
    metrics_ports = [
        None if node.config.metrics_port is None else await shell.serve_metrics(node.config.metrics_port)
        for node, shell in zip(nodes, shells, strict=True)
    ]
    # What was imported lives as long as the process: the collector need not look at it again.
    gc.freeze()

    def notice() -> None:
        for filesystem in filesystems:
            filesystem.disk.notice()

    may_end = asyncio.Event()
    may_end.set()

    def end() -> None:
        may_end.set()
        shells[0].request_shutdown()

    def end_broker() -> None:
        may_end.clear()
        shells[0].request_shutdown()

    loop.add_signal_handler(signal.SIGTERM, end)
    loop.add_signal_handler(signal.SIGUSR1, notice)
    if len(shells) > 1:
        loop.add_signal_handler(signal.SIGUSR2, end_broker)
    report_ready(ports[0], metrics_ports[0])
    await _run(shells, may_end)


async def _run(shells: "Sequence[ControllerShell | BrokerShell]", may_end: asyncio.Event) -> None:
    """Runs until the first has ended, and then the others, which are asked to end one after the other once they may."""
    if len(shells) == 1:
        await shells[0].run()
        return
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(shell.run()) for shell in shells]
        await running[0]
        await may_end.wait()
        for shell, task in zip(shells[1:], running[1:], strict=True):
            shell.request_shutdown()
            await task


async def _shell(node: _Node, filesystem: "FileSystem") -> "ControllerShell | BrokerShell":
    if node.role is NodeRole.CONTROLLER:
        return _controller_shell(node.config, node.events, filesystem)
    shell = _broker_shell(node.config, node.events, node.incarnation_id, filesystem)
    if node.config.kafka is not None:
        await shell.serve_kafka(node.config.kafka)
    return shell


def _controller_shell(config: NodeConfig, events: EventWriter, filesystem: "FileSystem") -> "ControllerShell":
    from laststand.emulator.node.controller_shell import ControllerShell

    return ControllerShell(config, events, filesystem)


def _broker_shell(
    config: NodeConfig, events: EventWriter, incarnation_id: IncarnationId, filesystem: "FileSystem"
) -> "BrokerShell":
    if config.zookeeper is not None:
        from laststand.emulator.node.zookeeper_shell import ZooKeeperBrokerShell

        return ZooKeeperBrokerShell(config, events, incarnation_id, filesystem)
    from laststand.emulator.node.broker_shell import BrokerShell

    return BrokerShell(config, events, incarnation_id, filesystem)


def _stop_on_bug(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Ends the process at once: after a bug, its actions would prove nothing."""
    error = context.get("exception")
    sys.stderr.write(f"{context.get('message')}\n")
    if isinstance(error, BaseException):
        traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(_EXIT_FAILURE)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:
        traceback.print_exc()
        sys.exit(_EXIT_FAILURE)
