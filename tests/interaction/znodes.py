"""ZooKeeper as a script shows it: a node with its version, or the controller and its epoch."""

from laststand.emulator.core.types import BrokerId
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_controller_epoch
from laststand.emulator.simulator.zookeeper.cluster import ZooKeeperCluster


def show_node(cluster: ZooKeeperCluster, path: str) -> list[str]:
    """A node's content and version, or its children where it has no content."""
    server = cluster.zookeeper_node.store.server
    stat, data = server.stat(path), server.data(path)
    if stat is None:
        return ["no such node"]
    content = data.decode() if data else " ".join(sorted(server.children(path))) or "empty"
    return [f"version {stat.version}: {content}"]


def show_controller(cluster: ZooKeeperCluster) -> list[str]:
    """Shows the broker in ``/controller``, the stored epoch, and every process that takes itself for the controller."""
    stored = cluster.zookeeper_node.store.server.data(paths.CONTROLLER_EPOCH)
    epoch = None if stored is None else decode_controller_epoch(stored)
    believers = [_believer(cluster, broker_id) for broker_id in cluster.nodes]
    acting = " ".join(believer for believer in believers if believer is not None) or "none"
    return [f"controller={cluster.elected_controller} controller_epoch={epoch} acting=({acting})"]


def _believer(cluster: ZooKeeperCluster, broker_id: BrokerId) -> str | None:
    node = next(node for node in cluster.processes_with_controllers() if node.broker_id == broker_id)
    term = None if node.process_core is None else node.process_core.process.controller.term
    return None if term is None else f"{broker_id}@{term.context.controller_epoch}"
