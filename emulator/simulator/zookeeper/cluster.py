"""A ZooKeeper cluster of real cores in one thread.

Node 100 is the ZooKeeper server, where a KRaft cluster has its controller: metadata is there, and links to it are what
brokers need. Each broker process hosts a controller, which acts while it is elected. The committed metadata is the
fold of the server's writes, and its offsets are zxids.
"""

from collections.abc import Callable, Mapping
from typing import cast

from laststand.emulator.core import admin_messages, effects, events, inputs, messages
from laststand.emulator.core.broker.zookeeper.isr_notifier import LINGER_MS, LOOK_INTERVAL_MS
from laststand.emulator.core.eras import ZooKeeperSwitches, plain_switches
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.types import BrokerId, IncarnationId, NodeId, TopicPartition
from laststand.emulator.core.zookeeper.admin_manager import AdminSettings
from laststand.emulator.core.zookeeper.controller.controller import FIRST_BALANCE_MS
from laststand.emulator.core.zookeeper.controller.term import Term
from laststand.emulator.core.zookeeper.history import ZooKeeperHistory
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol, ibp_level
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_controller
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.network.streams import Streams
from laststand.emulator.simulator.nodes.nodes import BrokerNode, InputT, MetadataNode, Node
from laststand.emulator.simulator.zookeeper.nodes import ZooKeeperBrokerNode, ZooKeeperNode
from laststand.emulator.simulator.zookeeper.service import ZooKeeperStore


class NoStreams:
    """A ZooKeeper cluster has no metadata streams: its controller informs brokers by requests."""

    def open(self, node: BrokerNode, effect: effects.OpenMetadataStream) -> None:
        """Raises an error: a ZooKeeper broker requests no stream.

        Raises:
            InvariantError: always, as no broker requests a stream here.
        """
        raise InvariantError(f"broker {node.broker_id} asks for {effect}")

    def lose(self, node: BrokerNode, source: NodeId, *, notice_ms: int) -> None:
        """Does nothing: there are no metadata streams."""

    def lose_all(self, source: NodeId) -> None:
        """Does nothing: there are no metadata streams."""

    def forget(self, node: BrokerNode) -> None:
        """Does nothing: there are no metadata streams."""


def _unobserved(node: BrokerNode, received: inputs.RequestReceived) -> None:
    """Ignores a request."""


