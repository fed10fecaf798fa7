"""Producer ids from blocks that the controller allocates (KIP-730)."""

from laststand.emulator.core import messages
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.producer_id_blocks import Allocated, ProducerIdBlocks
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, RequestId


class ProducerIds:
    """Asks for a block while producers wait for one."""

    def __init__(self, config: BrokerConfig, controllers: ControllerChannel) -> None:
        self._config = config
        self._controllers = controllers
        self._blocks = ProducerIdBlocks()
        self._is_in_flight = False

    def handle_request(
        self,
        turn: Turn,
        request_id: RequestId,
        request: messages.InitProducerIdRequest,
        broker_epoch: BrokerEpoch | None,
    ) -> None:
        """Answers InitProducerId, at once or after a block has arrived; only a registered broker requests one."""
        is_needed = self._blocks.handle_request(turn, request_id, request, may_wait=broker_epoch is not None)
        if is_needed and broker_epoch is not None:
            self._ask(turn, broker_epoch)

    def allocate(self, turn: Turn, allocated: Allocated, broker_epoch: BrokerEpoch | None) -> None:
        """Allocates an id, at once or once a block has arrived."""
        is_needed = self._blocks.allocate(turn, allocated, may_wait=broker_epoch is not None)
        if is_needed and broker_epoch is not None:
            self._ask(turn, broker_epoch)

    def _ask(self, turn: Turn, broker_epoch: BrokerEpoch) -> None:
        if not self._is_in_flight:
            self._is_in_flight = True
            request = messages.AllocateProducerIdsRequest(broker_id=self._config.broker_id, broker_epoch=broker_epoch)
            timeout_ms = self._config.properties.broker_session_timeout_ms
            self._controllers.send(turn, request, timeout_ms=timeout_ms)

    def handle_block(
        self, turn: Turn, response: messages.AllocateProducerIdsResponse, broker_epoch: BrokerEpoch | None
    ) -> None:
        """Answers the waiting producers; an error of the controller reaches them as a retriable one."""
        if response.error is not ErrorCode.NONE or response.producer_id_len < 1:
            self.handle_failure(turn)
            return
        self._is_in_flight = False
        start = response.producer_id_start
        is_needed = self._blocks.handle_block(turn, start=start, end=start + response.producer_id_len)
        if is_needed and broker_epoch is not None:
            self._ask(turn, broker_epoch)

    def handle_failure(self, turn: Turn) -> None:
        """Handles a request without an answer: the waiting producers get a retriable error."""
        self._is_in_flight = False
        self._blocks.give_up(turn)
