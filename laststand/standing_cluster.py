"""A standing cluster for a program: topics, records, faults and barriers, then the verdict on all of it."""

import asyncio
import os
import secrets
import subprocess
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeVar

from laststand.chaos.play.run_directory import check_store, new_directory
from laststand.chaos.play.zookeeper_server import zookeeper_for
from laststand.chaos.scenario.conditions_yaml import ACKS
from laststand.chaos.scenario.scenario import Ending
from laststand.chaos.standing import messages
from laststand.chaos.standing.administration import administer
from laststand.chaos.standing.client_session import client_session
from laststand.chaos.standing.launch import launch_owned
from laststand.chaos.standing.link import SupervisorLostError, ask, status_of
from laststand.chaos.standing.order import STANDING, StandingOrder
from laststand.chaos.standing.status import StatusReport
from laststand.emulator.client.config import ConsumerConfig
from laststand.emulator.client.console_producer import ConsoleProducer, Tally
from laststand.emulator.client.consuming import RunningConsumer
from laststand.emulator.client.counters import Counters
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core import admin_messages
from laststand.emulator.core.client.consumer import Phase
from laststand.emulator.core.client.settings import ConsumerSettings, OffsetReset, producer_settings
from laststand.emulator.core.eras import era_rules, plain_switches
from laststand.emulator.core.errors import ConfigError, EmulatorError, causes_of
from laststand.emulator.core.properties import check_topic_properties
from laststand.emulator.core.types import TopicId, TopicPartition
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.node.config import zookeeper_config
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import KAFKA, check_kafka_clients
from laststand.emulator.plan.overrides import parse_overrides
from laststand.emulator.plan.path_words import PATH_WORD_RULE, is_path_word
from laststand.emulator.report.failure_picture import failure_picture
from laststand.emulator.storage.record_codec import StoredRecord
from laststand.emulator.verification.judges import JudgeName
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.report import VerdictReport
from laststand.running import judge

_SEED_BITS: Final = 31
_EXIT_TIMEOUT_S: Final = 60

_Result = TypeVar("_Result")


class StepFailedError(EmulatorError):
    """A fault or a barrier was not completed, or the fault had no effect; the text says why."""


class NotReadError(EmulatorError):
    """Fewer records could be read than were requested."""


