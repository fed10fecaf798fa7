"""Power loss: SIGKILL of all affected nodes at once, then the loss of their unsynced data.

It took effect if it killed a process. That nothing was unsynced is then a result, not a failure: with
``log.flush.interval.messages`` at 1 that is expected.
"""

import asyncio

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.node_files import LosePower
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.nouns import counted
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.storage.power_loss import PowerLossReport
from laststand.emulator.storage.segment import INDEX_SUFFIXES


@executes(actions.PowerLoss)
async def power_loss(target: ProcessTarget, action: actions.PowerLoss[NodeId]) -> actions.Outcome:
    """Makes nodes lose power; those that are down lose their unsynced data, too.

    Raises:
        StorageError: a node's files cannot be read or changed.
    """
    unknown = [node_id for node_id in action.nodes if not target.cluster.has_sync_ledger(node_id)]
    if unknown:
        return actions.no_op(f"it is not recorded what node {unknown[0]} syncs")
    killed = await target.take_down(
        action.nodes, target.cluster.kill_node, fault="power_loss", recorded_as=events.IncarnationEnd.POWER_LOST
    )
    target.downed.update(dict.fromkeys(action.nodes, "power_loss"))
    reports = [await _lose(target, node_id, action.loss) for node_id in action.nodes]
    lost = sum(_bytes_lost(report) for report in reports)
    names = sum(len(report.lost_names) for report in reports)
    if not killed and not any(report.has_losses for report in reports):
        return actions.no_op("nothing ran, and everything was synced")
    down = f"{counted(len(killed), 'process')} killed"
    gone = f"{counted(lost, 'unsynced byte')} and {counted(names, 'unsynced name')} lost"
    return actions.Outcome(took_effect=True, affected=True, seen=f"{down}, {gone}")


def _bytes_lost(report: PowerLossReport) -> int:
    """Returns the bytes lost, without indexes: Kafka allocates them at full size, and rebuilds damaged ones."""
    lost = [loss for loss in report.lost_bytes if not loss.path.endswith(INDEX_SUFFIXES)]
    return sum(loss.length_before - loss.length_after for loss in lost)


async def _lose(target: ProcessTarget, node_id: NodeId, loss: DiskLoss) -> PowerLossReport:
    taken = await asyncio.to_thread(
        target.cluster.files.perform,
        LosePower(
            node_id=node_id,
            keep=loss.keep,
            seed=loss.seed_of(node_id),
            disk=loss.disk,
            exact=loss.exact,
            partitions=tuple(target.image.partitions),
        ),
    )
    for partition, old_end, new_end in taken.log_ends:
        target.log.power_lost(
            node_id,
            target.cluster.incarnation(node_id),
            partition,
            topic_id=target.image.topics[partition.topic],
            keep=loss.keep.value,
            old_end_offset=old_end,
            new_end_offset=new_end,
        )
    return taken.report
