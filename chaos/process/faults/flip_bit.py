"""A flipped bit in the last stored batch of a replica: found by its CRC when the log is read again."""

import asyncio

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster import node_files
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.storage.bit_flip import FlippedBit


@executes(actions.FlipBit)
async def flip_bit(target: ProcessTarget, action: actions.FlipBit[NodeId]) -> actions.Outcome:
    """Damages the last batch of a partition on brokers, whether they run or not.

    Raises:
        StorageError: a log cannot be read or written.
    """
    flipped: list[FlippedBit] = []
    for node_id in action.nodes:
        work = node_files.FlipBit(node_id=node_id, partition=action.partition)
        found = await asyncio.to_thread(target.cluster.files.perform, work)
        if found is not None:
            target.log.bit_flipped(
                node_id, action.partition, found, topic_id=target.image.topics[action.partition.topic]
            )
            flipped.append(found)
    if not flipped:
        return actions.no_op("there is no batch")
    damaged = [each.batch.base_offset for each in flipped if each.is_detectable]
    seen = f"batches at {', '.join(map(str, damaged))} fail their CRC"
    is_bitten = len(damaged) == len(action.nodes)
    return actions.effective(seen) if is_bitten else actions.unproved(f"only {seen}")
