"""Producers and consumers of a scenario in virtual time: the state machines, paces and counts of the client process."""

from typing import Final

from laststand.chaos.play.workload import consumers_of, members_of, producers_of, transactions_of
from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.client.config import final_consumer
from laststand.emulator.client.control import ClientCounts
from laststand.emulator.client.counters import Counters
from laststand.emulator.client.pace import TICK_MS, Pace, TransactionPace
from laststand.emulator.core import events
from laststand.emulator.core.client.consumer import Phase
from laststand.emulator.core.client.steps import ClientRecord, PollRecorded, SendRecorded
from laststand.emulator.core.types import Acks, NodeId, TopicPartition
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import ConsumerNode, ProducerNode, TransactionalProducerNode
from laststand.emulator.simulator.run.journal import Journal

_MS_PER_S: Final = 1000


class ClientObserver:
    """An observer that keeps all events and counts the clients' results.

    Attributes:
        journal: all events and the history.
        counters: of the clients at work, without the final consumer's reads.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.journal = Journal()
        self.counters = Counters()
        self._acks = {config.name: config.settings.acks for config in producers_of(scenario)}
        self._consumers = frozenset(config.name for config in consumers_of(scenario))

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        """Keeps an event."""
        self.journal.happened(node_id, incarnation, event, now_ms=now_ms)

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Keeps a line of the history, and counts it."""
        self.journal.recorded(client, record, now_ms=now_ms)
        match record:
            case SendRecorded():
                self.counters.add_send(record, self._acks.get(client, Acks.ALL))
            case PollRecorded() if client in self._consumers:
                self.counters.add_poll(record)
            case _:
                pass

    def stepped(self, node_id: NodeId) -> None:
        """Does nothing."""


class SimulatedClients:
    """The clients of one run."""

    def __init__(self, cluster: SimulatedCluster, scenario: Scenario, observer: ClientObserver) -> None:
        self._cluster = cluster
        self._scenario = scenario
        self._observer = observer
        self._producers: list[tuple[ProducerNode, Pace]] = []
        self._consumers: list[ConsumerNode] = []
        self._transactions = transactions_of(scenario, cluster.switches)
        self._is_working = False

    @property
    def acks(self) -> dict[str, Acks]:
        """The acks of each producer, by name."""
        return self._cluster.clients.producer_acks

    @property
    def version(self) -> int:
        """Rises whenever ``counts`` changes."""
        return self._observer.counters.version

    @property
    def counts(self) -> ClientCounts:
        """All counts so far."""
        return self._observer.counters.counts()

    def start(self) -> None:
        """Starts the work of producers and consumers."""
        self._is_working = True
        for config in producers_of(self._scenario):
            topics = tuple(sorted({partition.topic for partition in config.partitions}))
            node = self._cluster.clients.launch_producer(
                config.name, config.settings.acks, config.settings, topics, awaited=frozenset(config.awaited)
            )
            pace = Pace(config, now_s=self._now_s(), producer=node.producer)
            self._producers.append((node, pace))
            self._tick(node, pace, config.tick_ms)
        consumers = consumers_of(self._scenario)
        transactions = self._transactions
        if transactions is not None:
            transactional = self._cluster.clients.add_transactional(
                transactions.name, transactions.settings, transactions.topics
            )
            consumers = (*consumers, transactions.reader)
            if transactions.pace is not None:
                own = TransactionPace(transactions.pace, maker=transactional.maker, producer=transactional.producer)
                self._tick_transactions(transactional, own)
        for consumer in consumers:
            self._consumers.append(
                self._cluster.clients.add_consumer(consumer.name, Phase.LIVE, consumer.settings, consumer.partitions)
            )

        members = members_of(self._scenario)
        if members is None:
            return
        for group in members.groups:
            self._cluster.clients.member_settings[group.name] = group.settings
            for number in range(group.members):
                self._cluster.clients.add_member(group.name, number, is_static=group.is_static, topics=members.topics)

    def produce(self, producer: str, partition: TopicPartition, records: int) -> None:
        """Has a producer send a batch."""
        node, pace = next(each for each in self._producers if each[0].name == producer)
        self._cluster.clients.offer(node, pace.make(partition, records))

    def _tick(self, node: ProducerNode, pace: Pace, tick_ms: int) -> None:
        if self._is_working:
            for offered in pace.tick(self._now_s()):
                self._cluster.clients.offer(node, offered)
            self._cluster.queue.after(tick_ms, lambda: self._tick(node, pace, tick_ms))

    def _tick_transactions(self, node: TransactionalProducerNode, pace: TransactionPace) -> None:
        if self._is_working:
            offered = pace.tick(self._now_s())
            if offered is not None:
                self._cluster.clients.offer_transaction(node, offered)
            self._cluster.queue.after(TICK_MS, lambda: self._tick_transactions(node, pace))

    def _now_s(self) -> float:
        return self._cluster.now_ms / _MS_PER_S

    def stop(self, *, timeout_ms: int) -> None:
        """Stops producers, waits for the outcomes of their sends, and gives up on the rest."""
        self._is_working = False
        nodes = [node for node, _ in self._producers]
        self._cluster.run_until(
            lambda: (
                not any(node.producer.unfinished_records for node in nodes)
                and not any(each.producer.unfinished for each in self._cluster.clients.transactional.values())
            ),
            within_ms=timeout_ms,
        )
        for node in nodes:
            self._cluster.clients.abandon(node)
        for transactional in self._cluster.clients.transactional.values():
            self._cluster.clients.abandon(transactional)
        for consumer in self._consumers:
            self._cluster.clients.abandon(consumer)
        for member in self._cluster.clients.members.values():
            self._cluster.clients.abandon(member)
        self._producers.clear()
        self._consumers.clear()

    def read_all(self, partitions: tuple[TopicPartition, ...], *, timeout_ms: int) -> None:
        """Reads partitions with a fresh consumer, bypassing network faults."""
        config = final_consumer(partitions)
        node = self._cluster.clients.add_consumer(
            config.name, Phase.FINAL, config.settings, config.partitions, node_id=HARNESS
        )
        self._cluster.run_until(lambda: node.consumer.is_finished, within_ms=timeout_ms)
        self._cluster.clients.abandon(node)
