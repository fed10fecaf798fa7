"""What a fault acts on: real processes, the view of what they committed, and the harness's log."""

from dataclasses import dataclass, field

from chaos.harness_log import HarnessLog
from chaos.metadata_watch import MetadataWatch
from emulator.cluster.child import EndCause, ProcessEnd
from emulator.cluster.process_cluster import ProcessCluster
from emulator.core.events import IncarnationEnd
from emulator.core.types import MetadataOffset, NodeId


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The cluster, the view of its committed state, and the harness's log.

    Attributes:
        session_timeout_ms: of the cluster; a cut under a channel in use is noticed within it.
        downed: by which fault each node went down, until it is started again.
    """

    cluster: ProcessCluster
    watch: MetadataWatch
    log: HarnessLog
    session_timeout_ms: int
    downed: dict[NodeId, str] = field(default_factory=dict)

    def note_end(
        self, node_id: NodeId, end: IncarnationEnd, process_end: ProcessEnd, committed: MetadataOffset
    ) -> None:
        """Records the end of a node's process as planned; an unplanned one was recorded when it happened."""
        if process_end.cause in (EndCause.STOPPED, EndCause.KILLED):
            self.log.ended(
                node_id,
                self.cluster.incarnation(node_id),
                end,
                process_end=process_end,
                metadata_offset=committed,
            )
