"""A slow disk: every fsync of a node takes longer, shown by the node itself when it has waited for one."""

from laststand.chaos.process.faults.disks import are_felt, change
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.node_files import DiskChange
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.actions import Outcome, SlowDisk, effective, no_op, unproved


@executes(SlowDisk)
async def slow_disk(target: ProcessTarget, action: SlowDisk[NodeId]) -> Outcome:
    """Makes every fsync of nodes take longer; one that syncs nothing meanwhile has not felt it."""
    if not await change(target, action.nodes, DiskChange(sync_delay_ms=action.delay_ms)):
        return no_op("it takes as long already")
    if action.is_repair:
        return effective("the disk is as quick as before")
    if not await are_felt(target, action.nodes):
        return unproved("a node did not wait for its disk")
    return effective(f"an fsync takes {action.delay_ms} ms longer")
