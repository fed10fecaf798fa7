"""A slow disk: every fsync of a node takes longer, shown by the node itself when it has waited for one."""

import asyncio
from pathlib import Path
from typing import Final

from chaos.process.fault_target import FaultTarget
from chaos.process.faults.registry import executes
from emulator.core.types import NodeId
from emulator.plan.actions import Outcome, SlowDisk, effective, no_op
from emulator.storage.disk_faults import arm, read_faults, seen_generation

_SEEN_WITHIN_S: Final = 5.0

_LOOK_INTERVAL_S: Final = 0.05


@executes(SlowDisk)
async def slow_disk(target: FaultTarget, action: SlowDisk[NodeId]) -> Outcome:
    """Makes every fsync of nodes take longer; one that syncs nothing meanwhile has not felt it."""
    ledgers = [target.cluster.layout.ledger_directory(node_id) for node_id in action.nodes]
    changed = [ledger for ledger in ledgers if _arm(ledger, action.delay_ms)]
    if not changed:
        return no_op("it takes as long already")
    if action.is_repair:
        return effective("the disk is as quick as before")
    felt = [await _is_felt(target, node_id) for node_id in action.nodes]
    if not all(felt):
        return Outcome(took_effect=True, bit=False, seen="no-op: a node did not wait for its disk")
    return effective(f"an fsync takes {action.delay_ms} ms longer")


def _arm(ledger: Path, delay_ms: int) -> bool:
    armed = read_faults(ledger)
    if armed.sync_delay_ms == delay_ms:
        return False
    arm(ledger, armed.following(sync_delay_ms=delay_ms))
    return True


async def _is_felt(target: FaultTarget, node_id: NodeId) -> bool:
    """Has a node wait for its disk once, as an fsync does from now on; returns whether it did."""
    ledger = target.cluster.layout.ledger_directory(node_id)
    generation = read_faults(ledger).generation
    target.cluster.notify_node(node_id)
    try:
        async with asyncio.timeout(_SEEN_WITHIN_S):
            # A file in another process's hands changes without a word.
            while seen_generation(ledger) < generation:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_INTERVAL_S)
    except TimeoutError:
        return False
    return True
