"""Three controllers without a driver: messages arrive and disks sync at once, time is moved by hand."""

from collections import deque
from typing import cast

from laststand.emulator.core import effects as node_effects
from laststand.emulator.core import events, inputs, messages, records
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.metadata_version import BROKER_FEATURES
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum import effects
from laststand.emulator.core.quorum import inputs as quorum_inputs
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.quorum.settings import QuorumSettings, formatted
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.quorum_controller.effects import (
    QuorumControllerEffect,
    RecordFacts,
    ReportFault,
    ServeMetadata,
)
from laststand.emulator.core.quorum_controller.quorum_controller import QuorumController, QuorumControllerInput
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    CorrelationId,
    IncarnationId,
    NodeId,
    RequestFailure,
    RequestId,
)

CAUSE = CauseId("unit")
CLUSTER = "cluster"
NODES = (NodeId(100), NodeId(101), NodeId(102))


class Controllers:
    """The nodes, their disks, and what they let out.

    Args:
        properties: of each node.

    Attributes:
        core: by node.
        answers: to requests from outside, by request.
        published: batches of the metadata stream by node, in order.
        facts: events written by node.
        served: epoch in which a node serves metadata streams now.
        cut: nodes that hear and reach nobody.
        faults: bugs that were reported.
    """

    def __init__(self, properties: NodeProperties | None = None) -> None:
        self._properties = properties or NodeProperties()
        keys = [ReplicaKey(node_id, DirectoryId(f"disk-{node_id}")) for node_id in NODES]
        voters, version = formatted(keys, QuorumRules())
        self.now_ms = 0
        self.answers: dict[int, messages.Response] = {}
        self.published: dict[NodeId, list[records.MetadataBatch]] = {node_id: [] for node_id in NODES}
        self.facts: dict[NodeId, list[events.Event]] = {node_id: [] for node_id in NODES}
        self.served: dict[NodeId, int | None] = dict.fromkeys(NODES)
        self.cut: set[NodeId] = set()
        self.faults: list[ReportFault] = []
        self._elections: dict[NodeId, Election | None] = dict.fromkeys(NODES)
        self._batches: dict[NodeId, list[QuorumBatch]] = {node_id: [] for node_id in NODES}
        self._waiting: deque[tuple[NodeId, QuorumControllerInput]] = deque()
        self._routes: dict[int, tuple[NodeId, NodeId, CorrelationId]] = {}
        self._gone: set[int] = set()
        self._next_request = 1_000_000
        self._settings = {
            key.node_id: QuorumSettings(
                key=key, cluster_id=CLUSTER, bootstrap_voters=voters, kraft_version=version, append_linger_ms=0
            )
            for key in keys
        }
        self.core: dict[NodeId, QuorumController] = {}
        for node_id in NODES:
            self.start(node_id)

    def start(self, node_id: NodeId) -> None:
        """Starts a process on a node's disk."""
        loaded = quorum_inputs.LoadedQuorum(
            election=self._elections[node_id], batches=tuple(self._batches[node_id]), seed=int(node_id)
        )
        self.published[node_id] = []
        self._gone |= {request_id for request_id, route in self._routes.items() if route[0] == node_id}
        self.core[node_id] = QuorumController(
            self._settings[node_id], loaded, self._properties, Switches(), now_ms=self.now_ms
        )
        self.step(node_id, inputs.Started(cause_id=CAUSE))

    @property
    def active(self) -> NodeId:
        """The node with the highest epoch that holds itself for active."""
        return max(
            (node_id for node_id in self.core if self.core[node_id].active is not None),
            key=lambda node_id: self.core[node_id].controller_epoch,
        )

    @property
    def is_anybody_active(self) -> bool:
        return any(core.active is not None for core in self.core.values())

    def run(self, duration_ms: int) -> None:
        """Lets time pass, and fires timers."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms += 1
            for node_id, core in self.core.items():
                deadline_ms = core.next_deadline_ms()
                if deadline_ms is not None and deadline_ms <= self.now_ms:
                    self.step(node_id, inputs.TimerFired(cause_id=CAUSE))

    def elect(self) -> NodeId:
        """Lets time pass until a node is active."""
        for _ in range(20_000):
            if self.is_anybody_active:
                return self.active
            self.run(1)
        raise AssertionError("nobody is active")

    def ask(self, node_id: NodeId, request: messages.Request, requester: Requester | None = None) -> int:
        """Asks a node from outside; returns the id under which ``answers`` has the answer."""
        self._next_request += 1
        request_id = RequestId(self._next_request)
        received = inputs.RequestReceived(cause_id=CAUSE, request_id=request_id, request=request, requester=requester)
        self.step(node_id, received)
        return request_id

    def register(self, node_id: NodeId, broker: int) -> int:
        """Registers a broker."""
        return self.ask(
            node_id,
            messages.BrokerRegistrationRequest(
                broker_id=BrokerId(NodeId(broker)),
                cluster_id=CLUSTER,
                incarnation_id=IncarnationId(f"process-{broker}"),
                log_dirs=(f"directory-{broker}",),
                features=BROKER_FEATURES,
            ),
        )

    def write(self, node_id: NodeId, of: tuple[records.Record, ...]) -> None:
        """Has the active controller of a node write records, as it does with what it decides."""
        core = self.core[node_id]
        assert core.active is not None
        batch = records.MetadataBatch(base_offset=core.active.image.next_offset, records=of)
        core.active.fold(batch)
        core._take_active(node_effects.AppendMetadata(batch=batch, events=()))
        self.step(node_id, inputs.TimerFired(cause_id=CAUSE))

    def error(self, request_id: int) -> ErrorCode | None:
        """Returns the error that a request was answered with; ``None`` before."""
        answer = self.answers.get(request_id)
        return None if answer is None else cast(messages.BrokerRegistrationResponse, answer).error

    def step(self, node_id: NodeId, incoming: QuorumControllerInput) -> None:
        """Hands an input to a node, and delivers all that follows from it."""
        self._waiting.append((node_id, incoming))
        while self._waiting:
            target, each = self._waiting.popleft()
            for effect in self.core[target].step(each, now_ms=self.now_ms):
                self._execute(target, effect)

    def _execute(self, node_id: NodeId, effect: QuorumControllerEffect) -> None:
        match effect:
            case node_effects.SendRequest(destination=destination):
                if destination not in self.core:
                    return
                if self.cut & {node_id, destination}:
                    failed = inputs.RequestFailed(
                        cause_id=CAUSE,
                        correlation_id=effect.correlation_id,
                        failure=RequestFailure.DISCONNECTED,
                    )
                    self._waiting.append((node_id, failed))
                    return
                request_id = RequestId(len(self._routes))
                self._routes[request_id] = (node_id, destination, effect.correlation_id)
                received = inputs.RequestReceived(cause_id=CAUSE, request_id=request_id, request=effect.request)
                self._waiting.append((destination, received))
            case node_effects.SendResponse(request_id=request_id, response=response):
                if request_id not in self._routes:
                    self.answers[request_id] = response
                    return
                asker, answerer, correlation_id = self._routes[request_id]
                if not self.cut & {asker, answerer} and request_id not in self._gone:
                    answered = inputs.ResponseReceived(cause_id=CAUSE, correlation_id=correlation_id, response=response)
                    self._waiting.append((asker, answered))
            case effects.SyncMetadata():
                synced = quorum_inputs.LogSynced(
                    cause_id=CAUSE, end_offset=effect.end_offset, generation=effect.generation
                )
                self._waiting.append((node_id, synced))
            case effects.WriteElection(election=election):
                self._elections[node_id] = election
            case effects.AppendBatches(batches=batches):
                self._batches[node_id] += batches
            case effects.TruncateMetadata(end_offset=end_offset):
                kept = [batch for batch in self._batches[node_id] if batch.end_offset <= end_offset]
                self._batches[node_id] = kept
            case node_effects.PublishMetadata(batch=batch):
                self.published[node_id].append(batch)
            case node_effects.RecordEvent(event=event):
                self.facts[node_id].append(event)
            case RecordFacts(events=facts):
                self.facts[node_id] += facts
            case ServeMetadata(controller_epoch=controller_epoch):
                self.served[node_id] = controller_epoch
            case ReportFault():
                self.faults.append(effect)
            case node_effects.DrawNumber() | node_effects.StopNode() | effects.RecordQuorumEvent():
                pass
