"""The block of producer ids that a broker has, and the producers that wait for the next one (KIP-360).

Where blocks come from differs: the controller allocates them (KIP-730), or the broker takes them in ZooKeeper.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import ProducerEpoch, ProducerId, RequestId

WAITING_MAX: Final = 1000
"""Requests that may wait for a block; more are answered with a retriable error."""

_EPOCH_MAX: Final = 2**15 - 1

Allocated: TypeAlias = Callable[[Turn, ProducerId | None], None]
"""Called with a new, unique producer id, or ``None`` if none is available now."""


class ProducerIdBlocks:
    """Allocates ids from the current block."""

    def __init__(self) -> None:
        self._next = 0
        self._end = 0
        self._waiting: deque[Allocated] = deque()

    def handle_request(
        self, turn: Turn, request_id: RequestId, request: messages.InitProducerIdRequest, *, may_wait: bool
    ) -> bool:
        """Answers with the same id under the next epoch, or with a fresh id, once there is a block.

        Args:
            turn: the step under way.
            request_id: of the request.
            request: a producer's InitProducerId.
            may_wait: whether another block can be requested.

        Returns:
            Whether another block is needed.
        """
        cause_id = turn.cause_id

        def answer(turn: Turn, response: messages.InitProducerIdResponse) -> None:
            turn.send(effects.SendResponse(request_id=request_id, response=response, cause_id=cause_id))

        def allocated(turn: Turn, producer_id: ProducerId | None) -> None:
            if producer_id is None:
                answer(turn, messages.InitProducerIdResponse(error=ErrorCode.BROKER_NOT_AVAILABLE))
            else:
                epoch = ProducerEpoch(0)
                response = messages.InitProducerIdResponse(
                    error=ErrorCode.NONE, producer_id=producer_id, producer_epoch=epoch
                )
                answer(turn, response)

        epoch = request.producer_epoch
        if request.producer_id is not None and epoch is not None and epoch + 1 < _EPOCH_MAX:
            response = messages.InitProducerIdResponse(
                error=ErrorCode.NONE, producer_id=request.producer_id, producer_epoch=ProducerEpoch(epoch + 1)
            )
            answer(turn, response)
            return False
        return self.allocate(turn, allocated, may_wait=may_wait)

    def allocate(self, turn: Turn, allocated: Allocated, *, may_wait: bool) -> bool:
        """Allocates an id once there is a block; returns whether another is needed. For arguments see above."""
        if self._next < self._end:
            self._hand_out(turn, allocated)
        elif not may_wait or len(self._waiting) >= WAITING_MAX:
            allocated(turn, None)
        else:
            self._waiting.append(allocated)
            return True
        return False

    def handle_block(self, turn: Turn, *, start: int, end: int) -> bool:
        """Gives waiting producers ids from ``start`` to ``end`` (exclusive); returns whether some still wait."""
        self._next, self._end = start, end
        while self._waiting and self._next < self._end:
            self._hand_out(turn, self._waiting.popleft())
        return bool(self._waiting)

    def give_up(self, turn: Turn) -> None:
        """No block was allocated: the waiting producers get a retriable error."""
        while self._waiting:
            self._waiting.popleft()(turn, None)

    def _hand_out(self, turn: Turn, allocated: Allocated) -> None:
        self._next += 1
        allocated(turn, ProducerId(self._next - 1))
