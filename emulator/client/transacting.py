"""The transactional producer of the client process: carries out the transactions that the harness asks for."""

import asyncio
from collections.abc import Sequence

from laststand.emulator.client.config import TransactionsConfig
from laststand.emulator.client.counters import Counters
from laststand.emulator.client.history import History
from laststand.emulator.client.pace import TransactionMaker, operation_id
from laststand.emulator.client.records import encode_batch
from laststand.emulator.client.shell import Links, Shell
from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client.steps import (
    Abandoned,
    BatchContent,
    SendRecorded,
    SessionRecorded,
    TransactionalProducerInput,
    TransactionRecorded,
)
from laststand.emulator.core.client.transactional_producer import TransactionalProducer
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import Acks, BrokerId, CauseId, TopicPartition
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.rpc.outbound import Outcome


class RunningTransactionalProducer:
    """A transactional producer at work."""

    def __init__(
        self,
        *,
        config: TransactionsConfig,
        brokers: tuple[BrokerId, ...],
        links: Links,
        history: History,
        counters: Counters,
    ) -> None:
        self._config = config
        self._history = history
        self._counters = counters
        self._maker = TransactionMaker(config.name)
        self._payloads: dict[CauseId, bytes] = {}
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._core = TransactionalProducer(
            transactional_id=config.name,
            settings=config.settings,
            bootstrap=brokers,
            topics=config.topics,
            version=config.version,
            encode=self._encode,
        )
        self._shell: Shell[TransactionalProducerInput, SendRecorded | TransactionRecorded | SessionRecorded] = Shell(
            core=self._core,
            links=links,
            history=history,
            to_input=_outcome,
            record=self._record,
            attachments=self._attachments,
        )

    def start(self) -> None:
        """Begins a session; everything else comes after this."""
        self._shell.step(inputs.Started(cause_id=CauseId(self._config.name)))

    def transact(self, partitions: tuple[TopicPartition, ...], *, records: int, result: TransactionResult) -> None:
        """Carries out a transaction, after those before it."""
        self._is_idle.clear()
        self._shell.step(self._maker.make(partitions, records=records, result=result))

    async def finish(self, *, timeout_ms: int) -> None:
        """Waits until all transactions are over, and gives up those that are not in time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._is_idle.wait()
        except TimeoutError:
            pass
        self._shell.step(Abandoned(cause_id=CauseId(self._config.name)))
        await self._shell.close()

    def _encode(self, content: BatchContent) -> BatchDescriptor:
        payload, descriptor = encode_batch(self._config.name, content, record_size=self._config.record_size)
        self._payloads[operation_id(self._config.name, content.first_record_id)] = payload
        return descriptor

    def _attachments(self, request: effects.SendRequest) -> Sequence[Attachment]:
        is_produce = isinstance(request.request, messages.ProduceRequest)
        return (self._payloads[request.cause_id],) if is_produce else ()

    def _record(self, recorded: SendRecorded | TransactionRecorded | SessionRecorded) -> None:
        match recorded:
            case SendRecorded():
                self._history.add_send(recorded, process=self._config.name, acks=Acks.ALL)
                self._counters.add_send(recorded, Acks.ALL)
                if recorded.type is not OperationType.INVOKE:
                    self._payloads.pop(recorded.operation_id, None)
            case TransactionRecorded():
                self._history.add_transaction(recorded, process=self._config.name)
            case SessionRecorded():
                self._history.add_session(recorded, process=self._config.name)
        if not self._core.unfinished:
            self._is_idle.set()


def _outcome(outcome: Outcome, _: tuple[bytes, ...]) -> TransactionalProducerInput:
    return outcome
