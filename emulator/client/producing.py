"""One producer of the client process: makes records at its rate and drives its state machine."""

import asyncio
from collections.abc import Sequence

from emulator.client.config import ProducerConfig
from emulator.client.counters import Counters
from emulator.client.history import History
from emulator.client.pace import Pace, operation_id
from emulator.client.records import encode_batch
from emulator.client.shell import Links, Shell
from emulator.core.batch import BatchDescriptor
from emulator.core.client.producer import Producer
from emulator.core.client.steps import Abandoned, BatchContent, ProducerInput, SendRecorded
from emulator.core.effects import SendRequest
from emulator.core.events import OperationType
from emulator.core.inputs import Started
from emulator.core.messages import ProduceRequest
from emulator.core.types import Acks, BrokerId, CauseId
from emulator.rpc.data_codec import Attachment
from emulator.rpc.outbound import Outcome


class RunningProducer:
    """A producer at work."""

    def __init__(
        self,
        *,
        config: ProducerConfig,
        brokers: tuple[BrokerId, ...],
        links: Links,
        history: History,
        counters: Counters,
    ) -> None:
        self._config = config
        self._history = history
        self._counters = counters
        self._payloads: dict[CauseId, bytes] = {}
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._core = Producer(
            settings=config.settings,
            bootstrap=brokers,
            topics=tuple(sorted({partition.topic for partition in config.partitions})),
            encode=self._encode,
        )
        self._shell: Shell[ProducerInput, SendRecorded] = Shell(
            core=self._core,
            links=links,
            history=history,
            to_input=_outcome,
            record=self._record,
            attachments=self._attachments,
        )

    async def produce(self) -> None:
        """Makes records until cancelled."""
        self._shell.step(Started(cause_id=CauseId(self._config.name)))
        loop = asyncio.get_running_loop()
        pace = Pace(self._config, now_s=loop.time(), has_room=lambda: self._core.has_room)
        while True:
            for offered in pace.tick(loop.time()):
                self._shell.step(offered)
            await asyncio.sleep(self._config.tick_ms / 1000)

    async def finish(self, *, timeout_ms: int) -> int:
        """Waits for the outcome of what was sent; returns how many records had none in time and were given up."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._is_idle.wait()
        except TimeoutError:
            pass
        abandoned = self._core.unfinished_records
        self._shell.step(Abandoned(cause_id=CauseId(self._config.name)))
        await self._shell.close()
        return abandoned

    def _encode(self, content: BatchContent) -> BatchDescriptor:
        payload, descriptor = encode_batch(self._config.name, content, record_size=self._config.record_size)
        self._payloads[operation_id(self._config.name, content.first_record_id)] = payload
        return descriptor

    def _attachments(self, request: SendRequest) -> Sequence[Attachment]:
        if not isinstance(request.request, ProduceRequest):
            return ()
        if request.request.acks == Acks.NONE:  # finished as soon as it is sent
            return (self._payloads.pop(request.cause_id),)
        return (self._payloads[request.cause_id],)

    def _record(self, recorded: SendRecorded) -> None:
        acks = self._config.settings.acks
        self._history.add_send(recorded, process=self._config.name, acks=acks)
        self._counters.add_send(recorded, acks)
        if recorded.type is not OperationType.INVOKE and acks is not Acks.NONE:
            self._payloads.pop(recorded.operation_id, None)
        if self._core.unfinished_records:
            self._is_idle.clear()
        else:
            self._is_idle.set()


def _outcome(outcome: Outcome, _: tuple[bytes, ...]) -> ProducerInput:
    return outcome
