"""The modules of a node that are imported only by the nodes that need them."""

from typing import Final

from laststand.emulator.core.types import NodeRole

_PACKAGE: Final = "laststand.emulator"
_OF_EACH: Final = ("node.controller_host", "node.environment", "node.handshake", "node.logging_setup")


def modules_of(role: NodeRole, *, has_zookeeper: bool, has_metrics: bool, has_kafka: bool) -> tuple[str, ...]:
    """Returns all modules that a node imports until it serves, for a process that imports them before it forks nodes.

    Args:
        role: of the node.
        has_zookeeper: whether its cluster has ZooKeeper.
        has_metrics: whether it serves ``/metrics``.
        has_kafka: whether it listens for clients of Apache Kafka, if it is a broker.
    """
    names = [*_OF_EACH, f"node.{role.value}_shell"]
    if has_zookeeper:
        names.append("node.zookeeper_shell")
    if has_metrics:
        names += ["node.metrics_server", f"node.{role.value}_metrics"]
    if has_kafka and role is NodeRole.BROKER:
        names += [f"kafka_listener.{name}" for name in ("listener", "client_history", "releases", "sasl")]
    return tuple(f"{_PACKAGE}.{name}" for name in names)
