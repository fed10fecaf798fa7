"""Disks that fail: a write, an fsync or a read ends with EIO, or there is no room. The process ends because of that.

It took effect if the process ended by itself and reported the error. Once that is seen, the disk works again, so
that the node can be started; a full disk stays full until a step makes room. A node that does not do such an
operation in time is left alone.
"""

import asyncio
import errno
import os
from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.chaos.play.waiting import StepError
from laststand.chaos.process.faults.disks import change
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.node_files import DiskChange, FindWhetherFull
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions

_FAILS_WITHIN_S: Final = 20.0
"""A node writes and syncs something within this."""

_WHOLE: Final = DiskChange(failing=None, at=1, bytes_left=None)
_FULL: Final = DiskChange(bytes_left=0)
_ROOM: Final = DiskChange(bytes_left=None)


@executes(actions.DiskError)
async def disk_error(target: ProcessTarget, action: actions.DiskError[NodeId]) -> actions.Outcome:
    """Makes an operation of each node fail, and waits for its end."""
    armed = msgspec.structs.replace(_WHOLE, failing=action.operation, at=action.at)
    return await _let_fail(target, action, armed, errno.EIO, afterwards=_WHOLE)


@executes(actions.DiskFull)
async def disk_full(target: ProcessTarget, action: actions.DiskFull[NodeId]) -> actions.Outcome:
    """Fills the disk of each node and waits for the end of its process; or makes room."""
    if action.is_repair:
        return (
            actions.effective("there is room again")
            if await make_room(target, action.nodes)
            else actions.no_op("there is room")
        )
    armed = msgspec.structs.replace(_WHOLE, bytes_left=action.left)
    return await _let_fail(target, action, armed, errno.ENOSPC, afterwards=_FULL)


async def make_room(target: ProcessTarget, nodes: Sequence[NodeId]) -> bool:
    """Makes room on full disks; returns whether a disk was full."""
    return await change(target, nodes, _ROOM)


async def is_full(target: ProcessTarget, node_id: NodeId) -> bool:
    """Returns whether a node's disk is full."""
    return await asyncio.to_thread(target.cluster.files.perform, FindWhetherFull(node_id=node_id))


async def start_on_full_disk(target: ProcessTarget, node_id: NodeId) -> str:
    """Starts a node whose disk is full, and waits until it has ended because of that; returns the observation.

    Raises:
        StepError: the node ended otherwise, or still runs.
    """
    end = await target.cluster.start_to_fail(node_id, timeout_s=_FAILS_WITHIN_S)
    incarnation = target.cluster.incarnation(node_id)
    if end is None or not await _note_failure(target, node_id, end, errno.ENOSPC):
        what = "runs on" if end is None else "ended otherwise"
        raise StepError(f"the disk of node {node_id} is full, and incarnation {incarnation} {what}")
    return f"incarnation {incarnation} ended again: {os.strerror(errno.ENOSPC)}"


async def _let_fail(
    target: ProcessTarget,
    action: actions.DiskError[NodeId] | actions.DiskFull[NodeId],
    armed: DiskChange,
    error: int,
    *,
    afterwards: DiskChange,
) -> actions.Outcome:
    running = [node_id for node_id in action.nodes if target.is_answering(node_id)]
    if not running:
        return actions.no_op("nothing ran")
    failed = [node_id for node_id in running if await _fails(target, node_id, armed, error)]
    await change(target, failed, afterwards)
    for node_id in failed:
        target.downed[node_id] = actions.spec_of(action).verb
    seen = f"process of {', '.join(map(str, failed))} ended: {os.strerror(error)}"
    if not failed:
        return actions.no_op(f"no such operation within {_FAILS_WITHIN_S:g} s")
    is_all = len(failed) == len(action.nodes)
    return actions.effective(seen) if is_all else actions.Outcome(took_effect=True, affected=False, seen=seen)


async def _fails(target: ProcessTarget, node_id: NodeId, armed: DiskChange, error: int) -> bool:
    """Returns whether a node ended by the error; afterwards its disk works again."""
    await change(target, [node_id], armed)
    try:
        end = await target.cluster.await_failure(node_id, timeout_s=_FAILS_WITHIN_S)
    finally:
        await change(target, [node_id], _WHOLE)
    return end is not None and await _note_failure(target, node_id, end, error)


async def _note_failure(target: ProcessTarget, node_id: NodeId, end: ProcessEnd, error: int) -> bool:
    """Records the end of a node, as unexpected unless the error caused it; returns whether the error did."""
    is_by_error = any(os.strerror(error) in line for line in end.stderr_tail)
    committed = await target.committed_end()
    for each in target.together(node_id):
        target.log.ended(
            each,
            target.cluster.incarnation(each),
            events.IncarnationEnd.KILLED if is_by_error else events.IncarnationEnd.UNEXPECTED,
            exit_code=end.exit_code,
            metadata_offset=committed,
        )
    return is_by_error
