"""``python -m laststand.emulator.node broker|controller [--config FILE]``: one process of a node.

The event log is opened before anything slow is imported, so that an incarnation that is killed early still has a file.
Exit codes: 0 after an orderly end (SIGTERM), 254 for an invalid configuration, 255 for everything else. A bug ends the
process at once, with its traceback on standard error: if the node continued, the run would prove nothing.
"""

import argparse
import asyncio
import gc
import os
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, Final

from laststand.emulator.core.eras import rule_texts
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.events import AuthenticationFailed, NodeStarted, NodeStopped
from laststand.emulator.core.types import CauseId, IncarnationId, NodeRole
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.node.cause_ids import CauseIds
from laststand.emulator.node.config import NodeConfig, read_config
from laststand.emulator.node.controller_host import await_controller
from laststand.emulator.node.environment import config_from_environment
from laststand.emulator.node.event_writer import EventWriter

if TYPE_CHECKING:
    from laststand.emulator.node.broker_shell import BrokerShell
    from laststand.emulator.node.controller_shell import ControllerShell
    from laststand.emulator.storage.filesystem import FileSystem

_EXIT_CONFIG: Final = 254
_EXIT_FAILURE: Final = 255


def main() -> int:
    """Runs a node and returns its exit code."""
    arguments = _arguments()
    role = NodeRole(arguments.role)
    is_composed = arguments.config is None
    try:
        config = config_from_environment(role, os.environ) if is_composed else read_config(arguments.config)
        config.node_properties()
        config.token()
        _check_certificates(config)
        if is_composed and role is NodeRole.BROKER and config.incarnation == 0:
            await_controller(os.environ)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_CONFIG
    events = EventWriter(config.event_file, run=config.run, node_id=config.node_id, incarnation=config.incarnation)
    causes = CauseIds(node_id=config.node_id, incarnation=config.incarnation)
    incarnation_id = IncarnationId(uuid_text(os.urandom(16)))
    events.add(_started(role, config, causes, incarnation_id))
    events.flush()
    asyncio.run(_serve(role, config, events, incarnation_id))
    events.add(NodeStopped(cause_id=causes.shutdown()))
    events.close()
    return 0


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
    parser.add_argument("role", choices=[NodeRole.BROKER.value, NodeRole.CONTROLLER.value])
    parser.add_argument("--config", help="the node's configuration, a JSON file; by default, the environment has it")
    return parser.parse_args()


def _started(role: NodeRole, config: NodeConfig, causes: CauseIds, incarnation_id: IncarnationId) -> NodeStarted:
    return NodeStarted(
        cause_id=causes.start(),
        role=role,
        incarnation_id=incarnation_id,
        switches=rule_texts(config.rules()),
        properties=config.property_texts(),
        wall_time_ns=time.time_ns(),
    )


def _handshake_failed(reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(cause_id=CauseId("tls"), address="", mechanism="SSL", reason=reason)


async def _serve(role: NodeRole, config: NodeConfig, events: EventWriter, incarnation_id: IncarnationId) -> None:
    # Imported here, and only for the role of this process: the event log must exist before anything slow is imported.
    from laststand.emulator.node.handshake import report_ready
    from laststand.emulator.node.logging_setup import configure_logging
    from laststand.emulator.storage.os_filesystem import OsFileSystem

    shell: ControllerShell | BrokerShell
    if config.node_properties().has_tls_between_nodes:
        from laststand.emulator.rpc.handshake_failures import watch_handshakes

        watch_handshakes(lambda reason: shell.record_between_turns(_handshake_failed(reason)))
    configure_logging(role, config)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_stop_on_bug)
    filesystem = OsFileSystem(ledger_folder=config.ledger_dir)
    if role is NodeRole.CONTROLLER:
        shell = _controller_shell(config, events, filesystem)
    else:
        shell = _broker_shell(config, events, incarnation_id, filesystem)
        if config.kafka is not None:
            await shell.serve_kafka(config.kafka)
    port = await shell.listen()
    metrics_port = None if config.metrics_port is None else await shell.serve_metrics(config.metrics_port)
    # What was imported lives as long as the process: the collector need not look at it again.
    gc.freeze()
    loop.add_signal_handler(signal.SIGTERM, shell.request_shutdown)
    loop.add_signal_handler(signal.SIGUSR1, filesystem.disk.notice)
    report_ready(port, metrics_port)
    await shell.run()


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
    """Ends the process at once: nothing that it would do after a bug could be trusted."""
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
