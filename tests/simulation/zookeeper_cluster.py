"""Whole processes of a ZooKeeper cluster in one: brokers with their controllers, disks in memory, a network to cut.

Everything that can happen happens at once, in a fixed order; time moves only when a test says so. It is no simulator of
schedules, but enough to play a story from the outside: produce, kill, cut, expire, lose an answer, lose power.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

import msgspec

from laststand.emulator.core import admin_messages, effects, events, inputs, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.zookeeper.exchange import (
    AnswerControl,
    AskController,
    ControllerReplied,
    ControllerUnreachable,
    ControlReceived,
)
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    CorrelationId,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    Offset,
    RequestFailure,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages, exchange, operations
from laststand.emulator.core.zookeeper.controller.exchange import (
    AnswerController,
    ControlAnswered,
    ControlFailed,
    ControllerAsked,
    ControllerRequest,
    ControllerResponse,
    SendControlRequest,
)
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.inter_broker_protocol import IbpLevel
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import decode_state
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_controller, encode_config
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from laststand.emulator.core.zookeeper.process import ProcessEffect, ProcessInput, ZooKeeperProcess
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS, ZooKeeperEra
from laststand.emulator.core.zookeeper.server import ZooKeeperServer
from laststand.emulator.simulator.disk.disk import Disk
from laststand.emulator.simulator.nodes.batch_registry import ENCODE_RECORDS

CAUSE: Final = CauseId("story")
LAG_MS: Final = 10_000
ORDERS: Final = TopicPartition("orders", 0)


def broker(number: int) -> BrokerId:
    return BrokerId(NodeId(number))


class Node:
    """One process, or what a killed one left: its disk and its session."""

    def __init__(self, broker_id: BrokerId, process: ZooKeeperProcess, disk: Disk) -> None:
        self.broker_id = broker_id
        self.process = process
        self.disk = disk
        self.session_id: SessionId | None = None
        self.inbox: deque[ProcessInput] = deque()
        self.is_down = False
        self.is_paused = False
        self.reaches_zookeeper = True
        self.hears_zookeeper = True
        self.sees_watches = True
        self.requests_left: int | None = None
        self.unanswered: deque[exchange.ZooKeeperRequest] = deque()
        self.events: list[events.Event] = []
        self.told: list[control_messages.ControlMessage] = []

    @property
    def partition(self) -> Partition:
        partition = self.process.broker.partition(ORDERS)
        assert partition is not None
        return partition

    def records(self, name: TopicPartition = ORDERS) -> list[int]:
        """Returns the fingerprints of the batches on its disk."""
        log = self.disk.logs.get(name)
        return [] if log is None else [batch.crc for batch in log.batches]


class ZooKeeperCluster:
    """All of it."""

    def __init__(
        self,
        *numbers: int,
        era: str = "kafka-3.9-zk",
        variant: ZooKeeperEra | None = None,
        ibp: IbpLevel | None = None,
        min_insync_replicas: int = 2,
        auto_leader_rebalance_enable: bool = True,
    ) -> None:
        self.era = variant or ZOOKEEPER_ERAS[era]
        self.ibp = self.era.rules.protocol(self.era.ibp if ibp is None else ibp)
        self.properties = NodeProperties(
            min_insync_replicas=min_insync_replicas,
            replica_lag_time_max_ms=LAG_MS,
            stray_delete_delay_ms=1_000,
            auto_leader_rebalance_enable=auto_leader_rebalance_enable,
        )
        self.server = ZooKeeperServer()
        self.now_ms = 1_000_000
        self.nodes: dict[BrokerId, Node] = {}
        self.cut: set[tuple[BrokerId, BrokerId]] = set()
        self.answers_lost_of: set[BrokerId] = set()
        self._lost: list[tuple[BrokerId, CorrelationId]] = []
        self._operator = self.server.open_session(timeout_ms=10**12, now_ms=0)
        self._waiting: dict[RequestId, tuple[BrokerId, CorrelationId]] = {}
        self._next_request = 0
        self._batches = 0
        self._topics = 0
        self.produced: dict[RequestId, messages.ProduceResponse] = {}
        self.producer_ids: dict[RequestId, int | None] = {}
        self.answers: dict[RequestId, ControllerResponse] = {}
        for number in numbers:
            self.start(number)

    def __getitem__(self, number: int) -> Node:
        return self.nodes[broker(number)]

    # --- Processes ------------------------------------------------------------------------------------------------

    def start(self, number: int) -> Node:
        """Starts a process on the disk that the last one left."""
        broker_id = broker(number)
        former = self.nodes.get(broker_id)
        config = BrokerConfig(
            broker_id=broker_id,
            controller_ids=(NodeId(-1),),
            cluster_id="story",
            incarnation_id=IncarnationId(f"{number}-{self._next_request}"),
            properties=self.properties,
            switches=self.era.switches,
        )
        node = Node(broker_id, ZooKeeperProcess(config, ENCODE_RECORDS, self.era.rules, self.ibp), Disk())
        if former is not None:
            node.disk = former.disk
        self.nodes[broker_id] = node
        node.inbox.append(inputs.Started(cause_id=CAUSE))
        self.settle()
        return node

    def kill(self, number: int) -> None:
        """Ends a process at once; its session goes on at the server."""
        self[number].is_down = True
        self[number].inbox.clear()
        self._waiting = {key: asked for key, asked in self._waiting.items() if asked[0] != broker(number)}
        lost, self._lost = self._lost, []
        for asker, correlation_id in lost:
            self._send_to(asker, ControllerUnreachable(cause_id=CAUSE, correlation_id=correlation_id))

    def expire(self, number: int) -> None:
        """Ends a session at the server; who lives hears of it once it reaches the server."""
        node = self[number]
        assert node.session_id is not None
        self.server.end_session(node.session_id)
        if node.reaches_zookeeper:
            node.inbox.append(exchange.SessionExpired(CAUSE))
        self.settle()

    def crash(self, number: int) -> None:
        """Kills a process, and lets its session expire."""
        self.kill(number)
        self.expire(number)

    def stop(self, number: int) -> None:
        """Stops a process in order."""
        self[number].inbox.append(inputs.ShutdownRequested(cause_id=CAUSE))
        self.settle()

    def cut_from_zookeeper(self, number: int) -> None:
        """Cuts a process off the server; its requests wait."""
        self[number].reaches_zookeeper = False

    def lose_answers_of_zookeeper(self, number: int) -> None:
        """Lets a process's requests be executed, and loses what the server answers."""
        self[number].hears_zookeeper = False

    def heal_zookeeper(self, number: int) -> None:
        """Lets a process reach the server again: what was under way is lost, an end of its session is told."""
        node = self[number]
        node.reaches_zookeeper = node.hears_zookeeper = True
        node.unanswered.clear()
        assert node.session_id is not None
        if self.server.is_alive(node.session_id):
            node.inbox.append(exchange.ZooKeeperConnectionLost(CAUSE))
            node.inbox.append(exchange.ZooKeeperReconnected(CAUSE))
        else:
            node.inbox.append(exchange.SessionExpired(CAUSE))
        self.settle()

    def hold_zookeeper(self, number: int, *, after: int) -> None:
        """Lets so many requests of a process through; later ones wait, and so does the process."""
        self[number].requests_left = after

    def release_zookeeper(self, number: int) -> None:
        """Delivers the requests that waited, as if they had been long on their way."""
        node = self[number]
        node.requests_left = None
        waiting, node.unanswered = node.unanswered, deque()
        for request in waiting:
            self._ask_zookeeper(node, request)
        self.settle()

    def cut_link(self, source: int, destination: int) -> None:
        """Cuts what one broker sends to another."""
        self.cut.add((broker(source), broker(destination)))

    # --- Operators ------------------------------------------------------------------------------------------------

    def write(self, *steps: operations.Step) -> None:
        """Writes past all processes."""
        self.server.execute(self._operator, steps)
        self.settle()

    def create_topic(self, *replicas: int, config: Mapping[str, str] | None = None) -> None:
        """Makes the topic, with an id of its own where the release has ids."""
        self._topics += 1
        content = TopicAssignment(
            topic_id=TopicId(f"AAAAAAAAAAAAAAAAAAAA{self._topics:02d}"),
            partitions={0: ReplicaAssignment(replicas=tuple(broker(one) for one in replicas))},
        )
        data = encode_topic(content, topic_format=self.era.rules.topic_format)
        self.write(
            operations.Create(path=paths.topic_config_node(ORDERS.topic), data=encode_config(config or {})),
            operations.Create(path=paths.topic_node(ORDERS.topic), data=data),
        )

    def delete_topic(self) -> None:
        """Asks for the topic's deletion."""
        self.write(operations.Create(path=paths.delete_topic_node(ORDERS.topic)))

    def depose(self) -> None:
        """Deletes ``/controller``."""
        self.write(operations.Delete(path=paths.CONTROLLER, version=None))

    def reassign(self, *replicas: int) -> None:
        """Moves the partition."""
        target = tuple(broker(one) for one in replicas)
        partition = admin_messages.ReassignablePartition(
            topic=ORDERS.topic, partition=ORDERS.partition, replicas=target
        )
        self.ask(admin_messages.AlterPartitionReassignmentsRequest(partitions=(partition,)))

    def ask(self, request: ControllerRequest) -> None:
        """Asks whoever is the controller."""
        self.nodes[self.controller()].inbox.append(
            ControllerAsked(cause_id=CAUSE, request_id=self._request_id(), request=request)
        )
        self.settle()

    def produce(self, number: int, *, acks: int = -1) -> tuple[int, RequestId]:
        """Sends a batch of one record to a broker; returns its fingerprint, and where its answer will be."""
        self._batches += 1
        batch = BatchDescriptor(
            base_offset=Offset(0),
            last_offset=Offset(0),
            leader_epoch=LeaderEpoch(0),
            crc=self._batches,
            size=100,
            record_count=1,
        )
        asked = messages.ProducePartition(topic=ORDERS.topic, partition=ORDERS.partition, batch=batch)
        request = messages.ProduceRequest(acks=acks, timeout_ms=3_600_000, partitions=(asked,))
        request_id = self._request_id()
        self[number].inbox.append(inputs.RequestReceived(cause_id=CAUSE, request_id=request_id, request=request))
        self.settle()
        return self._batches, request_id

    def init_producer_id(self, number: int) -> int | None:
        """Asks a broker for a producer id."""
        request_id = self._request_id()
        self[number].inbox.append(_received(request_id, messages.InitProducerIdRequest()))
        self.settle()
        return self.producer_ids.get(request_id)

    def is_acked(self, request_id: RequestId) -> bool:
        """Returns whether a produce request was answered without error."""
        response = self.produced.get(request_id)
        return response is not None and response.partitions[0].error.name == "NONE"

    # --- What ZooKeeper says --------------------------------------------------------------------------------------

    def controller(self) -> BrokerId:
        data = self.server.data(paths.CONTROLLER)
        assert data is not None
        found = decode_controller(data)
        assert found is not None
        return found

    def shown(self) -> str:
        """Returns the state node in one line."""
        data, stat = self.server.data(paths.state_node(ORDERS)), self.server.stat(paths.state_node(ORDERS))
        assert data is not None
        assert stat is not None
        leadership = decode_state(data, stat.version, state_format=self.era.rules.state_format)
        assert leadership is not None
        decided = leadership.leader_and_isr
        leader = "-" if decided.leader is None else decided.leader
        isr = ",".join(str(member) for member in decided.isr)
        return f"leader={leader} isr={isr} LE={decided.leader_epoch} PE={decided.partition_epoch}"

    def replicas(self) -> tuple[BrokerId, ...]:
        """Returns where the partition is."""
        data = self.server.data(paths.topic_node(ORDERS.topic))
        assert data is not None
        return decode_topic(data, topic_format=self.era.rules.topic_format).partitions[ORDERS.partition].replicas

    # --- Time -----------------------------------------------------------------------------------------------------

    def advance(self, milliseconds: int) -> None:
        """Moves the clock, from one deadline to the next."""
        end_ms = self.now_ms + milliseconds
        for _ in range(100_000):
            due = [deadline for node in self.nodes.values() if (deadline := self._deadline(node)) is not None]
            earliest = min(due, default=end_ms)
            if earliest > end_ms:
                break
            self.now_ms = max(self.now_ms, earliest)
            fired = False
            for node in self.nodes.values():
                deadline = self._deadline(node)
                if deadline is not None and deadline <= self.now_ms:
                    node.inbox.append(inputs.TimerFired(cause_id=CAUSE))
                    fired = True
            self.settle()
            if not fired:
                break
        self.now_ms = end_ms

    def _deadline(self, node: Node) -> int | None:
        return None if node.is_down or node.is_paused else node.process.next_deadline_ms()

    def settle(self) -> None:
        """Delivers what is on its way until nothing is."""
        for _ in range(100_000):
            delivered = [self._deliver(node) for node in list(self.nodes.values())]
            if not any(delivered):
                return
        raise AssertionError("it never comes to rest")

    def _deliver(self, node: Node) -> bool:
        if node.is_down or node.is_paused:
            return False
        if node.session_id is not None and node.reaches_zookeeper and node.hears_zookeeper and node.sees_watches:
            for event in self.server.pop_events(node.session_id):
                node.inbox.append(exchange.WatchFired(cause_id=CAUSE, event=event))
        if not node.inbox:
            return False
        incoming = node.inbox.popleft()
        for effect in node.process.step(incoming, now_ms=self.now_ms):
            self._carry_out(node, effect)
        return True

    # --- Effects --------------------------------------------------------------------------------------------------

    def _carry_out(self, node: Node, effect: ProcessEffect) -> None:
        match effect:
            case exchange.OpenSession():
                node.session_id = self.server.open_session(timeout_ms=6000, now_ms=self.now_ms)
                node.inbox.append(exchange.SessionEstablished(cause_id=CAUSE, session_id=node.session_id))
            case exchange.CloseSession():
                if node.session_id is not None:
                    self.server.end_session(node.session_id)
            case exchange.ZooKeeperRequest():
                self._ask_zookeeper(node, effect)
            case SendControlRequest():
                self._tell(node, effect)
            case AnswerControl(request_id=request_id, response=control_answer):
                if request_id not in self._waiting:
                    return
                teller, correlation_id = self._waiting.pop(request_id)
                answered = ControlAnswered(cause_id=CAUSE, correlation_id=correlation_id, response=control_answer)
                self._send_to(teller, answered)
            case AskController():
                self._ask_controller(node, effect)
            case AnswerController(request_id=request_id, response=response):
                self._answer_controller(node, request_id, response)
            case effects.SendRequest():
                self._send_request(node, effect)
            case effects.SendResponse(request_id=request_id, response=broker_response):
                self._send_response(node, request_id, broker_response)
            case effects.RecordEvent(event=event):
                node.events.append(event)
            case effects.CloseLogs(broker_epoch=broker_epoch):
                node.disk.close(broker_epoch)
                node.is_down = True
            case effects.StopNode():
                node.is_down = True
            case _:
                self._write_disk(node, effect)

    def _write_disk(self, node: Node, effect: ProcessEffect) -> None:
        disk = node.disk
        match effect:
            case effects.LoadLogs():
                node.inbox.append(inputs.LogsLoaded(cause_id=CAUSE, logs=disk.load(), strays=tuple(disk.strays)))
            case effects.CreateLog():
                disk.create(effect)
            case effects.DeleteLog():
                disk.delete(effect)
            case effects.RenameStrayLog():
                disk.rename_stray(effect)
            case effects.DeleteStrayLog():
                disk.delete_stray(effect)
            case effects.AppendToLog():
                disk.append(effect)
            case effects.TruncateLog():
                disk.truncate(effect)
            case effects.RecoverLog():
                node.inbox.append(disk.recover(effect))
            case effects.WriteEpochCheckpoint():
                disk.write_epochs(effect)
            case effects.WriteHighWatermarks():
                disk.write_high_watermarks(effect)
            case effects.WriteLogCheckpoints():
                disk.write_checkpoints(effect)
            case _:
                raise AssertionError(f"no story wants {effect}")

    def _ask_zookeeper(self, node: Node, request: exchange.ZooKeeperRequest) -> None:
        if not node.reaches_zookeeper or node.requests_left == 0:
            node.unanswered.append(request)
            return
        if node.requests_left is not None:
            node.requests_left -= 1
        assert node.session_id is not None
        answers = self.server.execute(node.session_id, request.steps)
        if not node.hears_zookeeper:
            return
        for event in self.server.pop_events(node.session_id) if node.sees_watches else ():
            node.inbox.append(exchange.WatchFired(cause_id=CAUSE, event=event))
        answered = exchange.ZooKeeperAnswered(cause_id=CAUSE, correlation_id=request.correlation_id, answers=answers)
        node.inbox.append(answered)

    def _can_reach(self, source: BrokerId, destination: BrokerId) -> bool:
        node = self.nodes.get(destination)
        return node is not None and not node.is_down and (source, destination) not in self.cut

    def _send_to(self, destination: BrokerId, incoming: ProcessInput) -> None:
        node = self.nodes[destination]
        if not node.is_down:
            node.inbox.append(incoming)

    def _request_id(self) -> RequestId:
        self._next_request += 1
        return RequestId(self._next_request)

    def _tell(self, node: Node, sent: SendControlRequest) -> None:
        if not self._can_reach(node.broker_id, sent.broker_id):
            node.inbox.append(ControlFailed(cause_id=CAUSE, correlation_id=sent.correlation_id))
            return
        request_id = self._request_id()
        self._waiting[request_id] = (node.broker_id, sent.correlation_id)
        self.nodes[sent.broker_id].told.append(sent.request)
        self._send_to(sent.broker_id, ControlReceived(cause_id=CAUSE, request_id=request_id, request=sent.request))

    def tell_again(self, number: int, request: control_messages.ControlMessage) -> None:
        """Delivers a control request once more, as a copy that was long on its way."""
        request_id = self._request_id()
        self._waiting[request_id] = (broker(number), CorrelationId(-1))
        self._send_to(broker(number), ControlReceived(cause_id=CAUSE, request_id=request_id, request=request))
        self.settle()

    def _ask_controller(self, node: Node, asked: AskController) -> None:
        if not self._can_reach(node.broker_id, asked.destination):
            unreachable = ControllerUnreachable(cause_id=CAUSE, correlation_id=asked.correlation_id)
            node.inbox.append(unreachable)
            return
        request_id = self._request_id()
        self._waiting[request_id] = (node.broker_id, asked.correlation_id)
        self._send_to(asked.destination, ControllerAsked(cause_id=CAUSE, request_id=request_id, request=asked.request))

    def _answer_controller(self, node: Node, request_id: RequestId, response: ControllerResponse) -> None:
        self.answers[request_id] = response
        if request_id not in self._waiting:
            return
        asker, correlation_id = self._waiting.pop(request_id)
        if node.broker_id in self.answers_lost_of:
            self._lost.append((asker, correlation_id))
            return
        assert isinstance(response, messages.AlterPartitionResponse | control_messages.ControlledShutdownResponse)
        self._send_to(
            asker,
            ControllerReplied(cause_id=CAUSE, correlation_id=correlation_id, response=response),
        )

    def _send_request(self, node: Node, sent: effects.SendRequest) -> None:
        destination = BrokerId(sent.destination)
        if not self._can_reach(node.broker_id, destination):
            failed = inputs.RequestFailed(
                cause_id=CAUSE, correlation_id=sent.correlation_id, failure=RequestFailure.DISCONNECTED
            )
            node.inbox.append(failed)
            return
        request_id = self._request_id()
        self._waiting[request_id] = (node.broker_id, sent.correlation_id)
        self._send_to(destination, _received(request_id, sent.request))

    def _send_response(self, node: Node, request_id: RequestId, response: messages.Response) -> None:
        if isinstance(response, messages.ProduceResponse):
            self.produced[request_id] = response
        if isinstance(response, messages.InitProducerIdResponse):
            self.producer_ids[request_id] = response.producer_id
        if request_id not in self._waiting:
            return
        asker, correlation_id = self._waiting.pop(request_id)
        if isinstance(response, messages.FetchResponse):
            partitions = tuple(
                msgspec.structs.replace(answer, span=None, batches=node.disk.read(answer.topic_partition, answer.span))
                for answer in response.partitions
            )
            response = msgspec.structs.replace(response, partitions=partitions)
        answered = inputs.ResponseReceived(cause_id=CAUSE, correlation_id=correlation_id, response=response)
        self._send_to(asker, answered)


def _received(request_id: RequestId, request: messages.Request) -> inputs.RequestReceived:
    return inputs.RequestReceived(cause_id=CAUSE, request_id=request_id, request=request)
