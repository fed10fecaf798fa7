"""Three to five nodes of the quorum in one thread, on the network, the clocks and the timers of the simulator.

It makes no protocol decisions: it delivers inputs, executes effects and injects faults.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

import msgspec

from laststand.emulator.core import effects as node_effects
from laststand.emulator.core import inputs as node_inputs
from laststand.emulator.core import messages as node_messages
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.quorum import effects, inputs, messages
from laststand.emulator.core.quorum.batches import LogPosition
from laststand.emulator.core.quorum.events import QuorumEvent
from laststand.emulator.core.quorum.settings import QuorumSettings, formatted
from laststand.emulator.core.quorum.states import IllegalCall, IllegalQuorumState
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.nodes import controller_ids
from laststand.emulator.simulator.network.network import Network
from laststand.emulator.simulator.network.wire import NodeAsker, Wire
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.node_timers import NodeTimers
from laststand.emulator.simulator.nodes.nodes import CLUSTER_ID, InputT, Node
from laststand.emulator.simulator.quorum.controllers import complete_sync
from tests.simulation.quorum.member import QuorumMember

_SILENCE_MS: Final = 1000
_BACKOFF_MS: Final = 200
"""Longer than Kafka's 20 ms: a node that finds no leader asks all the time, which says nothing and costs much."""

_CAUSE: Final = CauseId("schedule")


class QuorumObserver(Protocol):
    """Observes a run: events, applied records, and processes that stop by themselves."""

    def recorded(self, member: QuorumMember, event: QuorumEvent) -> None:
        """A node wrote an event."""
        ...

    def applied(self, member: QuorumMember) -> None:
        """A state machine applied a batch."""
        ...

    def stopped(self, member: QuorumMember, error: InvariantError) -> None:
        """Notes that a process stopped, or refused to start, because of a state or an error that it found."""
        ...


