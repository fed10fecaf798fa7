"""The harness's end of the connection to the client process."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from laststand.emulator.client import control
from laststand.emulator.client.config import ClientConfig, write_config
from laststand.emulator.cluster.child import Child, ProcessSpec
from laststand.emulator.cluster.process_cluster import CLIENT_NAME
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.module_command import module_command
from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import TRANSACTIONAL, member_producer_name, transactional_name
from laststand.emulator.rpc.run_token import LINE_LENGTH, RunToken

_REPORT_LENGTH_MAX: Final = 1 << 24
_READY_TIMEOUT_S: Final = 30.0
_ANSWER_MARGIN_S: Final = 10.0
_TOKEN_TIMEOUT_S: Final = 10.0
_STRANGERS_MAX: Final = 16
"""Connections that may be about to show the token; there is one client process."""

ReportT = TypeVar("ReportT", control.Ready, control.WorkStopped, control.AllRead)


class ClientLostError(EmulatorError):
    """The client process ended, or did not answer in time."""

    def __init__(self, *, awaited: str) -> None:
        super().__init__(f"the client process is gone or silent; awaited {awaited}")
        self.awaited = awaited


class ClientLink:
    """Listens for the client process, starts it, then exchanges messages with it.

    Attributes:
        counts: the last counts that the client process reported.
    """

    def __init__(self, *, on_counts: Callable[[], None]) -> None:
        self.counts = control.ClientCounts(acked=(), failed=0, unknown=0, consumed=0)
        self._on_counts = on_counts
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._token: RunToken
        self._strangers = 0
        self._answers: asyncio.Queue[control.Ready | control.WorkStopped | control.AllRead | None] = asyncio.Queue(
            maxsize=16
        )

    async def listen(self, token: RunToken) -> int:
        """Starts to listen on loopback for a client that sends the token, and returns the port."""
        self._token = token
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_REPORT_LENGTH_MAX)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def launch(self, supervisor: Supervisor, config: ClientConfig, *, directory: Path) -> Child:
        """Starts the process and waits for its connection; its configuration and log are files in the directory.

        Raises:
            ClientLostError: the process did not connect.
        """
        config_path = directory / "client.json"
        write_config(config_path, config)
        child = await supervisor.start(
            ProcessSpec(
                name=CLIENT_NAME,
                argv=module_command("laststand.emulator.client", "--config", str(config_path)),
                imports=("laststand.emulator.client.process",),
                stderr_path=directory / "client.log",
            )
        )
        await self._await(control.Ready, _READY_TIMEOUT_S)
        return child

    def start_work(self, addresses: dict[int, str]) -> None:
        """Starts the work of producers and consumers."""
        self._send(control.StartWork(addresses=addresses))

    def produce(self, producer: str, partition: TopicPartition, records: int) -> None:
        """Has a producer send a batch.

        Raises:
            ClientLostError: the process is gone.
        """
        self._send(
            control.ProduceBatch(
                producer=producer, topic=partition.topic, partition=partition.partition, record_count=records
            )
        )

    def transact(self, action: actions.Transact) -> None:
        """Has a transactional producer carry out a transaction.

        Raises:
            ClientLostError: the process is gone.
        """
        is_commit = action.end is actions.End.COMMIT
        producer = transactional_name(action.number)
        self._send(
            control.Transact(
                producer=producer, partitions=action.partitions, records=action.records, is_commit=is_commit
            )
        )

    def consume(self, action: actions.Consume) -> None:
        """Has the transactional producer read for a group.

        Raises:
            ClientLostError: the process is gone.
        """
        self._send(
            control.Consume(
                producer=TRANSACTIONAL if action.member is None else member_producer_name(action.group, action.member),
                source=action.source,
                member=action.member,
                into=action.into,
                is_commit=action.end is actions.End.COMMIT,
            )
        )

    def do_as_member(self, action: actions.Member) -> None:
        """Lets a member of a group do something.

        Raises:
            ClientLostError: the process is gone.
        """
        self._send(
            control.DoAsMember(
                group=action.group,
                number=action.number,
                does=action.does.value,
                is_static=action.is_static,
                reads=action.reads is actions.MemberReads.ITSELF,
            )
        )

    async def stop_work(self, *, timeout_ms: int) -> control.WorkStopped:
        """Stops producers and consumers, and waits until every operation has its outcome.

        Raises:
            ClientLostError: the process did not answer.
        """
        self._send(control.StopWork(timeout_ms=timeout_ms))
        return await self._await(control.WorkStopped, timeout_ms / 1000 + _ANSWER_MARGIN_S)

    async def read_all(
        self, partitions: tuple[TopicPartition, ...], addresses: dict[int, str], *, timeout_ms: int
    ) -> control.AllRead:
        """Reads partitions with a fresh consumer.

        Raises:
            ClientLostError: the process did not answer.
        """
        self._send(control.ReadAll(partitions=partitions, addresses=addresses, timeout_ms=timeout_ms))
        return await self._await(control.AllRead, timeout_ms / 1000 + _ANSWER_MARGIN_S)

    async def close(self) -> None:
        """Closes the connection, which ends a process that still runs, and stops listening."""
        if self._writer is not None:
            self._writer.close()
        if self._server is not None:
            self._server.close()

    def _send(self, command: control.Command) -> None:
        if self._writer is None or self._writer.is_closing():
            raise ClientLostError(awaited=f"a connection for {type(command).__name__}")
        self._writer.write(control.encode_line(command))

    async def _await(self, kind: type[ReportT], timeout_s: float) -> ReportT:
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._answers.get()
        except TimeoutError:
            raise ClientLostError(awaited=kind.__name__) from None
        if not isinstance(answer, kind):
            raise ClientLostError(awaited=kind.__name__)
        return answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._writer is not None or not await self._is_own(reader):
            writer.close()
            return
        self._writer = writer
        try:
            while line := await reader.readline():
                self._handle_report(control.decode_report(line))
        except ConnectionError:
            pass  # the process died; callers that await an answer get the error below
        finally:
            writer.close()
            self._answers.put_nowait(None)

    async def _is_own(self, reader: asyncio.StreamReader) -> bool:
        """Returns whether the client process has connected: it sends the token first."""
        if self._strangers >= _STRANGERS_MAX:
            return False
        self._strangers += 1
        try:
            async with asyncio.timeout(_TOKEN_TIMEOUT_S):
                line = await reader.readexactly(LINE_LENGTH)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            return False
        finally:
            self._strangers -= 1
        return self._token.matches(line.removesuffix(b"\n"))

    def _handle_report(self, report: control.Report) -> None:
        if isinstance(report, control.ClientCounts):
            self.counts = report
            self._on_counts()
        else:
            self._answers.put_nowait(report)
