"""Power loss: SIGKILL of all affected nodes at once, then the loss of what they had not synced.

It has bitten when a process was killed by it. That nothing was unsynced then is a result, not a failure: with
``log.flush.interval.messages`` at 1 that is the whole point.
"""

import asyncio
from pathlib import Path

from chaos.faults.injury import Injury
from chaos.faults.stage import Stage
from emulator.core.events import IncarnationEnd
from emulator.core.types import NodeId, Offset, TopicPartition
from emulator.storage.power_loss import PowerLossReport, lose_power, scan_log_end
from emulator.storage.power_loss_plan import ExactLoss, Keep


async def power_loss(stage: Stage, seeds: dict[NodeId, int], keep: Keep, exact: ExactLoss | None = None) -> Injury:
    """Takes the power from nodes, each with the seed of its random choices; ``exact`` leaves none.

    Nodes that are down lose their unsynced data, too.

    Raises:
        StorageError: a node's files cannot be read or changed.
    """
    ends = await asyncio.gather(*(stage.cluster.kill_node(node_id) for node_id in seeds))
    committed = await stage.watch.committed_end()
    for node_id, end in zip(seeds, ends, strict=True):
        stage.downed[node_id] = "power_loss"
        if end is not None:
            stage.note_end(node_id, IncarnationEnd.POWER_LOST, end, committed)
    reports = [await _lose(stage, node_id, keep, seed, exact) for node_id, seed in seeds.items()]
    target = ",".join(str(node_id) for node_id in seeds)
    killed = sum(end is not None for end in ends)
    lost = sum(loss.length_before - loss.length_after for report in reports for loss in report.lost_bytes)
    names = sum(len(report.lost_names) for report in reports)
    has_bitten = killed > 0 or any(report.has_bitten for report in reports)
    bit = f"{killed} processes killed, {lost} unsynced bytes and {names} unsynced names lost" if has_bitten else None
    return Injury(fault="power_loss", target=target, bit=bit)


async def _lose(stage: Stage, node_id: NodeId, keep: Keep, seed: int, exact: ExactLoss | None) -> PowerLossReport:
    layout = stage.cluster.layout
    data = layout.data_directory(node_id)
    before = await asyncio.to_thread(_log_ends, data, stage)
    report = await asyncio.to_thread(
        lose_power,
        [str(data)],
        ledger_folder=str(layout.ledger_directory(node_id)),
        keep=keep,
        seed=seed,
        exact=exact,
    )
    after = await asyncio.to_thread(_log_ends, data, stage)
    for partition, old_end in sorted(before.items()):
        stage.log.power_lost(
            node_id,
            stage.cluster.incarnation(node_id),
            partition,
            topic_id=stage.watch.image.topics[partition.topic],
            keep=keep.value,
            old_end_offset=old_end,
            new_end_offset=after.get(partition, Offset(0)),
        )
    return report


def _log_ends(data: Path, stage: Stage) -> dict[TopicPartition, Offset]:
    return {
        partition: scan_log_end(str(data / str(partition)))
        for partition in list(stage.watch.image.partitions)
        if (data / str(partition)).is_dir()
    }
