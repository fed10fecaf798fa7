"""Finds the replicas that may be elected cleanly, by a partition's committed state."""

from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.types import BrokerId
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster


def candidates(cluster: SimulatedCluster, state: PartitionState) -> tuple[BrokerId, ...]:
    """Returns ISR and ELR; an ELR that a downgrade of its feature has left counts only where the rules let it.

    A leader that writes its ISR itself may add a replica whose addition was just cancelled: only replicas are elected.
    """
    is_left_over = cluster.image.feature_level(ELR_VERSION) == 0 and cluster.switches.downgrade_ignores_elr
    isr = tuple(member for member in state.isr if member in state.replicas)
    return isr if is_left_over else (*isr, *state.elr)