class QuorumCluster:
    """Nodes 100, 101 and so on.

    Args:
        voters: number of nodes that are formatted as voters.
        spares: number of further nodes, formatted to be added.
        rules: of all nodes.
        seed: of election timeouts.
        observer: of the run.

    Attributes:
        queue: virtual time.
        network: the network and its faults.
        members: all nodes.
        formatted: the first voters.
        refused: nodes whose process stopped by itself and is not started again.
    """

    def __init__(
        self, *, voters: int, spares: int = 0, rules: QuorumRules, seed: int, observer: QuorumObserver
    ) -> None:
        self.queue = EventQueue()
        self.network = Network()
        self.refused: set[NodeId] = set()
        self._observer = observer
        self._seed = seed
        self._wire = Wire(self.queue, self.network, self._receive, silence_ms=_SILENCE_MS)
        self._timers = NodeTimers(self.queue, self._step)
        self._proposals = 0
        self._disks = 0
        node_ids = controller_ids(voters + spares)
        self.members = {node_id: QuorumMember(node_id, self._next_directory(node_id)) for node_id in node_ids}
        keys = [self.key_of(node_id) for node_id in node_ids[:voters]]
        bootstrap, version = formatted(keys, rules)
        self.formatted = bootstrap.keys
        self._settings = QuorumSettings(
            key=keys[0],
            cluster_id=CLUSTER_ID,
            rules=rules,
            bootstrap_voters=bootstrap,
            bootstrap_servers=tuple(node_ids),
            kraft_version=version,
            retry_backoff_ms=_BACKOFF_MS,
        )
        for node_id in node_ids:
            self.start(node_id)

    def _next_directory(self, node_id: NodeId) -> DirectoryId:
        self._disks += 1
        return DirectoryId(f"disk-{node_id}-{self._disks}")

    def key_of(self, node_id: NodeId) -> ReplicaKey:
        """Returns the replica that a node is, by its present disk."""
        return ReplicaKey(node_id, self.members[node_id].disk.directory_id)

    @property
    def leaders(self) -> list[QuorumMember]:
        """Nodes that believe that they lead, by epoch."""
        leaders = [(member.leader_epoch, node_id) for node_id, member in self.members.items() if member.leads]
        return [self.members[node_id] for _, node_id in sorted(leaders)]

    # --- Time -------------------------------------------------------------------------------------------------------

    def run(self, duration_ms: int) -> None:
        """Advances time."""
        end_ms = self.queue.now_ms + duration_ms
        while (callback := self.queue.pop(until_ms=end_ms)) is not None:
            callback()
        self.queue.now_ms = end_ms

    def run_until(self, condition: Callable[[], bool], *, within_ms: int) -> bool:
        """Advances time until a condition holds; returns whether it does."""
        end_ms = self.queue.now_ms + within_ms
        while not condition():
            callback = self.queue.pop(until_ms=end_ms)
            if callback is None:
                self.queue.now_ms = end_ms
                return condition()
            callback()
        return True

    # --- Processes and disks ----------------------------------------------------------------------------------------

    def start(self, node_id: NodeId) -> None:
        """Starts a process; no effect if one runs, or if the last one refused the content of the disk."""
        member = self.members[node_id]
        if member.core is not None or node_id in self.refused:
            return
        settings = msgspec.structs.replace(self._settings, key=self.key_of(node_id))
        seed = self._seed * 1000003 + node_id * 1009 + member.incarnation
        try:
            member.boot(settings, seed=seed, now_ms=self.queue.now_ms)
        except IllegalQuorumState as error:
            self._refuse(member, error)
            return
        self._step(member, node_inputs.Started(cause_id=CauseId(f"start-{node_id}")))

    def stop(self, node_id: NodeId) -> None:
        """Asks a process to end in order."""
        self._step(self.members[node_id], node_inputs.ShutdownRequested(cause_id=CauseId(f"stop-{node_id}")))

    def kill(self, node_id: NodeId) -> None:
        """Ends a process at once; the page cache survives."""
        member = self.members[node_id]
        member.end()
        self._wire.lose_process(node_id)

    def lose_power(self, node_id: NodeId, *, kept: int = 0) -> None:
        """Ends a process at once, and loses its unsynced data except for some batches."""
        self.kill(node_id)
        self.members[node_id].disk.lose_power(kept=kept)

    def replace_disk(self, node_id: NodeId) -> None:
        """Ends a process and gives the node an empty disk, formatted with a directory id of its own."""
        self.kill(node_id)
        member = self.members[node_id]
        fresh = QuorumMember(node_id, self._next_directory(node_id))
        member.disk = fresh.disk
        self.refused.discard(node_id)

    def lose_election(self, node_id: NodeId) -> None:
        """Ends a process and loses its ``quorum-state``."""
        self.kill(node_id)
        self.members[node_id].disk.lose_election()

    def _refuse(self, member: QuorumMember, error: InvariantError) -> None:
        self.refused.add(member.node_id)
        self.kill(member.node_id)
        self._observer.stopped(member, error)

    # --- Links ------------------------------------------------------------------------------------------------------

    def cut(self, source: NodeId, target: NodeId) -> None:
        """Cuts what ``source`` dials to ``target``."""
        self.network.cuts.add(Link(source, target))

    def hold(self, channel: Channel[NodeId]) -> None:
        """Holds a channel's messages from now on."""
        self.network.held.setdefault(channel, deque())

    def release(self, channel: Channel[NodeId]) -> None:
        """Delivers a channel's held messages, and stops holding."""
        for delivery in self.network.held.pop(channel, ()):
            self.queue.after(0, delivery)

    def heal(self) -> None:
        """Mends every link and delivers all held messages."""
        self.network.cuts.clear()
        for channel in list(self.network.held):
            self.release(channel)

    # --- Requests of the state machine and of administrators --------------------------------------------------------

    def propose(self, member: QuorumMember) -> None:
        """Has a leader's state machine propose a record."""
        self._proposals += 1
        value = str(self._proposals).encode()
        self._step(
            member,
            inputs.Proposed(
                cause_id=_CAUSE,
                proposal_id=self._proposals,
                leader_epoch=member.leader_epoch,
                values=(value,),
            ),
        )

    def take_snapshot(self, member: QuorumMember) -> None:
        """Has a state machine write a snapshot of its applied records."""
        applied = [batch for batch in member.disk.batches if batch.end_offset == member.applied_end_offset]
        if applied:
            position = LogPosition(applied[-1].leader_epoch, member.applied_end_offset)
            self._step(member, inputs.SnapshotTaken(cause_id=_CAUSE, position=position, content=member.applied_sum))

    def add_voter(self, key: ReplicaKey) -> None:
        """Asks the newest leader to add a voter, without waiting for the answer."""
        self._ask_leader(messages.AddRaftVoterRequest(voter=key, listener=""))

    def remove_voter(self, key: ReplicaKey) -> None:
        """Asks the newest leader to remove a voter, without waiting for the answer."""
        self._ask_leader(messages.RemoveRaftVoterRequest(voter=key))

    def _ask_leader(self, request: messages.QuorumRequest) -> None:
        if self.leaders:
            leader_id = self.leaders[-1].node_id
            self._wire.ask_past_links(leader_id, cast(node_messages.Request, request), cause_id=_CAUSE)

    # --- Steps ------------------------------------------------------------------------------------------------------

    def _receive(self, node_id: NodeId, received: node_inputs.RequestReceived) -> bool:
        member = self.members[node_id]
        if member.core is None:
            return False
        self._step(member, received)
        return True

    def _step(self, node: Node[InputT], incoming: InputT | node_inputs.TimerFired) -> None:
        member = cast(QuorumMember, node)
        core = member.quorum
        if core is None:
            return
        try:
            taken = core.step(cast(inputs.QuorumInput, incoming), now_ms=member.clock.local_ms(self.queue.now_ms))
        except IllegalCall:
            return
        except InvariantError as error:
            self._refuse(member, error)
            return
        self._execute_all(member, taken)
        if member.quorum is core:
            self._timers.arm(member)

    def _execute_all(self, member: QuorumMember, taken: Sequence[effects.QuorumEffect]) -> None:
        core = member.quorum
        last = len(taken) if member.crash_after is None else min(member.crash_after, len(taken))
        for effect in taken[:last]:
            if member.quorum is core:
                self._execute(member, effect)
        if member.quorum is core and last < len(taken):
            self.kill(member.node_id)

    def _execute(self, member: QuorumMember, effect: effects.QuorumEffect) -> None:
        match effect:
            case node_effects.SendRequest():
                self._wire.ask(NodeAsker(member, self._step), effect)
            case node_effects.SendResponse():
                self._wire.respond(effect)
            case effects.WriteElection():
                member.disk.write_election(effect)
            case effects.AppendBatches():
                member.disk.append(effect.batches)
            case effects.SyncMetadata():
                self._begin_sync(member, effect)
            case effects.TruncateMetadata():
                member.disk.truncate(effect.end_offset)
            case effects.StoreSnapshot():
                member.disk.snapshots.append(effect.snapshot)
            case effects.RestartMetadata():
                member.disk.restart(effect.position)
            case effects.LoadSnapshot():
                member.load_snapshot()
            case effects.Commit():
                for batch in member.unapplied(effect.end_offset):
                    member.apply(batch)
                    self._observer.applied(member)
            case effects.RecordQuorumEvent():
                self._observer.recorded(member, effect.event)
            case effects.EndProcess():
                self.kill(member.node_id)
            case effects.AnnounceLeader() | effects.AcceptProposal() | effects.RefuseProposal():
                pass

    def _begin_sync(self, member: QuorumMember, effect: effects.SyncMetadata) -> None:
        incarnation, disk, cuts = member.incarnation, member.disk, member.disk.cuts

        def complete() -> None:
            if member.incarnation != incarnation or member.disk is not disk or disk.cuts != cuts:
                return
            disk.sync(effect.end_offset)
            self._step(
                member,
                inputs.LogSynced(cause_id=CauseId("sync"), end_offset=effect.end_offset, generation=effect.generation),
            )

        complete_sync(member.node_id, complete, network=self.network, queue=self.queue)
