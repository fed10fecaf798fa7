"""One producer's state machine at work: its shell, and the bytes of batches without an outcome."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from laststand.emulator.client.history import History
from laststand.emulator.client.shell import Links, Shell
from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.producer import Producer
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import Acks, BrokerId, CauseId
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.rpc.outbound import Outcome

EncodeBatch: TypeAlias = Callable[[steps.BatchContent], tuple[bytes, BatchDescriptor]]
"""Returns a batch's bytes and header. Equal content, equal bytes."""


class Sending:
    """A producer whose caller decides which batches to send.

    Args:
        name: the producer's, in the history.
        settings: of the producer.
        brokers: any of them is asked for metadata.
        topics: the topics that the producer will write to.
        awaited: those of them that may not exist yet.
        links: connections to the cluster.
        history: gets every invocation and outcome.
        encode: makes the bytes of a batch.
        on_recorded: called with the recorded lines, for counting.

    Attributes:
        producer: the state machine.
    """

    def __init__(
        self,
        *,
        name: str,
        settings: ProducerSettings,
        brokers: tuple[BrokerId, ...],
        topics: tuple[str, ...],
        awaited: frozenset[str] = frozenset(),
        links: Links,
        history: History,
        encode: EncodeBatch,
        on_recorded: Callable[[steps.SendRecorded], None],
    ) -> None:
        self._name = name
        self._acks = settings.acks
        self._history = history
        self._encode_batch = encode
        self._on_recorded = on_recorded
        self._payloads: dict[CauseId, bytes] = {}
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self.producer = Producer(
            settings=settings, bootstrap=brokers, topics=topics, awaited=awaited, encode=self._encode
        )
        self._shell: Shell[steps.ProducerInput, steps.SendRecorded] = Shell(
            core=self.producer,
            links=links,
            history=history,
            to_input=_outcome,
            record=self._record,
            attachments=self._attachments,
        )

    def start(self) -> None:
        """Begins to look for leaders; everything else happens in callbacks."""
        self._shell.step(inputs.Started(cause_id=CauseId(self._name)))

    @property
    def has_room(self) -> bool:
        """The producer's buffer has room for more records."""
        return self.producer.has_room

    def offer(self, offered: steps.RecordsOffered) -> None:
        """Sends a batch of records; its ``cause_id`` is ``operation_id`` of this producer and its first record."""
        self._shell.step(offered)

    async def finish(self, *, timeout_ms: int) -> int:
        """Waits for the outcomes of the sent records; returns the number of records that were given up without one."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._is_idle.wait()
        except TimeoutError:
            pass
        abandoned = self.producer.unfinished_records
        self._shell.step(steps.Abandoned(cause_id=CauseId(self._name)))
        await self._shell.close()
        return abandoned

    def _encode(self, content: steps.BatchContent) -> BatchDescriptor:
        payload, descriptor = self._encode_batch(content)
        self._payloads[steps.operation_id(self._name, content.first_record_id)] = payload
        return descriptor

    def _attachments(self, request: effects.SendRequest) -> Sequence[Attachment]:
        if not isinstance(request.request, messages.ProduceRequest):
            return ()
        if request.request.acks == Acks.NONE:  # finished as soon as it is sent
            return (self._payloads.pop(request.cause_id),)
        return (self._payloads[request.cause_id],)

    def _record(self, recorded: steps.SendRecorded) -> None:
        self._history.add(recorded, process=self._name, acks=self._acks)
        self._on_recorded(recorded)
        if recorded.type is not OperationType.INVOKE and self._acks is not Acks.NONE:
            self._payloads.pop(recorded.operation_id, None)
        if self.producer.unfinished_records:
            self._is_idle.clear()
        else:
            self._is_idle.set()


def _outcome(outcome: Outcome, _: tuple[bytes, ...]) -> steps.ProducerInput:
    return outcome
