"""The ZooKeeper server as a process of the simulated cluster: sessions over connections, and records of writes.

Like the controller of a KRaft cluster it is node 100, which holds the metadata. Its state is synced to disk before it
answers, so a kill or a power loss takes nothing. The state includes sessions; a session that survives a restart of the
server has its whole timeout again.
"""

from typing import cast

from laststand.emulator.core import admin_messages, effects, inputs, messages
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.events import ControllerEvent, PartitionChanged
from laststand.emulator.core.types import (
    CauseId,
    LeaderEpoch,
    MetadataOffset,
    PartitionEpoch,
    RequestId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.admin_manager import AdminRequest, AdminSettings
from laststand.emulator.core.zookeeper.administration import described_cluster
from laststand.emulator.core.zookeeper.history import ZooKeeperHistory
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_controller
from laststand.emulator.core.zookeeper.server import ZooKeeperServer
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.network import session_messages
from laststand.emulator.simulator.nodes.nodes import CLUSTER_ID
from laststand.emulator.simulator.zookeeper.administration import ZooKeeperAdministrator

_POLLS_PER_TIMEOUT = 3


class _Client:
    """The server's state of a session besides its nodes and watches."""

    __slots__ = ("connection", "executed", "first_event", "polls", "timeout_ms", "unseen")

    def __init__(self, *, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.connection = 0
        self.executed = 0
        self.first_event = 0
        self.unseen: list[operations.WatchEvent] = []
        self.polls: list[tuple[RequestId, CauseId, int]] = []


class ZooKeeperStore:
    """The state that survives the server's process: its tree, its sessions, and the history of both.

    Args:
        history: folds the writes.
        rules: of the cluster.
        ibp: of the brokers.
    """

    def __init__(self, history: ZooKeeperHistory, settings: AdminSettings) -> None:
        self.server = ZooKeeperServer()
        self.administrator = ZooKeeperAdministrator(self.server, settings)
        self.history = history
        self.clients: dict[SessionId, _Client] = {}
        self._decided: dict[tuple[TopicPartition, LeaderEpoch, PartitionEpoch], MetadataOffset] = {}

    def new_events(self, *, cause_id: CauseId) -> list[ControllerEvent]:
        """Folds the new writes; returns the events that record them."""
        events = [
            event for change in self.server.pop_changes() for event in self.history.fold(change, cause_id=cause_id)
        ]
        self.history.passed(self.server.last_zxid)
        for event in events:
            if isinstance(event, PartitionChanged):
                name = TopicPartition(event.topic, event.partition)
                end = MetadataOffset(event.metadata_offset + 1)
                self._decided.setdefault((name, event.leader_epoch, event.partition_epoch), end)
        return events

    def decided_at(
        self, name: TopicPartition, leader_epoch: LeaderEpoch, partition_epoch: PartitionEpoch
    ) -> MetadataOffset:
        """Returns the zxid after the write that made a partition's state; 0 if there was none."""
        return self._decided.get((name, leader_epoch, partition_epoch), MetadataOffset(0))

    def described(self) -> admin_messages.DescribeClusterResponse:
        """Describes the cluster: the registered brokers, without how much metadata each has."""
        data = self.server.data(paths.CONTROLLER)
        return described_cluster(
            self.history.image,
            cluster_id=CLUSTER_ID,
            controller=None if data is None else decode_controller(data),
            server=CONTROLLER,
            last_zxid=self.server.last_zxid,
        )

    def disconnect_all(self) -> None:
        """Forgets the requests that wait for a response, because the server's process ended."""
        for client in self.clients.values():
            client.polls.clear()


class ZooKeeperService:
    """One process of the server."""

    def __init__(self, store: ZooKeeperStore) -> None:
        self._store = store
        self._now_ms = 0
        self._effects: list[effects.Effect] = []

    def next_deadline_ms(self) -> int | None:
        """Returns when a session expires or a poll is to be answered."""
        due = [at_ms for client in self._store.clients.values() for _, _, at_ms in client.polls]
        expiry_ms = self._store.server.next_expiry_ms()
        return min([*due, *([] if expiry_ms is None else [expiry_ms])], default=None)

    def step(self, incoming: inputs.NodeInput, *, now_ms: int) -> list[effects.Effect]:
        """Reacts to an input; returns what is to be done, in order.

        Raises:
            InvariantError: the request is none of a ZooKeeper session.
        """
        self._now_ms = now_ms
        self._effects = []
        server = self._store.server
        match incoming:
            case inputs.Started():
                for session_id in self._store.clients:
                    server.hear(session_id, now_ms=now_ms)
            case inputs.RequestReceived():
                self._handle(incoming)
            case inputs.TimerFired():
                for session_id in server.expire_silent(now_ms=now_ms):
                    self._forget(session_id)
            case inputs.ShutdownRequested():
                return [effects.StopNode()]
            case _:
                raise InvariantError(f"{incoming} is nothing to a ZooKeeper server")
        self.settle(incoming.cause_id)
        return self._effects

    def end_session(self, session_id: SessionId, *, cause_id: CauseId) -> list[effects.Effect]:
        """Ends a session as another client that knows its password can; its owner is not notified."""
        self._effects = []
        self._store.server.end_session(session_id)
        self._forget(session_id)
        self.settle(cause_id)
        return self._effects

    def delete(self, path: str, *, cause_id: CauseId) -> list[effects.Effect]:
        """Deletes a node on behalf of an administrator."""
        self._effects = []
        self._store.administrator.delete_node(path)
        self.settle(cause_id)
        return self._effects

    def settle(self, cause_id: CauseId) -> None:
        """Records new writes as events, and answers polls whose sessions have watch events, or which are due."""
        self._effects += [effects.RecordEvent(event=event) for event in self._store.new_events(cause_id=cause_id)]
        for session_id, client in self._store.clients.items():
            client.unseen += self._store.server.pop_events(session_id)
            polls, client.polls = client.polls, []
            for request_id, cause, due_ms in polls:
                if client.unseen or due_ms <= self._now_ms:
                    self._answer(request_id, cause, self._response(session_id, client))
                else:
                    client.polls.append((request_id, cause, due_ms))

    # --- Requests -------------------------------------------------------------------------------------------------

    def _handle(self, received: inputs.RequestReceived) -> None:
        request_id, cause_id = received.request_id, received.cause_id
        request = received.request
        if isinstance(request, AdminRequest):
            response = self._store.administrator.handle(request)
            self._effects.append(effects.SendResponse(request_id=request_id, response=response, cause_id=cause_id))
            return
        if isinstance(request, admin_messages.DescribeClusterRequest):
            described = self._store.described()
            self._effects.append(effects.SendResponse(request_id=request_id, response=described, cause_id=cause_id))
            return
        self._handle_client(cast(session_messages.SessionRequest, request), received)

    def _handle_client(self, asked: session_messages.SessionRequest, received: inputs.RequestReceived) -> None:
        request_id, cause_id = received.request_id, received.cause_id
        server = self._store.server
        match asked:
            case session_messages.OpenSessionRequest(timeout_ms=timeout_ms):
                session_id = server.open_session(timeout_ms=timeout_ms, now_ms=self._now_ms)
                self._store.clients[session_id] = _Client(timeout_ms=timeout_ms)
                self._answer(request_id, cause_id, session_messages.SessionResponse(session_id=session_id))
            case session_messages.CloseSessionRequest(session_id=session_id):
                server.end_session(session_id)
                self._forget(session_id)
                self._answer(request_id, cause_id, session_messages.SessionGone())
            case (
                session_messages.ConnectRequest(connection=connection)
                | session_messages.ExecuteRequest(connection=connection)
                | session_messages.PollRequest(connection=connection)
            ):
                client = self._store.clients.get(connection.session_id)
                if client is None:
                    self._answer(request_id, cause_id, session_messages.SessionGone())
                elif self._accepts(client, connection, asked):
                    server.hear(connection.session_id, now_ms=self._now_ms)
                    self._drop_seen_events(client, asked.events_seen)
                    self._serve(client, connection.session_id, asked, received)
                else:
                    self._answer(request_id, cause_id, session_messages.ConnectionRefused())
            case _:
                raise InvariantError(f"{type(received.request).__name__} is nothing to a ZooKeeper server")

    def _accepts(
        self, client: _Client, connection: session_messages.Connection, asked: session_messages.SessionRequest
    ) -> bool:
        if isinstance(asked, session_messages.ConnectRequest):
            return connection.number > client.connection
        is_next = not isinstance(asked, session_messages.ExecuteRequest) or asked.number == client.executed
        return connection.number == client.connection and is_next

    def _serve(
        self,
        client: _Client,
        session_id: SessionId,
        asked: session_messages.ConnectRequest | session_messages.ExecuteRequest | session_messages.PollRequest,
        received: inputs.RequestReceived,
    ) -> None:
        match asked:
            case session_messages.ConnectRequest(connection=connection):
                client.connection, client.executed = connection.number, 0
                self._end_polls(client, session_messages.ConnectionRefused())
                self._answer_now(client, session_id, received, ())
            case session_messages.ExecuteRequest(steps=steps):
                client.executed += 1
                answers = self._store.server.execute(session_id, steps)
                self._answer_now(client, session_id, received, answers)
            case session_messages.PollRequest():
                due_ms = self._now_ms + client.timeout_ms // _POLLS_PER_TIMEOUT
                client.polls.append((received.request_id, received.cause_id, due_ms))

    def _answer_now(
        self, client: _Client, session_id: SessionId, received: inputs.RequestReceived, answers: operations.Answers
    ) -> None:
        self._effects += [
            effects.RecordEvent(event=event) for event in self._store.new_events(cause_id=received.cause_id)
        ]
        client.unseen += self._store.server.pop_events(session_id)
        self._answer(received.request_id, received.cause_id, self._response(session_id, client, answers))

    def _drop_seen_events(self, client: _Client, events_seen: int) -> None:
        """Forgets the events that a client has received."""
        del client.unseen[: max(0, events_seen - client.first_event)]
        client.first_event = max(client.first_event, events_seen)

    def _response(
        self, session_id: SessionId, client: _Client, answers: operations.Answers = ()
    ) -> session_messages.SessionResponse:
        return session_messages.SessionResponse(
            session_id=session_id, answers=answers, first_event=client.first_event, events=tuple(client.unseen)
        )

    def _answer(self, request_id: RequestId, cause_id: CauseId, answer: session_messages.SessionAnswer) -> None:
        response = cast(messages.Response, answer)
        self._effects.append(effects.SendResponse(request_id=request_id, response=response, cause_id=cause_id))

    def _forget(self, session_id: SessionId) -> None:
        """Removes an ended session, and answers its polls."""
        client = self._store.clients.pop(session_id, None)
        if client is not None:
            self._end_polls(client, session_messages.SessionGone())

    def _end_polls(self, client: _Client, answer: session_messages.SessionAnswer) -> None:
        """Answers polls that will receive no more events."""
        polls, client.polls = client.polls, []
        for request_id, cause_id, _ in polls:
            self._answer(request_id, cause_id, answer)
