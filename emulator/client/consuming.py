"""One consumer of the client process, live or final: drives its state machine and reads the ids of what comes in."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

from laststand.emulator.client.config import ConsumerConfig
from laststand.emulator.client.counters import Counters
from laststand.emulator.client.history import History
from laststand.emulator.client.records import next_offset, polled_batches, polled_records
from laststand.emulator.client.shell import Links, Shell
from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.client.consumer import Consumer, Phase
from laststand.emulator.core.client.steps import (
    Abandoned,
    CommittedReadRecorded,
    ConsumerInput,
    FinalReadRecorded,
    PollRecorded,
    RecordsReceived,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, CauseId, CorrelationId, Offset, TopicPartition
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.rpc.outbound import Outcome
from laststand.emulator.storage.record_codec import StoredRecord


class RunningConsumer:
    """A consumer at work.

    Args:
        on_records: gets the records that each poll brought, where somebody wants to see them.
        positions: where it begins; partitions without an entry begin by ``auto.offset.reset``.

    Attributes:
        errors: by partition, why a final consumer could not read it; complete once ``read_all`` returned.
    """

    def __init__(
        self,
        *,
        config: ConsumerConfig,
        phase: Phase,
        brokers: tuple[BrokerId, ...],
        links: Links,
        history: History,
        counters: Counters,
        on_records: Callable[[TopicPartition, Sequence[StoredRecord]], None] | None = None,
        positions: Mapping[TopicPartition, Offset] = MappingProxyType({}),
    ) -> None:
        self.errors: dict[str, str] = {}
        self._config = config
        self._phase = phase
        self._history = history
        self._counters = counters
        self._on_records = on_records
        self._asked: dict[CorrelationId, tuple[TopicPartition, Offset]] = {}
        self._is_finished = asyncio.Event()
        self._core = Consumer(
            name=config.name,
            phase=phase,
            settings=config.settings,
            bootstrap=brokers,
            partitions=config.partitions,
            positions=positions,
        )
        self._shell: Shell[ConsumerInput, PollRecorded | CommittedReadRecorded | FinalReadRecorded] = Shell(
            core=self._core,
            links=links,
            history=history,
            to_input=self._outcome,
            record=self._record,
            attachments=self._attachments,
        )

    def start(self) -> None:
        """Begins to read; everything else happens in callbacks."""
        self._shell.step(inputs.Started(cause_id=CauseId(self._config.name)))

    async def read_all(self, *, timeout_ms: int) -> None:
        """Reads as a final consumer, and waits until every partition is through or the time is over."""
        self.start()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._is_finished.wait()
        except TimeoutError:
            pass
        await self.stop()

    async def stop(self) -> None:
        """Ends reading."""
        self._shell.step(Abandoned(cause_id=CauseId(self._config.name)))
        await self._shell.close()

    def _attachments(self, request: effects.SendRequest) -> Sequence[Attachment]:
        if isinstance(request.request, messages.FetchRequest):
            target = request.request.partitions[0]
            self._asked[request.correlation_id] = (target.topic_partition, target.fetch_offset)
        return ()

    def _outcome(self, outcome: Outcome, attachments: tuple[bytes, ...]) -> ConsumerInput:
        asked = self._asked.pop(outcome.correlation_id, None)
        if not isinstance(outcome, inputs.ResponseReceived) or not isinstance(outcome.response, messages.FetchResponse):
            return outcome
        assert asked is not None, "an answer to a fetch that was never sent"
        partition, position = asked
        response = outcome.response
        if response.error is not ErrorCode.NONE or not response.partitions:
            answer = messages.FetchPartitionResponse(
                topic=partition.topic, partition=partition.partition, error=response.error
            )
        else:
            answer = response.partitions[0]
        block = attachments[0] if attachments else b""
        aborted = answer.aborted_transactions if self._config.settings.is_committed_only else None
        polled = polled_batches(block, position=position, aborted=aborted) if block else ()
        if block and self._on_records is not None:
            self._on_records(partition, polled_records(block, position=position))
        return RecordsReceived(
            cause_id=outcome.cause_id,
            correlation_id=outcome.correlation_id,
            response=answer,
            polled=polled,
            next_position=next_offset(block),
        )

    def _record(self, recorded: PollRecorded | CommittedReadRecorded | FinalReadRecorded) -> None:
        match recorded:
            case PollRecorded():
                self._history.add_poll(recorded, process=self._config.name, phase=self._phase.value)
                if self._phase is Phase.LIVE:
                    self._counters.add_poll(recorded)
            case FinalReadRecorded():
                self._history.add_final_read(recorded, process=self._config.name)
                if recorded.error is not None:
                    self.errors[str(recorded.partition)] = recorded.error
                if self._core.is_finished:
                    self._is_finished.set()
            case CommittedReadRecorded():
                self._history.add_committed_read(recorded, process=self._config.name)
            case _:
                assert_never(recorded)
