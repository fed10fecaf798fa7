"""Finds the replicas that may be elected cleanly, by a partition's committed state."""

from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.types import BrokerId
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster


def candidates(cluster: SimulatedCluster, state: PartitionState) -> tuple[BrokerId, ...]:
    """Returns ISR and ELR; an ELR that is left over after a downgrade counts only if the rules say so.

    Only replicas are elected. A leader that writes its ISR itself may add one whose addition was just cancelled, and
    one that was reassigned away may still be in the ELR (S37).
    """
    rules = cluster.rules_of(cluster.metadata_node.node_id)
    is_left_over = (cluster.image.feature_level(ELR_VERSION) == 0 or not rules.elr) and rules.downgrade_ignores_elr
    members = state.isr if is_left_over else (*state.isr, *state.elr)
    return tuple(member for member in members if member in state.replicas)
