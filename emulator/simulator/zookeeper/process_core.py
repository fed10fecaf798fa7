"""A broker process as a core of the simulated cluster: ``ZooKeeperProcess`` and its ZooKeeper client, as one machine.

Whatever the process wants of others becomes an ordinary request on the network: control requests, questions to the
controller, and the client's traffic with the server. So links, pauses, clocks and crashes mean here what they mean in a
KRaft cluster. The wire looks into no message but a fetch, so it carries these as it carries those of KRaft.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, cast

import msgspec

from emulator.core.admin_messages import AlterPartitionReassignmentsRequest, ElectLeadersRequest
from emulator.core.broker.config import BrokerConfig
from emulator.core.broker.zookeeper_exchange import (
    AnswerControl,
    AskController,
    ControllerReplied,
    ControllerUnreachable,
    ControlReceived,
)
from emulator.core.control_messages import (
    ControlAnswer,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from emulator.core.effects import Effect, SendRequest, SendResponse
from emulator.core.errors import InvariantError
from emulator.core.inputs import (
    BrokerInput,
    LogRecovered,
    LogsLoaded,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SegmentsDeleted,
    ShutdownRequested,
    Started,
    TimerFired,
)
from emulator.core.inter_broker_protocol import InterBrokerProtocol
from emulator.core.messages import AlterPartitionRequest, AlterPartitionResponse, Request, Response
from emulator.core.types import CauseId, CorrelationId, NodeId, RequestId
from emulator.core.zookeeper.exchange import CloseSession, OpenSession, ZooKeeperRequest
from emulator.core.zookeeper_controller.exchange import (
    AnswerController,
    ControlAnswered,
    ControlFailed,
    ControllerAsked,
    ControllerResponse,
    SendControlRequest,
)
from emulator.core.zookeeper_process import ProcessEffect, ProcessInput, ZooKeeperProcess
from emulator.core.zookeeper_rules import ZooKeeperRules
from emulator.plan.nodes import CONTROLLER
from emulator.simulator.zookeeper.session_client import CAUSE, Asked, SessionClient
from emulator.simulator.zookeeper.session_messages import SessionAnswer

CONTROL_TIMEOUT_MS: Final = 30_000
"""``controller.socket.timeout.ms``: how long a controller waits for a broker's answer."""

CONTROLLER_REQUESTS: Final = (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ElectLeadersRequest,
    AlterPartitionReassignmentsRequest,
)
"""What a broker process passes to its controller (``ControllerRequest``)."""

_Outcome: TypeAlias = ResponseReceived | RequestFailed
_Conclude: TypeAlias = Callable[[_Outcome], ProcessInput | None]
"""Returns what the outcome of a request is to the process, if it is anything."""