class StandingCluster:
    """A controller and brokers on processes of their own, which end with this process.

    Use it as a context manager: what still runs at its end is killed. Nothing here is for an event loop, and the
    cluster is started in the main thread only.

    Attributes:
        directory: of the run.
    """

    def __init__(
        self,
        *,
        store: Path,
        name: str | None = None,
        brokers: int = 3,
        era: str = "kip-966",
        settings: Mapping[str, str] | None = None,
        seed: int | None = None,
        kafka: bool = False,
        kafka_clients: Sequence[str] = (),
    ) -> None:
        """Starts the cluster, and returns when all brokers are unfenced.

        Args:
            store: store of the run directories.
            name: distinguishes the cluster from other running ones of the store.
            brokers: their number; their ids are 0 and so on.
            era: era whose rules hold.
            settings: switches and Kafka's properties that differ, by name.
            seed: of random power losses and random nodes; random if not given.
            kafka: whether brokers serve clients of Apache Kafka, at ``bootstrap_servers``.
            kafka_clients: names of clients of Apache Kafka that brokers serve on links of their own.

        Raises:
            ConfigError: there is no such era or setting, or a value is not allowed.
            MissingToolError: there is no toxiproxy-server, or for an era with ZooKeeper no Java.
            NotStartedError: the cluster did not come up.
        """
        overrides = parse_overrides(tuple(f"{key}={value}" for key, value in (settings or {}).items()))
        zookeeper_for((era,), DriverName.PROCESS)
        rules = overrides.apply(era_rules(era))
        toxiproxy = find_toxiproxy()
        check_store(store)
        if name is not None and not is_path_word(name):
            raise ConfigError(key="name", value=name, expected=PATH_WORD_RULE)
        clients = tuple(kafka_clients) or ((KAFKA,) if kafka else ())
        problem = check_kafka_clients(clients)
        if problem is not None:
            raise ConfigError(key="kafka_clients", value=", ".join(clients), expected=problem)
        folder = STANDING if name is None else f"{STANDING}/{name}"
        self.directory = new_directory(store, folder, now=datetime.now(UTC))
        self._report: VerdictReport | None = None
        self._supervisor: subprocess.Popen[bytes] | None = launch_owned(
            StandingOrder(
                directory=str(self.directory),
                brokers=brokers,
                era=era,
                switches=plain_switches(rules),
                zookeeper=zookeeper_config(rules),
                properties=dict(overrides.properties),
                seed=secrets.randbits(_SEED_BITS) if seed is None else seed,
                toxiproxy=str(toxiproxy),
                kafka_clients=clients,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._supervisor is not None:
            self._supervisor.kill()
            self._supervisor.wait()
            self._supervisor = None

    def status(self) -> StatusReport:
        """Returns the present nodes, partitions and faults."""
        return status_of(self.directory)

    @property
    def bootstrap_servers(self) -> str:
        """Addresses for clients of Apache Kafka, by default those of the first client that has a name."""
        return self.bootstrap_servers_of(next(iter(self.status().bootstrap_servers)))

    def bootstrap_servers_of(self, client: str) -> str:
        """Returns the addresses to which a client of Apache Kafka connects: its property ``bootstrap.servers``."""
        return ",".join(self.status().bootstrap_servers[client])

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a topic.

        Args:
            name: of the topic.
            partitions: their number; ``num.partitions`` if not given.
            replication_factor: of each; ``default.replication.factor`` if not given.
            config: topic properties, such as ``{"min.insync.replicas": "2"}``.

        Raises:
            ConfigError: topics have no such property, or not with that value.
            AdminError: the controller refused, or did not answer.
        """
        properties = dict(config or {})
        check_topic_properties(properties)
        topic = admin_messages.CreatableTopic(
            name=name,
            topic_id=TopicId(uuid_text(os.urandom(16))),
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=(),
            configs=tuple(properties.items()),
        )
        _run(administer(self.directory, lambda admin: admin.create_topic(topic)))

    def topics(self) -> tuple[str, ...]:
        """Returns the names of all topics."""
        described = _run(administer(self.directory, lambda admin: admin.describe_topics()))
        return tuple(topic.name for topic in described)

    def produce(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: Literal["all", "1", "0"] = "all",
        partition: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Tally:
        """Sends records and waits for their outcomes, at most for ``delivery.timeout.ms``.

        Args:
            topic: name of the topic.
            values: of the records, in this order within each partition.
            acks: of the producer.
            partition: the partition to write to; all of the topic in turn if not given.
            settings: Kafka's producer properties that differ, by name.

        Returns:
            The numbers of acknowledged and failed records, and of those with an unknown outcome.

        Raises:
            ConfigError: there is no such topic, partition or property of producers.
        """
        producer_properties = producer_settings(ACKS[acks], settings or {})
        partitions = self._partitions(topic, partition)
        tally = Tally()

        async def send() -> None:
            async with client_session(self.directory, "produce") as session, asyncio.TaskGroup() as tasks:
                with session.history() as history:
                    producer = ConsoleProducer(
                        name=session.opened.name,
                        settings=producer_properties,
                        brokers=session.opened.brokers,
                        partitions=partitions,
                        links=session.links(tasks),
                        history=history,
                        tally=tally,
                    )
                    producer.start()
                    producer.send([(None, value) for value in values])
                    await producer.finish(timeout_ms=producer_properties.delivery_timeout_ms)

        _run(send())
        return tally

    def consume(
        self, topic: str, *, count: int, partition: int | None = None, within_s: float = 30.0
    ) -> tuple[StoredRecord, ...]:
        """Reads from the beginning until a number of records has come, and returns them in that order.

        Args:
            topic: name of the topic.
            count: number of records.
            partition: the partition to read; all of the topic if not given.
            within_s: how long to wait for them.

        Raises:
            ConfigError: there is no such topic or partition.
            NotReadError: there were fewer in time.
        """
        partitions = self._partitions(topic, partition)
        found: list[StoredRecord] = []

        async def read() -> None:
            enough = asyncio.Event()

            def take(_: TopicPartition, records: Sequence[StoredRecord]) -> None:
                found.extend(records)
                if len(found) >= count:
                    enough.set()

            async with client_session(self.directory, "consume") as session, asyncio.TaskGroup() as tasks:
                with session.history() as history:
                    consumer = RunningConsumer(
                        config=ConsumerConfig(
                            name=session.opened.name,
                            partitions=partitions,
                            settings=ConsumerSettings(auto_offset_reset=OffsetReset.EARLIEST),
                        ),
                        phase=Phase.LIVE,
                        brokers=session.opened.brokers,
                        links=session.links(tasks),
                        history=history,
                        counters=Counters(),
                        on_records=take,
                    )
                    consumer.start()
                    try:
                        async with asyncio.timeout(within_s):
                            await enough.wait()
                    except TimeoutError:
                        raise NotReadError(f"{len(found)} of {count} records of {topic} in {within_s:g} s") from None
                    finally:
                        await consumer.stop()

        _run(read())
        return tuple(found[:count])

    def chaos(self, step: str) -> str:
        """Plays a step, written as in a scenario file, such as ``kill: {node: leader(orders-0)}``.

        Returns:
            The effect that was observed.

        Raises:
            NoClusterError: the text is not a step, or the cluster cannot play it.
            StepFailedError: the step did not complete, or changed nothing.
        """
        for answer in ask(self.directory, messages.PlayStep(step=step)):
            match answer:
                case messages.StepPlayed(outcome=outcome) if outcome.affected:
                    return outcome.seen
                case messages.StepPlayed(outcome=outcome):
                    raise StepFailedError(f"{step}: had no effect: {outcome.seen}")
                case messages.StepFailed(reason=reason):
                    raise StepFailedError(f"{step}: {reason}")
                case _:
                    continue
        raise SupervisorLostError(self.directory)

    def until(self, condition: str, *, within: str = "30 s") -> str:
        """Waits for a condition, written as ``until`` in a scenario file: ``partition: orders-0, isr: [1, 2]``.

        Returns:
            The last observed state.

        Raises:
            NoClusterError: the text is not a condition.
            StepFailedError: the condition did not hold in time.
        """
        return self.chaos(f"until: {{{condition}, within: {within}}}")

    @property
    def is_verified(self) -> bool:
        """True if there is a verdict."""
        return self._report is not None

    def verify(self, *, by: str = JudgeName.SPARK.value) -> VerdictReport:
        """Heals everything, stops the cluster in order, and returns the verdict; the same at every call.

        Args:
            by: who judges: ``spark``, or ``here`` for this process, which needs no Java.

        Raises:
            EmulatorError: the cluster could not be stopped, or there is no verdict.
            OSError: the verdict could not be written.
        """
        if self._report is None:
            self._take_down()
            [report] = judge([self.directory], by=JudgeName(by))
            write_verdict(report, self.directory, picture=failure_picture(report, self.directory))
            self._report = report
        return self._report

    def _take_down(self) -> None:
        if self._supervisor is None:
            return
        answers = list(ask(self.directory, messages.TakeDown(ending=Ending.RESTORE)))
        if not any(isinstance(answer, messages.TakenDown) for answer in answers):
            raise SupervisorLostError(self.directory)
        self._supervisor.wait(_EXIT_TIMEOUT_S)
        self._supervisor = None

    def _partitions(self, topic: str, partition: int | None) -> tuple[TopicPartition, ...]:
        described = _run(administer(self.directory, lambda admin: admin.describe_topics()))
        counts = {each.name: len(each.partitions) for each in described}
        if topic not in counts:
            raise ConfigError(key="topic", value=topic, expected=f"one of {', '.join(sorted(counts)) or 'none'}")
        if partition is None:
            return tuple(TopicPartition(topic, index) for index in range(counts[topic]))
        if not 0 <= partition < counts[topic]:
            raise ConfigError(key="partition", value=str(partition), expected=f"0 to {counts[topic] - 1} of {topic}")
        return (TopicPartition(topic, partition),)


def _run(work: Coroutine[None, None, _Result]) -> _Result:
    try:
        return asyncio.run(work)
    except ExceptionGroup as group:
        raise causes_of(group)[0] from group
