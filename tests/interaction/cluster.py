"""A whole cluster of real cores in one thread: virtual time, a queue of messages, links that can be cut.

The simulator in small: deterministic, and as fast as the cores. Every message takes one millisecond. A cut link from
``a`` to ``b`` swallows what ``a`` asks of ``b`` and the answers; ``a`` notices after a while, as a keepalive would.
After each step of a broker the invariants are checked.
"""

import heapq
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from emulator.core.batch import BatchDescriptor
from emulator.core.broker import Broker, BrokerConfig
from emulator.core.controller.controller import Controller
from emulator.core.effects import (
    AppendMetadata,
    BrokerEffect,
    CloseConnection,
    CloseLogs,
    ControllerEffect,
    LoadLogs,
    OpenMetadataStream,
    PublishMetadata,
    RecordEvent,
    SendRequest,
    SendResponse,
    StopNode,
    WriteLogCheckpoints,
)
from emulator.core.events import Event
from emulator.core.image import PartitionState
from emulator.core.inputs import (
    BrokerInput,
    ControllerInput,
    LogsLoaded,
    MetadataReceived,
    MetadataStreamLost,
    MetadataStreamOpened,
    MetadataSynced,
    RequestFailed,
    RequestFailure,
    RequestReceived,
    ResponseReceived,
    ShutdownRequested,
    Started,
    TimerFired,
)
from emulator.core.invariants import PartitionMark, check_hosted_partition, check_progress, partition_mark
from emulator.core.messages import CreatableTopic, CreateTopicsRequest, FetchResponse, Request, Response
from emulator.core.properties import NodeProperties
from emulator.core.records import MetadataBatch
from emulator.core.switches import Switches
from emulator.core.types import (
    BrokerId,
    CauseId,
    CorrelationId,
    IncarnationId,
    NodeId,
    RequestId,
    TopicId,
    TopicPartition,
)
from tests.interaction.disk import CrashMode, Disk

CONTROLLER: Final = NodeId(100)
CLUSTER_ID: Final = "interaction"
LATENCY_MS: Final = 1
KEEPALIVE_MS: Final = 20


