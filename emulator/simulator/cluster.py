"""A whole cluster of real cores in one thread: virtual time, a queue of messages, links that can be broken.

Deterministic: what happens follows from what is called, and nothing else. Left alone, every message arrives after one
millisecond, in order. The cluster decides nothing of the protocol: it carries inputs and executes effects, in the order
that ``emulator.core.effects`` asks for.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from emulator.core.admin_messages import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from emulator.core.batch import BatchDescriptor
from emulator.core.client.consumer import Consumer, Phase
from emulator.core.client.producer import Producer
from emulator.core.client.settings import ConsumerSettings, ProducerSettings
from emulator.core.client.steps import (
    Abandoned,
    FinalReadRecorded,
    PollRecorded,
    RecordsOffered,
    SendRecorded,
)
from emulator.core.controller.controller import Controller
from emulator.core.effects import (
    AppendMetadata,
    CloseConnection,
    DrawNumber,
    Effect,
    PublishMetadata,
    RecordEvent,
    SendRequest,
    SendResponse,
    StopNode,
)
from emulator.core.errors import ErrorCode, InvariantError
from emulator.core.events import (
    Event,
    FaultInjected,
    IncarnationEnd,
    IncarnationEnded,
    IncarnationStarted,
    NodeStarted,
    NodeStopped,
    PowerLost,
)
from emulator.core.image import MetadataImage, PartitionState
from emulator.core.inputs import (
    MetadataSynced,
    NumberDrawn,
    RequestReceived,
    ShutdownRequested,
    Started,
    TimerFired,
)
from emulator.core.messages import FetchResponse, Request, Response
from emulator.core.properties import NodeProperties, property_texts
from emulator.core.switches import Switches
from emulator.core.types import (
    Acks,
    BrokerId,
    CauseId,
    IncarnationId,
    NodeId,
    NodeRole,
    RequestId,
    TopicId,
    TopicPartition,
)
from emulator.simulator.actions import CrashWithin
from emulator.simulator.broker_effects import BrokerEffects
from emulator.simulator.crash import done_before
from emulator.simulator.disk import Keep, TruncationFate
from emulator.simulator.event_queue import EventQueue
from emulator.simulator.network import KEEPALIVE_MS, STREAM, SYNC, Channel, Network, Way
from emulator.simulator.nodes import (
    CLIENT,
    CONTROLLER,
    BrokerNode,
    ConsumerNode,
    ControllerNode,
    InputT,
    Node,
    ProducerNode,
)
from emulator.simulator.record_book import RecordBook
from emulator.simulator.streams import MetadataStreams
from emulator.simulator.watcher import NobodyWatches, Watcher
from emulator.simulator.wire import NodeAsker, Wire
from emulator.storage.power_loss_plan import NamesFate

HARNESS: Final = NodeId(2000)
"""Stands for whoever breaks things, on the events that say so."""

_HARNESS_CAUSE: Final = CauseId("harness")


class SimulatedCluster:
    """One controller (node 100), brokers 0..N-1, and clients (node 1000).

    Args:
        brokers: how many; each runs after ``start``.
        switches: the rules.
        properties: of every node.
        watcher: is told everything.
        book: makes the producers' batches.
        attach: gets the cluster before anything runs.

    Attributes:
        steps: of all nodes together.
        producer_acks: what each producer, by name, asks for.
        on_response: is told every answer that a broker gives, at the end of its step.
        is_halted: time stands still while this is set; for whoever wants to look closer at what just happened.
    """

    def __init__(
        self,
        *,
        brokers: int,
        switches: Switches,
        properties: NodeProperties,
        watcher: Watcher | None = None,
        book: RecordBook | None = None,
        attach: Callable[["SimulatedCluster"], None] | None = None,
    ) -> None:
        self.switches = switches
        self.properties = properties
        self.network = Network()
        self.queue = EventQueue()
        self.wire = Wire(self.queue, self.network, self._receive)
        self.nodes = {BrokerId(NodeId(index)): BrokerNode(BrokerId(NodeId(index))) for index in range(brokers)}
        self.controller_node = ControllerNode()
        self.producers: dict[Acks, ProducerNode] = {}
        self.producer_acks: dict[str, Acks] = {}
        self.on_response: Callable[[BrokerNode, Response], None] | None = None
        self.consumers: list[ConsumerNode] = []
        self.cause_id = _HARNESS_CAUSE
        self.steps = 0
        self.is_halted = False
        self._switch_texts = {
            name: {True: "on", False: "off"}.get(rule, rule) for name, rule in msgspec.to_builtins(switches).items()
        }
        self._property_texts = property_texts(properties)
        self._watcher = watcher or NobodyWatches()
        self._book = book or RecordBook()
        self._streams = MetadataStreams(self.queue, self.network, self.wire, self.controller_node, self._step)
        self._broker_effects = BrokerEffects(
            self.queue,
            self._streams,
            retention_check_interval_ms=properties.log_retention_check_interval_ms,
            step=self._step,
            end=self._end,
        )
        self._note(
            NodeStarted(
                cause_id=_HARNESS_CAUSE,
                role=NodeRole.HARNESS,
                incarnation_id=IncarnationId("harness"),
                switches={},
                properties={},
                wall_time_ns=0,
            )
        )
        if attach is not None:
            attach(self)
        self.start_controller()

    # --- Looking at it ----------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.queue.now_ms

    @property
    def controller(self) -> Controller:
        """The controller's core; of the process that ran last, where none runs."""
        return self.controller_node.controller

    @property
    def image(self) -> MetadataImage:
        """The committed metadata: what the controller has made durable, which is all that anybody may rely on."""
        return self.controller_node.durable

    @property
    def answers(self) -> dict[RequestId, Response | None]:
        """Answers to ``ask``."""
        return self.wire.answers

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """Returns the committed state of a partition."""
        return self.image.partitions.get(partition)

    def stored(self, broker_id: BrokerId, partition: TopicPartition) -> tuple[BatchDescriptor, ...]:
        """Returns the batches on a broker's disk."""
        log = self.nodes[broker_id].disk.logs.get(partition)
        return () if log is None else tuple(log.batches)

    # --- Processes --------------------------------------------------------------------------------------------------

    def start(self, broker_id: BrokerId) -> None:
        """Starts a process on the broker's disk; no effect if one runs."""
        node = self.nodes[broker_id]
        if node.core is None:
            node.boot(self.switches, self.properties)
            self._begin(node, role=NodeRole.BROKER, identity=f"incarnation-{broker_id}-{node.incarnation}")
            self._step(node, Started(cause_id=CauseId(f"start-{broker_id}")))

    def start_controller(self) -> None:
        """Starts the controller on its log; no effect if it runs."""
        node = self.controller_node
        if node.core is None:
            untold = node.boot(self.switches, self.properties)
            self._begin(node, role=NodeRole.CONTROLLER, identity=f"controller-{node.incarnation}")
            for event in untold:
                self._watcher.happened(node.node_id, node.incarnation, event, now_ms=self.queue.now_ms)
            self._step(node, Started(cause_id=CauseId("start")))

    def stop(self, broker_id: BrokerId) -> None:
        """Asks a broker to end in order."""
        self._step(self.nodes[broker_id], ShutdownRequested(cause_id=CauseId(f"stop-{broker_id}")))

    def stop_controller(self) -> None:
        """Asks the controller to end in order."""
        self._step(self.controller_node, ShutdownRequested(cause_id=CauseId("stop")))

    def kill(self, broker_id: BrokerId) -> None:
        """Ends a process at once; the page cache survives."""
        self._end(self.nodes[broker_id], IncarnationEnd.KILLED)

    def power_loss(
        self,
        broker_id: BrokerId,
        keep: Keep = Keep.NONE,
        *,
        kept: int = 0,
        truncation: TruncationFate = TruncationFate.UNDONE,
        names: NamesFate = NamesFate.UNDONE,
    ) -> None:
        """Ends a process at once, if one runs, and loses what is not synced."""
        node = self.nodes[broker_id]
        self._end(node, IncarnationEnd.POWER_LOST)
        before = {name: log.log_end_offset for name, log in node.disk.logs.items()}
        node.disk.lose_power(keep, kept=kept, truncation=truncation, names=names)
        for name, log in node.disk.logs.items():
            self._note(
                PowerLost(
                    cause_id=self.cause_id,
                    topic=name.topic,
                    partition=name.partition,
                    topic_id=log.topic_id,
                    lost_node=broker_id,
                    lost_incarnation=node.incarnation,
                    keep=keep.value,
                    old_end_offset=before[name],
                    new_end_offset=log.log_end_offset,
                )
            )

    def replace_disk(self, broker_id: BrokerId) -> None:
        """Ends a process at once, if one runs, and gives the broker an empty disk."""
        node = self.nodes[broker_id]
        self._end(node, IncarnationEnd.POWER_LOST)
        node.disk.replace()

    def kill_controller(self) -> None:
        """Ends the controller at once; what it had appended stays."""
        self._end(self.controller_node, IncarnationEnd.KILLED)

    def power_loss_controller(self) -> None:
        """Ends the controller at once, if it runs, and loses the records that it had not synced."""
        self._end(self.controller_node, IncarnationEnd.POWER_LOST)
        self.controller_node.lose_unsynced()

    def set_draw(self, number: int) -> None:
        """Chooses the number that picks the leaders of unclean elections from now on."""
        self.controller_node.draw = number
        self._give_draw()

    def _give_draw(self) -> None:
        self._step(self.controller_node, NumberDrawn(cause_id=CauseId("draw"), number=self.controller_node.draw))

    def pause(self, node: Node[InputT]) -> None:
        """Stops a process by a signal."""
        if node.core is not None:
            node.is_paused = True

    def resume(self, node: Node[InputT]) -> None:
        """Lets a paused process go on with what has arrived since."""
        if not node.is_paused:
            return
        node.is_paused = False
        waiting, node.inbox = node.inbox, []
        for incoming in waiting:
            self._step(node, incoming)
        if node.core is not None:
            self._arm(node)

    def set_clock_rate(self, node: Node[InputT], rate_ppm: int) -> None:
        """Lets a node's clock run at another rate."""
        node.clock.set_rate(rate_ppm, now_ms=self.now_ms)
        if node.core is not None and not node.is_paused:
            self._arm(node)

    def _begin(self, node: Node[InputT], *, role: NodeRole, identity: str) -> None:
        self._note(
            IncarnationStarted(
                cause_id=self.cause_id,
                started_node=node.node_id,
                started_incarnation=node.incarnation,
                event_file=f"{node.node_id}-{node.incarnation}.jsonl",
            )
        )
        started = NodeStarted(
            cause_id=self.cause_id,
            role=role,
            incarnation_id=IncarnationId(identity),
            switches=self._switch_texts,
            properties=self._property_texts,
            wall_time_ns=0,
        )
        self._watcher.happened(node.node_id, node.incarnation, started, now_ms=self.now_ms)

    def _end(self, node: Node[InputT], end: IncarnationEnd) -> None:
        if node.core is None:
            return
        if end is IncarnationEnd.STOPPED:
            stopped = NodeStopped(cause_id=self.cause_id)
            self._watcher.happened(node.node_id, node.incarnation, stopped, now_ms=self.now_ms)
        node.end()
        self.wire.lose_process(node.node_id)
        if isinstance(node, BrokerNode):
            self._streams.forget(node)
        elif isinstance(node, ControllerNode):
            self._streams.lose_all()
        self._note(
            IncarnationEnded(
                cause_id=self.cause_id,
                ended_node=node.node_id,
                ended_incarnation=node.incarnation,
                end=end,
                exit_code=0 if end is IncarnationEnd.STOPPED else None,
                metadata_offset=self.controller.committed_end_offset,
            )
        )

    def note(self, event: Event) -> None:
        """Writes an event of whoever breaks things."""
        self._note(event)

    def _note(self, event: Event) -> None:
        self._watcher.happened(HARNESS, 0, event, now_ms=self.now_ms)

    # --- Network ----------------------------------------------------------------------------------------------------

    def cut(self, source: NodeId, destination: NodeId) -> None:
        """Cuts the connections that ``source`` dials to ``destination``."""
        self.network.cuts.add((source, destination))
        self._break_stream(source, destination)

    def lose_responses(self, source: NodeId, destination: NodeId) -> None:
        """Loses the answers to what ``source`` asks of ``destination``."""
        self.network.losing.add((source, destination))
        self._break_stream(source, destination)

    def reset(self, source: NodeId, destination: NodeId) -> int:
        """Resets the connections that ``source`` dials to ``destination``; returns how many requests that ended."""
        if destination == CONTROLLER and source in self.nodes:
            self._streams.lose(self.nodes[BrokerId(source)], notice_ms=1)
        return self.wire.reset(source, destination)

    def _break_stream(self, source: NodeId, destination: NodeId) -> None:
        if destination == CONTROLLER and source in self.nodes:
            self._streams.lose(self.nodes[BrokerId(source)], notice_ms=KEEPALIVE_MS)

    def isolate(self, broker_id: BrokerId) -> None:
        """Cuts every link between a broker and other nodes; clients stay connected."""
        for other in (*self.nodes, CONTROLLER):
            if other != broker_id:
                self.cut(broker_id, other)
                self.cut(other, broker_id)

    def mend(self, source: NodeId, destination: NodeId) -> None:
        """Mends one link."""
        self.network.cuts.discard((source, destination))
        self.network.losing.discard((source, destination))

    def heal(self) -> None:
        """Mends all links, and delivers what was held."""
        self.network.cuts.clear()
        self.network.losing.clear()
        self.network.restore_latency()
        for channel in list(self.network.held):
            self.release(channel)

    def release(self, channel: Channel, *, count: int | None = None) -> int:
        """Delivers the oldest ``count`` held messages of a channel; without a count all, and holds no longer.

        Returns how many are on their way now.
        """
        held = self.network.held.get(channel)
        if held is None:
            return 0
        number = len(held) if count is None else min(count, len(held))
        for _ in range(number):
            self.queue.after(0, held.popleft())
        if count is None:
            del self.network.held[channel]
        return number

    def release_newest(self, channel: Channel) -> int:
        """Delivers the newest held message of a channel before the others; returns how many are on their way."""
        held = self.network.held.get(channel)
        if not held:
            return 0
        self.queue.after(0, held.pop())
        return 1

    def lose_held(self, channel: Channel) -> int:
        """Loses the oldest held message of a channel; returns how many were lost."""
        held = self.network.held.get(channel)
        if not held:
            return 0
        held.popleft()
        return 1

    def duplicate_held(self, channel: Channel) -> int:
        """Delivers the oldest held request of a channel and keeps it; returns how many are on their way.

        So a request is executed twice, the second time when its sender may have gone on: what a client that tries
        again does to a server that had it already. Answers, streams and disks repeat nothing.
        """
        held = self.network.held.get(channel)
        if not held or channel.way is not Way.REQUEST or channel.api in (STREAM, SYNC):
            return 0
        self.queue.after(0, held[0])
        return 1

    # --- Clients ----------------------------------------------------------------------------------------------------

    def ask(self, node_id: NodeId, request: Request, *, cause: str) -> RequestId:
        """Sends a request past all links; its answer appears in ``answers``."""
        return self.wire.ask_past_links(node_id, request, cause_id=CauseId(cause))

    def create_topic(
        self,
        name: str,
        assignments: tuple[tuple[int, ...], ...],
        configs: Mapping[str, str],
        *,
        topic_id: TopicId | None = None,
    ) -> str | None:
        """Creates a topic, by default with an id made of its name; returns why, if the controller refuses it."""
        topic = CreatableTopic(
            name=name,
            topic_id=TopicId(f"id-of-{name}") if topic_id is None else topic_id,
            assignments=tuple(tuple(BrokerId(NodeId(broker)) for broker in replicas) for replicas in assignments),
            configs=tuple(configs.items()),
        )
        request_id = self.ask(CONTROLLER, CreateTopicsRequest(topics=(topic,)), cause=f"create-{name}")
        self.run_until(lambda: request_id in self.answers)
        answer = self.answers.get(request_id)
        if not isinstance(answer, CreateTopicsResponse):
            return "no answer"
        (result,) = answer.topics
        return None if result.error is ErrorCode.NONE else f"{result.error.name}, {result.error_message}"

    def add_producer(self, acks: Acks, settings: ProducerSettings, topics: tuple[str, ...]) -> ProducerNode:
        """Starts the producer that ``produce`` actions with these acks mean."""
        node = self.producers[acks] = self.launch_producer(f"producer-{acks.name.lower()}", acks, settings, topics)
        return node

    def launch_producer(
        self, name: str, acks: Acks, settings: ProducerSettings, topics: tuple[str, ...]
    ) -> ProducerNode:
        """Starts a producer."""
        core = Producer(settings=settings, bootstrap=tuple(self.nodes), topics=topics, encode=self._book.encoder(name))
        node = ProducerNode(name, core, acks)
        self.producer_acks[name] = acks
        self._step(node, Started(cause_id=CauseId(name)))
        return node

    def produce(self, producer: ProducerNode, partition: TopicPartition, records: int) -> CauseId:
        """Offers a batch to a producer; returns the name of the operation."""
        first = producer.next_record_id
        producer.next_record_id += records
        operation_id = CauseId(f"{producer.name}:{first}")
        self.offer(
            producer,
            RecordsOffered(cause_id=operation_id, partition=partition, first_record_id=first, record_count=records),
        )
        return operation_id

    def offer(self, producer: ProducerNode, offered: RecordsOffered) -> None:
        """Offers records to a producer."""
        self._step(producer, offered)

    def add_consumer(
        self,
        name: str,
        phase: Phase,
        settings: ConsumerSettings,
        partitions: tuple[TopicPartition, ...],
        *,
        node_id: NodeId = CLIENT,
    ) -> ConsumerNode:
        """Starts a consumer; one that is not at ``CLIENT`` reads past all broken links."""
        core = Consumer(name=name, phase=phase, settings=settings, bootstrap=tuple(self.nodes), partitions=partitions)
        node = ConsumerNode(name, core, self._book, node_id=node_id)
        self.consumers.append(node)
        self._step(node, Started(cause_id=CauseId(name)))
        return node

    def abandon(self, node: ProducerNode | ConsumerNode) -> None:
        """Ends a client's work: what is unfinished is given up."""
        abandoned = Abandoned(cause_id=CauseId(node.name))
        if isinstance(node, ProducerNode):
            self._step(node, abandoned)
        else:
            self._step(node, abandoned)
        node.end()

    # --- Time -------------------------------------------------------------------------------------------------------

    def run(self, duration_ms: int) -> None:
        """Lets time pass, until it is halted."""
        end_ms = self.now_ms + duration_ms
        while not self.is_halted:
            happening = self.queue.take(until_ms=end_ms)
            if happening is None:
                self.queue.now_ms = end_ms
                return
            happening()

    def run_until(self, condition: Callable[[], bool], *, within_ms: int = 30_000) -> bool:
        """Lets time pass until a condition holds, or it is halted; returns whether it came to hold."""
        end_ms = self.now_ms + within_ms
        while not condition():
            if self.is_halted:
                return False
            happening = self.queue.take(until_ms=end_ms)
            if happening is None:
                self.queue.now_ms = end_ms
                return condition()
            happening()
        return True

    # --- Steps ------------------------------------------------------------------------------------------------------

    def _receive(self, node_id: NodeId, received: RequestReceived) -> bool:
        node: BrokerNode | ControllerNode = (
            self.controller_node if node_id == CONTROLLER else self.nodes[BrokerId(node_id)]
        )
        if node.core is None:
            return False
        if isinstance(node, BrokerNode):
            self._step(node, received)
        else:
            self._step(node, received)
        return True

    def _step(self, node: Node[InputT], incoming: InputT | TimerFired) -> None:
        core = node.core
        if core is None:
            return
        if node.is_paused:
            if not isinstance(incoming, TimerFired):
                node.inbox.append(incoming)
            return
        self.steps += 1
        effects = core.step(incoming, now_ms=node.clock.local_ms(self.queue.now_ms))
        if node.doom is not None and (done := done_before(node.doom, effects)) is not None:
            self._die_within(node, node.doom, done)
            return
        for effect in effects:
            self._execute(node, effect)
        if node.core is core:
            self._arm(node)
        self._watcher.stepped(node.node_id)

    def _die_within(self, node: Node[InputT], crash: CrashWithin, done: list[Effect]) -> None:
        assert isinstance(node, BrokerNode)
        for effect in done:
            self._broker_effects.execute(node, effect)
        if crash.loss is None:
            self.kill(node.broker_id)
        else:
            self.power_loss(
                node.broker_id,
                crash.loss.keep,
                kept=crash.loss.kept,
                truncation=crash.loss.truncation,
                names=crash.loss.names,
            )
        self._note(
            FaultInjected(
                cause_id=self.cause_id,
                fault="kill" if crash.loss is None else "power_loss",
                target=str(node.node_id),
                bit="simulated",
                metadata_offset=self.controller.committed_end_offset,
            )
        )

    def _arm(self, node: Node[InputT]) -> None:
        assert node.core is not None
        deadline = node.core.next_deadline_ms()
        due_ms = None if deadline is None else max(node.clock.due_ms(deadline), self.queue.now_ms)
        if due_ms == node.armed_ms:
            return
        node.armed_ms = due_ms
        if due_ms is None:
            return
        incarnation = node.incarnation

        def fire() -> None:
            if node.armed_ms == due_ms and node.incarnation == incarnation:
                node.armed_ms = None
                self._step(node, TimerFired(cause_id=node.next_timer_cause()))

        self.queue.at(due_ms, fire)

    def _execute(self, node: Node[InputT], effect: Effect) -> None:
        match effect:
            case RecordEvent(event=event):
                self._watcher.happened(node.node_id, node.incarnation, event, now_ms=self.queue.now_ms)
            case SendRequest():
                if isinstance(node, ConsumerNode):
                    node.note_request(effect)
                self.wire.ask(NodeAsker(node, self._step), effect)
            case SendResponse(response=response):
                if isinstance(node, BrokerNode):
                    if self.on_response is not None:
                        self.on_response(node, response)
                    effect = self._with_batches(node, effect)
                self.wire.respond(effect)
            case SendRecorded() | PollRecorded() | FinalReadRecorded():
                assert isinstance(node, ProducerNode | ConsumerNode)
                self._watcher.recorded(node.name, effect, now_ms=self.queue.now_ms)
            case CloseConnection(request_id=request_id):
                self.wire.close(request_id)
            case _ if isinstance(node, BrokerNode):
                self._broker_effects.execute(node, effect)
            case _ if isinstance(node, ControllerNode):
                self._execute_on_controller(node, effect)
            case _:
                raise InvariantError(f"a client wants {effect}")

    def _execute_on_controller(self, node: ControllerNode, effect: Effect) -> None:
        match effect:
            case AppendMetadata(batch=batch):
                length, incarnation = node.append(effect), node.incarnation

                def sync() -> None:
                    if node.incarnation == incarnation and node.core is not None:
                        node.sync_to(length)
                        self._step(node, MetadataSynced(cause_id=CauseId("sync"), end_offset=batch.end_offset))

                self._sync_later(sync)
            case PublishMetadata(cause_id=cause_id):
                self._streams.publish(cause_id)
            case DrawNumber():
                self.queue.after(0, self._give_draw)
            case StopNode():
                self._end(node, IncarnationEnd.STOPPED)
            case _:
                raise InvariantError(f"the controller wants {effect}")

    def _sync_later(self, sync: Callable[[], None]) -> None:
        held = self.network.held.get(CONTROLLER_SYNC)
        if held is None:
            self.queue.after(0, sync)
        else:
            held.append(sync)

    def _with_batches(self, node: BrokerNode, effect: SendResponse) -> SendResponse:
        response = effect.response
        if not isinstance(response, FetchResponse):
            return effect
        if all(answer.span is None for answer in response.partitions):
            return effect
        partitions = tuple(
            msgspec.structs.replace(answer, span=None, batches=node.disk.read(answer.topic_partition, answer.span))
            for answer in response.partitions
        )
        return msgspec.structs.replace(effect, response=msgspec.structs.replace(response, partitions=partitions))


CONTROLLER_SYNC: Final = Channel(CONTROLLER, CONTROLLER, SYNC, Way.RESPONSE)
"""Completions of the controller's fsyncs."""
