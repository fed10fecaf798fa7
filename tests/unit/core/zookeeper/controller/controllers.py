"""Controllers of several processes over one ZooKeeper in memory, and brokers that say yes to whatever they are told.

Everything happens at once and in a fixed order unless a test holds it: a process can be paused, the answers to it lost,
its session expired, and a broker kept from answering.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, BrokerId, CauseId, NodeId, RequestId, TopicId, TopicPartition
from laststand.emulator.core.zookeeper import control_messages, exchange, operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.controller import ZooKeeperController
from laststand.emulator.core.zookeeper.controller.exchange import (
    AnswerController,
    ControlAnswered,
    ControlFailed,
    ControllerAsked,
    ControllerEffect,
    ControllerInput,
    ControllerRequest,
    ControllerResponse,
    Registered,
    RegistrationRefused,
    SendControlRequest,
    TimeCame,
)
from laststand.emulator.core.zookeeper.controller.term import Term
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import PartitionLeadership, decode_state
from laststand.emulator.core.zookeeper.nodes.small_nodes import RegisteredEndpoint, decode_controller, encode_config
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS, ZooKeeperEra
from laststand.emulator.core.zookeeper.server import ZooKeeperServer

CAUSE: Final = CauseId("test")
TIMEOUT_MS: Final = 6000
TOPIC_ID: Final = TopicId("AAAAAAAAAAUAAAAAAAAABg")
ORDERS: Final = TopicPartition("orders", 0)


def broker(number: int) -> BrokerId:
    return BrokerId(NodeId(number))


class Process:
    """One broker process: its controller, its session, and what is on its way to it."""

    def __init__(self, broker_id: BrokerId, config: ControllerConfig, endpoint: RegisteredEndpoint) -> None:
        self.broker_id = broker_id
        self.controller = ZooKeeperController(config, endpoint)
        self.session_id: SessionId | None = None
        self.inbox: deque[ControllerInput] = deque()
        self.is_paused = False
        self.is_silent = False  # answers no control request
        self.failed_replicas: set[TopicPartition] = set()  # in a directory that does not work
        self.loses_next_answer = False
        self.is_refused = False
        self.told: list[control_messages.ControlMessage] = []
        self.answers: dict[int, ControllerResponse] = {}
        self.broker_epochs: list[int] = []

    @property
    def term(self) -> Term:
        assert self.controller.term is not None
        return self.controller.term


class Cluster:
    """Processes and their ZooKeeper; ``settle`` lets everything happen that can."""

    def __init__(
        self,
        *numbers: int,
        era: str = "kafka-3.9-zk",
        tested_era: ZooKeeperEra | None = None,
        unclean: bool = False,
        imbalance_percentage: int = 10,
    ) -> None:
        self.era = tested_era or ZOOKEEPER_ERAS[era]
        self._config = ControllerConfig(
            broker_id=broker(0),
            rules=self.era.rules,
            ibp=InterBrokerProtocol(self.era.ibp),
            unclean_leader_election_enable=unclean,
            leader_imbalance_per_broker_percentage=imbalance_percentage,
        )
        self.server = ZooKeeperServer()
        self.now_ms = 0
        self.processes: dict[BrokerId, Process] = {}
        self._requests = 0
        self._operator = self.server.open_session(timeout_ms=10**9, now_ms=0)
        for number in numbers:
            self.start(number)

    # --- Processes ------------------------------------------------------------------------------------------------

    def start(self, number: int, *, rack: str = "") -> Process:
        """Starts a broker process and waits until nothing happens any more."""
        config = msgspec.structs.replace(self._config, broker_id=broker(number))
        process = Process(broker(number), config, RegisteredEndpoint(rack=rack))
        self.processes[process.broker_id] = process
        self._carry_out(process, [exchange.OpenSession()])
        self.settle()
        return process

    def __getitem__(self, number: int) -> Process:
        return self.processes[broker(number)]

    def kill(self, number: int) -> None:
        """Ends a process; its session ends later, with ``expire``."""
        self[number].is_paused = True

    def expire(self, number: int) -> None:
        """Ends a process's session at the server; the process hears of it when it is not paused any more."""
        process = self[number]
        assert process.session_id is not None
        self.server.end_session(process.session_id)
        process.inbox.append(exchange.SessionExpired(CAUSE))

    def lose(self, number: int) -> None:
        """Ends a process and its session, and waits until everybody has acted on that."""
        self.kill(number)
        self.expire(number)
        self.settle()

    def active(self) -> Process:
        """Returns the process that ``/controller`` names."""
        data = self.server.data(paths.CONTROLLER)
        assert data is not None
        number = decode_controller(data)
        assert number is not None
        return self.processes[number]

    # --- Operators ------------------------------------------------------------------------------------------------

    def write(self, *steps: operations.Step) -> None:
        """Writes past all processes, and waits."""
        self.server.execute(self._operator, steps)
        self.settle()

    def create_topic(
        self,
        *replicas: int,
        topic: str = "orders",
        unclean: bool = False,
        topic_id: TopicId | None = TOPIC_ID,
        others: Sequence[tuple[int, ...]] = (),
    ) -> None:
        """Makes a topic as a broker that was asked to does; of one partition unless others are named, too."""
        config = {"unclean.leader.election.enable": "true"} if unclean else {}
        self.write(
            operations.Create(path=paths.topic_config_node(topic), data=encode_config(config)),
            operations.Create(path=paths.topic_node(topic), data=self.topic_data(replicas, *others, topic_id=topic_id)),
        )

    def topic_data(self, *partitions: tuple[int, ...], topic_id: TopicId | None = TOPIC_ID) -> bytes:
        """Returns a topic's node."""
        assignments = {
            number: ReplicaAssignment(replicas=tuple(map(broker, replicas)))
            for number, replicas in enumerate(partitions)
        }
        content = TopicAssignment(topic_id=topic_id, partitions=assignments)
        return encode_topic(content, topic_format=self.era.rules.topic_format)

    def run(
        self,
        number: int,
        program: operations.Program[operations.ResultT],
        *,
        meanwhile: Callable[[operations.Steps], None] = lambda _: None,
    ) -> operations.ResultT:
        """Runs a program of a process's controller; ``meanwhile`` is what others do before each request arrives."""
        session_id = self[number].session_id
        assert session_id is not None
        answers: operations.Answers | None = None
        while True:
            try:
                steps = next(program) if answers is None else program.send(answers)
            except StopIteration as stop:
                result: operations.ResultT = stop.value
                return result
            meanwhile(steps)
            answers = self.server.execute(session_id, steps)

    def ask(self, number: int, request: ControllerRequest) -> ControllerResponse | None:
        """Asks a process's controller; returns its answer, if there is one by the time that nothing happens."""
        request_id = self.ask_later(number, request)
        self.settle()
        return self[number].answers.get(request_id)

    def ask_later(self, number: int, request: ControllerRequest) -> int:
        """Asks, and waits for nothing; returns the request's id."""
        self._requests += 1
        asked = ControllerAsked(cause_id=CAUSE, request_id=RequestId(self._requests), request=request)
        self[number].inbox.append(asked)
        return self._requests

    def state(self, name: TopicPartition = ORDERS) -> PartitionLeadership:
        """Returns a state node."""
        data, stat = self.server.data(paths.state_node(name)), self.server.stat(paths.state_node(name))
        assert data is not None
        assert stat is not None
        leadership = decode_state(data, stat.version, state_format=self.era.rules.state_format)
        assert leadership is not None
        return leadership

    def shown(self, name: TopicPartition = ORDERS) -> str:
        """Returns a state node in one line."""
        decided = self.state(name).leader_and_isr
        leader = "-" if decided.leader is None else decided.leader
        isr = ",".join(str(member) for member in decided.isr)
        return f"leader={leader} isr={isr} LE={decided.leader_epoch} PE={decided.partition_epoch}"

    def assignment(self, name: TopicPartition = ORDERS) -> ReplicaAssignment:
        """Returns a partition's replicas by ZooKeeper."""
        data = self.server.data(paths.topic_node(name.topic))
        assert data is not None
        return decode_topic(data, topic_format=self.era.rules.topic_format).partitions[name.partition]

    def raise_version(self, path: str) -> None:
        """Sets a node to what it is."""
        data = self.server.data(path)
        assert data is not None
        self.server.execute(self._operator, (operations.SetData(path=path, data=data, version=None),))

    def write_state(self, data: bytes) -> None:
        """Writes the state node, as a leader of an old protocol does."""
        self.write(operations.SetData(path=paths.state_node(ORDERS), data=data, version=None))

    # --- Time -----------------------------------------------------------------------------------------------------

    def advance(self, milliseconds: int) -> None:
        """Moves the clock; whoever waits for the time is told."""
        self.now_ms += milliseconds
        for process in self.processes.values():
            deadline = process.controller.next_deadline_ms()
            if deadline is not None and deadline <= self.now_ms:
                process.inbox.append(TimeCame(CAUSE))
        self.settle()

    def settle(self) -> None:
        """Delivers what is on its way until nothing is, paused processes excepted."""
        for _ in range(10_000):
            delivered = [self._deliver(process) for process in self.processes.values()]
            if not any(delivered):
                return
        raise AssertionError("it never comes to rest")

    def deliver_one(self, number: int) -> None:
        """Delivers one input to a process, even to a paused one."""
        process = self[number]
        self._take_events(process)
        self._step(process, process.inbox.popleft())

    def _deliver(self, process: Process) -> bool:
        if process.is_paused:
            return False
        self._take_events(process)
        if not process.inbox:
            return False
        self._step(process, process.inbox.popleft())
        return True

    def _take_events(self, process: Process) -> None:
        if process.session_id is not None:
            for event in self.server.pop_events(process.session_id):
                process.inbox.append(exchange.WatchFired(cause_id=CAUSE, event=event))

    def _step(self, process: Process, incoming: ControllerInput) -> None:
        self._carry_out(process, process.controller.step(incoming, now_ms=self.now_ms))

    def _carry_out(self, process: Process, effects: list[ControllerEffect]) -> None:
        for effect in effects:
            match effect:
                case exchange.OpenSession():
                    process.session_id = self.server.open_session(timeout_ms=TIMEOUT_MS, now_ms=self.now_ms)
                    process.inbox.append(exchange.SessionEstablished(cause_id=CAUSE, session_id=process.session_id))
                case exchange.ZooKeeperRequest():
                    self._ask_zookeeper(process, effect)
                case SendControlRequest():
                    self._tell(process, effect)
                case AnswerController(request_id=request_id, response=response):
                    process.answers[request_id] = response
                case Registered(broker_epoch=broker_epoch):
                    process.broker_epochs.append(broker_epoch)
                case RegistrationRefused():
                    process.is_refused = True
                case exchange.CloseSession():
                    assert process.session_id is not None
                    self.server.end_session(process.session_id)

    def _ask_zookeeper(self, process: Process, request: exchange.ZooKeeperRequest) -> None:
        assert process.session_id is not None
        answers = self.server.execute(process.session_id, request.steps)
        self._take_events(process)
        if process.loses_next_answer and any(not hasattr(step, "is_watched") for step in request.steps):
            process.loses_next_answer = False
            process.inbox.append(exchange.ZooKeeperConnectionLost(CAUSE))
            process.inbox.append(exchange.ZooKeeperReconnected(CAUSE))
            return
        process.inbox.append(
            exchange.ZooKeeperAnswered(cause_id=CAUSE, correlation_id=request.correlation_id, answers=answers)
        )

    def _tell(self, process: Process, sent: SendControlRequest) -> None:
        addressee = self.processes.get(sent.broker_id)
        if addressee is None or addressee.is_paused or addressee.is_silent:
            process.inbox.append(ControlFailed(cause_id=CAUSE, correlation_id=sent.correlation_id))
            return
        addressee.told.append(sent.request)
        response = _yes(sent.request, failed=addressee.failed_replicas)
        process.inbox.append(ControlAnswered(cause_id=CAUSE, correlation_id=sent.correlation_id, response=response))


