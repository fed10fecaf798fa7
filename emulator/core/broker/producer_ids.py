"""Producer ids from blocks that the controller allocates, and epoch bumps (KIP-360, KIP-730)."""

from collections import deque
from typing import Final, NamedTuple

from emulator.core.broker.config import BrokerConfig
from emulator.core.broker.in_flight_requests import InFlightRequests
from emulator.core.broker.turn import Turn
from emulator.core.effects import SendResponse
from emulator.core.errors import ErrorCode
from emulator.core.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from emulator.core.types import BrokerEpoch, CauseId, ProducerEpoch, ProducerId, RequestId

WAITING_MAX: Final = 1000
"""Requests that may wait for a block; more are answered with a retriable error."""

_EPOCH_MAX: Final = 2**15 - 1


class _Waiting(NamedTuple):
    request_id: RequestId
    cause_id: CauseId


class ProducerIds:
    """The block at hand, and who waits for the next."""

    def __init__(self, config: BrokerConfig, in_flight: InFlightRequests) -> None:
        self._config = config
        self._in_flight = in_flight
        self._next = 0
        self._end = 0
        self._is_in_flight = False
        self._waiting: deque[_Waiting] = deque()

    def handle_request(
        self, turn: Turn, request_id: RequestId, request: InitProducerIdRequest, broker_epoch: BrokerEpoch | None
    ) -> None:
        """Answers with the same id under the next epoch, or with a fresh id, once there is a block."""
        epoch = request.producer_epoch
        if request.producer_id is not None and epoch is not None and epoch + 1 < _EPOCH_MAX:
            _answer(turn, _Waiting(request_id, turn.cause_id), request.producer_id, ProducerEpoch(epoch + 1))
        elif self._next < self._end:
            self._hand_out(turn, _Waiting(request_id, turn.cause_id))
        elif broker_epoch is None or len(self._waiting) >= WAITING_MAX:
            _refuse(turn, _Waiting(request_id, turn.cause_id))
        else:
            self._waiting.append(_Waiting(request_id, turn.cause_id))
            self._ask(turn, broker_epoch)

    def _hand_out(self, turn: Turn, waiting: _Waiting) -> None:
        _answer(turn, waiting, ProducerId(self._next), ProducerEpoch(0))
        self._next += 1

    def _ask(self, turn: Turn, broker_epoch: BrokerEpoch) -> None:
        if not self._is_in_flight:
            self._is_in_flight = True
            request = AllocateProducerIdsRequest(broker_id=self._config.broker_id, broker_epoch=broker_epoch)
            timeout_ms = self._config.properties.broker_session_timeout_ms
            self._in_flight.send(turn, self._config.controller_id, request, timeout_ms=timeout_ms)

    def handle_block(self, turn: Turn, response: AllocateProducerIdsResponse, broker_epoch: BrokerEpoch | None) -> None:
        """Serves those who wait; an error is passed on to them as one that may be tried again."""
        self._is_in_flight = False
        if response.error is not ErrorCode.NONE or response.producer_id_len < 1:
            self.handle_failure(turn)
            return
        self._next = response.producer_id_start
        self._end = self._next + response.producer_id_len
        while self._waiting and self._next < self._end:
            self._hand_out(turn, self._waiting.popleft())
        if self._waiting and broker_epoch is not None:
            self._ask(turn, broker_epoch)

    def handle_failure(self, turn: Turn) -> None:
        """No block came: everyone who waits may try again."""
        self._is_in_flight = False
        while self._waiting:
            _refuse(turn, self._waiting.popleft())


def _answer(turn: Turn, waiting: _Waiting, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
    response = InitProducerIdResponse(error=ErrorCode.NONE, producer_id=producer_id, producer_epoch=producer_epoch)
    turn.send(SendResponse(request_id=waiting.request_id, response=response, cause_id=waiting.cause_id))


def _refuse(turn: Turn, waiting: _Waiting) -> None:
    response = InitProducerIdResponse(error=ErrorCode.BROKER_NOT_AVAILABLE)
    turn.send(SendResponse(request_id=waiting.request_id, response=response, cause_id=waiting.cause_id))
