"""The transactional producer of the client process: carries out the transactions that the harness asks for."""

import asyncio
from collections.abc import Sequence

from laststand.emulator.client.config import TransactionPaceConfig, TransactionsConfig
from laststand.emulator.client.counters import Counters
from laststand.emulator.client.fetches import Fetches
from laststand.emulator.client.history import History
from laststand.emulator.client.pace import TICK_MS, TransactionMaker, TransactionPace
from laststand.emulator.client.records import encode_batch
from laststand.emulator.client.shell import Links, Shell
from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.transactional_producer import TransactionalProducer
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import Acks, BrokerId, CauseId, TopicPartition
from laststand.emulator.rpc.data_codec import Attachment


class RunningTransactionalProducer:
    """A transactional producer at work.

    Args:
        name: of the producer in the history; other ones may have its transactional id.
        transactional_id: of the producer.
        config: of all of them.
        brokers: any of them is asked for metadata.
        links: to the brokers.
        history: records the producer's requests and their responses.
        counters: count the outcomes.
    """

    def __init__(
        self,
        name: str,
        *,
        transactional_id: str,
        config: TransactionsConfig,
        brokers: tuple[BrokerId, ...],
        links: Links,
        history: History,
        counters: Counters,
    ) -> None:
        self.name = name
        self._config = config
        self._history = history
        self._counters = counters
        self._maker = TransactionMaker(name)
        self._payloads: dict[CauseId, bytes] = {}
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._core = TransactionalProducer(
            transactional_id=transactional_id,
            name=name,
            settings=config.settings,
            bootstrap=brokers,
            topics=config.topics,
            version=config.version,
            encode=self._encode,
        )
        self._fetches = Fetches(is_committed_only=True)
        self._shell: Shell[steps.TransactionalProducerInput, steps.TransactionalProducerRecord] = Shell(
            core=self._core,
            links=links,
            history=history,
            to_input=self._fetches.to_input,
            record=self._record,
            attachments=self._attachments,
        )

    def start(self) -> None:
        """Begins a session; everything else happens in callbacks."""
        self._shell.step(inputs.Started(cause_id=CauseId(self.name)))

    def transact(self, partitions: tuple[TopicPartition, ...], *, records: int, result: TransactionResult) -> None:
        """Executes a transaction, after the earlier ones."""
        self._is_idle.clear()
        self._shell.step(self._maker.transaction(partitions, records=records, result=result))

    def consume(self, source: steps.Source, *, into: TopicPartition | None, result: TransactionResult) -> None:
        """Reads for a group, after the operations that were offered before; arguments as in ``control.Consume``."""
        self._is_idle.clear()
        if into is None:
            self._shell.step(self._maker.consumption(source))
        else:
            offered = self._maker.transaction((into,), records=source.records, result=result, source=source)
            self._shell.step(offered)

    async def produce(self, pace: TransactionPaceConfig) -> None:
        """Makes transactions by itself until cancelled."""
        own = TransactionPace(pace, maker=self._maker, producer=self._core)
        loop = asyncio.get_running_loop()
        while True:
            offered = own.tick(loop.time())
            if offered is not None:
                self._is_idle.clear()
                self._shell.step(offered)
            await asyncio.sleep(TICK_MS / 1000)

    async def finish(self, *, timeout_ms: int) -> None:
        """Waits until all transactions are over, and gives up those that are not over in time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._is_idle.wait()
        except TimeoutError:
            pass
        self._shell.step(steps.Abandoned(cause_id=CauseId(self.name)))
        await self._shell.close()

    def _encode(self, content: steps.BatchContent) -> BatchDescriptor:
        payload, descriptor = encode_batch(self.name, content, record_size=self._config.record_size)
        self._payloads[steps.operation_id(self.name, content.first_record_id)] = payload
        return descriptor

    def _attachments(self, request: effects.SendRequest) -> Sequence[Attachment]:
        self._fetches.note_request(request)
        is_produce = isinstance(request.request, messages.ProduceRequest)
        return (self._payloads[request.cause_id],) if is_produce else ()

    def _record(self, recorded: steps.TransactionalProducerRecord) -> None:
        self._history.add(recorded, process=self.name, acks=Acks.ALL)
        if isinstance(recorded, steps.SendRecorded):
            self._counters.add_send(recorded, Acks.ALL)
            if recorded.type is not OperationType.INVOKE:
                self._payloads.pop(recorded.operation_id, None)
        if not self._core.unfinished:
            self._is_idle.set()