class BrokerNode:
    """A broker's disk, and its process while it runs."""

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        self.disk = Disk()
        self.broker: Broker | None = None
        self.incarnation = 0
        self.marks: dict[TopicPartition, PartitionMark] = {}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request under way, as the network knows it."""

    source: BrokerId
    incarnation: int
    destination: NodeId
    correlation_id: CorrelationId


class Cluster:
    """One controller (node 100) and brokers 0..N-1."""

    def __init__(self, *, brokers: int, switches: Switches, properties: NodeProperties) -> None:
        self.now_ms = 0
        self.events: list[tuple[NodeId, Event]] = []
        self.answers: dict[RequestId, Response | None] = {}
        self.switches = switches
        self.properties = properties
        self.nodes = {BrokerId(NodeId(index)): BrokerNode(BrokerId(NodeId(index))) for index in range(brokers)}
        self.controller = Controller(properties, switches, CLUSTER_ID, CONTROLLER)
        self._metadata_log: list[MetadataBatch] = []
        self._subscribers: set[BrokerId] = set()
        self._cuts: set[tuple[NodeId, NodeId]] = set()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._request_ids = 0
        self._asked: dict[RequestId, Asked] = {}
        self._step_controller(Started(cause_id=CauseId("start")))

    # --- Operating it ---------------------------------------------------------------------------------------------

    def start(self, broker_id: BrokerId) -> None:
        """Starts a process on the broker's disk."""
        node = self.nodes[broker_id]
        node.incarnation += 1
        node.marks = {}
        node.broker = Broker(
            BrokerConfig(
                broker_id=broker_id,
                controller_id=CONTROLLER,
                cluster_id=CLUSTER_ID,
                incarnation_id=IncarnationId(f"incarnation-{broker_id}-{node.incarnation}"),
                log_dirs=(f"directory-{broker_id}",),
                previous_broker_epoch=node.disk.previous_broker_epoch(),
                properties=self.properties,
                switches=self.switches,
            )
        )
        self._step_broker(node, Started(cause_id=CauseId(f"start-{broker_id}")))

    def stop(self, broker_id: BrokerId) -> None:
        """Asks a broker to end in order."""
        self._step_broker(self.nodes[broker_id], ShutdownRequested(cause_id=CauseId(f"stop-{broker_id}")))

    def crash(self, broker_id: BrokerId, mode: CrashMode) -> None:
        """Ends a process at once."""
        node = self.nodes[broker_id]
        self._lose_process(node)
        node.disk.crash(mode)

    def cut(self, source: NodeId, destination: NodeId) -> None:
        """Cuts the connections that ``source`` dials to ``destination``."""
        self._cuts.add((source, destination))
        if destination == CONTROLLER and BrokerId(source) in self._subscribers:
            self._lose_stream(self.nodes[BrokerId(source)])

    def isolate(self, broker_id: BrokerId) -> None:
        """Cuts every link from and to a broker."""
        for other in (*self.nodes, CONTROLLER):
            if other != broker_id:
                self.cut(broker_id, other)
                self.cut(other, broker_id)

    def heal(self) -> None:
        """Mends all links."""
        self._cuts.clear()

    def ask(self, node_id: NodeId, request: Request, *, cause: str) -> RequestId:
        """Sends a client's request past all links; its answer appears in ``answers`` (``None``: connection closed)."""
        request_id = self._next_request_id()
        received = RequestReceived(cause_id=CauseId(cause), request_id=request_id, request=request)
        if node_id == CONTROLLER:
            self._after(LATENCY_MS, lambda: self._step_controller(received))
        else:
            node = self.nodes[BrokerId(node_id)]
            self._after(LATENCY_MS, lambda: self._step_broker(node, received))
        return request_id

    def create_topic(self, name: str, assignments: tuple[tuple[int, ...], ...], configs: Mapping[str, str]) -> None:
        """Creates a topic and waits until the controller has answered."""
        topic = CreatableTopic(
            name=name,
            topic_id=TopicId(f"id-of-{name}"),
            assignments=tuple(tuple(BrokerId(NodeId(broker)) for broker in replicas) for replicas in assignments),
            configs=tuple(configs.items()),
        )
        request_id = self.ask(CONTROLLER, CreateTopicsRequest(topics=(topic,)), cause=f"create-{name}")
        self.run_until(lambda: request_id in self.answers)

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """Returns the committed state of a partition."""
        return self.controller.image.partitions.get(partition)

    # --- Time -----------------------------------------------------------------------------------------------------

    def run(self, duration_ms: int) -> None:
        """Lets time pass."""
        end_ms = self.now_ms + duration_ms
        while self._advance(end_ms):
            pass
        self.now_ms = end_ms

    def run_until(self, condition: Callable[[], bool], *, within_ms: int = 30_000) -> bool:
        """Lets time pass until a condition holds; returns whether it came to hold."""
        end_ms = self.now_ms + within_ms
        while not condition():
            if not self._advance(end_ms):
                self.now_ms = end_ms
                return condition()
        return True

    def _advance(self, end_ms: int) -> bool:
        """Does what comes next, if it comes by ``end_ms``."""
        due: list[tuple[int, int]] = []
        if self._queue:
            due.append((self._queue[0][0], -2))
        deadline = self.controller.next_deadline_ms()
        if deadline is not None:
            due.append((max(deadline, self.now_ms), -1))
        for node in self.nodes.values():
            deadline = None if node.broker is None else node.broker.next_deadline_ms()
            if deadline is not None:
                due.append((max(deadline, self.now_ms), node.broker_id))
        if not due or min(due)[0] > end_ms:
            return False
        self.now_ms, what = min(due)
        if what == -2:
            heapq.heappop(self._queue)[2]()
        elif what == -1:
            self._step_controller(TimerFired(cause_id=CauseId("timer")))
        else:
            self._step_broker(self.nodes[BrokerId(NodeId(what))], TimerFired(cause_id=CauseId("timer")))
        return True

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._order, action))

    # --- Nodes ----------------------------------------------------------------------------------------------------

    def _step_controller(self, incoming: ControllerInput) -> None:
        for effect in self.controller.step(incoming, now_ms=self.now_ms):
            self._execute_controller(effect)

    def _execute_controller(self, effect: ControllerEffect) -> None:
        match effect:
            case RecordEvent(event=event):
                self.events.append((CONTROLLER, event))
            case AppendMetadata(batch=batch):
                self._metadata_log.append(batch)
                synced = MetadataSynced(cause_id=CauseId("sync"), end_offset=batch.end_offset)
                self._after(0, lambda: self._step_controller(synced))
            case PublishMetadata(batch=batch, cause_id=cause_id):
                for broker_id in sorted(self._subscribers):
                    self._deliver_metadata(broker_id, (batch,), cause_id)
            case SendResponse():
                self._respond(effect)
            case StopNode():
                raise AssertionError("nobody stops the controller")

    def _deliver_metadata(self, broker_id: BrokerId, batches: tuple[MetadataBatch, ...], cause_id: CauseId) -> None:
        received = MetadataReceived(cause_id=cause_id, batches=batches)
        node = self.nodes[broker_id]
        incarnation = node.incarnation

        def deliver() -> None:
            if node.incarnation == incarnation and broker_id in self._subscribers:
                self._step_broker(node, received)

        self._after(LATENCY_MS, deliver)

    def _step_broker(self, node: BrokerNode, incoming: BrokerInput) -> None:
        if node.broker is None:
            return
        effects = node.broker.step(incoming, now_ms=self.now_ms)
        for partition in node.broker.partitions:
            check_hosted_partition(partition)
            if partition.name in node.marks:
                check_progress(partition, node.marks[partition.name])
        node.marks = {partition.name: partition_mark(partition) for partition in node.broker.partitions}
        for effect in effects:
            self._execute_broker(node, effect)

    def _execute_broker(self, node: BrokerNode, effect: BrokerEffect) -> None:
        match effect:
            case SendRequest():
                self._request(node, effect)
            case SendResponse():
                self._respond(self._with_batches(node, effect))
            case CloseConnection(request_id=request_id):
                self.answers[request_id] = None
            case RecordEvent(event=event):
                self.events.append((node.broker_id, event))
            case OpenMetadataStream(from_offset=from_offset):
                self._after(LATENCY_MS, lambda: self._open_stream(node, node.incarnation, from_offset))
            case LoadLogs():
                loaded = LogsLoaded(cause_id=CauseId("load"), logs=node.disk.load())
                self._after(0, lambda: self._step_broker(node, loaded))
            case CloseLogs(broker_epoch=broker_epoch):
                node.disk.close(broker_epoch)
                self._lose_process(node)
            case StopNode():
                self._lose_process(node)
            case WriteLogCheckpoints():
                pass
            case _:
                node.disk.write(effect)

    def _with_batches(self, node: BrokerNode, effect: SendResponse) -> SendResponse:
        if not isinstance(effect.response, FetchResponse):
            return effect
        partitions = tuple(
            msgspec.structs.replace(answer, span=None, batches=node.disk.read(answer.topic_partition, answer.span))
            for answer in effect.response.partitions
        )
        return msgspec.structs.replace(effect, response=msgspec.structs.replace(effect.response, partitions=partitions))

    def _lose_process(self, node: BrokerNode) -> None:
        node.broker = None
        self._subscribers.discard(node.broker_id)
        for request_id, asked in list(self._asked.items()):
            if asked.destination == node.broker_id:
                self._fail(request_id, RequestFailure.DISCONNECTED, LATENCY_MS)

    # --- Network --------------------------------------------------------------------------------------------------

    def _open_stream(self, node: BrokerNode, incarnation: int, from_offset: int) -> None:
        if node.incarnation != incarnation:
            return
        if (node.broker_id, CONTROLLER) in self._cuts:
            self._lose_stream(node)
            return
        self._subscribers.add(node.broker_id)
        end_offset = self.controller.committed_end_offset
        opened = MetadataStreamOpened(cause_id=CauseId("stream"), end_offset=end_offset)
        self._after(LATENCY_MS, lambda: self._step_broker(node, opened))
        missing = tuple(batch for batch in self._metadata_log if from_offset < batch.end_offset <= end_offset)
        if missing:
            self._deliver_metadata(node.broker_id, missing, CauseId("stream"))

    def _lose_stream(self, node: BrokerNode) -> None:
        self._subscribers.discard(node.broker_id)
        incarnation = node.incarnation

        def lose() -> None:
            if node.incarnation == incarnation:
                self._step_broker(node, MetadataStreamLost(cause_id=CauseId("stream")))

        self._after(KEEPALIVE_MS, lose)

    def _next_request_id(self) -> RequestId:
        self._request_ids += 1
        return RequestId(self._request_ids)

    def _request(self, node: BrokerNode, effect: SendRequest) -> None:
        request_id = self._next_request_id()
        self._asked[request_id] = Asked(
            source=node.broker_id,
            incarnation=node.incarnation,
            destination=effect.destination,
            correlation_id=effect.correlation_id,
        )
        received = RequestReceived(cause_id=effect.cause_id, request_id=request_id, request=effect.request)

        def arrive() -> None:
            if (node.broker_id, effect.destination) in self._cuts:
                self._fail(request_id, RequestFailure.DISCONNECTED, KEEPALIVE_MS)
            elif effect.destination == CONTROLLER:
                self._step_controller(received)
            elif self.nodes[BrokerId(effect.destination)].broker is None:
                self._fail(request_id, RequestFailure.DISCONNECTED, LATENCY_MS)
            else:
                self._step_broker(self.nodes[BrokerId(effect.destination)], received)

        self._after(LATENCY_MS, arrive)
        self._fail(request_id, RequestFailure.TIMED_OUT, effect.timeout_ms)

    def _fail(self, request_id: RequestId, failure: RequestFailure, delay_ms: int) -> None:
        def fail() -> None:
            asked = self._asked.pop(request_id, None)
            if asked is not None:
                self._hand_over(
                    asked,
                    RequestFailed(cause_id=CauseId("network"), correlation_id=asked.correlation_id, failure=failure),
                )

        self._after(delay_ms, fail)

    def _respond(self, effect: SendResponse) -> None:
        asked = self._asked.get(effect.request_id)
        if asked is None:
            self._after(LATENCY_MS, lambda: self.answers.__setitem__(effect.request_id, effect.response))
            return

        def arrive() -> None:
            if (asked.source, asked.destination) in self._cuts:
                self._fail(effect.request_id, RequestFailure.DISCONNECTED, KEEPALIVE_MS)
            elif self._asked.pop(effect.request_id, None) is not None:
                self._hand_over(
                    asked,
                    ResponseReceived(
                        cause_id=effect.cause_id, correlation_id=asked.correlation_id, response=effect.response
                    ),
                )

        self._after(LATENCY_MS, arrive)

    def _hand_over(self, asked: Asked, incoming: ResponseReceived | RequestFailed) -> None:
        node = self.nodes[asked.source]
        if node.incarnation == asked.incarnation:
            self._step_broker(node, incoming)

    # --- Looking at it --------------------------------------------------------------------------------------------

    def stored(self, broker_id: BrokerId, partition: TopicPartition) -> tuple[BatchDescriptor, ...]:
        """Returns the batches on a broker's disk."""
        log = self.nodes[broker_id].disk.logs.get(partition)
        return () if log is None else tuple(log.batches)
