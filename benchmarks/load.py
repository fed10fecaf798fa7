"""The producer: Laststand's own client process, told where to send and how much, judged by the history it writes.

The history has a line for each batch that was made and one for each that was acknowledged, with the machine's monotonic
clock, so throughput and latency need no probe of their own. A batch counts from the moment that it is made, so its
latency includes encoding and waiting for a place in flight.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.cluster import BROKER_IDS, BenchmarkError
from laststand.chaos.process.client_link import ClientLink
from laststand.emulator.client.config import ClientConfig, ProducerConfig
from laststand.emulator.client.history import HISTORY_FILE, read_history
from laststand.emulator.cluster.layout import token_file
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.history import OperationType, SendOperation
from laststand.emulator.core.types import Acks, CauseId, TopicPartition
from laststand.emulator.rpc.run_token import RunToken

RECORD_SIZE: Final = 1024
"""Bytes of a record's value."""

_AS_MANY_AS_TAKEN: Final = 1 << 40
_BATCH_HEADER_SIZE: Final = 61
_RECORD_HEADER_SIZE_MAX: Final = 10
_ACK_TIMEOUT_S: Final = 30.0
_ANSWER_TIMEOUT_MS: Final = 15_000


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The load that the producer makes.

    Attributes:
        partitions: take turns.
        batch_records: records of one batch at most.
        buffer_records: records made and not yet acknowledged at most.
        max_in_flight: unanswered batches of a partition at most.
        rate: records per second; ``None`` for as many as are taken.
        tick_ms: how often records are made.
    """

    partitions: tuple[TopicPartition, ...]
    batch_records: int = 1
    buffer_records: int = 1000
    max_in_flight: int = 5
    rate: int | None = None
    tick_ms: int = 1


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that was acknowledged; times are the machine's monotonic clock."""

    partition: TopicPartition
    records: int
    invoked_ns: int
    acked_ns: int


def records_that_fit(batch_size: int) -> int:
    """Returns how many records of ``RECORD_SIZE`` fit into ``batch.size`` bytes, headers included; at least 1."""
    return max(1, (batch_size - _BATCH_HEADER_SIZE) // (RECORD_SIZE + _RECORD_HEADER_SIZE_MAX))


class LoadClient:
    """A running client process.

    Attributes:
        pid: its process id.
    """

    def __init__(self, *, pid: int, history: Path, link: ClientLink, progressed: asyncio.Event) -> None:
        self.pid = pid
        self._history = history
        self._link = link
        self._progressed = progressed

    def start(self, addresses: dict[int, str]) -> None:
        """Begins to produce to the nodes at these addresses, which need not listen yet."""
        self._link.start_work(addresses)

    async def await_ack(self) -> None:
        """Waits until something is acknowledged that was not until now.

        Raises:
            BenchmarkError: nothing was in time.
        """
        acked_before = self._acked()
        try:
            async with asyncio.timeout(_ACK_TIMEOUT_S):
                while self._acked() == acked_before:
                    self._progressed.clear()
                    await self._progressed.wait()
        except TimeoutError:
            raise BenchmarkError(f"nothing was acknowledged within {_ACK_TIMEOUT_S} s") from None

    async def stop(self) -> None:
        """Makes nothing new and waits for all answers."""
        await self._link.stop_work(timeout_ms=_ANSWER_TIMEOUT_MS)

    def _acked(self) -> int:
        return sum(count.records for count in self._link.counts.acked)

    def completions(self) -> list[Completion]:
        """Returns what was acknowledged, in that order; to be asked once the client has stopped.

        Raises:
            BenchmarkError: an operation failed, or its outcome is unknown.
        """
        invoked: dict[CauseId, int] = {}
        completed: list[Completion] = []
        for operation in read_history(self._history):
            match operation:
                case SendOperation(type=OperationType.INVOKE):
                    invoked[operation.operation_id] = operation.time_ns
                case SendOperation(type=OperationType.OK):
                    completed.append(
                        Completion(
                            partition=TopicPartition(operation.topic, operation.partition),
                            records=operation.record_count,
                            invoked_ns=invoked.pop(operation.operation_id),
                            acked_ns=operation.time_ns,
                        )
                    )
                case _:
                    raise BenchmarkError(f"not every record was acknowledged: {operation}")
        return completed


@asynccontextmanager
async def load_client(
    supervisor: Supervisor, directory: Path, load: Load, *, session_timeout_ms: int
) -> AsyncIterator[LoadClient]:
    """Starts a client process and waits until it is ready to work; ends it in the end."""
    progressed = asyncio.Event()
    link = ClientLink(on_counts=progressed.set)
    history = directory / HISTORY_FILE
    async with AsyncExitStack() as stack:
        stack.push_async_callback(link.close)
        token = token_file(directory)
        config = ClientConfig(
            history_path=str(history),
            control_port=await link.listen(RunToken.read_or_draw(token)),
            token_file=str(token),
            brokers=BROKER_IDS,
            session_timeout_ms=session_timeout_ms,
            producers=(_producer(load),),
            consumers=(),
        )
        child = await link.launch(supervisor, config, directory=directory)
        stack.push_async_callback(child.kill)
        yield LoadClient(pid=child.pid, history=history, link=link, progressed=progressed)


def _producer(load: Load) -> ProducerConfig:
    return ProducerConfig(
        name="producer-0",
        rate=_AS_MANY_AS_TAKEN if load.rate is None else load.rate,
        record_size=RECORD_SIZE,
        batch_size=load.batch_records * RECORD_SIZE,
        tick_ms=load.tick_ms,
        partitions=load.partitions,
        settings=ProducerSettings(
            acks=Acks.ALL, buffer_records_max=load.buffer_records, max_in_flight=load.max_in_flight
        ),
    )
