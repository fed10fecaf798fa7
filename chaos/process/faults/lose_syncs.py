"""Lost fsyncs: the disk reports bytes as durable that are not; the node records it when an fsync was ignored.

It has no effect until the node loses power: then the data synced meanwhile is lost, too.
"""

from laststand.chaos.process.faults.disks import are_felt, change
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.node_files import DiskChange
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.LoseSyncs)
async def lose_syncs(target: ProcessTarget, action: actions.LoseSyncs[NodeId]) -> actions.Outcome:
    """Makes every fsync of nodes succeed without effect; a node that syncs nothing meanwhile proves no effect."""
    if not await change(target, action.nodes, DiskChange(are_syncs_lost=not action.is_repair)):
        return actions.no_op("it does so already")
    if action.is_repair:
        return actions.effective("an fsync is one again")
    if not await are_felt(target, action.nodes):
        return actions.unproved("a node did not sync")
    return actions.effective("an fsync returned, and nothing is durable")
