"""A process of the quorum with its disk, and the state machine on top: a sum over all committed records.

The sum (a chain of digests) stands for a controller's state in memory: two members with equal sums have applied the
same records in the same order.
"""

from hashlib import blake2b

from laststand.emulator.core import inputs as node_inputs
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum.inputs import LoadedQuorum, QuorumInput
from laststand.emulator.core.quorum.node import QuorumNode
from laststand.emulator.core.quorum.settings import QuorumSettings
from laststand.emulator.core.quorum.states import Leader
from laststand.emulator.core.quorum.voter_set import DirectoryId
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.simulator.nodes.nodes import Node
from laststand.emulator.simulator.quorum.disk import MetadataDisk

_EMPTY: bytes = b""


class QuorumMember(Node[QuorumInput]):
    """A controller of the quorum.

    Attributes:
        disk: survives the process.
        quorum: the core that runs, typed.
        applied_end_offset: of the state machine.
        applied_sum: sum over all applied records.
        crash_after: effects of the next turn that are executed before the process dies; ``None`` for no crash.
    """

    def __init__(self, node_id: NodeId, directory_id: DirectoryId) -> None:
        super().__init__(node_id)
        self.disk = MetadataDisk(directory_id)
        self.quorum: QuorumNode | None = None
        self.applied_end_offset = MetadataOffset(0)
        self.applied_sum = _EMPTY
        self.crash_after: int | None = None

    def to_input(self, outcome: node_inputs.ResponseReceived | node_inputs.RequestFailed) -> QuorumInput:
        """Returns the outcome unchanged."""
        return outcome

    def boot(self, settings: QuorumSettings, *, seed: int, now_ms: int) -> None:
        """Starts a process on the disk.

        Raises:
            IllegalQuorumState: the process refuses to start on this disk.
        """
        disk = self.disk
        loaded = LoadedQuorum(
            election=disk.election, snapshots=tuple(disk.snapshots), batches=tuple(disk.batches), seed=seed
        )
        self.quorum = QuorumNode(settings, loaded, now_ms=self.clock.local_ms(now_ms))
        self.core = self.quorum
        self.incarnation += 1
        self.load_snapshot()

    def end(self) -> None:
        """Notes that the process ended."""
        super().end()
        self.quorum = None
        self.crash_after = None

    @property
    def leads(self) -> bool:
        """True if the member believes that it leads."""
        return self.quorum is not None and isinstance(self.quorum.replica.state, Leader)

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch of the process that runs."""
        assert self.quorum is not None
        return self.quorum.replica.leader_epoch

    # --- State machine ----------------------------------------------------------------------------------------------

    def load_snapshot(self) -> None:
        """Starts again from the snapshot on the disk, or from an empty state."""
        snapshot = self.disk.latest_snapshot
        if snapshot is None:
            self.applied_end_offset, self.applied_sum = MetadataOffset(0), _EMPTY
        else:
            self.applied_end_offset, self.applied_sum = snapshot.position.end_offset, snapshot.content

    def unapplied(self, end_offset: MetadataOffset) -> list[QuorumBatch]:
        """Returns the batches that are committed and not applied yet."""
        return [
            batch
            for batch in self.disk.batches
            if batch.base_offset >= self.applied_end_offset and batch.end_offset <= end_offset
        ]

    def apply(self, batch: QuorumBatch) -> None:
        """Adds a batch to the sum."""
        self.applied_sum = blake2b(self.applied_sum + repr(batch).encode(), digest_size=16).digest()
        self.applied_end_offset = batch.end_offset
