"""The status of a standing cluster: its nodes, the committed state of its partitions, and the injected faults."""

import os
from typing import Literal

import msgspec

from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.broker.replicas.high_watermark import effective_min_isr
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    LeaderRecoveryState,
    NodeId,
    TopicId,
    TopicPartition,
)

ProcessState = Literal["running", "paused", "down"]


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a standing cluster, as ``laststand status`` shows it.

    Attributes:
        role: ``controller``, ``zookeeper`` or ``broker``.
        state: of its process.
        pid: ``None`` while it is down.
        incarnation: counts its processes from 0; ``None`` before the first.
        address: address where it listens, bypassing the proxies.
        metrics_url: address of its metrics while it runs; ``None`` for a ZooKeeper server.
        broker_epoch: of its last registration; ``None`` for a controller.
        fenced: by the controller; ``None`` for a controller.
        is_active: whether it is the active one of several controllers; ``None`` for all other nodes.
    """

    node_id: NodeId
    role: str
    state: ProcessState
    pid: int | None
    incarnation: int | None
    address: str
    metrics_url: str | None
    broker_epoch: BrokerEpoch | None
    fenced: bool | None
    is_active: bool | None = None


class PartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One partition as the controller committed it; ``min_insync_replicas`` is effective."""

    topic: str
    topic_id: TopicId
    partition: int
    leader: BrokerId | None
    leader_epoch: int
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]
    last_known_elr: tuple[BrokerId, ...]
    min_insync_replicas: int
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED

    @property
    def is_recovering(self) -> bool:
        """The leader was elected uncleanly and has not recovered yet (KIP-704)."""
        return self.leader_recovery_state is LeaderRecoveryState.RECOVERING

    @property
    def is_offline(self) -> bool:
        """The partition has no leader."""
        return self.leader is None

    @property
    def electable_leaders(self) -> int:
        """The number of replicas that may lead without loss (KIP-966: members of ISR and ELR)."""
        return len(self.isr) + len(self.elr)

    @property
    def is_under_min_isr(self) -> bool:
        """The ISR is too small for ``acks=all``."""
        return len(self.isr) < self.min_insync_replicas

    @property
    def is_under_replicated(self) -> bool:
        """At least one replica is not in the ISR."""
        return len(self.isr) < len(self.replicas)


class ZooKeeperStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's state in a ZooKeeper server.

    Attributes:
        controller: the broker that ``/controller`` names; ``None`` while none is elected.
        controller_epoch: of the last controller that was elected; ``None`` before the first.
        last_zxid: of the last write.
    """

    controller: BrokerId | None
    controller_epoch: int | None
    last_zxid: int


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a standing cluster: nodes, partitions, clients and faults.

    Attributes:
        directory: the run's.
        supervisor_pid: of the process that owns the cluster.
        era: name of the era.
        session_timeout_ms: of the brokers.
        network_faults: whether links run through proxies.
        faults: descriptions of the faults in force.
        clients: producers and consumers that are connected.
        problem: the reason why the verdict will be ``unknown``, as far as known.
        view: address of the live view; ``None`` without one.
        zookeeper: the state in ZooKeeper; ``None`` in a KRaft cluster.
        bootstrap_servers: the bootstrap addresses of each Kafka client, by its name.
    """

    directory: str
    supervisor_pid: int
    era: str
    session_timeout_ms: int
    network_faults: bool
    nodes: tuple[NodeStatus, ...]
    partitions: tuple[PartitionStatus, ...]
    faults: tuple[str, ...]
    clients: tuple[str, ...]
    problem: str | None
    view: str | None = None
    zookeeper: ZooKeeperStatus | None = None
    bootstrap_servers: dict[str, tuple[str, ...]] = {}

    @property
    def controller_id(self) -> NodeId:
        """The node that administrators ask: the controller, or the ZooKeeper server in its place."""
        return self.controller_ids[0]

    @property
    def controller_ids(self) -> tuple[NodeId, ...]:
        """All controllers, or the ZooKeeper server in their place."""
        return tuple(node.node_id for node in self.nodes if node.role != "broker")


def status_report(
    target: ProcessTarget,
    *,
    era: str,
    switches: Switches,
    properties: NodeProperties,
    clients: tuple[str, ...],
    problem: str | None,
    view: str | None,
    zookeeper: ZooKeeperStatus | None,
) -> StatusReport:
    """Returns the state of a cluster at this moment."""
    layout, image = target.cluster.layout, target.image
    return StatusReport(
        directory=str(layout.directory),
        supervisor_pid=os.getpid(),
        era=era,
        session_timeout_ms=target.session_timeout_ms,
        network_faults=target.cluster.toxiproxy is not None,
        nodes=tuple(_node(target, node_id) for node_id in layout.node_ids),
        partitions=tuple(
            partition_status(partition, state, image, properties, switches)
            for partition, state in sorted(image.partitions.items())
        ),
        faults=target.in_force(),
        view=view,
        zookeeper=zookeeper,
        bootstrap_servers={
            name: tuple(addresses.values()) for name, addresses in target.cluster.kafka_addresses().items()
        },
        clients=clients,
        problem=problem,
    )


def _node(target: ProcessTarget, node_id: NodeId) -> NodeStatus:
    cluster = target.cluster
    child = cluster.process_of(node_id)
    registration = target.image.brokers.get(BrokerId(node_id))
    metrics_address = cluster.metrics_addresses().get(node_id)
    layout = cluster.layout
    return NodeStatus(
        node_id=node_id,
        role=layout.role_of(node_id).value,
        state="down" if child is None else "paused" if child.is_paused else "running",
        pid=None if child is None else child.pid,
        incarnation=None if cluster.is_awaited(node_id) else cluster.incarnation(node_id),
        address=cluster.direct_addresses()[node_id],
        metrics_url=None if metrics_address is None else layout.metrics_url(metrics_address),
        broker_epoch=None if registration is None else registration.broker_epoch,
        fenced=None if registration is None else registration.fenced,
        is_active=target.image.controller_id == node_id
        if len(layout.controller_ids) > 1 and node_id in layout.controller_ids
        else None,
    )


def partition_status(
    partition: TopicPartition,
    state: PartitionState,
    image: MetadataImage,
    properties: NodeProperties,
    switches: Switches,
) -> PartitionStatus:
    """Returns the meaning of a committed state for producers, by the rules and properties of the cluster's nodes."""
    configs = {
        **image.configs(ConfigResource.BROKER, ""),
        **image.configs(ConfigResource.TOPIC, partition.topic),
    }
    min_isr = topic_properties(
        properties, {name: value for name, value in configs.items() if name == "min.insync.replicas"}
    ).min_insync_replicas
    return PartitionStatus(
        topic=partition.topic,
        topic_id=state.topic_id,
        partition=partition.partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        min_insync_replicas=effective_min_isr(
            min_insync_replicas=min_isr, replica_count=len(state.replicas), switches=switches
        ),
        leader_recovery_state=state.leader_recovery_state,
    )
