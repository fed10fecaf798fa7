"""The controller of one process: it registers the broker, stands for election, and acts while it is elected.

One event at a time, in order: while one waits for ZooKeeper, the others queue, answers of brokers included
(``ControllerEventManager``). States and edges::

    NO_SESSION --session--> STANDBY --elected--> ACTIVE --moved, resigned--> STANDBY
         ^------------------------ session expired ----------------------------/

A controller learns that it was replaced by a refused write, by a watch on ``/controller``, or by the end of its
session. Until then it acts as controller, sends queued requests, and answers requests. It is stopped because its writes
are fenced, and because brokers know a later epoch.
"""

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Final, assert_never

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.types import RequestId, TopicPartition
from laststand.emulator.core.zookeeper import control_messages, exchange, operations
from laststand.emulator.core.zookeeper.broker_registration import make_persistent_paths, register_broker
from laststand.emulator.core.zookeeper.controller import events
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.control_channels import ControlChannels
from laststand.emulator.core.zookeeper.controller.controller_election import read_controller, register_controller
from laststand.emulator.core.zookeeper.controller.exchange import (
    AnswerController,
    ControlAnswered,
    ControlFailed,
    ControllerAsked,
    ControllerEffect,
    ControllerInput,
    ControllerRequest,
    ControllerResponse,
    Registered,
    RegistrationRefused,
    SendControlRequest,
    TimeCame,
)
from laststand.emulator.core.zookeeper.controller.term import Term
from laststand.emulator.core.zookeeper.errors import ControllerMovedError, MalformedNodeError, ZooKeeperRefusedError
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import RegisteredEndpoint
from laststand.emulator.core.zookeeper.program_runner import Finished, ProgramRunner

FIRST_CORRELATION_ID: Final = 0
CORRELATION_ID_STEP: Final = 2
"""A controller's requests to ZooKeeper have even ids; odd ones are the broker's of the same process."""

FIRST_BALANCE_MS: Final = 5_000

_CHILDREN_EVENTS: Final[dict[str, events.Event]] = {
    paths.BROKER_IDS: events.BrokersChanged(),
    paths.TOPICS: events.TopicsChanged(),
    paths.DELETE_TOPICS: events.DeletionsChanged(),
    paths.ISR_CHANGE_NOTIFICATIONS: events.IsrChangesNotified(),
    paths.LOG_DIR_EVENT_NOTIFICATIONS: events.LogDirEventsNotified(),
}


