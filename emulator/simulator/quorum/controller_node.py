"""One of several controllers in virtual time: a process, and the disk that survives it."""

from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from laststand.emulator.core import events, records
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum.inputs import LoadedQuorum
from laststand.emulator.core.quorum.settings import QuorumSettings
from laststand.emulator.core.quorum.states import Leader
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.quorum_controller.quorum_controller import QuorumController
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeRole
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import MetadataNode
from laststand.emulator.simulator.quorum.disk import MetadataDisk

_NO_STATE: Final = "a controller has a log and no quorum-state (missing_state_stops)"


class QuorumControllerNode(MetadataNode):
    """A controller: its log and its ``quorum-state`` stay.

    Args:
        settings: of the node, and of its first disk.
        queue: virtual time.

    Attributes:
        disk: survives the process.
        process: the core, while it runs.
        controller: the last controller that was active here; ``None`` before the first.
        log: batches that the process has published.
        published: number of published batches.
        served_epoch: the controller epoch in which it serves metadata streams; ``None`` if it does not.
        draw: as in ``ControllerNode``.
        applied_sum: sum over all batches that the process has published.
    """

    role = NodeRole.CONTROLLER

    def __init__(self, settings: QuorumSettings, queue: EventQueue) -> None:
        super().__init__(settings.key.node_id)
        assert settings.key.directory_id is not None
        self.disk = MetadataDisk(settings.key.directory_id)
        self._disks = 1
        self.process: QuorumController | None = None
        self.controller: Controller | None = None
        self.log: list[records.MetadataBatch] = []
        self.published = 0
        self.served_epoch: LeaderEpoch | None = None
        self.draw = 0
        self.applied_sum = b""
        self._settings = settings
        self._queue = queue

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """The end of the records that the process knows to be committed."""
        return self.durable.next_offset

    @property
    def applied_end_offset(self) -> MetadataOffset:
        """The end of the records that the process has applied: all that it knows to be committed."""
        return self.durable.next_offset

    @property
    def length(self) -> int:
        """Batches of the log on the disk."""
        return len(self.disk.batches)

    @property
    def leads(self) -> bool:
        """True if the node believes that it leads the quorum."""
        return self.process is not None and isinstance(self.process.quorum.replica.state, Leader)

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch of the process that runs."""
        assert self.process is not None
        return self.process.quorum.replica.leader_epoch

    def may_read_metadata(self, requester: Requester) -> bool:
        """Returns whether a principal may open a metadata stream, or continue to read from it."""
        return self.controller is not None and self.controller.may_read_metadata(requester)

    def boot(self, switches: Switches, properties: NodeProperties) -> tuple[events.ControllerEvent, ...]:
        """Creates a process on the disk; the leader will report events that were not reported."""
        self.incarnation += 1
        self.durable, self.log, self.published, self.applied_sum = MetadataImage(), [], 0, b""
        loaded = LoadedQuorum(
            election=self.disk.election,
            batches=tuple(self.disk.batches),
            seed=self.node_id * 1009 + self.incarnation,
        )
        now_ms = self.clock.local_ms(self._queue.now_ms)
        # The voters and kraft.version that the disk was formatted with are the cluster's; the rules are the process's.
        settings = replace(self._settings, rules=switches)
        self.core = self.process = QuorumController(settings, loaded, properties, switches, now_ms=now_ms)
        return ()

    def publish(self, batch: records.MetadataBatch) -> None:
        """Applies a committed batch; the streams raise ``published``."""
        for index, record in enumerate(batch.records):
            self.durable.replay(record, offset=MetadataOffset(batch.base_offset + index))
        self.log.append(batch)
        self.applied_sum = blake2b(self.applied_sum + msgspec.msgpack.encode(batch), digest_size=16).digest()

    @property
    def has_first_disk(self) -> bool:
        """The node's disk was never replaced."""
        return self._disks == 1

    def replace_disk(self) -> None:
        """Gives the node an empty disk, with a new directory id."""
        self._disks += 1
        self.disk = MetadataDisk(DirectoryId(f"disk-{self.node_id}-{self._disks}"))
        self._settings = replace(self._settings, key=ReplicaKey(self.node_id, self.disk.directory_id))

    def start_refusal(self, switches: Switches) -> str | None:
        """Returns that ``quorum-state`` is missing beside a log, where the rules forbid that."""
        is_missing = self.disk.election is None and bool(self.disk.batches)
        return _NO_STATE if switches.missing_state_stops and is_missing else None

    def lose_election(self) -> bool:
        """Loses ``quorum-state``; returns whether there was one."""
        had = self.disk.election is not None
        self.disk.lose_election()
        return had

    @property
    def has_state(self) -> bool:
        """``quorum-state`` exists, or the node does not need it."""
        return self.disk.election is not None or not self.disk.batches

    def lose_unsynced(self) -> None:
        """Loses the unsynced data."""
        self.disk.lose_power(kept=0)

    def end(self) -> None:
        """Notes that the process ended; the disk stays."""
        super().end()
        self.process = None
        self.served_epoch = None
