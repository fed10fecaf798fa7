"""Serves a standing cluster's commands on the socket in its directory."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, assert_never

import grpc.aio
import msgspec

from laststand.chaos.process.single_step import UnplayableStepError
from laststand.chaos.scenario.scenario import Ending
from laststand.chaos.standing import messages
from laststand.chaos.standing.cluster import StandingCluster
from laststand.chaos.standing.order import StandingOrder
from laststand.chaos.standing.socket import short_path
from laststand.chaos.standing.zookeeper_cluster import StandingZooKeeperCluster
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.cluster.node_files import ViewReplica
from laststand.emulator.core.errors import EmulatorError, ErrorCode, StorageError
from laststand.emulator.plan import actions
from laststand.emulator.rpc.apis import CONTROLLER_APIS

CLIENTS_TIMEOUT_S: Final = 15.0
"""For clients to await their answers and leave, once they were dismissed."""

_SOCKET_UMASK: Final = 0o177
"""A client of the socket commands processes and files of this user, so the socket is 0600 from its first moment."""

_log: Final = logging.getLogger(__name__)


class Server:
    """Answers commands until one of them, or a signal, requests the end."""

    def __init__(self, order: StandingOrder, cluster: StandingCluster) -> None:
        self._order = order
        self._cluster = cluster
        self._ending: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()
        self._waiting_for_end: list[asyncio.StreamWriter] = []
        self._clients: dict[str, asyncio.StreamWriter] = {}
        self._no_clients = asyncio.Event()
        self._no_clients.set()
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Starts to answer."""
        with short_path(self._order.path) as path:
            before = os.umask(_SOCKET_UMASK)
            try:
                self._server = await asyncio.start_unix_server(self._serve, path, limit=messages.LINE_LENGTH_MAX)
            finally:
                os.umask(before)

    def ask_for_end(self, ending: Ending | None) -> None:
        """Ends ``asked_for_end``; the first request decides how; ``None``: the cluster can be started again."""
        if not self._ending.done():
            self._ending.set_result(ending)

    async def asked_for_end(self) -> Ending | None:
        """Waits until a command or a signal requests the end of the cluster, and returns the kind of end."""
        return await self._ending

    async def dismiss_clients(self) -> None:
        """Asks clients to finish, and waits until they have."""
        for writer in self._clients.values():
            _write(writer, messages.ClientDismissed())
        try:
            async with asyncio.timeout(CLIENTS_TIMEOUT_S):
                await self._no_clients.wait()
        except TimeoutError:
            self._cluster.fail(f"clients {', '.join(self._clients)} did not end")

    def announce(self, answer: messages.DownPhase | messages.TakenDown) -> None:
        """Reports a phase of the end to the command that waits for it."""
        for writer in self._waiting_for_end:
            _write(writer, answer)

    async def close(self) -> None:
        """Stops listening, once all answers have been sent."""
        if self._server is not None:
            self._server.close()
        for writer in self._waiting_for_end:
            writer.close()
            try:
                await writer.wait_closed()
            except OSError as error:
                _log.info("whoever waited for the end is gone: %s", error)

    # --- Connections ----------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            if line:
                await self._answer(messages.decode_command(line), reader, writer)
        except (msgspec.DecodeError, ValueError) as error:
            _write(writer, messages.Refused(reason=f"this is no command of this version: {error}"))
        except OSError as error:
            _log.info("a command's connection broke: %s", error)
        finally:
            if writer not in self._waiting_for_end:
                writer.close()

    async def _answer(
        self, command: messages.Command, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._ending.done() and not isinstance(command, messages.TakeDown | messages.StopCluster):
            _write(writer, messages.Refused(reason="the cluster is being taken down"))
            return
        match command:
            case messages.GetStatus():
                _write(writer, messages.Status(report=self._cluster.status()))
            case messages.PlayStep(step=step):
                _write(writer, await self._play(step))
            case messages.Perform(action=action):
                _write(writer, await self._play(action))
            case messages.AnnounceOrder(given=given):
                self._cluster.announce(given)
                _write(writer, messages.Recorded())
            case messages.RecordRequest(actions=actions, seen=seen):
                await self._cluster.record(actions, seen)
                _write(writer, messages.Recorded())
            case messages.AskController(api=api, request=request):
                _write(writer, await self._ask_controller(api, request))
            case messages.LookAtReplica(broker_id=broker_id, partition=partition):
                _write(writer, await self._look_at(ViewReplica(node_id=broker_id, partition=partition)))
            case messages.OpenClient(verb=verb):
                await self._host_client(verb, reader, writer)
            case messages.CloseClient():
                _write(writer, messages.Refused(reason="no client was opened on this connection"))
            case messages.TakeDown(ending=ending):
                self._waiting_for_end.append(writer)
                self.ask_for_end(ending)
            case messages.StopCluster():
                self._waiting_for_end.append(writer)
                self.ask_for_end(None)
            case _:
                assert_never(command)

    async def _play(self, wanted: str | actions.ActionTemplate) -> messages.Answer:
        try:
            played = await self._cluster.play(wanted)
        except UnplayableStepError as error:
            return messages.Refused(reason=str(error))
        except (EmulatorError, grpc.aio.AioRpcError) as error:
            _log.error("step %s failed: %s", wanted, error)
            return messages.StepFailed(reason=str(error))
        return messages.StepPlayed(step=played.text, outcome=played.outcome, performed=played.performed)

    async def _ask_controller(self, name: str, payload: bytes) -> messages.Answer:
        api = next((each for each in CONTROLLER_APIS if each.name == name), None)
        if api is None:
            return messages.Refused(reason=f"{name}: no request of an administrator")
        request, cause_id = api.decode_request(payload)
        try:
            response = await self._cluster.ask_controller(request)
        except AdminError as error:
            return messages.ControllerRefused(
                api=error.api, error=error.error.name, subject=error.subject, reason=error.reason
            )
        except EmulatorError as error:
            return messages.ControllerRefused(
                api=name, error=ErrorCode.NETWORK_EXCEPTION.name, subject="", reason=str(error)
            )
        return messages.ControllerAnswered(response=api.encode_response(response, cause_id=cause_id))

    async def _look_at(self, work: ViewReplica) -> messages.Answer:
        try:
            return messages.ReplicaSeen(view=await asyncio.to_thread(self._cluster.target.cluster.files.perform, work))
        except StorageError as error:
            return messages.Refused(reason=str(error))

    async def _host_client(self, verb: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = self._cluster.open_client(verb)
        self._clients[name] = writer
        self._no_clients.clear()
        _log.info("client=%s opened verb=%s", name, verb)
        _write(
            writer,
            messages.ClientOpened(
                name=name,
                history_path=str(self._cluster.clients.history_path(name)),
                addresses=self._cluster.client_addresses(),
                brokers=self._order.broker_ids,
                session_timeout_ms=self._cluster.session_timeout_ms,
            ),
        )
        try:
            line = await reader.readline()
        except OSError:
            line = b""
        # The end of a connection is the end of its process, and a process that is gone writes no more.
        if line and isinstance(messages.decode_command(line), messages.CloseClient):
            self._cluster.clients.close(name)
        else:
            self._cluster.client_gone(name)
        del self._clients[name]
        if not self._clients:
            self._no_clients.set()


def _write(writer: asyncio.StreamWriter, answer: messages.Answer) -> None:
    writer.write(messages.encode_line(answer))


def _view(order: StandingOrder, cluster: StandingCluster) -> AbstractAsyncContextManager[None]:
    if not order.view:
        return contextlib.nullcontext()
    # Here, since the libraries of the view need not be installed.
    from laststand.chaos.standing.viewing import view_of_standing

    return view_of_standing(order, cluster)


async def stand(order: StandingOrder, *, on_serving: Callable[[Server], None]) -> None:
    """Starts a cluster, serves commands until the end is requested, and stops it. If cancelled early, it kills.

    Args:
        order: the order of the cluster.
        on_serving: called with the server once the cluster serves, so that a signal can request the end.

    Raises:
        EmulatorError: the cluster did not start.
        StepError: a broker did not come up in time.
    """
    cluster = StandingCluster(order) if order.zookeeper is None else StandingZooKeeperCluster(order)
    server = Server(order, cluster)
    async with cluster:
        async with _view(order, cluster):
            await server.listen()
            on_serving(server)
            ending = await server.asked_for_end()
        server.announce(messages.DownPhase(text="await the clients"))
        await server.dismiss_clients()
        if ending is None:
            await cluster.stop(report=lambda text: server.announce(messages.DownPhase(text=text)))
        else:
            await cluster.end(ending, report=lambda text: server.announce(messages.DownPhase(text=text)))
    server.announce(messages.TakenDown(problem=cluster.problem))
    await server.close()
