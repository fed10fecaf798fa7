"""The client process: carries out the harness's commands until their connection ends."""

import asyncio
import logging
import signal
from typing import Final, assert_never

import msgspec

from laststand.emulator.client import control
from laststand.emulator.client.belonging import RunningMember
from laststand.emulator.client.config import ClientConfig, ConsumerConfig, TransactionsConfig, final_consumer
from laststand.emulator.client.consuming import RunningConsumer
from laststand.emulator.client.counters import Counters
from laststand.emulator.client.history import History
from laststand.emulator.client.members import MemberMaker
from laststand.emulator.client.producing import RunningProducer
from laststand.emulator.client.shell import Links
from laststand.emulator.client.transacting import RunningTransactionalProducer
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.consumer import Phase
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.types import CLIENT_ID, NodeId, TopicPartition
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.run_token import RunToken

PROGRESS_INTERVAL_S: Final = 0.02
"""Longest time from a changed count to its report."""

_LOOPBACK: Final = "127.0.0.1"
_COMMAND_LENGTH_MAX: Final = 1 << 20

_log: Final = logging.getLogger(__name__)


class ClientProcess:
    """All clients of a run, and their connection to the harness."""

    def __init__(self, config: ClientConfig, history: History) -> None:
        self._config = config
        self._token = RunToken.read(config.token_file, name=node_name(CLIENT_ID))
        self._history = history
        self._counters = Counters()
        self._producers: list[RunningProducer] = []
        self._transactional: list[RunningTransactionalProducer] = []
        self._consumers: list[RunningConsumer] = []
        self._members: dict[tuple[str, int], RunningMember] = {}
        self._member_maker = MemberMaker(config.brokers)
        self._links_at_work: Links | None = None
        self._work: list[asyncio.Task[None]] = []
        self._harness: asyncio.StreamWriter

    async def run(self) -> None:
        """Dials the harness and executes its commands until the end of the connection, or SIGTERM.

        Raises:
            OSError: the connection failed.
            msgspec.DecodeError: the harness sent an unknown command.
        """
        commands, self._harness = await asyncio.open_connection(
            _LOOPBACK, self._config.control_port, limit=_COMMAND_LENGTH_MAX
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, commands.feed_eof)
        async with asyncio.TaskGroup() as tasks:
            reporter = tasks.create_task(self._report_counts())
            self._harness.write(self._token.line)
            self._send(control.Ready())
            while line := await commands.readline():
                await self._obey(control.decode_command(line), tasks)
            await self._stop_work(timeout_ms=0)
            reporter.cancel()
        self._harness.close()

    async def _obey(self, command: control.Command, tasks: asyncio.TaskGroup) -> None:
        match command:
            case control.StartWork(addresses=addresses):
                self._start_work(addresses, tasks)
            case control.ProduceBatch(producer=name, topic=topic, partition=partition, record_count=record_count):
                producer = next(each for each in self._producers if each.name == name)
                producer.send(TopicPartition(topic, partition), record_count)
            case control.Transact(producer=name, partitions=partitions, records=records, is_commit=is_commit):
                result = TransactionResult.COMMIT if is_commit else TransactionResult.ABORT
                transactional = self._transactional_named(name)
                if transactional is not None:
                    transactional.transact(partitions, records=records, result=result)
            case control.Consume():
                self._consume(command)
            case control.DoAsMember():
                await self._do_as_member(command)
            case control.StopWork(timeout_ms=timeout_ms):
                abandoned = await self._stop_work(timeout_ms=timeout_ms)
                self._send(self._counters.counts())
                self._send(control.WorkStopped(abandoned=abandoned))
            case control.ReadAll():
                self._send(control.AllRead(errors=await self._read_all(command, tasks)))
            case _:
                assert_never(command)

    def _consume(self, command: control.Consume) -> None:
        source, name = command.source, command.producer
        if command.member is None:
            transactional = self._transactional_named(name)
        else:
            member = self._members.get((source.group_id, command.member))
            if member is None:
                return
            source = msgspec.structs.replace(source, member=member.identity)
            transactional = self._transactional_named(name, transactional_id=name)
        if transactional is not None:
            result = TransactionResult.COMMIT if command.is_commit else TransactionResult.ABORT
            transactional.consume(source, into=command.into, result=result)

    def _links(
        self, addresses: dict[int, str], tasks: asyncio.TaskGroup, *, dialler: NodeId | None = CLIENT_ID
    ) -> Links:
        keepalive = keepalive_for(session_timeout_ms=self._config.session_timeout_ms)
        return Links(
            addresses=addresses,
            keepalive=keepalive,
            token=self._token,
            tasks=tasks,
            dialler=dialler,
            wire=self._config.wire,
            broker_numbers=self._config.broker_numbers,
        )

    def _start_work(self, addresses: dict[int, str], tasks: asyncio.TaskGroup) -> None:
        links = self._links_at_work = self._links(addresses, tasks)
        for producer_config in self._config.producers:
            producer = RunningProducer(
                config=producer_config,
                brokers=self._config.brokers,
                links=links,
                history=self._history,
                counters=self._counters,
            )
            producer.start()
            self._producers.append(producer)
            self._work.append(tasks.create_task(producer.produce(), name=producer_config.name))
        consumers = self._config.consumers
        if self._config.transactions is not None:
            transactions = self._config.transactions
            transactional = self._begin_transactions(
                transactions.name, transactions, links, transactional_id=transactions.name
            )
            if self._config.transactions.pace is not None:
                self._work.append(tasks.create_task(transactional.produce(self._config.transactions.pace)))
            consumers = (*consumers, self._config.transactions.reader)
        for consumer_config in consumers:
            consumer = self._consumer(consumer_config, Phase.LIVE, links)
            self._consumers.append(consumer)
            consumer.start()
        for group in () if self._config.members is None else self._config.members.groups:
            for number in range(group.members):
                self._join(group.name, number, is_static=group.is_static)

    def _begin_transactions(
        self, name: str, config: TransactionsConfig, links: Links, *, transactional_id: str
    ) -> RunningTransactionalProducer:
        transactional = RunningTransactionalProducer(
            name,
            transactional_id=transactional_id,
            config=config,
            brokers=self._config.brokers,
            links=links,
            history=self._history,
            counters=self._counters,
        )
        transactional.start()
        self._transactional.append(transactional)
        return transactional

    def _transactional_named(
        self, name: str, *, transactional_id: str | None = None
    ) -> RunningTransactionalProducer | None:
        """Returns a transactional producer, which starts now unless it has; ``None`` in a run without transactions."""
        found = next((each for each in self._transactional if each.name == name), None)
        config, links = self._config.transactions, self._links_at_work
        if found is None and config is not None and links is not None:
            return self._begin_transactions(name, config, links, transactional_id=transactional_id or config.name)
        return found

    def _join(self, group_id: str, number: int, *, is_static: bool, reads: bool = True) -> None:
        members, links = self._config.members, self._links_at_work
        if members is None or links is None:
            return
        name, process = self._member_maker.make(
            group_id,
            number,
            is_static=is_static,
            topics=members.topics,
            settings=members.settings_of(group_id),
            reads=reads,
        )
        member = self._members[group_id, number] = RunningMember(name, process, links=links, history=self._history)
        member.start()

    async def _do_as_member(self, command: control.DoAsMember) -> None:
        member = self._members.get((command.group, command.number))
        if member is not None and member.is_over:
            await member.stop()
            member = None
        if command.does == "join" and member is None:
            self._join(command.group, command.number, is_static=command.is_static, reads=command.reads)
        if member is None:
            return
        match command.does:
            case "leave":
                member.leave()
            case "die":
                await member.stop()
            case "pause" | "go-on":
                member.pause(is_paused=command.does == "pause")
            case _:
                pass

    def _consumer(self, config: ConsumerConfig, phase: Phase, links: Links) -> RunningConsumer:
        return RunningConsumer(
            config=config,
            phase=phase,
            brokers=self._config.brokers,
            links=links,
            history=self._history,
            counters=self._counters,
        )

    async def _stop_work(self, *, timeout_ms: int) -> int:
        for task in self._work:
            task.cancel()
        self._work.clear()
        abandoned = await asyncio.gather(*(each.finish(timeout_ms=timeout_ms) for each in self._producers))
        await asyncio.gather(*(each.finish(timeout_ms=timeout_ms) for each in self._transactional))
        for consumer in self._consumers:
            await consumer.stop()
        for member in self._members.values():
            await member.stop()
        self._producers.clear()
        self._transactional.clear()
        self._consumers.clear()
        self._members.clear()
        return sum(abandoned)

    async def _read_all(self, command: control.ReadAll, tasks: asyncio.TaskGroup) -> dict[str, str]:
        links = self._links(command.addresses, tasks, dialler=None)
        consumer = self._consumer(final_consumer(command.partitions), Phase.FINAL, links)
        await consumer.read_all(timeout_ms=command.timeout_ms)
        return consumer.errors

    def _send(self, report: control.Report) -> None:
        self._harness.write(control.encode_line(report))

    async def _report_counts(self) -> None:
        written_version = self._counters.version
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            if self._counters.version != written_version:
                written_version = self._counters.version
                self._send(self._counters.counts())


def run_client(config: ClientConfig, history: History) -> None:
    """Runs the process to its end; raises what ``ClientProcess.run`` raises."""
    _log.info("clients producers=%d consumers=%d", len(config.producers), len(config.consumers))
    asyncio.run(ClientProcess(config, history).run())
