"""Records what Kafka's controllers show from outside: elections, votes, commits, and the leader that each follows.

The first record of an epoch names its leader and the voters that voted for it. Votes without a winner, and a single
controller's own high watermark, are not observed.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core import events
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.types import CauseId, LeaderEpoch, NodeId
from laststand.emulator.kafka.metadata_log import METADATA_LOG
from laststand.emulator.kafka.quorum_logs import QuorumBatch
from laststand.emulator.storage.meta_properties import META_PROPERTIES, parse_pairs
from laststand.emulator.storage.quorum_state import QUORUM_STATE, parse_quorum_state

_CAUSE: Final = CauseId("kafka")

_QuorumEvent: TypeAlias = (
    events.QuorumVoteGranted | events.QuorumLeaderElected | events.QuorumLeaderFollowed | events.MetadataCommittedUpTo
)


class QuorumWitness:
    """Records events of the quorum of a run; none for a single controller.

    Args:
        layout: of the cluster.
        record: writes events of a controller.

    Attributes:
        leader_id: the leader of the latest known epoch.
    """

    def __init__(self, layout: ClusterLayout, *, record: Callable[[NodeId, Sequence[events.Event]], None]) -> None:
        self.leader_id: NodeId | None = None
        self._layout = layout
        self._record = record
        self._leaders: dict[LeaderEpoch, NodeId] = {}
        self._disks: dict[NodeId, str | None] = {}
        self._first_disks: dict[NodeId, str | None] = {}
        self._states: dict[NodeId, bytes] = {}
        self._seen: list[tuple[NodeId, Election]] = []
        self._newest_epochs: dict[tuple[NodeId, str | None], LeaderEpoch] = {}

    def started(self, node_id: NodeId) -> None:
        """A controller's process is about to start, on a formatted disk."""
        path = self._layout.data_directory(node_id) / META_PROPERTIES
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        self._disks[node_id] = parse_pairs(text, "=").get("directory.id")
        self._first_disks.setdefault(node_id, self._disks[node_id])
        self._states.pop(node_id, None)

    def has_first_disk(self, node_id: NodeId) -> bool:
        """Returns whether a controller still has its first disk."""
        return self._disks.get(node_id) == self._first_disks.get(node_id)

    def look(self) -> None:
        """Reads which leader each controller follows, before the logs are read, to record its elections first."""
        for node_id in self._disks if len(self._layout.controller_ids) > 1 else ():
            state = self._new_state(node_id)
            if state is not None:
                self._seen.append((node_id, state))

    def elected(self, batch: QuorumBatch) -> None:
        """Records that a controller was elected, and began its epoch with this batch."""
        change, epoch = batch.elected, batch.leader_epoch
        assert change is not None
        self._leaders[epoch] = change.leader_id
        self.leader_id = self._leaders[max(self._leaders)]
        candidate_directory = self._directory_of(change.leader_id)
        for voter in change.granting_voters:
            self._record_unless_late(
                voter,
                events.QuorumVoteGranted(
                    cause_id=_CAUSE,
                    directory_id=self._directory_of(voter),
                    quorum_epoch=epoch,
                    candidate=change.leader_id,
                    candidate_directory_id=candidate_directory,
                ),
            )
        self._record_unless_late(
            change.leader_id,
            events.QuorumLeaderElected(
                cause_id=_CAUSE,
                directory_id=candidate_directory,
                quorum_epoch=epoch,
                log_end_offset=batch.content.base_offset,
            ),
        )

    def committed_up_to(self, batch: QuorumBatch) -> None:
        """Records that the leader of a batch has committed it, because a majority has it."""
        leader_id = self._leaders[batch.leader_epoch]
        self._record_unless_late(
            leader_id,
            events.MetadataCommittedUpTo(
                cause_id=_CAUSE,
                directory_id=self._directory_of(leader_id),
                quorum_epoch=batch.leader_epoch,
                high_watermark=batch.end_offset,
                is_leader=True,
            ),
        )

    def poll(self) -> None:
        """Writes events for controllers that follow another leader than before."""
        for node_id, state in self._seen:
            if state.leader_id not in (None, node_id):
                self._record_unless_late(
                    node_id,
                    events.QuorumLeaderFollowed(
                        cause_id=_CAUSE,
                        directory_id=self._directory_of(node_id),
                        quorum_epoch=state.leader_epoch,
                        leader=state.leader_id,
                    ),
                )
        self._seen.clear()

    def _record_unless_late(self, node_id: NodeId, event: _QuorumEvent) -> None:
        """Writes an event of a controller, unless an event of a later epoch was written for it before."""
        disk = (node_id, event.directory_id)
        if event.quorum_epoch >= self._newest_epochs.get(disk, event.quorum_epoch):
            self._newest_epochs[disk] = event.quorum_epoch
            self._record(node_id, [event])

    def _new_state(self, node_id: NodeId) -> Election | None:
        path = self._layout.data_directory(node_id) / METADATA_LOG / QUORUM_STATE
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if content == self._states.get(node_id):
            return None
        self._states[node_id] = content
        return parse_quorum_state(content, path=str(path))

    def _directory_of(self, node_id: NodeId) -> str | None:
        """Returns the directory id of a controller's disk; ``None`` if voters are static."""
        return self._disks.get(node_id) if self._layout.has_directory_ids else None
