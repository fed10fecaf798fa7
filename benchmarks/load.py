"""The producer: Laststand's own client process, told where to send and how much, judged by the history it writes.

The history has a line for each batch that was made and one for each that was acknowledged, with the machine's monotonic
clock, so throughput and latency need no probe of their own. A batch counts from the moment that it is made, so its
latency includes encoding and waiting for one of the five places in flight.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from sys import executable
from typing import Final

import msgspec

from benchmarks.cluster import BROKER_IDS, BenchmarkError
from emulator.client.config import ClientConfig, ProducerConfig, write_config
from emulator.client.control import (
    Command,
    Progress,
    Ready,
    Report,
    StartWork,
    StopWork,
    WorkStopped,
    decode_report,
    encode_line,
)
from emulator.cluster.child import ProcessSpec
from emulator.cluster.process_cluster import CLIENT_NAME, source_environment
from emulator.cluster.supervisor import Supervisor
from emulator.core.client.settings import ProducerSettings
from emulator.core.events import Operation, OperationType, SendOperation
from emulator.core.types import Acks, CauseId, TopicPartition

RECORD_SIZE: Final = 1024
"""Bytes of a record's value."""

_AS_MANY_AS_TAKEN: Final = 1 << 40
_BATCH_HEADER_SIZE: Final = 61
_RECORD_HEADER_SIZE_MAX: Final = 10
_ANSWER_TIMEOUT_S: Final = 30.0
_LINE_LENGTH_MAX: Final = 1 << 20


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the producer does.

    Attributes:
        partitions: take turns.
        batch_records: records of one batch at most.
        buffer_records: records made and not yet acknowledged at most.
        rate: records per second; ``None`` for as many as are taken.
        tick_ms: how often records are made.
    """

    partitions: tuple[TopicPartition, ...]
    batch_records: int = 1
    buffer_records: int = 1000
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

    def __init__(self, *, pid: int, history: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self._history = history
        self._reader = reader
        self._writer = writer

    def start(self, addresses: dict[int, str]) -> None:
        """Begins to produce to the nodes at these addresses, which need not listen yet."""
        self._tell(StartWork(addresses=addresses))

    async def await_first_ack(self, *, timeout_s: float) -> None:
        """Waits until something was acknowledged.

        Raises:
            BenchmarkError: nothing was in time.
        """
        await self.hear(lambda report: isinstance(report, Progress) and bool(report.acked), timeout_s=timeout_s)

    async def stop(self) -> None:
        """Makes nothing new and waits for all answers.

        Raises:
            BenchmarkError: the client is silent.
        """
        self._tell(StopWork(timeout_ms=int(_ANSWER_TIMEOUT_S * 500)))
        await self.hear(lambda report: isinstance(report, WorkStopped), timeout_s=_ANSWER_TIMEOUT_S)

    async def hear(self, is_wanted: Callable[[Report], bool], *, timeout_s: float) -> None:
        """Waits for a report.

        Raises:
            BenchmarkError: it did not come in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while line := await self._reader.readline():
                    if is_wanted(decode_report(line)):
                        return
        except TimeoutError:
            raise BenchmarkError(f"the client did not say what was awaited for {timeout_s} s") from None
        raise BenchmarkError("the client process ended")

    def completions(self) -> list[Completion]:
        """Returns what was acknowledged, in that order; to be asked once the client has stopped.

        Raises:
            BenchmarkError: an operation failed, or its outcome is unknown.
        """
        invoked: dict[CauseId, int] = {}
        completed: list[Completion] = []
        decoder: msgspec.json.Decoder[Operation] = msgspec.json.Decoder(Operation)
        for operation in decoder.decode_lines(self._history.read_bytes()):
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

    def _tell(self, command: Command) -> None:
        self._writer.write(encode_line(command))


@asynccontextmanager
async def load_client(
    supervisor: Supervisor, directory: Path, load: Load, *, session_timeout_ms: int
) -> AsyncIterator[LoadClient]:
    """Starts a client process and waits until it is ready to work; ends it in the end.

    Raises:
        BenchmarkError: it does not come up.
    """
    dialled: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()
    server = await asyncio.start_server(
        lambda reader, writer: dialled.set_result((reader, writer)), "127.0.0.1", 0, limit=_LINE_LENGTH_MAX
    )
    history = directory / "history.jsonl"
    config = directory / "client.json"
    write_config(
        config,
        ClientConfig(
            history_path=str(history),
            control_port=server.sockets[0].getsockname()[1],
            brokers=BROKER_IDS,
            session_timeout_ms=session_timeout_ms,
            partitions=load.partitions,
            producers=(_producer(load),),
            consumers=(),
        ),
    )
    child = await supervisor.start(
        ProcessSpec(
            name=CLIENT_NAME,
            argv=(executable, "-m", "emulator.client", "--config", str(config)),
            stderr_path=directory / "client.log",
            environment=source_environment(),
        )
    )
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            reader, writer = await dialled
        client = LoadClient(pid=child.pid, history=history, reader=reader, writer=writer)
        await client.hear(lambda report: isinstance(report, Ready), timeout_s=_ANSWER_TIMEOUT_S)
        yield client
        writer.close()
    except TimeoutError:
        raise BenchmarkError("the client process did not dial") from None
    finally:
        server.close()
        await child.kill()


def _producer(load: Load) -> ProducerConfig:
    return ProducerConfig(
        name="producer-0",
        rate=_AS_MANY_AS_TAKEN if load.rate is None else load.rate,
        record_size=RECORD_SIZE,
        batch_size=load.batch_records * RECORD_SIZE,
        tick_ms=load.tick_ms,
        partitions=load.partitions,
        settings=ProducerSettings(acks=Acks.ALL, buffer_records_max=load.buffer_records),
    )
