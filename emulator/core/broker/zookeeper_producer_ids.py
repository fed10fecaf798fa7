"""Producer ids from blocks that brokers take in ZooKeeper (Kafka's ``ZkProducerIdManager``).

One node has the block that was taken last; whoever needs one sets the next block at the version that it read. A block
whose answer was lost is recognised by its content: no other broker writes this broker's id.
"""

from collections import deque
from typing import Final, NamedTuple

from emulator.core.broker.turn import Turn
from emulator.core.effects import SendResponse
from emulator.core.errors import ErrorCode
from emulator.core.messages import InitProducerIdRequest, InitProducerIdResponse
from emulator.core.types import BrokerId, CauseId, ProducerEpoch, ProducerId, RequestId
from emulator.core.zookeeper.nodes import paths
from emulator.core.zookeeper.nodes.small_nodes import ProducerIdBlock, decode_producer_ids, encode_producer_ids
from emulator.core.zookeeper.operations import DataRead, DataSet, GetData, Program, SetData

BLOCK_SIZE: Final = 1000
WAITING_MAX: Final = 1000
"""Requests that may wait for a block; more are answered with a retriable error."""

_EPOCH_MAX: Final = 2**15 - 1


def take_block(broker_id: BrokerId) -> Program[ProducerIdBlock]:
    """Takes the next block."""
    asked: ProducerIdBlock | None = None
    while True:
        (answer,) = yield (GetData(path=paths.PRODUCER_IDS),)
        if not isinstance(answer, DataRead):
            continue
        last = decode_producer_ids(answer.data)
        if last is not None and last == asked:
            return last
        start = 0 if last is None else last.end + 1
        asked = ProducerIdBlock(broker_id=broker_id, start=start, end=start + BLOCK_SIZE - 1)
        data = encode_producer_ids(asked)
        (written,) = yield (SetData(path=paths.PRODUCER_IDS, data=data, version=answer.stat.version),)
        if isinstance(written, DataSet):
            return asked


class _Waiting(NamedTuple):
    request_id: RequestId
    cause_id: CauseId


class ZooKeeperProducerIds:
    """The block at hand, and who waits for the next.

    Attributes:
        wants_block: whether one is to be taken; whoever takes it clears the mark.
    """

    def __init__(self) -> None:
        self.wants_block = False
        self._is_under_way = False
        self._next = 0
        self._end = 0
        self._waiting: deque[_Waiting] = deque()

    def handle_request(self, turn: Turn, request_id: RequestId, request: InitProducerIdRequest) -> None:
        """Answers with the same id under the next epoch, or with a fresh id, once there is a block (KIP-360)."""
        waiting = _Waiting(request_id, turn.cause_id)
        epoch = request.producer_epoch
        if request.producer_id is not None and epoch is not None and epoch + 1 < _EPOCH_MAX:
            _answer(turn, waiting, request.producer_id, ProducerEpoch(epoch + 1))
        elif self._next < self._end:
            self._hand_out(turn, waiting)
        elif len(self._waiting) >= WAITING_MAX:
            _refuse(turn, waiting)
        else:
            self._waiting.append(waiting)
            self._ask()

    def handle_block(self, turn: Turn, block: ProducerIdBlock) -> None:
        """Serves those who wait."""
        self._is_under_way = False
        self._next, self._end = block.start, block.end + 1
        while self._waiting and self._next < self._end:
            self._hand_out(turn, self._waiting.popleft())
        if self._waiting:
            self._ask()

    def give_up(self, turn: Turn) -> None:
        """No block will come: everyone who waits may try again."""
        self._is_under_way = self.wants_block = False
        while self._waiting:
            _refuse(turn, self._waiting.popleft())

    def _ask(self) -> None:
        if not self._is_under_way:
            self._is_under_way = self.wants_block = True

    def _hand_out(self, turn: Turn, waiting: _Waiting) -> None:
        _answer(turn, waiting, ProducerId(self._next), ProducerEpoch(0))
        self._next += 1


def _answer(turn: Turn, waiting: _Waiting, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> None:
    response = InitProducerIdResponse(error=ErrorCode.NONE, producer_id=producer_id, producer_epoch=producer_epoch)
    turn.send(SendResponse(request_id=waiting.request_id, response=response, cause_id=waiting.cause_id))


def _refuse(turn: Turn, waiting: _Waiting) -> None:
    response = InitProducerIdResponse(error=ErrorCode.BROKER_NOT_AVAILABLE)
    turn.send(SendResponse(request_id=waiting.request_id, response=response, cause_id=waiting.cause_id))