def _yes(
    request: control_messages.ControlMessage, *, failed: Collection[TopicPartition]
) -> control_messages.ControlAnswer:
    match request:
        case control_messages.LeaderAndIsrRequest(partitions=roles):
            errors = {role.name: ErrorCode.KAFKA_STORAGE_ERROR for role in roles if role.name in failed}
            taken = tuple(
                control_messages.PartitionError(name=role.name, error=errors.get(role.name, ErrorCode.NONE))
                for role in roles
            )
            return control_messages.LeaderAndIsrResponse(error=ErrorCode.NONE, partitions=taken)
        case control_messages.StopReplicaRequest(partitions=replicas):
            stopped = tuple(
                control_messages.PartitionError(name=replica.name, error=ErrorCode.NONE) for replica in replicas
            )
            return control_messages.StopReplicaResponse(error=ErrorCode.NONE, partitions=stopped)
        case control_messages.UpdateMetadataRequest():
            return control_messages.UpdateMetadataResponse(error=ErrorCode.NONE)


def roles(process: Process) -> list[str]:
    """Returns the roles that a broker was told, in order."""
    return [
        f"{role.name} leader={'-' if role.leader is None else role.leader} LE={role.leader_epoch}"
        for request in process.told
        if isinstance(request, control_messages.LeaderAndIsrRequest)
        for role in request.partitions
    ]


