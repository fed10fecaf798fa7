"""A process of a ZooKeeper cluster on a network: all its messages to other brokers are ordinary requests.

Control requests, requests to the controller, and requests between brokers all leave as ``SendRequest`` and come back as
``ResponseReceived`` or ``RequestFailed``. So links, pauses and crashes mean the same as in a KRaft cluster. Requests to
ZooKeeper (``ZooKeeperEffect``) are left to the owner of the session: a driver of real processes, or the simulator.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, cast

import msgspec

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.broker.zookeeper.exchange import (
    AnswerControl,
    AskController,
    ControllerReplied,
    ControllerUnreachable,
    ControlReceived,
)
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CauseId, CorrelationId, NodeId, RequestId
from laststand.emulator.core.zookeeper import control_messages, exchange
from laststand.emulator.core.zookeeper.admin_manager import AdminAsked, AdminRequest
from laststand.emulator.core.zookeeper.controller.exchange import (
    AnswerController,
    ControlAnswered,
    ControlFailed,
    ControllerAsked,
    ControllerRequest,
    ControllerResponse,
    SendControlRequest,
)
from laststand.emulator.core.zookeeper.process import ProcessEffect, ProcessInput, ZooKeeperProcess

CAUSE: Final = CauseId("zookeeper")
"""The cause id of a process's own work."""

CONTROL_TIMEOUT_MS: Final = 30_000
"""``controller.socket.timeout.ms``: time for which a controller waits for a broker's answer."""

CORRELATION_ID_STEP: Final = 2
"""Requests have even ids; odd ones are free for the owner of the session."""

NetworkedInput: TypeAlias = inputs.BrokerInput | exchange.ZooKeeperInput
NetworkedEffect: TypeAlias = effects.BrokerEffect | exchange.ZooKeeperEffect

_Outcome: TypeAlias = inputs.ResponseReceived | inputs.RequestFailed
_Conclude: TypeAlias = Callable[[_Outcome], ProcessInput]
"""Returns the process's reaction to the outcome of a request."""


class NetworkedProcess:
    """One incarnation.

    Args:
        process: its broker and its controller.

    Attributes:
        process: for reading only.
    """

    def __init__(self, process: ZooKeeperProcess) -> None:
        self.process = process
        self._awaited: dict[CorrelationId, _Conclude] = {}
        self._last_correlation_id = 0
        self._effects: list[NetworkedEffect] = []

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None`` if nothing waits for the time."""
        return self.process.next_deadline_ms()

    def step(self, incoming: NetworkedInput, *, now_ms: int) -> list[NetworkedEffect]:
        """Reacts to an input; returns what is to be done, in order.

        Raises:
            InvariantError: the input belongs to a KRaft cluster, or answers no request.
        """
        self._effects = []
        for effect in self.process.step(self._translated(incoming), now_ms=now_ms):
            self._carry_out(effect)
        return self._effects

    def _translated(self, incoming: NetworkedInput) -> ProcessInput:
        match incoming:
            case (
                inputs.ResponseReceived(correlation_id=correlation_id)
                | inputs.RequestFailed(correlation_id=correlation_id)
            ):
                return self._awaited.pop(correlation_id)(incoming)
            case inputs.RequestReceived():
                return _received(incoming)
            case inputs.MetadataStreamOpened() | inputs.MetadataReceived() | inputs.MetadataStreamLost():
                raise InvariantError(f"{type(incoming).__name__} is nothing to a process of a ZooKeeper cluster")
            case _:
                return incoming

    # --- Effects --------------------------------------------------------------------------------------------------

    def _carry_out(self, effect: ProcessEffect) -> None:
        match effect:
            case SendControlRequest():
                self._send_control(effect)
            case AskController():
                self._ask_controller(effect)
            case AnswerControl(request_id=request_id, response=control_answer):
                self._respond(request_id, control_answer)
            case AnswerController(request_id=request_id, response=answer):
                self._respond(request_id, answer)
            case effects.SendRequest():
                self._send_request(effect)
            case _:
                self._effects.append(effect)

    def _respond(self, request_id: RequestId, answer: control_messages.ControlAnswer | ControllerResponse) -> None:
        response = cast(messages.Response, answer)
        self._effects.append(effects.SendResponse(request_id=request_id, response=response, cause_id=CAUSE))

    def _send(
        self, destination: NodeId, request: object, *, timeout_ms: int, cause_id: CauseId, then: _Conclude
    ) -> None:
        self._last_correlation_id += CORRELATION_ID_STEP
        correlation_id = CorrelationId(self._last_correlation_id)
        self._awaited[correlation_id] = then
        self._effects.append(
            effects.SendRequest(
                destination=destination,
                correlation_id=correlation_id,
                request=cast(messages.Request, request),
                timeout_ms=timeout_ms,
                cause_id=cause_id,
            )
        )

    def _send_control(self, sent: SendControlRequest) -> None:
        correlation_id = sent.correlation_id

        def conclude(outcome: _Outcome) -> ProcessInput:
            if isinstance(outcome, inputs.RequestFailed):
                return ControlFailed(cause_id=outcome.cause_id, correlation_id=correlation_id)
            answer = cast(control_messages.ControlAnswer, outcome.response)
            return ControlAnswered(cause_id=outcome.cause_id, correlation_id=correlation_id, response=answer)

        self._send(sent.broker_id, sent.request, timeout_ms=CONTROL_TIMEOUT_MS, cause_id=CAUSE, then=conclude)

    def _ask_controller(self, asked: AskController) -> None:
        correlation_id = asked.correlation_id

        def conclude(outcome: _Outcome) -> ProcessInput:
            if isinstance(outcome, inputs.RequestFailed):
                return ControllerUnreachable(cause_id=outcome.cause_id, correlation_id=correlation_id)
            reply = cast(
                messages.AlterPartitionResponse | control_messages.ControlledShutdownResponse, outcome.response
            )
            return ControllerReplied(cause_id=outcome.cause_id, correlation_id=correlation_id, response=reply)

        self._send(asked.destination, asked.request, timeout_ms=asked.timeout_ms, cause_id=CAUSE, then=conclude)

    def _send_request(self, sent: effects.SendRequest) -> None:
        def conclude(outcome: _Outcome) -> ProcessInput:
            return msgspec.structs.replace(outcome, correlation_id=sent.correlation_id)

        self._send(sent.destination, sent.request, timeout_ms=sent.timeout_ms, cause_id=sent.cause_id, then=conclude)


def _received(incoming: inputs.RequestReceived) -> ProcessInput:
    """Returns a request as an input of the process, by its sender and addressee."""
    request_id, cause_id = incoming.request_id, incoming.cause_id
    request: object = incoming.request
    if isinstance(
        request,
        control_messages.LeaderAndIsrRequest
        | control_messages.UpdateMetadataRequest
        | control_messages.StopReplicaRequest,
    ):
        return ControlReceived(cause_id=cause_id, request_id=request_id, request=request)
    if isinstance(request, AdminRequest):
        return AdminAsked(cause_id=cause_id, request_id=request_id, request=request)
    if isinstance(request, ControllerRequest):
        return ControllerAsked(cause_id=cause_id, request_id=request_id, request=request)
    return incoming