class ZooKeeperController:
    """One process's controller, over all its sessions."""

    def __init__(self, config: ControllerConfig, endpoint: RegisteredEndpoint | None = None) -> None:
        self._config = config
        self._endpoint = endpoint or RegisteredEndpoint()
        self._queue: deque[events.Event] = deque()
        self._handled: events.Event | None = None
        self._runner: ProgramRunner[None] = ProgramRunner(
            first_correlation_id=FIRST_CORRELATION_ID, correlation_id_step=CORRELATION_ID_STEP
        )
        self._channels = ControlChannels()
        self._session_id: SessionId | None = None
        self._previous_session_id: SessionId | None = None
        self._balance_at_ms: int | None = None
        self._effects: list[ControllerEffect] = []
        self._now_ms = 0
        self.term: Term | None = None

    @property
    def is_active(self) -> bool:
        """True if this broker believes that it is the controller."""
        return self.term is not None

    @property
    def channels(self) -> ControlChannels:
        """The queues of control requests that brokers have not answered yet; for reading only."""
        return self._channels

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimeCame`` is due, or ``None`` if nothing waits for the time."""
        return earliest_of((self._balance_at_ms, self._channels.next_deadline_ms()))

    def step(self, incoming: ControllerInput, *, now_ms: int) -> list[ControllerEffect]:
        """Reacts to an input; returns what is to be done, in order."""
        self._now_ms = now_ms
        self._effects = []
        match incoming:
            case exchange.SessionEstablished(session_id=session_id):
                self._previous_session_id, self._session_id = self._session_id, session_id
                self._queue.append(events.RegisterAndElect())
            case exchange.SessionExpired():
                self._expire()
            case exchange.ZooKeeperAnswered(correlation_id=correlation_id, answers=answers):
                self._handle_outcome(self._runner.answered(correlation_id, answers))
            case exchange.ZooKeeperConnectionLost():
                self._runner.connection_lost()
            case exchange.ZooKeeperReconnected():
                again = self._runner.reconnected()
                if again is not None:
                    self._effects.append(again)
            case exchange.WatchFired(event=event):
                self._watch_fired(event)
            case ControllerAsked(request_id=request_id, request=request):
                self._queue.append(events.Asked(request_id=request_id, request=request))
            case ControlAnswered():
                self._control_answered(incoming)
            case ControlFailed(correlation_id=correlation_id):
                self._channels.failed(correlation_id, now_ms=now_ms)
            case TimeCame():
                self._time_came()
            case _:
                assert_never(incoming)
        self._go_on()
        return self._effects

    # --- The queue ------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        while self._runner.is_idle and self._queue:
            event = self._queue.popleft()
            self._handled = event
            self._handle_outcome(self._runner.start(self._guard(self._handle(event))))
        self._send_control_requests()

    def _handle_outcome(self, outcome: exchange.ZooKeeperRequest | Finished[None] | None) -> None:
        match outcome:
            case exchange.ZooKeeperRequest():
                self._effects.append(outcome)
            case Finished():
                self._handled = None

    def _guard(self, program: operations.Program[None]) -> operations.Program[None]:
        """Ends an event that cannot be completed: its term is over, or a node is malformed."""
        try:
            yield from program
        except ControllerMovedError:
            yield from self._check_leadership()
        except (ZooKeeperRefusedError, MalformedNodeError):
            if self.term is not None:
                self.term.batch.discard()

    def _send_control_requests(self) -> None:
        if self.term is not None:
            self._channels.retain(self.term.context.brokers)
            for addressed in self.term.batch.outbox:
                self._channels.enqueue(addressed)
            self.term.batch.outbox.clear()
        for sent in self._channels.pop_due(now_ms=self._now_ms):
            self._effects.append(
                SendControlRequest(correlation_id=sent.correlation_id, broker_id=sent.broker_id, request=sent.request)
            )

    def _handle(self, event: events.Event) -> operations.Program[None]:
        """Returns the program of an event; a controller that is not elected ignores most events."""
        match event:
            case events.RegisterAndElect():
                return self._register_and_elect()
            case events.ControllerGone():
                return self._replace_controller()
            case events.ControllerChanged():
                return self._check_leadership()
            case events.Asked(request_id=request_id, request=request):
                return self._answer(request_id, request)
        term = self.term
        return _nothing() if term is None else self._act(term, event)

    def _act(self, term: Term, event: events.Event) -> operations.Program[None]:
        match event:
            case events.BrokersChanged():
                return term.brokers.refresh()
            case events.TopicsChanged():
                return term.topics.refresh()
            case events.TopicChanged(topic=topic):
                return term.topics.refresh_topic(topic)
            case events.DeletionsChanged():
                return term.read_deletions()
            case events.IsrChangesNotified():
                return term.notifications.handle_isr_changes()
            case events.LogDirEventsNotified():
                return term.notifications.handle_log_dir_events()
            case events.ReassignedIsrChanged(name=name):
                return term.reassignments.check_isr(name)
            case events.RolesAnswered(broker_id=broker_id, response=response):
                return term.handle_roles_answer(broker_id, response)
            case events.StopAnswered(broker_id=broker_id, request=stop_request, response=stop_response):
                return term.deletion.handle_answer(broker_id, stop_request, stop_response)
            case events.TopicConfigured(topic=configured):
                return term.check_config(configured)
            case events.BalanceDue():
                return term.leaders.balance()
            case events.RegisterAndElect() | events.ControllerGone() | events.ControllerChanged() | events.Asked():
                return _nothing()  # dealt with whether elected or not
            case _:
                assert_never(event)

    # --- Sessions and elections -----------------------------------------------------------------------------------

    def _register_and_elect(self) -> operations.Program[None]:
        session_id = self._session_id
        if session_id is None:
            return
        yield from make_persistent_paths()
        try:
            broker_epoch = yield from register_broker(
                self._config.broker_id,
                self._endpoint,
                node_version=self._config.ibp.broker_node_version,
                session_id=session_id,
                previous_session_id=self._previous_session_id,
                now_ms=self._now_ms,
            )
        except ZooKeeperRefusedError:
            self._effects.append(RegistrationRefused())
            return
        self._effects.append(Registered(broker_epoch))
        yield from self._elect()

    def _replace_controller(self) -> operations.Program[None]:
        self._resign()
        yield from self._elect()

    def _elect(self) -> operations.Program[None]:
        if (yield from read_controller()) is not None:
            return
        won = yield from register_controller(self._config.broker_id, now_ms=self._now_ms)
        self.term = Term(self._config, won)
        if self._config.auto_leader_rebalance_enable:
            self._balance_at_ms = self._now_ms + FIRST_BALANCE_MS
        yield from self.term.start()

    def _check_leadership(self) -> operations.Program[None]:
        if (yield from read_controller()) != self._config.broker_id:
            self._resign()

    def _resign(self) -> None:
        """Drops the term's state; requests that are queued for brokers are not sent."""
        self.term = None
        self._balance_at_ms = None
        self._channels = ControlChannels(first_correlation_id=self._channels.next_correlation_id)

    def _expire(self) -> None:
        """Drops the state of the expired session, and only then asks for another session."""
        waiting = [event for event in (self._handled, *self._queue) if isinstance(event, events.Asked)]
        self._queue.clear()
        self._runner.abandon()
        self._handled = None
        self._resign()
        for asked in waiting:
            refusal = _refusal(asked.request)
            # A leader that asked for an ISR is not answered: it waits, with all its changes.
            if not isinstance(refusal, messages.AlterPartitionResponse):
                self._effects.append(AnswerController(request_id=asked.request_id, response=refusal))
        self._effects.append(exchange.OpenSession())

    # --- What wakes it --------------------------------------------------------------------------------------------

    def _watch_fired(self, event: operations.WatchEvent) -> None:
        match event:
            case operations.ChildrenChanged(path=path):
                if path in _CHILDREN_EVENTS:
                    self._queue.append(_CHILDREN_EVENTS[path])
            case operations.NodeChanged(path=path, kind=kind):
                self._node_changed(path, kind)

    def _node_changed(self, path: str, kind: operations.ZooKeeperEventKind) -> None:
        if path == paths.CONTROLLER:
            is_gone = kind is operations.ZooKeeperEventKind.DELETED
            self._queue.append(events.ControllerGone() if is_gone else events.ControllerChanged())
            return
        name, topic, configured = (
            paths.partition_of_state_node(path),
            paths.topic_of_node(path),
            paths.topic_of_config_node(path),
        )
        if name is not None:
            self._queue.append(events.ReassignedIsrChanged(name))
        elif topic is not None and kind is not operations.ZooKeeperEventKind.DELETED:
            self._queue.append(events.TopicChanged(topic))
        elif configured is not None and kind is not operations.ZooKeeperEventKind.DELETED:
            self._queue.append(events.TopicConfigured(configured))

    def _control_answered(self, answered: ControlAnswered) -> None:
        found = self._channels.answered(answered.correlation_id)
        if found is None:
            return
        broker_id, request = found
        match request, answered.response:
            case _, control_messages.LeaderAndIsrResponse() as response:
                self._queue.append(events.RolesAnswered(broker_id=broker_id, response=response))
            case control_messages.StopReplicaRequest(), control_messages.StopReplicaResponse() as stopped:
                self._queue.append(events.StopAnswered(broker_id=broker_id, request=request, response=stopped))

    def _time_came(self) -> None:
        if self._balance_at_ms is not None and self._balance_at_ms <= self._now_ms:
            self._balance_at_ms = self._now_ms + self._config.leader_imbalance_check_interval_ms
            self._queue.append(events.BalanceDue())

    # --- Requests -------------------------------------------------------------------------------------------------

    def _answer(self, request_id: RequestId, request: ControllerRequest) -> operations.Program[None]:
        term = self.term
        if term is None:
            self._respond(request_id, _refusal(request))
            return
        try:
            match request:
                case messages.AlterPartitionRequest():
                    yield from term.alter_partition.handle(request, partial(self._respond, request_id))
                    yield from term.reassignments.complete_if_in_sync(term.alter_partition.named(request))
                case control_messages.ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch):
                    self._respond(request_id, (yield from term.shutdown.shut_down(broker_id, broker_epoch)))
                case admin_messages.ElectLeadersRequest():
                    self._respond(request_id, (yield from _elect_leaders(term, request)))
                case admin_messages.AlterPartitionReassignmentsRequest():
                    self._respond(request_id, (yield from _reassign(term, request)))
                case _:
                    assert_never(request)
        except ControllerMovedError:
            if not isinstance(request, messages.AlterPartitionRequest):
                self._respond(request_id, _refusal(request))
            raise
        except (ZooKeeperRefusedError, MalformedNodeError):
            # A node is gone, or malformed. A leader has its answer by then, or waits for another election.
            if not isinstance(request, messages.AlterPartitionRequest):
                self._respond(request_id, _failed(request, ErrorCode.UNKNOWN_SERVER_ERROR))
            raise

    def _respond(self, request_id: RequestId, response: ControllerResponse) -> None:
        self._effects.append(AnswerController(request_id=request_id, response=response))


