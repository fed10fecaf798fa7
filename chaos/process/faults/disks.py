"""Shared by faults of disks: arm them, and see that a node felt them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.process.fault_target import FaultTarget
from emulator.core.types import NodeId
from emulator.storage.disk_faults import arm, read_faults, seen_generation

_SEEN_WITHIN_S: Final = 10.0
"""A node syncs something within this: at least its high watermarks."""

_LOOK_INTERVAL_S: Final = 0.05


def change(target: FaultTarget, nodes: Sequence[NodeId], **changes: object) -> bool:
    """Changes what is armed for nodes, and tells those that run; returns whether that changed anything."""
    changed = False
    for node_id in nodes:
        ledger = target.cluster.layout.ledger_directory(node_id)
        armed = read_faults(ledger)
        if any(getattr(armed, name) != value for name, value in changes.items()):
            arm(ledger, **changes)
            changed = True
        target.cluster.notify_node(node_id)
    return changed


async def are_felt(target: FaultTarget, nodes: Sequence[NodeId]) -> bool:
    """Waits until each node has said that what is armed acted on it; returns whether all did."""
    ledgers = [target.cluster.layout.ledger_directory(node_id) for node_id in nodes]
    return all([await _is_felt(ledger) for ledger in ledgers])


async def _is_felt(ledger: Path) -> bool:
    generation = read_faults(ledger).generation
    try:
        async with asyncio.timeout(_SEEN_WITHIN_S):
            # A file in another process's hands changes without a word.
            while seen_generation(ledger) < generation:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_INTERVAL_S)
    except TimeoutError:
        return False
    return True