class ZooKeeperProcessCore:
    """One incarnation.

    Args:
        config: of the broker.
        rules: of the cluster.
        ibp: the protocol that it speaks.
        session_timeout_ms: of its ZooKeeper sessions.

    Attributes:
        process: for reading only.
        client: of ZooKeeper; for reading only.
    """

    def __init__(
        self, config: BrokerConfig, rules: ZooKeeperRules, ibp: InterBrokerProtocol, *, session_timeout_ms: int
    ) -> None:
        self.process = ZooKeeperProcess(config, rules, ibp)
        self.client = SessionClient(timeout_ms=session_timeout_ms)
        self._awaited: dict[CorrelationId, _Conclude] = {}
        self._last_correlation_id = 0
        self._effects: list[Effect] = []
        self._now_ms = 0

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None`` if nothing waits for the time."""
        deadlines = (self.process.next_deadline_ms(), self.client.next_deadline_ms())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def step(self, incoming: BrokerInput, *, now_ms: int) -> list[Effect]:
        """Reacts to an input; returns what is to be done, in order."""
        self._now_ms = now_ms
        self._effects = []
        match incoming:
            case ResponseReceived(correlation_id=correlation_id) | RequestFailed(correlation_id=correlation_id):
                self._tell(self._awaited.pop(correlation_id)(incoming))
            case RequestReceived():
                self._tell(_received(incoming))
            case TimerFired():
                self.client.time_came(now_ms=now_ms)
                self._tell(incoming)
            case Started() | ShutdownRequested() | LogsLoaded() | LogRecovered() | SegmentsDeleted():
                self._tell(incoming)
            case _:
                raise InvariantError(f"{type(incoming).__name__} is nothing to a process of a ZooKeeper cluster")
        self._listen()
        return self._effects

    def _tell(self, incoming: ProcessInput | None) -> None:
        if incoming is not None:
            for effect in self.process.step(incoming, now_ms=self._now_ms):
                self._carry_out(effect)

    def _listen(self) -> None:
        """Tells the process what its client has heard, and sends what the client has to say."""
        while self.client.heard or self.client.outgoing:
            while self.client.heard:
                self._tell(self.client.heard.popleft())
            outgoing, self.client.outgoing = self.client.outgoing, []
            for asked in outgoing:
                self._ask_zookeeper(asked)

    # --- Effects --------------------------------------------------------------------------------------------------

    def _carry_out(self, effect: ProcessEffect) -> None:
        match effect:
            case ZooKeeperRequest():
                self.client.ask(effect)
            case OpenSession():
                self.client.open()
            case CloseSession():
                self.client.close()
                self._listen()  # the end of the process comes next
            case SendControlRequest():
                self._send_control(effect)
            case AskController():
                self._ask_controller(effect)
            case AnswerControl(request_id=request_id, response=control_answer):
                self._respond(request_id, control_answer)
            case AnswerController(request_id=request_id, response=answer):
                self._respond(request_id, answer)
            case SendRequest():
                self._send_request(effect)
            case _:
                self._effects.append(effect)

    def _respond(self, request_id: RequestId, answer: ControlAnswer | ControllerResponse) -> None:
        response = cast(Response, answer)
        self._effects.append(SendResponse(request_id=request_id, response=response, cause_id=CAUSE))

    def _send(
        self, destination: NodeId, request: object, *, timeout_ms: int, cause_id: CauseId, then: _Conclude
    ) -> None:
        self._last_correlation_id += 1
        correlation_id = CorrelationId(self._last_correlation_id)
        self._awaited[correlation_id] = then
        self._effects.append(
            SendRequest(
                destination=destination,
                correlation_id=correlation_id,
                request=cast(Request, request),
                timeout_ms=timeout_ms,
                cause_id=cause_id,
            )
        )

    def _ask_zookeeper(self, asked: Asked) -> None:
        def conclude(outcome: _Outcome) -> None:
            if isinstance(outcome, RequestFailed):
                self.client.failed(asked, now_ms=self._now_ms)
            else:
                self.client.answered(asked, cast(SessionAnswer, outcome.response))

        self._send(CONTROLLER, asked[0], timeout_ms=self.client.request_timeout_ms, cause_id=CAUSE, then=conclude)

    def _send_control(self, sent: SendControlRequest) -> None:
        correlation_id = sent.correlation_id

        def conclude(outcome: _Outcome) -> ProcessInput:
            if isinstance(outcome, RequestFailed):
                return ControlFailed(cause_id=outcome.cause_id, correlation_id=correlation_id)
            answer = cast(ControlAnswer, outcome.response)
            return ControlAnswered(cause_id=outcome.cause_id, correlation_id=correlation_id, response=answer)

        self._send(sent.broker_id, sent.request, timeout_ms=CONTROL_TIMEOUT_MS, cause_id=CAUSE, then=conclude)

    def _ask_controller(self, asked: AskController) -> None:
        correlation_id = asked.correlation_id

        def conclude(outcome: _Outcome) -> ProcessInput:
            if isinstance(outcome, RequestFailed):
                return ControllerUnreachable(cause_id=outcome.cause_id, correlation_id=correlation_id)
            reply = cast(AlterPartitionResponse | ControlledShutdownResponse, outcome.response)
            return ControllerReplied(cause_id=outcome.cause_id, correlation_id=correlation_id, response=reply)

        self._send(asked.destination, asked.request, timeout_ms=asked.timeout_ms, cause_id=CAUSE, then=conclude)

    def _send_request(self, sent: SendRequest) -> None:
        def conclude(outcome: _Outcome) -> ProcessInput:
            return msgspec.structs.replace(outcome, correlation_id=sent.correlation_id)

        self._send(sent.destination, sent.request, timeout_ms=sent.timeout_ms, cause_id=sent.cause_id, then=conclude)


def _received(incoming: RequestReceived) -> ProcessInput:
    """Returns what a request is to the process: one from a controller, one for its own, or one for its broker."""
    request_id, cause_id = incoming.request_id, incoming.cause_id
    request: object = incoming.request
    if isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest):
        return ControlReceived(cause_id=cause_id, request_id=request_id, request=request)
    if isinstance(request, CONTROLLER_REQUESTS):
        return ControllerAsked(cause_id=cause_id, request_id=request_id, request=request)
    return incoming
