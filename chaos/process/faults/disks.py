"""Shared by faults of disks: arms them, and waits until they have acted on a node."""

import asyncio
from collections.abc import Sequence
from typing import Final

from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.node_files import ArmDisk, DiskChange, LookAtDisk
from laststand.emulator.core.types import NodeId

_SEEN_WITHIN_S: Final = 10.0
"""A node syncs something within this: at least its high watermarks."""

_LOOK_INTERVAL_S: Final = 0.05


async def change(target: ProcessTarget, nodes: Sequence[NodeId], wanted: DiskChange) -> bool:
    """Changes the armed disk faults of nodes, and notifies the nodes; returns whether anything changed."""
    changed = False
    for node_id in nodes:
        changed |= await asyncio.to_thread(target.cluster.files.perform, ArmDisk(node_id=node_id, change=wanted))
        target.cluster.notify_node(node_id)
    return changed


async def are_felt(target: ProcessTarget, nodes: Sequence[NodeId]) -> bool:
    """Waits until each node has recorded an effect of the armed fault; returns whether all have."""
    return all([await _is_felt(target, node_id) for node_id in nodes])


async def _is_felt(target: ProcessTarget, node_id: NodeId) -> bool:
    try:
        async with asyncio.timeout(_SEEN_WITHIN_S):
            # A file that another process writes changes without a notification.
            while not await asyncio.to_thread(  # noqa: ASYNC110
                target.cluster.files.perform, LookAtDisk(node_id=node_id)
            ):
                await asyncio.sleep(_LOOK_INTERVAL_S)
    except TimeoutError:
        return False
    return True
