"""A transactional producer reads for a group, and commits the position after the records read.

Within a transaction that is ``sendOffsetsToTransaction``: the group's partition of ``__consumer_offsets``
becomes part of the transaction, and the position takes effect when the transaction commits. Outside a transaction, the
position is committed at once.
"""

from typing import Final

from laststand.emulator.core.client.group_reading import GroupReading
from laststand.emulator.core.client.network_client import SEEK_COORDINATOR, NetworkClient
from laststand.emulator.core.client.steps import GroupCommitRecorded, GroupIdentity, TransactionalProducerEffect
from laststand.emulator.core.client.transaction import Consumption, Transaction
from laststand.emulator.core.client.transaction_manager import TransactionManager
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import OffsetCommitRequest
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import CauseId

OFFSETS_ABORTABLE: Final = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""Answers to a position after which its transaction can only be aborted."""

_OFFSET_COMMIT_VERSION: Final = 9
_NO_MEMBER: Final = GroupIdentity(member_id="", instance_id=None, generation_id=-1)


class TransactionOffsets:
    """Reads for groups, and commits their positions.

    Args:
        manager: manages the transactions that positions become part of.
        network: sends requests.
        effects: the step's effects, to which records of commits are appended.
    """

    def __init__(
        self, *, manager: TransactionManager, network: NetworkClient, effects: list[TransactionalProducerEffect]
    ) -> None:
        self._manager = manager
        self._network = network
        self._effects = effects

    def read(self, reading: GroupReading, cause_id: CauseId, now_ms: int) -> None:
        """Sends the next request of a reading."""
        source = reading.source
        if reading.wants_position:
            group = self._network.coordinating(source.group_id, OFFSETS_TOPIC)
            self._network.ask_coordinator(group, reading.position_request(), cause_id, now_ms)
            return
        found = self._network.known_leader(source.partition, now_ms)
        if found is not None:
            leader, leadership = found
            self._network.send(leader, reading.request(leader, leadership), cause_id)

    def commit(self, current: Transaction | Consumption, reading: GroupReading, now_ms: int) -> None:
        """Sends the position after a reading; if the operation is a transaction, as part of it."""
        group = self._network.coordinating(reading.source.group_id, OFFSETS_TOPIC)
        if isinstance(current, Transaction):
            if group is not None and self._manager.has_to_add(current, group, now_ms):
                return
            current.has_begun = True
        request = self._request(reading, is_transactional=isinstance(current, Transaction))
        self._network.ask_coordinator(group, request, current.operation_id, now_ms)

    def _request(self, reading: GroupReading, *, is_transactional: bool) -> OffsetCommitRequest:
        member = reading.source.member or _NO_MEMBER
        return OffsetCommitRequest(
            api_version=_OFFSET_COMMIT_VERSION,
            group_id=reading.source.group_id,
            member_id=member.member_id,
            instance_id=member.instance_id,
            generation_id=member.generation_id,
            offsets=(reading.to_commit(),),
            producer=self._manager.identity if is_transactional else None,
            transactional_id=self._manager.transactional_id if is_transactional else "",
            adds_partition=is_transactional and self._manager.version == 2,
        )

    def is_settled(self, current: Transaction | Consumption, error: ErrorCode, now_ms: int) -> bool:
        """Records the answer to a commit; returns false if the request is retried instead."""
        if self._network.asks_again(error, now_ms):
            if isinstance(current, Consumption):
                current.may_be_committed |= error in SEEK_COORDINATOR
            return False
        is_ok = error is ErrorCode.NONE
        self.record(current, OperationType.OK if is_ok else OperationType.FAIL, None if is_ok else error.name)
        return True

    def record(self, current: Transaction | Consumption, type_: OperationType, error: str | None) -> None:
        """Records the outcome of a commit."""
        reading = current.reading
        assert reading is not None, "it reads"
        if isinstance(current, Consumption) and type_ is OperationType.FAIL and current.may_be_committed:
            type_ = OperationType.INFO
        self._effects.append(
            GroupCommitRecorded(
                type=type_,
                operation_id=current.operation_id,
                group_id=reading.source.group_id,
                partition=reading.source.partition,
                offset=reading.next_position,
                error=error,
            )
        )
