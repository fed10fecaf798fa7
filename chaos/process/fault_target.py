"""What a fault acts on: real processes, what they committed, and the harness's log."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.message_faults import MessageFaults
from laststand.emulator.cluster.child import EndCause, ProcessEnd
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core.events import IncarnationEnd
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import MetadataOffset, NodeId


class CommittedMetadata(Protocol):
    """A view of what the controller committed."""

    @property
    def image(self) -> MetadataImage:
        """Fold of all that was received."""
        ...

    async def committed_end(self) -> MetadataOffset:
        """Returns the controller's committed end offset; the last known one if the controller does not answer."""
        ...


@dataclass(frozen=True, kw_only=True)
class FaultTarget:
    """The cluster, the view of its committed state, and the harness's log.

    Attributes:
        changes: fires when the committed state changed.
        session_timeout_ms: of the cluster; a cut under a channel in use is noticed within it.
        messages: what is done to single messages.
        downed: by which fault each node went down, until it is started again.
    """

    cluster: ProcessCluster
    metadata: CommittedMetadata
    log: HarnessLog
    changes: ChangeSignal
    session_timeout_ms: int
    messages: MessageFaults
    downed: dict[NodeId, str] = field(default_factory=dict)

    @property
    def image(self) -> MetadataImage:
        """What the controller committed, as far as it is known now."""
        return self.metadata.image

    def in_force(self) -> tuple[str, ...]:
        """Returns descriptions of all faults in force: those that were injected, and nodes that ended by themselves."""
        by_themselves = (
            f"node {node_id} is down by itself"
            for node_id in self.cluster.layout.node_ids
            if not self.cluster.is_running(node_id) and node_id not in self.downed
        )
        return (*self.log.faults.describe(now_s=time.monotonic()), *by_themselves)

    async def committed_end(self) -> MetadataOffset:
        """Asks the controller where its committed records end now."""
        return await self.metadata.committed_end()

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Waits until ``see`` says that a state is reached.

        Raises:
            StepError: it was not within ``timeout_s`` seconds.
        """
        return await self.changes.wait(see, timeout_s=timeout_s)

    def is_answering(self, node_id: NodeId) -> bool:
        """Whether a node's process runs and is not paused."""
        return self.cluster.is_running(node_id) and not self.cluster.is_paused(node_id)

    def note_end(
        self, node_id: NodeId, end: IncarnationEnd, process_end: ProcessEnd, committed: MetadataOffset
    ) -> None:
        """Records the end of a node's process as planned; an unplanned one was recorded when it happened."""
        if process_end.cause in (EndCause.STOPPED, EndCause.KILLED):
            self.log.ended(
                node_id,
                self.cluster.incarnation(node_id),
                end,
                exit_code=process_end.exit_code,
                metadata_offset=committed,
            )

    async def take_down(
        self,
        nodes: Sequence[NodeId],
        end: Callable[[NodeId], Awaitable[ProcessEnd | None]],
        *,
        fault: str,
        recorded_as: IncarnationEnd,
    ) -> list[ProcessEnd]:
        """Ends the processes of nodes together and records that, at one metadata offset.

        Args:
            nodes: those that run are down by ``fault`` from now on.
            end: ends one node's process; ``None`` if none ran.
            fault: its name.
            recorded_as: how the harness's log names the end.

        Returns:
            The ends of those that ran, in the order of ``nodes``.
        """
        ends = await asyncio.gather(*(end(node_id) for node_id in nodes))
        committed = await self.committed_end()
        for node_id, process_end in zip(nodes, ends, strict=True):
            if process_end is not None:
                self.downed[node_id] = fault
                self.note_end(node_id, recorded_as, process_end, committed)
        return [process_end for process_end in ends if process_end is not None]