class ZooKeeperCluster(SimulatedCluster):
    """The ZooKeeper server (node 100), brokers 0..N-1, and clients (node 1000); arguments as of its base.

    Attributes:
        on_request: called with each request that a broker receives, before its step.
    """

    converge_ms = 90_000
    """A request that a controller dropped is given up after ``controller.socket.timeout.ms``, which is 30 s."""

    apis_left_unanswered = frozenset({"AlterPartition", "ControlledShutdown"})
    """A controller whose session ends forgets what it was asked."""

    is_mended_by_restarts = True
    """Whoever missed a control request waits for the next election: KAFKA-2729."""

    @property
    def settling_ms(self) -> int:
        """The time after which a quiet cluster has finished its periodic work, such as the first leader balance."""
        return max(FIRST_BALANCE_MS, LOOK_INTERVAL_MS + LINGER_MS, super().settling_ms)

    def _make_broker(self, broker_id: BrokerId) -> BrokerNode:
        return ZooKeeperBrokerNode(broker_id, self._store)

    def _make_metadata(self) -> tuple[Mapping[NodeId, MetadataNode], Streams]:
        self.zookeeper_node = ZooKeeperNode(self._store)
        return {self.zookeeper_node.node_id: self.zookeeper_node}, NoStreams()

    def _prepare(self) -> None:
        switches = self.switches
        assert isinstance(switches, ZooKeeperSwitches), "a ZooKeeper cluster has its own rules"
        history = ZooKeeperHistory(switches.zookeeper, self.properties, incarnation_of=self._incarnation_of)
        settings = AdminSettings(
            node_id=CONTROLLER,
            properties=self.properties,
            switches=plain_switches(switches),
            rules=switches.zookeeper,
            ibp=switches.protocol,
        )
        self._store = ZooKeeperStore(history, settings)

        self.on_request: Callable[[BrokerNode, inputs.RequestReceived], None] = _unobserved

    def _incarnation_of(self, _: BrokerId, session_id: SessionId) -> IncarnationId:
        """Returns which incarnation has a session; a broker that registers runs."""
        for node in self.processes_with_controllers():
            core = node.process_core
            if core is not None and core.client.session_id == session_id and node.incarnation_id is not None:
                return node.incarnation_id
        return IncarnationId(f"session-{session_id}")

    def processes_with_controllers(self) -> list[ZooKeeperBrokerNode]:
        """Returns all brokers."""
        return [cast(ZooKeeperBrokerNode, node) for node in self.nodes.values()]

    # --- Views ----------------------------------------------------------------------------------------------------

    @property
    def elected_controller(self) -> BrokerId | None:
        """The broker that ``/controller`` names."""
        data = self._store.server.data(paths.CONTROLLER)
        return None if data is None else decode_controller(data)

    @property
    def is_up(self) -> bool:
        """True if all brokers are registered, and one of them is the controller and knows them all."""
        controller = self.elected_controller
        if controller is None or len(self.image.brokers) < len(self.nodes):
            return False
        count = len(self.nodes)
        return all(node.broker is not None and len(node.broker.image.brokers) == count for node in self.nodes.values())

    def protocol_of(self, broker_id: BrokerId) -> InterBrokerProtocol:
        """Returns the protocol of a broker."""
        assert isinstance(self.switches, ZooKeeperSwitches), "a ZooKeeper cluster has its own rules"
        node = cast(ZooKeeperBrokerNode, self.nodes[broker_id])
        return node.protocol(self.switches)

    def is_being_deleted(self, topic: str) -> bool:
        """Returns whether a topic's deletion was requested and is not complete."""
        return self._store.server.stat(paths.delete_topic_node(topic)) is not None

    def is_recovering(self, partition: TopicPartition) -> bool:
        """Returns whether replicas are being asked for their logs: no ZooKeeper controller does that."""
        return False

    def lacks_metadata(self, node: BrokerNode) -> str | None:
        """Returns why brokers may lack metadata: no controller is active to send it; else ``None``."""
        return None if self.term is not None else f"{self.elected_controller} is not at work as the controller"

    @property
    def term(self) -> Term | None:
        """The term of the controller that ZooKeeper names; ``None`` while that controller is not active."""
        controller = self.elected_controller
        core = None if controller is None else cast(ZooKeeperBrokerNode, self.nodes[controller]).process_core
        return None if core is None else core.process.controller.term

    # --- What can be done -----------------------------------------------------------------------------------------

    def expire(self, broker_id: BrokerId) -> bool:
        """Expires a broker's session: the server does it at once."""
        return self.end_session(broker_id)

    def end_session(self, broker_id: BrokerId) -> bool:
        """Has the server end a broker's session; the process learns of that by its next request."""
        core = cast(ZooKeeperBrokerNode, self.nodes[broker_id]).process_core
        session_id = None if core is None else core.client.session_id
        if session_id is None or not self._store.server.is_alive(session_id):
            return False
        service = self.zookeeper_node.service
        if service is None:
            return False
        for effect in service.end_session(session_id, cause_id=self.event_log.cause_id):
            self._execute(self.zookeeper_node, effect)
        return True

    def set_protocol(self, node_id: NodeId, version: str) -> bool:
        """Sets the inter-broker protocol of a broker's next processes; returns whether the broker exists."""
        node = self.nodes.get(BrokerId(node_id))
        if not isinstance(node, ZooKeeperBrokerNode):
            return False
        node.ibp = ibp_level(version)
        return True

    def depose_controller(self) -> bool:
        """Deletes ``/controller``; every watching process is notified, also its former owner."""
        service = self.zookeeper_node.service
        if service is None or self.elected_controller is None:
            return False
        for effect in service.delete(paths.CONTROLLER, cause_id=self.event_log.cause_id):
            self._execute(self.zookeeper_node, effect)
        return True

    def set_draw(self, number: int) -> None:
        """Does nothing: an unclean leader is the first replica that is online."""

    # --- Steps ----------------------------------------------------------------------------------------------------

    def _step(self, node: Node[InputT], incoming: InputT | inputs.TimerFired) -> None:
        is_at_work = node.core is not None and not node.is_paused
        if is_at_work and isinstance(incoming, inputs.RequestReceived) and isinstance(node, BrokerNode):
            self.on_request(node, incoming)
        super()._step(node, incoming)

    def _receive(self, node_id: NodeId, received: inputs.RequestReceived) -> bool:
        if not isinstance(
            received.request, admin_messages.ElectLeadersRequest | admin_messages.AlterPartitionReassignmentsRequest
        ):
            return super()._receive(node_id, received)
        controller = self.elected_controller
        if controller is not None and super()._receive(controller, received):
            parked = self.wire.parked.get(received.request_id)
            if parked is not None:
                parked.node_id = controller  # the request ends with that process
            return True
        response: messages.Response
        if isinstance(received.request, admin_messages.ElectLeadersRequest):
            response = admin_messages.ElectLeadersResponse(error=ErrorCode.NOT_CONTROLLER)
        else:
            response = admin_messages.AlterPartitionReassignmentsResponse(error=ErrorCode.NOT_CONTROLLER)
        self.wire.respond(
            effects.SendResponse(request_id=received.request_id, response=response, cause_id=received.cause_id)
        )
        return True

    def _execute_on_metadata(self, node: MetadataNode, effect: effects.Effect) -> None:
        match effect:
            case effects.StopNode():
                self.processes.end(node, events.IncarnationEnd.STOPPED)
            case _:
                raise InvariantError(f"a ZooKeeper server has no effect {effect}")
