"""A whole cluster of real cores in one thread: virtual time, a queue of messages, links that can be broken.

Deterministic: a run depends only on the calls. Without faults every message arrives after one millisecond, in order.
The cluster makes no protocol decisions: it delivers inputs and executes effects, in the order that
``laststand.emulator.core.effects`` requires.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from laststand.emulator.core import effects, events, inputs, records
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client.steps import ClientRecord
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.eras import node_rules
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerId,
    IncarnationId,
    MessageFate,
    MetadataOffset,
    NodeId,
    NodeRole,
    TopicPartition,
    Way,
)
from laststand.emulator.plan.channels import CONTROLLER_SYNC, Channel
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import CONTROLLER, machine_of
from laststand.emulator.simulator.cluster.broker_effects import BrokerEffects, with_batches
from laststand.emulator.simulator.cluster.clients import ClientSet
from laststand.emulator.simulator.cluster.controller_effects import ControllerEffects
from laststand.emulator.simulator.cluster.crash import done_before
from laststand.emulator.simulator.cluster.processes import Processes
from laststand.emulator.simulator.network.links import Links
from laststand.emulator.simulator.network.network import Network, silence_ms
from laststand.emulator.simulator.network.streams import MetadataStreams, Streams
from laststand.emulator.simulator.network.wire import NodeAsker, Wire
from laststand.emulator.simulator.nodes.batch_registry import BatchRegistry
from laststand.emulator.simulator.nodes.event_log import EventLog
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.node_timers import NodeTimers
from laststand.emulator.simulator.nodes.nodes import (
    BrokerNode,
    ConsumerNode,
    ControllerNode,
    InputT,
    MemberNode,
    MetadataNode,
    Node,
    ProducerNode,
    TransactionalProducerNode,
)
from laststand.emulator.simulator.nodes.observer import NullObserver, Observer


class SimulatedCluster:
    """One controller (node 100), brokers 0..N-1, and clients (node 1000): a KRaft cluster.

    A cluster of another kind is a subclass that creates other nodes.

    Args:
        brokers: number of brokers; each runs after ``processes.start``.
        switches: the rules; nodes that are started later may have others (``processes.own_rules``).
        properties: of every node.
        observer: of events, of the history and of steps.
        batches: makes the producers' batches; running numbers for CRCs by default.
        attach: called with the cluster before anything runs.
        combined: whether each controller shares a process with a broker.

    Attributes:
        queue: virtual time.
        nodes: all brokers.
        metadata_nodes: the nodes that hold the metadata: node 100, or several controllers; they run from the start.
        network: the network's current state.
        links: cuts and heals links, holds and releases messages.
        wire: requests under way.
        processes: starts and ends nodes' processes.
        clients: producers, consumers, and requests from outside.
        event_log: the log of nodes and the harness.
        steps: of all nodes together.
        administered: the number of administrators' requests to the controller.
        on_response: called with each response of a broker, while the effects of its step are executed.
        on_broken_promise: called with the id of a promise that the cluster itself found broken, and a sentence.
        on_forgotten_metadata: called when the committed metadata no longer agrees with what was published.
        on_controller_step: called with each input of a KRaft controller, its term and the effects, before those are
            executed.
        is_halted: ``run`` and ``run_until`` return at once while this is set, so that the state can be inspected.
    """

    converge_ms: ClassVar[int] = 30_000
    """Virtual time in which a healed cluster must converge."""

    has_quorum: ClassVar[bool] = False
    """Several controllers agree on the metadata."""

    apis_left_unanswered: ClassVar[frozenset[str]] = frozenset()
    """Requests that a node may take and forget: whoever sent them gives them up in the end."""

    standby_ids: tuple[NodeId, ...] = ()
    """Controllers that are down, and no voters, until somebody starts and adds them."""

    is_mended_by_restarts: ClassVar[bool] = False
    """A healed cluster may need its brokers restarted before it settles."""

    def __init__(
        self,
        *,
        brokers: int,
        switches: Switches,
        properties: NodeProperties,
        observer: Observer | None = None,
        batches: BatchRegistry | None = None,
        attach: Callable[["SimulatedCluster"], None] | None = None,
        combined: bool = False,
    ) -> None:
        self._combined = combined
        self.switches = switches
        self.properties = properties
        self.steps = 0
        self.administered = 0
        self.on_response: Callable[[BrokerNode, effects.SendResponse], None] | None = None
        self.on_broken_promise: Callable[[str, str], None] | None = None
        self.on_forgotten_metadata: Callable[[], None] | None = None
        self.on_controller_step: Callable[[int, object, Sequence[effects.Effect]], None] | None = None
        self.is_halted = False
        self.queue = EventQueue()
        self.network = Network()
        self.wire = Wire(
            self.queue,
            self.network,
            self._receive,
            silence_ms=silence_ms(properties.broker_session_timeout_ms),
        )
        self._observer = observer or NullObserver()
        self.event_log = EventLog(self.queue, self._observer)
        self.network.on_intercept = self._note_intercepted
        self._timers = NodeTimers(self.queue, self._step)
        self._prepare()
        self.nodes = {(node := self._make_broker(BrokerId(NodeId(index)))).broker_id: node for index in range(brokers)}
        self.metadata_nodes, streams = self._make_metadata()
        self.links = Links(self.queue, self.network, self.wire, streams, self.nodes, self.metadata_nodes)
        self.processes = Processes(
            self.nodes,
            lambda: self.metadata_node,
            switches=switches,
            properties=properties,
            queue=self.queue,
            event_log=self.event_log,
            wire=self.wire,
            streams=streams,
            step=self._step,
            arm=self._timers.arm,
            partner=self._partner,
        )
        self.clients = ClientSet(
            tuple(self.nodes),
            self.wire,
            batches or BatchRegistry(),
            controller_id=lambda: self.metadata_node.node_id,
            transaction_version=2 if switches.epoch_per_transaction else 1,
            step=self._step,
            run_until=self.run_until,
        )
        self._broker_effects = BrokerEffects(
            self.queue,
            streams,
            retention_check_interval_ms=properties.log_retention_check_interval_ms,
            trims_epochs=lambda node: self.rules_of(node.broker_id).recovery_trims_epochs,
            step=self._step,
            end=self.processes.end,
            write=self.event_log.write,
        )
        self._note_harness_started()
        if attach is not None:
            attach(self)
        for metadata_node in self.metadata_nodes.values():
            if metadata_node.node_id not in self.standby_ids:
                self.processes.start(metadata_node)

    # --- What kind of cluster it is ---------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Makes the parts that nodes share, before there is any node."""

    def _make_broker(self, broker_id: BrokerId) -> BrokerNode:
        return BrokerNode(broker_id)

    def _make_metadata(self) -> tuple[Mapping[NodeId, MetadataNode], Streams]:
        """Returns the nodes that have the metadata, and the way by which brokers receive it."""
        self.controller_node = ControllerNode()
        nodes = {CONTROLLER: self.controller_node}
        streams = MetadataStreams(self.queue, self.network, self.wire, nodes, self._step)
        self._controller_effects = ControllerEffects(
            self.controller_node,
            self.queue,
            self.network,
            streams,
            step=self._step,
            end=lambda node, end: self.processes.end(node, end),
        )
        return nodes, streams

    def _execute_on_metadata(self, node: MetadataNode, effect: effects.Effect) -> None:
        """Executes an effect of a node that has the metadata, other than a message."""
        self._controller_effects.execute(effect)

    def _note_intercepted(self, channel: Channel[NodeId], fate: MessageFate) -> None:
        self.event_log.note(
            events.MessageIntercepted(
                cause_id=self.event_log.cause_id,
                source=channel.source,
                target=channel.target,
                api=channel.api,
                way=channel.way,
                fate=fate,
            )
        )

    def _note_harness_started(self) -> None:
        self.event_log.note(
            events.NodeStarted(
                cause_id=self.event_log.cause_id,
                role=NodeRole.HARNESS,
                incarnation_id=IncarnationId("harness"),
                switches={},
                properties={},
                wall_time_ns=0,
                driver=DriverName.SIMULATOR.value,
                evidence_format=events.EVIDENCE_FORMAT,
                standby_controllers=self.standby_ids,
            )
        )

    # --- Views ------------------------------------------------------------------------------------------------------

    @property
    def own_batches(self) -> Mapping[int, bytes]:
        """The batches that brokers made themselves, by checksum."""
        return self._broker_effects.contents

    def machine_of(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Returns all nodes of a node's process, in combined mode a broker and its controller."""
        controllers = len(self.metadata_nodes) - len(self.standby_ids)
        return machine_of(node_id, controllers=controllers) if self._combined else (node_id,)

    def _partner(self, node_id: NodeId) -> BrokerNode | MetadataNode | None:
        """Returns the other node in a node's process, in combined mode; else ``None``."""
        others = [each for each in self.machine_of(node_id) if each != node_id]
        return (self.metadata_nodes.get(others[0]) or self.nodes[BrokerId(others[0])]) if others else None

    def is_awaited(self, node_id: NodeId) -> bool:
        """Returns whether a node is a standby controller that was never started."""
        return node_id in self.standby_ids and self.metadata_nodes[node_id].incarnation < 0

    @property
    def settling_ms(self) -> int:
        """The time after which a quiet cluster has finished its periodic work: preferred leaders lead again."""
        return 1000 * self.properties.leader_imbalance_check_interval_seconds

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.queue.now_ms

    @property
    def metadata_node(self) -> MetadataNode:
        """The node that has the metadata now: node 100, or of several controllers the active one."""
        return self.metadata_nodes[CONTROLLER]

    @property
    def controller(self) -> Controller:
        """The controller's core; of the last process, if none runs."""
        return self.controller_node.controller

    @property
    def metadata_log(self) -> Sequence[records.MetadataBatch]:
        """The metadata log: what the controller has appended, or several controllers have committed."""
        return self.controller_node.log

    def controller_term(self, node_id: NodeId, incarnation: int) -> int:
        """Returns a number that grows with each controller that may write metadata."""
        return incarnation

    @property
    def is_metadata_sound(self) -> bool:
        """The metadata can be changed: the node that has it runs, and its syncs complete."""
        return CONTROLLER_SYNC not in self.network.held and self.runs_soundly(self.metadata_node)

    def runs_soundly(self, node: Node[InputT]) -> bool:
        """Returns whether a process runs, is not paused, and has a clock of the right rate."""
        return node.core is not None and not node.is_paused and node.clock.has_normal_rate

    @property
    def image(self) -> MetadataImage:
        """The committed metadata, which the controller has made durable."""
        return self.metadata_node.durable

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """The end (exclusive) of the committed metadata."""
        return self.metadata_node.committed_end_offset

    @property
    def is_up(self) -> bool:
        """All brokers are registered and unfenced."""
        brokers = self.controller.image.brokers
        return len(brokers) == len(self.nodes) and not any(broker.fenced for broker in brokers.values())

    def is_recovering(self, partition: TopicPartition) -> bool:
        """Returns whether the replicas of a leaderless partition are being asked for their logs."""
        return partition in self.controller.recoveries.under_way

    def lacks_metadata(self, node: BrokerNode) -> str | None:
        """Returns the metadata that a running broker lacks, in words."""
        assert node.broker is not None
        known, end = node.broker.image.next_offset, self.committed_end_offset
        return None if known == end else f"broker {node.broker_id} knows metadata up to {known} of {end}"

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """Returns the committed state of a partition."""
        return self.image.partitions.get(partition)

    def stored(self, broker_id: BrokerId, partition: TopicPartition) -> tuple[BatchDescriptor, ...]:
        """Returns the batches on a broker's disk."""
        log = self.nodes[broker_id].disk.logs.get(partition)
        return () if log is None else tuple(log.batches)

    def rules_of(self, node_id: NodeId) -> Switches:
        """Returns the rules of a node's process; of a node that is down, those of its next process."""
        return self.processes.rules_of(node_id)

    @property
    def controllers_rules(self) -> Collection[Switches]:
        """The rules of all controller processes so far: one may publish records that another wrote."""
        return self.processes.controller_rules.keys()

    def promised_by_all(self, check_id: str) -> bool:
        """Returns whether every process so far had the rules under which a check's promise is made."""
        return self.processes.promised_by_all(check_id)

    def promised_by_node(self, check_id: str, node_id: NodeId | None) -> bool:
        """Returns whether the processes that a check depends on had its rules, for a finding about ``node_id``."""
        return self.processes.promised_by_node(check_id, node_id)

    def quorum_replica(self, node_id: NodeId) -> ReplicaKey | None:
        """Returns the replica of the quorum that a controller is, with its present disk."""
        return None

    @property
    def has_settled_voters(self) -> bool:
        """True if one of several controllers leads, and the voter set is committed."""
        return False

    def voter(self, node_id: NodeId) -> ReplicaKey | None:
        """Returns the replica as which a controller is a voter, perhaps with the directory id of a former disk."""
        return None

    # --- Time -------------------------------------------------------------------------------------------------------

    def run(self, duration_ms: int) -> None:
        """Advances time, until it is halted."""
        end_ms = self.now_ms + duration_ms
        while not self.is_halted:
            callback = self.queue.pop(until_ms=end_ms)
            if callback is None:
                self.queue.now_ms = end_ms
                return
            callback()

    def run_until(self, condition: Callable[[], bool], *, within_ms: int = 30_000) -> bool:
        """Advances time until a condition holds, or it is halted; returns whether the condition holds."""
        end_ms = self.now_ms + within_ms
        while not condition():
            if self.is_halted:
                return False
            callback = self.queue.pop(until_ms=end_ms)
            if callback is None:
                self.queue.now_ms = end_ms
                return condition()
            callback()
        return True

    def expire(self, broker_id: BrokerId) -> bool:
        """Expires a broker's session while everything else continues; returns whether it did."""
        heartbeats = Channel(broker_id, self.metadata_node.node_id, "BrokerHeartbeat", Way.REQUEST)
        was_held = heartbeats in self.network.held
        self.links.hold(heartbeats)

        def is_over() -> bool:
            registration = self.controller.image.brokers.get(broker_id)
            return registration is None or registration.fenced

        has_ended = self.run_until(is_over, within_ms=3 * self.properties.broker_session_timeout_ms)
        if not was_held and not self.is_halted:
            self.links.release(heartbeats)
        return has_ended

    def end_session(self, broker_id: BrokerId) -> bool:
        """Lets ZooKeeper end a broker's session; false without ZooKeeper."""
        return False

    def depose_controller(self) -> bool:
        """Lets ``/controller`` be deleted in ZooKeeper; false without ZooKeeper."""
        return False

    def set_protocol(self, node_id: NodeId, version: str) -> bool:
        """Sets the ``inter.broker.protocol.version`` of a broker's next processes; false without ZooKeeper."""
        return False

    def set_era(self, node_id: NodeId, era: str) -> None:
        """Sets the rules of a node's next processes (``node_rules``)."""
        self.processes.own_rules[node_id] = node_rules(era)

    def set_draw(self, number: int) -> None:
        """Chooses the number that picks the leaders of unclean elections from now on."""
        self.controller_node.draw = number
        self._controller_effects.deliver_draw()

    # --- Steps ------------------------------------------------------------------------------------------------------

    def _receive(self, node_id: NodeId, received: inputs.RequestReceived) -> bool:
        node = self.metadata_nodes.get(node_id) or self.nodes[BrokerId(node_id)]
        if node.core is None:
            return False
        if isinstance(node, BrokerNode):
            self._step(node, received)
        else:
            self._step(node, received)
        return True

    def sync_disk(self, node: BrokerNode) -> None:
        """Makes the page cache of a broker's disk durable, as the kernel does now and then."""
        self._broker_effects.sync(node)

    def _step(self, node: Node[InputT], incoming: InputT | inputs.TimerFired) -> None:
        core = node.core
        if core is None:
            return
        if node.is_paused:
            if not isinstance(incoming, inputs.TimerFired):
                node.inbox.append(incoming)
            return
        self.steps += 1
        effects = core.step(incoming, now_ms=node.clock.local_ms(self.queue.now_ms))
        if isinstance(node, MetadataNode):
            self._report_step(node, incoming, effects)
        crash = (
            None if isinstance(incoming, inputs.SegmentsDeleted) else node.pending_crash
        )  # its report is all there is
        if crash is not None and (done := done_before(crash, effects)) is not None:
            assert isinstance(node, BrokerNode)
            for effect in done:
                self._broker_effects.execute(node, effect)
            self.processes.crash(node, crash)
            return
        limited = node.disk if isinstance(node, BrokerNode) and node.disk.room is not None else None
        for effect in effects:
            if limited is not None and not limited.take_room(effect):
                self.processes.end(node, events.IncarnationEnd.KILLED)
                return
            self._execute(node, effect)
        if node.core is core:
            self._timers.arm(node)
        self._observer.stepped(node.node_id)

    def judge_metadata(self) -> None:
        """Judges the metadata at the end of a run: with one controller there is nothing to compare."""

    def _report_step(self, node: MetadataNode, incoming: object, taken: Sequence[effects.Effect]) -> None:
        if self.on_controller_step is not None and node.role is NodeRole.CONTROLLER:
            self.on_controller_step(node.incarnation, incoming, taken)

    def _execute(self, node: Node[InputT], effect: effects.Effect) -> None:
        match effect:
            case effects.RecordEvent(event=event):
                self.event_log.write(node, event)
            case effects.SendRequest():
                if isinstance(node, ConsumerNode | TransactionalProducerNode | MemberNode):
                    node.fetches.note_request(effect)
                self.wire.ask(NodeAsker(node, self._step), effect)
            case effects.SendResponse():
                if isinstance(node, BrokerNode):
                    if self.on_response is not None:
                        self.on_response(node, effect)
                    effect = with_batches(node.disk, effect)
                self.wire.respond(effect)
            case effects.CloseConnection(request_id=request_id):
                self.wire.close(request_id)
            case _ if isinstance(node, BrokerNode):
                self._broker_effects.execute(node, effect)
            case _ if isinstance(node, MetadataNode):
                self._execute_on_metadata(node, effect)
            case _ if isinstance(effect, ClientRecord):
                assert isinstance(node, ProducerNode | TransactionalProducerNode | ConsumerNode | MemberNode)
                self._observer.recorded(node.name, effect, now_ms=self.queue.now_ms)
            case _:
                raise InvariantError(f"a client has no effect {effect}")
