"""One client's fetches in flight, and the records in their responses."""

from collections.abc import Callable, Sequence

from laststand.emulator.client.records import last_batch, polled_batches, polled_records
from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.client.steps import RecordsReceived
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CorrelationId, Offset, TopicPartition
from laststand.emulator.rpc.outbound import Outcome
from laststand.emulator.storage.record_codec import StoredRecord


class Fetches:
    """Reads answers to fetches.

    Args:
        is_committed_only: whether the client receives committed records only.
        on_records: receives the records of each answer, if given.
    """

    def __init__(
        self,
        *,
        is_committed_only: bool,
        on_records: Callable[[TopicPartition, Sequence[StoredRecord]], None] | None = None,
    ) -> None:
        self._is_committed_only = is_committed_only
        self._on_records = on_records
        self._asked: dict[CorrelationId, tuple[TopicPartition, Offset]] = {}

    def note_request(self, request: effects.SendRequest) -> None:
        """Notes the offset that a fetch reads from."""
        if isinstance(request.request, messages.FetchRequest):
            target = request.request.partitions[0]
            self._asked[request.correlation_id] = (target.topic_partition, target.fetch_offset)

    def to_input(self, outcome: Outcome, attachments: tuple[bytes, ...]) -> Outcome | RecordsReceived:
        """Returns a fetch's answer with its records, any other outcome unchanged."""
        asked = self._asked.pop(outcome.correlation_id, None)
        if not isinstance(outcome, inputs.ResponseReceived) or not isinstance(outcome.response, messages.FetchResponse):
            return outcome
        assert asked is not None, "an answer to a fetch that was never sent"
        partition, position = asked
        response = outcome.response
        if response.error is not ErrorCode.NONE or not response.partitions:
            answer = messages.FetchPartitionResponse(
                topic=partition.topic, partition=partition.partition, error=response.error
            )
        else:
            answer = response.partitions[0]
        block = attachments[0] if attachments else b""
        aborted = answer.aborted_transactions if self._is_committed_only else None
        polled = polled_batches(block, position=position, aborted=aborted) if block else ()
        if block and self._on_records is not None:
            self._on_records(partition, polled_records(block, position=position))
        last = last_batch(block)
        return RecordsReceived(
            cause_id=outcome.cause_id,
            correlation_id=outcome.correlation_id,
            response=answer,
            polled=polled,
            next_position=None if last is None else last.next_offset,
            next_leader_epoch=None if last is None else last.leader_epoch,
        )