def isr_change(
    cluster: Cluster, *isr: int, sender: int = 1, name: TopicPartition = ORDERS
) -> messages.AlterPartitionRequest:
    """Returns what an honest leader asks for, by the state node as it is."""
    current = cluster.state(name).leader_and_isr
    data = messages.AlterPartitionData(
        topic=name.topic,
        topic_id=TOPIC_ID,
        partition=name.partition,
        leader_epoch=current.leader_epoch,
        partition_epoch=current.partition_epoch,
        new_isr=tuple(messages.IsrMember(broker(member), None) for member in isr),
    )
    epoch = BrokerEpoch(cluster[sender].broker_epochs[-1])
    return messages.AlterPartitionRequest(broker_id=broker(sender), broker_epoch=epoch, partitions=(data,))


def alter(cluster: Cluster, request: messages.AlterPartitionRequest) -> ErrorCode:
    """Asks the controller, which broker 1 is; returns the error of the one partition."""
    response = cluster.ask(1, request)
    assert isinstance(response, messages.AlterPartitionResponse)
    assert response.error is ErrorCode.NONE
    return response.partitions[0].error


def reassign(cluster: Cluster, *target: int, name: TopicPartition = ORDERS) -> ErrorCode:
    """Asks the controller, which broker 1 is, to move a partition, or not to move it any more."""
    wanted = tuple(broker(number) for number in target) or None
    partition = admin_messages.ReassignablePartition(topic=name.topic, partition=name.partition, replicas=wanted)
    response = cluster.ask(1, admin_messages.AlterPartitionReassignmentsRequest(partitions=(partition,)))
    assert isinstance(response, admin_messages.AlterPartitionReassignmentsResponse)
    return response.partitions[0].error


def deletions(process: Process) -> list[str]:
    """Returns which replicas a broker was told to delete."""
    return [
        str(replica.name)
        for request in process.told
        if isinstance(request, control_messages.StopReplicaRequest)
        for replica in request.partitions
        if replica.is_deleted
    ]