def _nothing() -> operations.Program[None]:
    return
    yield  # a program, if an empty one


def _refusal(request: ControllerRequest) -> ControllerResponse:
    """Returns the answer of a broker that is not the controller."""
    is_shutdown = isinstance(request, control_messages.ControlledShutdownRequest)
    return _failed(request, ErrorCode.STALE_CONTROLLER_EPOCH if is_shutdown else ErrorCode.NOT_CONTROLLER)


def _failed(request: ControllerRequest, error: ErrorCode) -> ControllerResponse:
    match request:
        case messages.AlterPartitionRequest():
            return messages.AlterPartitionResponse(error=error)
        case control_messages.ControlledShutdownRequest():
            return control_messages.ControlledShutdownResponse(error=error)
        case admin_messages.ElectLeadersRequest():
            return admin_messages.ElectLeadersResponse(error=error)
        case admin_messages.AlterPartitionReassignmentsRequest():
            return admin_messages.AlterPartitionReassignmentsResponse(error=error)
        case _:
            assert_never(request)


def _elect_leaders(
    term: Term, request: admin_messages.ElectLeadersRequest
) -> operations.Program[admin_messages.ElectLeadersResponse]:
    if request.election_type not in (
        admin_messages.RequestedElection.PREFERRED,
        admin_messages.RequestedElection.UNCLEAN,
    ):
        return admin_messages.ElectLeadersResponse(error=ErrorCode.INVALID_REQUEST)
    asked = request.partitions
    names = None if asked is None else [TopicPartition(one.topic, one.partition) for one in asked]
    errors = yield from term.leaders.elect(names, admin_messages.RequestedElection(request.election_type))
    return admin_messages.ElectLeadersResponse(error=ErrorCode.NONE, partitions=_results(errors))


def _reassign(
    term: Term, request: admin_messages.AlterPartitionReassignmentsRequest
) -> operations.Program[admin_messages.AlterPartitionReassignmentsResponse]:
    targets = {TopicPartition(one.topic, one.partition): one.replicas for one in request.partitions}
    errors = yield from term.reassignments.request(targets)
    return admin_messages.AlterPartitionReassignmentsResponse(error=ErrorCode.NONE, partitions=_results(errors))


def _results(errors: Mapping[TopicPartition, ErrorCode]) -> tuple[admin_messages.PartitionResult, ...]:
    return tuple(
        admin_messages.PartitionResult(topic=name.topic, partition=name.partition, error=error)
        for name, error in errors.items()
    )
