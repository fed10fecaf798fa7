"""Disks that fail: a write, an fsync or a read ends with EIO, or there is no room. The process ends by that.

It took effect if the process ended by itself and said why. The disk is whole again when that is seen, so the node can
be started. A node that does not do such an operation in time is left alone.
"""

import errno
import os
from collections.abc import Sequence
from typing import Final

import msgspec

from chaos.process.fault_target import FaultTarget
from chaos.process.faults.disks import change
from chaos.process.faults.registry import executes
from emulator.cluster.node_files import DiskChange
from emulator.core.events import IncarnationEnd
from emulator.core.types import NodeId
from emulator.plan.actions import DiskError, DiskFull, Outcome, deed_of, effective, no_op

_FAILS_WITHIN_S: Final = 20.0
"""A node writes and syncs something within this."""

_WHOLE: Final = DiskChange(failing=None, at=1, bytes_left=None)


@executes(DiskError)
async def disk_error(target: FaultTarget, action: DiskError[NodeId]) -> Outcome:
    """Makes an operation of each node fail, and waits for its end."""
    armed = msgspec.structs.replace(_WHOLE, failing=action.operation, at=action.at)
    return await _let_fail(target, action, action.nodes, armed, errno.EIO)


@executes(DiskFull)
async def disk_full(target: FaultTarget, action: DiskFull[NodeId]) -> Outcome:
    """Lets the disk of each node be full, and waits for its end."""
    armed = msgspec.structs.replace(_WHOLE, bytes_left=action.left)
    return await _let_fail(target, action, action.nodes, armed, errno.ENOSPC)


async def _let_fail(
    target: FaultTarget,
    action: DiskError[NodeId] | DiskFull[NodeId],
    nodes: Sequence[NodeId],
    armed: DiskChange,
    error: int,
) -> Outcome:
    running = [node_id for node_id in nodes if target.is_answering(node_id)]
    if not running:
        return no_op("nothing ran")
    failed = [node_id for node_id in running if await _fails(target, node_id, armed, error)]
    for node_id in failed:
        target.downed[node_id] = deed_of(action).verb
    seen = f"process of {', '.join(map(str, failed))} ended: {os.strerror(error)}"
    if not failed:
        return no_op(f"no such operation within {_FAILS_WITHIN_S:g} s")
    return effective(seen) if len(failed) == len(nodes) else Outcome(took_effect=True, bit=False, seen=seen)


async def _fails(target: FaultTarget, node_id: NodeId, armed: DiskChange, error: int) -> bool:
    """Returns whether a node ended by the error; what it ended by otherwise is recorded as unexpected."""
    await change(target, [node_id], armed)
    try:
        end = await target.cluster.await_failure(node_id, timeout_s=_FAILS_WITHIN_S)
    finally:
        await change(target, [node_id], _WHOLE)
    if end is None:
        return False
    is_by_error = any(os.strerror(error) in line for line in end.stderr_tail)
    target.log.ended(
        node_id,
        target.cluster.incarnation(node_id),
        IncarnationEnd.KILLED if is_by_error else IncarnationEnd.UNEXPECTED,
        exit_code=end.exit_code,
        metadata_offset=await target.committed_end(),
    )
    return is_by_error
