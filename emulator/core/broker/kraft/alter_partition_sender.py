"""ISR changes on their way to the controller (Kafka's ``AlterPartitionManager``).

At most one request is in flight per broker, and one change per partition is queued or in flight. A change stays
queued until an answer names its partition. After an error of the whole request, all changes stay queued and are sent
again after ``alter.partition.retry.backoff.ms``. Changes do not time out: if a change was applied but its answer was
lost, the repeated request is refused by partition epoch, and metadata settles the change.

The controller sends metadata and answers on different connections, so an answer may be the first to arrive. A leader
that adopted the ISR of such an answer might compare it with a min ISR which the controller has replaced (S38). An
accepted change therefore stays pending until the broker has the metadata that the controller had; usually that
metadata contains the change and settles it. The connection is free for the next request meanwhile.
"""

from typing import Final

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.isr import IsrProposal
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.release import names_broker_epochs
from laststand.emulator.core.types import BrokerEpoch, MetadataOffset, TopicPartition

_VERSION_WITH_BROKER_EPOCHS: Final = 3
_VERSION_WITH_TOPIC_IDS: Final = 2
_VERSION_BEFORE_TOPIC_IDS: Final = 1


class IsrChangeAnswer(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The controller's answer to an ISR change, decided on the metadata below ``metadata_end_offset``."""

    proposal: IsrProposal
    result: messages.AlterPartitionResult
    metadata_end_offset: MetadataOffset


def _isr_of(proposal: IsrProposal, api_version: int) -> tuple[messages.IsrMember, ...]:
    """Returns the members for a version of the request; versions before KIP-903 carry no broker epochs."""
    if api_version >= _VERSION_WITH_BROKER_EPOCHS:
        return proposal.members
    return tuple(messages.IsrMember(member.broker_id) for member in proposal.members)


class AlterPartitionSender:
    """The queue of changes, and the answers that wait for metadata."""

    def __init__(self, config: BrokerConfig, controllers: ControllerChannel) -> None:
        self._config = config
        self._controllers = controllers
        self._queued: dict[TopicPartition, IsrProposal] = {}
        self._awaiting_metadata: list[IsrChangeAnswer] = []
        self._is_in_flight = False
        self._retry_at_ms: int | None = None

    def next_deadline_ms(self) -> int | None:
        """Returns when to try again, if it waits for that."""
        return self._retry_at_ms

    def submit(self, proposal: IsrProposal) -> ErrorCode:
        """Queues a change; returns OPERATION_NOT_ATTEMPTED if the partition already has one queued or in flight."""
        if proposal.partition in self._queued:
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        self._queued[proposal.partition] = proposal
        return ErrorCode.NONE

    def send_queued(self, turn: Turn, broker_epoch: BrokerEpoch) -> None:
        """Sends all queued changes with the current broker epoch, unless a request is in flight or a backoff runs."""
        if self._is_in_flight or not self._queued or self._is_backing_off(turn):
            return
        self._is_in_flight = True
        self._retry_at_ms = None
        proposals = list(self._queued.values())
        has_topic_ids = all(proposal.topic_id is not None for proposal in proposals)
        api_version = _VERSION_BEFORE_TOPIC_IDS
        if has_topic_ids:
            named = names_broker_epochs(self._config.switches)
            api_version = _VERSION_WITH_BROKER_EPOCHS if named else _VERSION_WITH_TOPIC_IDS
        request = messages.AlterPartitionRequest(
            broker_id=self._config.broker_id,
            broker_epoch=broker_epoch,
            partitions=tuple(
                messages.AlterPartitionData(
                    topic=proposal.partition.topic,
                    topic_id=proposal.topic_id if has_topic_ids else None,
                    partition=proposal.partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    partition_epoch=proposal.partition_epoch,
                    new_isr=_isr_of(proposal, api_version),
                )
                for proposal in proposals
            ),
            api_version=api_version,
        )
        timeout_ms = self._config.properties.broker_session_timeout_ms
        self._controllers.send(turn, request, timeout_ms=timeout_ms)

    def _is_backing_off(self, turn: Turn) -> bool:
        return self._retry_at_ms is not None and self._retry_at_ms > turn.now_ms

    def handle_response(
        self,
        turn: Turn,
        request: messages.AlterPartitionRequest,
        response: messages.AlterPartitionResponse,
        *,
        known_end_offset: MetadataOffset,
    ) -> list[IsrChangeAnswer]:
        """Takes answered changes off the queue and returns those that may be acted on now.

        They leave the queue before their results are acted on, so that the same change may be submitted again.

        Args:
            turn: the step under way.
            request: what was asked.
            response: the answer to it.
            known_end_offset: where this broker's metadata ends.
        """
        self._is_in_flight = False
        if response.error is not ErrorCode.NONE:
            self._retry_at_ms = turn.now_ms + self._config.properties.alter_partition_retry_backoff_ms
            return []
        asked = {TopicPartition(data.topic, data.partition) for data in request.partitions}
        answered: list[IsrChangeAnswer] = []
        for result in response.partitions:
            partition = TopicPartition(result.topic, result.partition)
            if partition in asked and partition in self._queued:
                proposal, end_offset = self._queued.pop(partition), response.metadata_end_offset
                answered.append(IsrChangeAnswer(proposal=proposal, result=result, metadata_end_offset=end_offset))
        if not self._config.switches.answers_await_metadata:
            return answered
        # A refused change leaves the ISR as it is, so min ISR does not matter.
        self._awaiting_metadata += [answer for answer in answered if answer.result.error is ErrorCode.NONE]
        refused = [answer for answer in answered if answer.result.error is not ErrorCode.NONE]
        return refused + self.pop_understood(known_end_offset=known_end_offset)

    def pop_understood(self, *, known_end_offset: MetadataOffset) -> list[IsrChangeAnswer]:
        """Returns the held-back answers that may be acted on, as the metadata behind them has been received."""
        understood = [answer for answer in self._awaiting_metadata if answer.metadata_end_offset <= known_end_offset]
        self._awaiting_metadata = [
            answer for answer in self._awaiting_metadata if answer.metadata_end_offset > known_end_offset
        ]
        return understood

    def handle_failure(self, turn: Turn) -> None:
        """Handles a request without an answer: all changes stay queued, and are sent again."""
        self._is_in_flight = False
        self._retry_at_ms = turn.now_ms + self._config.properties.alter_partition_retry_backoff_ms

    def handle_timer(self, turn: Turn, broker_epoch: BrokerEpoch) -> None:
        """Sends the queued changes once the backoff is over."""
        if self._retry_at_ms is not None and self._retry_at_ms <= turn.now_ms:
            self._retry_at_ms = None
            self.send_queued(turn, broker_epoch)
