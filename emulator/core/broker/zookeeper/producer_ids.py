"""Producer ids from blocks that brokers take in ZooKeeper (Kafka's ``ZkProducerIdManager``).

One node holds the last allocated block. A broker allocates the next block by a write conditional on the version that it
read. If the answer to a write is lost, the node's content identifies the write: only this broker writes its own id.
"""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.producer_id_blocks import Allocated, ProducerIdBlocks
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.types import BrokerId, RequestId
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import (
    ProducerIdBlock,
    decode_producer_ids,
    encode_producer_ids,
)

BLOCK_SIZE: Final = 1000


def allocate_block(broker_id: BrokerId) -> operations.Program[ProducerIdBlock]:
    """Takes the next block."""
    asked: ProducerIdBlock | None = None
    while True:
        (answer,) = yield (operations.GetData(path=paths.PRODUCER_IDS),)
        if not isinstance(answer, operations.DataRead):
            continue
        last = decode_producer_ids(answer.data)
        if last is not None and last == asked:
            return last
        start = 0 if last is None else last.end + 1
        asked = ProducerIdBlock(broker_id=broker_id, start=start, end=start + BLOCK_SIZE - 1)
        data = encode_producer_ids(asked)
        (written,) = yield (operations.SetData(path=paths.PRODUCER_IDS, data=data, version=answer.stat.version),)
        if isinstance(written, operations.DataSet):
            return asked


class ZooKeeperProducerIds:
    """Takes a block while producers wait for one.

    Attributes:
        wants_block: whether a block has to be allocated; the caller that starts this clears it.
    """

    def __init__(self) -> None:
        self.wants_block = False
        self._is_under_way = False
        self._blocks = ProducerIdBlocks()

    def handle_request(self, turn: Turn, request_id: RequestId, request: messages.InitProducerIdRequest) -> None:
        """Answers InitProducerId, at once or once a block was allocated."""
        if self._blocks.handle_request(turn, request_id, request, may_wait=True):
            self._ask()

    def allocate(self, turn: Turn, allocated: Allocated) -> None:
        """Allocates an id, at once or once a block was allocated."""
        if self._blocks.allocate(turn, allocated, may_wait=True):
            self._ask()

    def handle_block(self, turn: Turn, block: ProducerIdBlock) -> None:
        """Answers the waiting producers."""
        self._is_under_way = False
        if self._blocks.handle_block(turn, start=block.start, end=block.end + 1):
            self._ask()

    def give_up(self, turn: Turn) -> None:
        """No block was allocated: the waiting producers get a retriable error."""
        self._is_under_way = self.wants_block = False
        self._blocks.give_up(turn)

    def _ask(self) -> None:
        if not self._is_under_way:
            self._is_under_way = self.wants_block = True
