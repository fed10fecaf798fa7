"""A disk that died: SIGKILL, and the node comes back with an empty one.

Gone with the log directory is the sync ledger, which says what was durable there.
"""

import asyncio
import shutil

from chaos.faults.injury import Injury
from chaos.faults.stage import Stage
from emulator.core.events import IncarnationEnd
from emulator.core.types import NodeId


async def replace_disk(stage: Stage, node_id: NodeId) -> Injury:
    """Ends a node, if it runs, and empties its disk; a no-op if it never had anything on it."""
    end = await stage.cluster.kill_node(node_id)
    stage.downed[node_id] = "replace_disk"
    if end is not None:
        stage.note_end(node_id, IncarnationEnd.POWER_LOST, end, await stage.watch.committed_end())
    layout = stage.cluster.layout
    gone = [path for path in (layout.data_directory(node_id), layout.ledger_directory(node_id)) if path.is_dir()]
    for path in gone:
        await asyncio.to_thread(shutil.rmtree, path)
    bit = "the disk is empty" if gone else None
    return Injury(fault="replace_disk", target=str(node_id), bit=bit)
