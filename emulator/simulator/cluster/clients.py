"""Clients of a simulated cluster: producers, consumers, and requests from outside of the network."""

from collections.abc import Callable, Mapping

from laststand.emulator.client.members import MemberMaker
from laststand.emulator.core import admin_messages, inputs, messages
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.consumer import Consumer, Phase
from laststand.emulator.core.client.producer import Producer
from laststand.emulator.core.client.settings import UNNAMED_GROUP, ConsumerSettings, MemberSettings, ProducerSettings
from laststand.emulator.core.client.transactional_producer import TransactionalProducer
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Acks, BrokerId, CauseId, NodeId, RequestId, TopicId, TopicPartition
from laststand.emulator.plan.fields import TRANSACTIONAL
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.simulator.network.wire import Wire
from laststand.emulator.simulator.nodes.batch_registry import BatchRegistry
from laststand.emulator.simulator.nodes.nodes import (
    ConsumerNode,
    MemberNode,
    ProducerNode,
    StepNode,
    TransactionalProducerNode,
)


class ClientSet:
    """All clients of one cluster.

    Args:
        bootstrap: the brokers that clients ask first.
        wire: carries requests.
        batches: makes the producers' batches.
        transaction_version: of the cluster.
        step: hands an input to a client.
        run_until: advances time until a condition holds.

    Attributes:
        producers: producers of ``produce`` actions, by name.
        transactional: transactional producers, by name.
        producer_acks: each producer's acks, by name.
        consumers: in the order in which they were started.
        members: of groups, the process of each number that started last.
        member_settings: settings of members, by group, if not the defaults.
    """

    def __init__(
        self,
        bootstrap: tuple[BrokerId, ...],
        wire: Wire,
        batches: BatchRegistry,
        *,
        controller_id: Callable[[], NodeId],
        transaction_version: int,
        step: StepNode,
        run_until: Callable[[Callable[[], bool]], bool],
    ) -> None:
        self.producers: dict[str, ProducerNode] = {}
        self.transactional: dict[str, TransactionalProducerNode] = {}
        self._transactional_as: tuple[ProducerSettings, tuple[str, ...]] | None = None
        self.producer_acks: dict[str, Acks] = {}
        self.consumers: list[ConsumerNode] = []
        self.members: dict[tuple[str, int], MemberNode] = {}
        self.member_settings: dict[str, MemberSettings] = {}
        self._member_maker = MemberMaker(bootstrap)
        self._bootstrap = bootstrap
        self._wire = wire
        self._batches = batches
        self._controller_id = controller_id
        self._step = step
        self._run_until = run_until
        self._transaction_version = transaction_version

    # --- Requests from outside --------------------------------------------------------------------------------------

    @property
    def answers(self) -> dict[RequestId, messages.Response | None]:
        """Answers to ``ask``; ``None`` if the connection was closed."""
        return self._wire.answers

    def ask(self, node_id: NodeId, request: messages.Request, *, cause: str) -> RequestId:
        """Sends a request past all links; its answer appears in ``answers``."""
        return self._wire.ask_past_links(node_id, request, cause_id=CauseId(cause))

    def create_topic(
        self,
        name: str,
        assignments: tuple[tuple[int, ...], ...],
        configs: Mapping[str, str],
        *,
        topic_id: TopicId | None = None,
    ) -> str | None:
        """Creates a topic, by default with an id made of its name; returns the reason if the controller refuses."""
        topic = admin_messages.CreatableTopic(
            name=name,
            topic_id=TopicId(f"id-of-{name}") if topic_id is None else topic_id,
            assignments=tuple(tuple(BrokerId(NodeId(broker)) for broker in replicas) for replicas in assignments),
            configs=tuple(configs.items()),
        )
        request = admin_messages.CreateTopicsRequest(topics=(topic,))
        request_id = self.ask(self._controller_id(), request, cause=f"create-{name}")
        self._run_until(lambda: request_id in self.answers)
        answer = self.answers.get(request_id)
        if not isinstance(answer, admin_messages.CreateTopicsResponse):
            return "no answer"
        (result,) = answer.topics
        return None if result.error is ErrorCode.NONE else f"{result.error.name}, {result.error_message}"

    # --- Producers --------------------------------------------------------------------------------------------------

    def add_producer(self, name: str, settings: ProducerSettings, topics: tuple[str, ...]) -> ProducerNode:
        """Starts a producer that ``produce`` actions can name."""
        node = self.producers[name] = self.launch_producer(name, settings.acks, settings, topics)
        return node

    def launch_producer(
        self,
        name: str,
        acks: Acks,
        settings: ProducerSettings,
        topics: tuple[str, ...],
        *,
        awaited: frozenset[str] = frozenset(),
    ) -> ProducerNode:
        """Starts a producer; some of its topics may not exist yet."""
        core = Producer(
            settings=settings,
            bootstrap=self._bootstrap,
            topics=topics,
            awaited=awaited,
            encode=self._batches.encoder(name),
        )
        node = ProducerNode(name, core, acks)
        self.producer_acks[name] = acks
        self._step(node, inputs.Started(cause_id=CauseId(name)))
        return node

    def produce(self, producer: ProducerNode, partition: TopicPartition, records: int) -> CauseId:
        """Offers a batch to a producer; returns the name of the operation."""
        first = producer.next_record_id
        producer.next_record_id += records
        operation_id = CauseId(f"{producer.name}:{first}")
        self.offer(
            producer,
            steps.RecordsOffered(
                cause_id=operation_id, partition=partition, first_record_id=first, record_count=records
            ),
        )
        return operation_id

    def offer(self, producer: ProducerNode, offered: steps.RecordsOffered) -> None:
        """Offers records to a producer."""
        self._step(producer, offered)

    # --- Transactional producers ------------------------------------------------------------------------------------

    def add_transactional(
        self, name: str, settings: ProducerSettings, topics: tuple[str, ...], *, transactional_id: str = TRANSACTIONAL
    ) -> TransactionalProducerNode:
        """Starts a transactional producer; all have one transactional id, except those of members of groups."""
        core = TransactionalProducer(
            transactional_id=transactional_id,
            name=name,
            settings=settings,
            bootstrap=self._bootstrap,
            topics=topics,
            version=self._transaction_version,
            encode=self._batches.encoder(name),
        )
        node = self.transactional[name] = TransactionalProducerNode(name, core, self._batches)
        self.producer_acks[name] = Acks.ALL
        self._transactional_as = (settings, topics)
        self._step(node, inputs.Started(cause_id=CauseId(name)))
        return node

    def transactional_named(
        self, name: str, *, transactional_id: str = TRANSACTIONAL
    ) -> TransactionalProducerNode | None:
        """Returns a transactional producer, and starts it if only others exist; ``None`` if the cluster has none."""
        if name not in self.transactional and self._transactional_as is not None:
            self.add_transactional(name, *self._transactional_as, transactional_id=transactional_id)
        return self.transactional.get(name)

    def transact(
        self,
        producer: TransactionalProducerNode,
        partitions: tuple[TopicPartition, ...],
        *,
        records: int,
        result: TransactionResult,
        source: steps.Source | None = None,
    ) -> CauseId:
        """Offers a transaction to a producer; returns the name of the operation."""
        return self.offer_transaction(
            producer, producer.maker.transaction(partitions, records=records, result=result, source=source)
        )

    def offer_transaction(self, producer: TransactionalProducerNode, offered: steps.TransactionOffered) -> CauseId:
        """Offers a transaction that the caller has put together."""
        self._step(producer, offered)
        return offered.cause_id

    def consume(self, producer: TransactionalProducerNode, source: steps.Source) -> CauseId:
        """Offers a consumption without a transaction; returns the name of the operation."""
        offered = producer.maker.consumption(source)
        self._step(producer, offered)
        return offered.cause_id

    # --- Consumers --------------------------------------------------------------------------------------------------

    def add_consumer(
        self,
        name: str,
        phase: Phase,
        settings: ConsumerSettings,
        partitions: tuple[TopicPartition, ...],
        *,
        node_id: NodeId = CLIENT,
    ) -> ConsumerNode:
        """Starts a consumer; a consumer at another node id than ``CLIENT`` is affected by no broken link."""
        core = Consumer(name=name, phase=phase, settings=settings, bootstrap=self._bootstrap, partitions=partitions)
        is_committed_only = settings.is_committed_only
        node = ConsumerNode(name, core, self._batches, node_id=node_id, is_committed_only=is_committed_only)
        self.consumers.append(node)
        self._step(node, inputs.Started(cause_id=CauseId(name)))
        return node

    # --- Members of groups ------------------------------------------------------------------------------------------

    def running_member(self, group_id: str, number: int) -> MemberNode | None:
        """Returns a member of a group whose process is running."""
        node = self.members.get((group_id, number))
        return None if node is None or node.core is None or node.process.member.is_over else node

    def add_member(
        self, group_id: str, number: int, *, is_static: bool, topics: tuple[str, ...], reads: bool = True
    ) -> MemberNode:
        """Starts a process that joins a group."""
        settings = self.member_settings.get(group_id, UNNAMED_GROUP)
        name, process = self._member_maker.make(
            group_id, number, is_static=is_static, topics=topics, settings=settings, reads=reads
        )
        node = self.members[group_id, number] = MemberNode(name, process, self._batches)
        self._step(node, inputs.Started(cause_id=CauseId(name)))
        return node

    def have_leave(self, node: MemberNode) -> None:
        """Has a member leave its group."""
        self._step(node, steps.LeaveOffered(cause_id=CauseId(node.name)))

    def pause(self, node: MemberNode, *, is_paused: bool) -> None:
        """Stops a member, or resumes it with the inputs that waited for it."""
        node.process.is_paused = is_paused
        self._step(node, inputs.TimerFired(cause_id=CauseId(node.name)))

    def abandon(self, node: ProducerNode | TransactionalProducerNode | ConsumerNode | MemberNode) -> None:
        """Ends a client's work: it gives up its unfinished operations."""
        abandoned = steps.Abandoned(cause_id=CauseId(node.name))
        match node:
            case ProducerNode():
                self._step(node, abandoned)
            case TransactionalProducerNode():
                self._step(node, abandoned)
            case ConsumerNode():
                self._step(node, abandoned)
            case MemberNode(process=process):
                process.is_paused = False
                self._step(node, abandoned)
        node.end()
