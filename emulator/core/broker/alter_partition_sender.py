"""ISR changes on their way to the controller (Kafka's ``AlterPartitionManager``).

At most one request is in flight per broker, and one change per partition is queued or in flight. A change stays until
an answer names its partition; one that is missing from an answer is simply sent again. Errors of the whole request keep
everything and try again after 50 ms. Nothing times out: a change that was applied although its answer got lost is
refused by its partition epoch, and settled by metadata.
"""

from typing import Final

from emulator.core.broker.config import BrokerConfig
from emulator.core.broker.isr import IsrProposal
from emulator.core.broker.request_ledger import RequestLedger
from emulator.core.broker.turn import Turn
from emulator.core.errors import ErrorCode
from emulator.core.messages import (
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from emulator.core.types import BrokerEpoch, TopicPartition

RETRY_BACKOFF_MS: Final = 50
_VERSION_WITH_BROKER_EPOCHS: Final = 3
_VERSION_BEFORE_TOPIC_IDS: Final = 1


class AlterPartitionSender:
    """The queue."""

    def __init__(self, config: BrokerConfig, ledger: RequestLedger) -> None:
        self._config = config
        self._ledger = ledger
        self._queued: dict[TopicPartition, IsrProposal] = {}
        self._is_in_flight = False
        self._retry_at_ms: int | None = None

    @property
    def queued(self) -> tuple[TopicPartition, ...]:
        """Partitions whose change awaits an answer, sent or not."""
        return tuple(self._queued)

    def next_deadline_ms(self) -> int | None:
        """Returns when to try again, if it waits for that."""
        return self._retry_at_ms

    def submit(self, proposal: IsrProposal) -> ErrorCode:
        """Queues a change; OPERATION_NOT_ATTEMPTED where an earlier one of the partition is still there."""
        if proposal.partition in self._queued:
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        self._queued[proposal.partition] = proposal
        return ErrorCode.NONE

    def send_queued(self, turn: Turn, broker_epoch: BrokerEpoch) -> None:
        """Sends everything queued, under the broker epoch of now, unless a request is in flight or an error recent."""
        if self._is_in_flight or not self._queued or self._is_backing_off(turn):
            return
        self._is_in_flight = True
        self._retry_at_ms = None
        proposals = list(self._queued.values())
        has_topic_ids = all(proposal.topic_id is not None for proposal in proposals)
        request = AlterPartitionRequest(
            broker_id=self._config.broker_id,
            broker_epoch=broker_epoch,
            partitions=tuple(
                AlterPartitionData(
                    topic=proposal.partition.topic,
                    topic_id=proposal.topic_id if has_topic_ids else None,
                    partition=proposal.partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    partition_epoch=proposal.partition_epoch,
                    new_isr=proposal.members,
                )
                for proposal in proposals
            ),
            api_version=_VERSION_WITH_BROKER_EPOCHS if has_topic_ids else _VERSION_BEFORE_TOPIC_IDS,
        )
        timeout_ms = self._config.properties.broker_session_timeout_ms
        self._ledger.send(turn, self._config.controller_id, request, timeout_ms=timeout_ms)

    def _is_backing_off(self, turn: Turn) -> bool:
        return self._retry_at_ms is not None and self._retry_at_ms > turn.now_ms

    def handle_response(
        self, turn: Turn, request: AlterPartitionRequest, response: AlterPartitionResponse
    ) -> list[tuple[IsrProposal, AlterPartitionResult]]:
        """Takes answered changes off the queue and returns them with their results.

        They are gone before the results are acted on, so that the same change may be submitted again.
        """
        self._is_in_flight = False
        if response.error is not ErrorCode.NONE:
            self._retry_at_ms = turn.now_ms + RETRY_BACKOFF_MS
            return []
        asked = {TopicPartition(data.topic, data.partition) for data in request.partitions}
        answered: list[tuple[IsrProposal, AlterPartitionResult]] = []
        for result in response.partitions:
            partition = TopicPartition(result.topic, result.partition)
            if partition in asked and partition in self._queued:
                answered.append((self._queued.pop(partition), result))
        if self._queued and not answered:
            # An answer that names nothing would otherwise be asked for again at once, without end.
            self._retry_at_ms = turn.now_ms + RETRY_BACKOFF_MS
        return answered

    def handle_failure(self, turn: Turn) -> None:
        """No answer came: everything stays and is sent again."""
        self._is_in_flight = False
        self._retry_at_ms = turn.now_ms + RETRY_BACKOFF_MS

    def handle_timer(self, turn: Turn, broker_epoch: BrokerEpoch) -> None:
        """Sends again what waited for the backoff."""
        if self._retry_at_ms is not None and self._retry_at_ms <= turn.now_ms:
            self._retry_at_ms = None
            self.send_queued(turn, broker_epoch)
