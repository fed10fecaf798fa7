"""A consumer of the client process, live or final: drives its state machine and reads the ids of received records."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from laststand.emulator.client.config import ConsumerConfig
from laststand.emulator.client.counters import Counters
from laststand.emulator.client.fetches import Fetches
from laststand.emulator.client.history import History
from laststand.emulator.client.shell import Links, Shell
from laststand.emulator.core import effects, inputs
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.consumer import Consumer, Phase
from laststand.emulator.core.types import BrokerId, CauseId, Offset, TopicPartition
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.storage.record_codec import StoredRecord


class RunningConsumer:
    """A consumer at work.

    Args:
        on_records: receives the records of each poll, if given.
        positions: start positions; partitions without an entry start by ``auto.offset.reset``.

    Attributes:
        errors: by partition, why a final consumer could not read it; complete once ``read_all`` has returned.
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
        self._fetches = Fetches(is_committed_only=config.settings.is_committed_only, on_records=on_records)
        self._is_finished = asyncio.Event()
        self._core = Consumer(
            name=config.name,
            phase=phase,
            settings=config.settings,
            bootstrap=brokers,
            partitions=config.partitions,
            positions=positions,
        )
        self._shell: Shell[
            steps.ConsumerInput, steps.PollRecorded | steps.CommittedReadRecorded | steps.FinalReadRecorded
        ] = Shell(
            core=self._core,
            links=links,
            history=history,
            to_input=self._fetches.to_input,
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
        self._shell.step(steps.Abandoned(cause_id=CauseId(self._config.name)))
        await self._shell.close()

    def _attachments(self, request: effects.SendRequest) -> Sequence[Attachment]:
        self._fetches.note_request(request)
        return ()

    def _record(self, recorded: steps.PollRecorded | steps.CommittedReadRecorded | steps.FinalReadRecorded) -> None:
        self._history.add(recorded, process=self._config.name, phase=self._phase.value)
        if isinstance(recorded, steps.PollRecorded) and self._phase is Phase.LIVE:
            self._counters.add_poll(recorded)
        elif isinstance(recorded, steps.FinalReadRecorded):
            if recorded.error is not None:
                self.errors[str(recorded.partition)] = recorded.error
            if self._core.is_finished:
                self._is_finished.set()
