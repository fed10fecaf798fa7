"""A flipped bit in the last stored batch of a replica: found by its CRC when the log is read again."""

import asyncio

from chaos.process.fault_target import FaultTarget
from chaos.process.faults.registry import executes
from emulator.core.types import NodeId
from emulator.plan.actions import FlipBit, Outcome, effective, no_op
from emulator.storage.bit_flip import FlippedBit, flip_last_batch


@executes(FlipBit)
async def flip_bit(target: FaultTarget, action: FlipBit[NodeId]) -> Outcome:
    """Damages the last batch of a partition on brokers, whether they run or not.

    Raises:
        StorageError: a log cannot be read or written.
    """
    layout = target.cluster.layout
    flipped: list[FlippedBit] = []
    for node_id in action.nodes:
        log = layout.data_directory(node_id) / str(action.partition)
        found = await asyncio.to_thread(flip_last_batch, log)
        if found is not None:
            target.log.bit_flipped(
                node_id, action.partition, found, topic_id=target.image.topics[action.partition.topic]
            )
            flipped.append(found)
    if not flipped:
        return no_op("there is no batch")
    damaged = [each.batch.base_offset for each in flipped if each.is_detectable]
    seen = f"batches at {', '.join(map(str, damaged))} fail their CRC"
    is_bitten = len(damaged) == len(action.nodes)
    return effective(seen) if is_bitten else Outcome(took_effect=True, bit=False, seen=f"no-op: {seen}")
