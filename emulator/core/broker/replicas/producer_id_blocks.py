"""The block of producer ids that a broker has, and the producers that wait for the next one (KIP-360).

Where blocks come from differs: the controller allocates them (KIP-730), or the broker takes them in ZooKeeper.
"""

from collections import deque
from typing import Final, NamedTuple

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, ProducerEpoch, ProducerId, RequestId

WAITING_MAX: Final = 1000
"""Requests that may wait for a block; more are answered with a retriable error."""

_EPOCH_MAX: Final = 2**15 - 1


class _Waiting(NamedTuple):
    request_id: RequestId
    cause_id: CauseId


class ProducerIdBlocks:
    """Answers InitProducerId from the block at hand."""

    def __init__(self) -> None:
        self._next = 0
        self._end = 0
        self._waiting: deque[_Waiting] = deque()

    def handle_request(
        self, turn: Turn, request_id: RequestId, request: messages.InitProducerIdRequest, *, may_wait: bool
    ) -> bool:
        """Answers with the same id under the next epoch, or with a fresh id, once there is a block.

        Args:
            turn: takes the answer.
            request_id: of the request.
            request: of a producer.
            may_wait: whether another block can be asked for.

        Returns:
            Whether another block is needed.
        """
        waiting = _Waiting(request_id, turn.cause_id)
        epoch = request.producer_epoch
        if request.producer_id is not None and epoch is not None and epoch + 1 < _EPOCH_MAX:
            _answer(turn, waiting, request.producer_id, ProducerEpoch(epoch + 1))
        elif self._next < self._end:
            self._hand_out(turn, waiting)
        elif not may_wait or len(self._waiting) >= WAITING_MAX:
            _refuse(turn, waiting)
        else:
            self._waiting.append(waiting)
            return True
        return False

    def handle_block(self, turn: Turn, *, start: int, end: int) -> bool:
        """Serves those who wait from the ids ``start`` to ``end``, exclusively; returns whether some still wait."""
        self._next, self._end = start, end
        while self._waiting and self._next < self._end:
            self._hand_out(turn, self._waiting.popleft())
        return bool(self._waiting)

    def give_up(self, turn: Turn) -> None:
        """No block came: everyone who waits may try again."""
        while self._waiting:
            _refuse(turn, self._waiting.popleft())

    def _hand_out(self, turn: Turn, waiting: _Waiting) -> None:
        _answer(turn, waiting, ProducerId(self._next), ProducerEpoch(0))
        self._next += 1


def _answer(turn: Turn, waiting: _Waiting, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
    response = messages.InitProducerIdResponse(
        error=ErrorCode.NONE, producer_id=producer_id, producer_epoch=producer_epoch
    )
    turn.send(effects.SendResponse(request_id=waiting.request_id, response=response, cause_id=waiting.cause_id))


def _refuse(turn: Turn, waiting: _Waiting) -> None:
    response = messages.InitProducerIdResponse(error=ErrorCode.BROKER_NOT_AVAILABLE)
    turn.send(effects.SendResponse(request_id=waiting.request_id, response=response, cause_id=waiting.cause_id))
