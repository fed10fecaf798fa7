"""Replicas that go offline where their partition's node is not what the controller would write."""

import pytest

from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.context import Replica, ReplicaPhase
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import PartitionLeadership, encode_state
from tests.unit.core.zookeeper.controller.controllers import ORDERS, Cluster, broker


def phase_after_failover(cluster: Cluster) -> ReplicaPhase:
    """Has broker 2 take over from 1; returns where it finds the replica on 3."""
    cluster.lose(1)
    assert cluster.active() is cluster[2]
    return cluster[2].term.context.replica_phase_of(Replica(ORDERS, broker(3)))


def test_a_dead_replica_of_a_partition_without_a_state_node_is_offline() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(3)
    assert phase_after_failover(cluster) is ReplicaPhase.OFFLINE


def test_a_dead_replica_of_a_partition_that_a_later_controller_wrote_cannot_be_deleted() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster.lose(3)
    later = PartitionLeadership(leader_and_isr=cluster.state().leader_and_isr, controller_epoch=ControllerEpoch(99))
    cluster.write_state(encode_state(later, state_format=cluster.era.rules.state_format))
    assert phase_after_failover(cluster) is ReplicaPhase.DELETION_INELIGIBLE


@pytest.mark.parametrize(("is_being_deleted", "phase"), [(True, ReplicaPhase.OFFLINE), (False, ReplicaPhase.ONLINE)])
def test_a_replica_whose_node_is_gone_goes_offline_only_if_the_node_went_with_its_topic(
    *, is_being_deleted: bool, phase: ReplicaPhase
) -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster.write(operations.Delete(path=paths.state_node(ORDERS), version=None))
    term, replica = cluster[1].term, Replica(ORDERS, broker(3))
    if is_being_deleted:
        term.context.topics_to_delete["orders"] = None
    cluster.run(1, term.replicas.enter((replica,), ReplicaPhase.OFFLINE))
    assert term.context.replica_phase_of(replica) is phase
