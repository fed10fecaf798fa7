"""A KRaft cluster with several controllers, which agree on the metadata as a quorum.

Nodes 100, 101 and so on. The committed metadata is the union of what the controllers have published; they must agree.
Brokers find the active controller by asking; administrators, who are outside of the network, ask the one that was
active last.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from laststand.emulator.core import effects, events, inputs, records
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.errors import InvariantError, UnsupportedFeatureError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.quorum import effects as quorum_effects
from laststand.emulator.core.quorum import inputs as quorum_inputs
from laststand.emulator.core.quorum.settings import formatted, settings_of
from laststand.emulator.core.quorum.states import IllegalQuorumState
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.quorum_controller.effects import RecordFacts, ReportFault, ServeMetadata
from laststand.emulator.core.quorum_controller.values import PLAIN_VALUES, decode_batch
from laststand.emulator.core.types import BrokerId, CauseId, LeaderEpoch, MessageFate, MetadataOffset, NodeId, Way
from laststand.emulator.plan.channels import SYNC, Channel, Link
from laststand.emulator.plan.nodes import CONTROLLER, controller_ids
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.network.network import Network
from laststand.emulator.simulator.network.streams import MetadataStreams, Streams
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import CLUSTER_ID, BrokerNode, InputT, MetadataNode, Node
from laststand.emulator.simulator.quorum.availability import QuorumAvailability
from laststand.emulator.simulator.quorum.controller_node import QuorumControllerNode
from laststand.emulator.simulator.quorum.oracle import PROMISE_OF, QuorumOracle, voters_in


class ControllersCluster(SimulatedCluster):
    """Several controllers, brokers 0..N-1, and clients.

    Args:
        controllers: number of controllers.
        standby_controllers: number of further controllers, down and no voters until they are started and added.
        cluster: the other arguments, as in ``SimulatedCluster``.

    Attributes:
        controllers: all of them.
        quorum_oracle: judges the quorum.
    """

    has_quorum = True

    def __init__(self, *, controllers: int, standby_controllers: int = 0, **cluster: Any) -> None:
        self._controller_ids = controller_ids(controllers + standby_controllers)
        self.standby_ids = self._controller_ids[controllers:]
        super().__init__(**cluster)

    # --- What kind of cluster it is ---------------------------------------------------------------------------------

    def _prepare(self) -> None:
        disks = {node_id: DirectoryId(f"disk-{node_id}") for node_id in self._controller_ids}
        keys = tuple(ReplicaKey(node_id, disk) for node_id, disk in disks.items())
        initial = tuple(key for key in keys if key.node_id not in self.standby_ids)
        self.controllers: dict[NodeId, QuorumControllerNode] = {}
        for key in keys:
            settings = settings_of(
                self.properties, key=key, cluster_id=CLUSTER_ID, rules=self.switches, initial=initial
            )
            self.controllers[key.node_id] = QuorumControllerNode(settings, self.queue)
        voters, _ = formatted(initial, self.switches)
        self.quorum_oracle = QuorumOracle()
        self.quorum_oracle.formatted = voters.keys
        self.quorum_oracle.first_disks = disks
        self.quorum_oracle.members = self.controllers
        self._reported_findings = 0
        timeouts_ms = self.properties.controller_quorum_fetch_timeout_ms
        self._availability = QuorumAvailability(
            self.controllers,
            self,
            self.network,
            settle_ms=2 * timeouts_ms
            + 4 * self.properties.controller_quorum_election_timeout_ms
            + self.properties.controller_quorum_request_timeout_ms,
            resign_ms=timeouts_ms * 3 // 2,
            voters=lambda node_id: tuple(voter.node_id for voter in self._voters_by(node_id)),
            report=self._report_once,
        )
        self._reported: set[str] = set()
        self._committed: list[records.MetadataBatch] = []
        self._image = MetadataImage()
        self._reported_end_offset = MetadataOffset(0)
        self._last_active = self._controller_ids[0]

    def _make_broker(self, broker_id: BrokerId) -> BrokerNode:
        return BrokerNode(broker_id, self._controller_ids)

    def _make_metadata(self) -> tuple[Mapping[NodeId, MetadataNode], Streams]:
        self._streams = MetadataStreams(self.queue, self.network, self.wire, self.controllers, self._step)
        return self.controllers, self._streams

    # --- Views ------------------------------------------------------------------------------------------------------

    @property
    def metadata_node(self) -> QuorumControllerNode:
        """The controller that was the last one to become active."""
        return self.controllers[self._last_active]

    @property
    def controller(self) -> Controller:
        """The core of the controller that was the last one to become active."""
        controller = self.metadata_node.controller
        return Controller(self.properties, self.switches, CLUSTER_ID, CONTROLLER) if controller is None else controller

    @property
    def metadata_log(self) -> Sequence[records.MetadataBatch]:
        """The batches that any controller has published."""
        return self._committed

    @property
    def image(self) -> MetadataImage:
        """The fold of those batches."""
        return self._image

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """The end (exclusive) of the published batches."""
        return self._image.next_offset

    @property
    def is_up(self) -> bool:
        """A controller is active, and all brokers are registered and unfenced."""
        brokers = self._image.brokers
        return len(brokers) == len(self.nodes) and not any(broker.fenced for broker in brokers.values())

    def controller_term(self, node_id: NodeId, incarnation: int) -> int:
        """Returns the epoch that a controller leads."""
        return self.controllers[node_id].leader_epoch

    def quorum_replica(self, node_id: NodeId) -> ReplicaKey | None:
        """Returns which replica of the quorum a controller is, with the disk that it has now."""
        node = self.controllers.get(node_id)
        return None if node is None else ReplicaKey(node_id, node.disk.directory_id)

    @property
    def voters(self) -> tuple[ReplicaKey, ...]:
        """The voters by the log of the controller that was the last one to become active."""
        return self._voters_by(self.metadata_node.node_id)

    def _voters_by(self, node_id: NodeId) -> tuple[ReplicaKey, ...]:
        return voters_in(self.controllers[node_id].disk) or self.quorum_oracle.formatted

    @property
    def has_settled_voters(self) -> bool:
        """A controller leads, and the set of voters is committed."""
        node = self.metadata_node
        if node.process is None or node.served_epoch is None:
            return False
        return (node.process.quorum.replica.log.voters_offset or 0) < node.committed_end_offset

    def voter(self, node_id: NodeId) -> ReplicaKey | None:
        """Returns the replica as which a controller is a voter, perhaps with the directory id of a former disk."""
        return next((voter for voter in self.voters if voter.node_id == node_id), None)

    @property
    def is_metadata_sound(self) -> bool:
        """True if every controller runs soundly, one of them is active, and no fault is in force between them."""
        nodes = self.controllers
        links = [Link(source, target) for source in nodes for target in nodes if source != target]
        network = self.network
        disturbed = {(channel.source, channel.target) for channel in (*network.held, *network.interferences)}
        return (
            self.metadata_node.served_epoch is not None
            and all(self.runs_soundly(node) or self.is_awaited(node.node_id) for node in nodes.values())
            and not any(network.is_blocked(link) or link in network.latencies or link in disturbed for link in links)
            and not any(sync_channel(node_id) in network.held for node_id in nodes)
        )

    def set_draw(self, number: int) -> None:
        """Chooses the number that picks the leaders of unclean elections from now on."""
        for node in self.controllers.values():
            node.draw = number
        self._deliver_draw(self.metadata_node)

    # --- Processes --------------------------------------------------------------------------------------------------

    def is_sound(self, node_id: NodeId) -> bool:
        """Returns whether a controller runs as it should."""
        return self.runs_soundly(self.controllers[node_id])

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether a controller has a process, paused or not."""
        return self.controllers[node_id].core is not None

    def _step(self, node: Node[InputT], incoming: InputT | inputs.TimerFired) -> None:
        try:
            super()._step(node, incoming)
        except IllegalQuorumState as error:
            # As Kafka's does, the process stops by itself.
            if self.on_broken_promise is not None:
                self.on_broken_promise("InvariantError", f"controller {node.node_id}: {error}")
            self.processes.end(node, events.IncarnationEnd.UNEXPECTED)
        except UnsupportedFeatureError:
            self.processes.end(node, events.IncarnationEnd.UNEXPECTED)

    # --- Effects ----------------------------------------------------------------------------------------------------

    def _report_step(self, node: MetadataNode, incoming: object, taken: Sequence[effects.Effect]) -> None:
        assert isinstance(node, QuorumControllerNode)
        self._availability.look(self.queue.now_ms)
        process = node.process
        if self.on_controller_step is None or process is None or process.active is None:
            return
        decided: list[effects.Effect] = []
        for effect in taken:
            if isinstance(effect, quorum_effects.AppendBatches):
                read = [
                    decode_batch(batch, values=PLAIN_VALUES, cause_id=self.event_log.cause_id)
                    for batch in effect.batches
                ]
                decided += [effects.AppendMetadata(batch=each.batch, events=each.events) for each in read]
            else:
                decided.append(effect)
        self.on_controller_step(process.controller_epoch, incoming, decided)

    def _execute_on_metadata(self, node: MetadataNode, effect: effects.Effect) -> None:
        assert isinstance(node, QuorumControllerNode)
        match effect:
            case quorum_effects.WriteElection():
                node.disk.write_election(effect)
            case quorum_effects.AppendBatches(batches=batches):
                node.disk.append(batches)
            case quorum_effects.TruncateMetadata(end_offset=end_offset):
                node.disk.truncate(end_offset)
            case quorum_effects.SyncMetadata():
                self._begin_sync(node, effect)
            case quorum_effects.RecordQuorumEvent(event=evidence):
                self.quorum_oracle.now_ms = self.queue.now_ms
                self.quorum_oracle.recorded(node, evidence)
                self._availability.recorded(node.node_id, evidence, self.queue.now_ms)
                self._report_findings()
            case effects.PublishMetadata(batch=batch, cause_id=cause_id):
                self._publish(node, batch, cause_id)
            case RecordFacts(base_offset=base_offset, events=facts):
                if base_offset >= self._reported_end_offset:
                    self._reported_end_offset = MetadataOffset(base_offset + 1)
                    for event in facts:
                        self.event_log.write(node, event)
            case ReportFault(failure=failure, error=error):
                self.event_log.write(node, failure)
                raise error
            case ServeMetadata(controller_epoch=controller_epoch):
                self._serve(node, controller_epoch)
            case effects.DrawNumber():
                self.queue.after(0, lambda: self._deliver_draw(node))
            case effects.StopNode():
                self.processes.end(node, events.IncarnationEnd.STOPPED)
            case _:
                raise InvariantError(f"a controller has no effect {effect}")

    def _deliver_draw(self, node: QuorumControllerNode) -> None:
        self._step(node, inputs.NumberDrawn(cause_id=CauseId("draw"), number=node.draw))

    def _publish(self, node: QuorumControllerNode, batch: records.MetadataBatch, cause_id: CauseId) -> None:
        node.publish(batch)
        self.quorum_oracle.applied(node)
        self._report_findings()
        if batch.base_offset < self._image.next_offset and self._differs(batch):
            self._forget(node)
        elif batch.base_offset == self._image.next_offset:
            self._fold(batch)
        if node.served_epoch is not None and not isinstance(batch.records[0], records.ControlRecord):
            self._reported_end_offset = max(self._reported_end_offset, batch.end_offset)
        self._streams.publish(node, cause_id)

    def _serve(self, node: QuorumControllerNode, controller_epoch: LeaderEpoch | None) -> None:
        node.served_epoch = controller_epoch
        if controller_epoch is None:
            self._streams.lose_all(node.node_id)
            return
        assert node.process is not None
        node.controller = node.process.active
        self._last_active = node.node_id

    def _begin_sync(self, node: QuorumControllerNode, effect: quorum_effects.SyncMetadata) -> None:
        incarnation, disk, cuts = node.incarnation, node.disk, node.disk.cuts

        def complete() -> None:
            if node.incarnation != incarnation or node.core is None or disk.cuts != cuts:
                return
            disk.sync(effect.end_offset)
            synced = quorum_inputs.LogSynced(
                cause_id=CauseId("sync"), end_offset=effect.end_offset, generation=effect.generation
            )
            self._step(node, cast(inputs.ControllerInput, synced))

        complete_sync(node.node_id, complete, network=self.network, queue=self.queue)

    def judge_metadata(self) -> None:
        """Judges the controllers' logs at the end of a run."""
        self.quorum_oracle.finish()
        self._report_findings()

    def _report_once(self, check_id: str, text: str) -> None:
        if check_id not in self._reported and self.on_broken_promise is not None:
            self._reported.add(check_id)
            self.on_broken_promise(check_id, text)

    def _report_findings(self) -> None:
        findings = self.quorum_oracle.findings
        while self._reported_findings < len(findings):
            finding = findings[self._reported_findings]
            self._reported_findings += 1
            if self.on_broken_promise is not None:
                self.on_broken_promise(PROMISE_OF[finding.check], f"{finding.check.value}: {finding.text}")

    def _fold(self, batch: records.MetadataBatch) -> None:
        for index, record in enumerate(batch.records):
            self._image.replay(record, offset=MetadataOffset(batch.base_offset + index))
        self._committed.append(batch)

    def _differs(self, batch: records.MetadataBatch) -> bool:
        """Returns whether another batch was committed at this batch's offset."""
        place = bisect_left(self._committed, batch.base_offset, key=lambda committed: committed.base_offset)
        return self._committed[place] != batch

    def _forget(self, node: QuorumControllerNode) -> None:
        """Replaces the committed metadata by one controller's published log, which lacks others' published batches."""
        self._image, self._committed = MetadataImage(), []
        for batch in node.log:
            self._fold(batch)
        self._reported_end_offset = min(self._reported_end_offset, node.log[-1].base_offset)
        if self.on_forgotten_metadata is not None:
            self.on_forgotten_metadata()


def complete_sync(node_id: NodeId, complete: Callable[[], None], *, network: Network, queue: EventQueue) -> None:
    """Completes an fsync of a node at once, or when its held completions are released."""
    channel = sync_channel(node_id)
    if (held := network.held.get(channel)) is None:
        queue.after(0, complete)
    else:
        network.intercept(channel, MessageFate.HELD)
        held.append(complete)


def sync_channel(node_id: NodeId) -> Channel[NodeId]:
    """Returns the completions of a node's fsyncs as a channel."""
    return Channel(node_id, node_id, SYNC, Way.RESPONSE)
