"""The offsets that groups committed, in two views: records in the log, and records below the high watermark.

A commit is checked against the written records. A fetch is answered from the committed records, so that no client gets
a position which a failover takes back. A fetch with ``require_stable`` is answered from the written records, once they
are committed (Kafka's ``OffsetMetadataManager``).
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.broker.coordination.caller import Answerable, Caller
from laststand.emulator.core.broker.coordination.coordinator_log import CoordinatorLog, Done
from laststand.emulator.core.broker.groups.group import Group, GroupState
from laststand.emulator.core.broker.groups.membership import Membership
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import LoadedRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    CommittedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from laststand.emulator.core.group_records import (
    GroupRecord,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    PositionsHeld,
)
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import Offset, ProducerId, ProducerIdentity, TopicPartition

_UNKNOWN_GROUP_VERSION: Final = 9
"""From here on OffsetCommit says GROUP_ID_NOT_FOUND of a group that it names with a generation (KIP-848)."""


class _Pending(NamedTuple):
    """A position that counts once its transaction is committed, and the offset of its record."""

    record: OffsetCommitted
    log_offset: Offset


class _Origin(NamedTuple):
    """A position of a group, and the log offset of the record that put the position into effect."""

    group_id: str
    partition: TopicPartition
    position: Offset
    counts_from: Offset


class OffsetTable:
    """Positions by group and partition: a fold of records.

    A transaction's positions are pending until its marker. A commit marker puts each into effect, unless a record
    after the position has set another one meanwhile.

    Attributes:
        held_before: positions whose record is before this offset are not answered to clients.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, OffsetCommitted]] = {}
        self._log_offsets: dict[tuple[str, TopicPartition], Offset] = {}
        self._counts_from: dict[tuple[str, TopicPartition], Offset] = {}
        self._pending: dict[ProducerId, dict[tuple[str, TopicPartition], _Pending]] = {}
        self.held_before: Offset | None = None

    def of_group(self, group_id: str) -> Mapping[TopicPartition, OffsetCommitted]:
        """Returns the positions of a group."""
        return self._groups.get(group_id, {})

    def positions(self) -> dict[tuple[str, TopicPartition], Offset]:
        """Returns every position by group and partition."""
        return {
            (group_id, partition): Offset(record.offset)
            for group_id, records in self._groups.items()
            for partition, record in records.items()
        }

    def set_at(self, group_id: str, partition: TopicPartition) -> Offset:
        """Returns the offset of the record that last set a position, even if it was removed since; -1 if none did."""
        return self._log_offsets.get((group_id, partition), Offset(-1))

    def counts_from(self, group_id: str, partition: TopicPartition) -> Offset:
        """Returns the same offset as ``set_at``, but for a transaction's position the offset of the commit marker."""
        return self._counts_from.get((group_id, partition), Offset(-1))

    def pending_of_group(self, group_id: str) -> set[TopicPartition]:
        """Returns the partitions in which a position of a group waits for the end of its transaction."""
        return {name for pending in self._pending.values() for group, name in pending if group == group_id}

    def replay(self, loaded: LoadedRecord) -> None:
        """Applies a record of the log."""
        record, log_offset = loaded.record, Offset(loaded.next_offset - 1)
        match record:
            case OffsetCommitted(producer=None):
                self._set(record, log_offset, log_offset)
            case OffsetCommitted(group_id=group_id, partition=partition, producer=ProducerIdentity() as producer):
                pending = self._pending.setdefault(producer.producer_id, {})
                pending[group_id, partition] = _Pending(record, log_offset)
            case OffsetRemoved(group_id=group_id, partition=partition):
                self._groups.get(group_id, {}).pop(partition, None)
                for pending in self._pending.values():
                    pending.pop((group_id, partition), None)
            case GroupRemoved(group_id=group_id):
                self._groups.pop(group_id, None)
            case PositionsHeld():
                self.held_before = log_offset
            case TransactionEnded(producer_id=producer_id, marker=marker):
                ended = self._pending.pop(producer_id, {})
                if marker.result is TransactionResult.COMMIT:
                    for key, position in ended.items():
                        if self.set_at(*key) < position.log_offset:
                            self._set(position.record, position.log_offset, log_offset)
            case _:
                pass

    def _set(self, record: OffsetCommitted, log_offset: Offset, counts_from: Offset) -> None:
        self._groups.setdefault(record.group_id, {})[record.partition] = record
        self._log_offsets[record.group_id, record.partition] = log_offset
        self._counts_from[record.group_id, record.partition] = counts_from

    def tombstones(self, partition: TopicPartition) -> list[GroupRecord]:
        """Returns the records that remove all groups' positions in a partition, pending ones included."""
        holders = [group_id for group_id, offsets in self._groups.items() if partition in offsets]
        holders += [group for pending in self._pending.values() for group, name in pending if name == partition]
        return [OffsetRemoved(group_id=group_id, partition=partition) for group_id in holders]


class Offsets:
    """Commits, fetches and deletions of positions.

    Args:
        log: of the partition.
        membership: the groups that have the positions.
        metadata_bytes_max: of one position (``offset.metadata.max.bytes``).
        retention_ms: for how long an unused position is kept (``offsets.retention.minutes``).
        fences_generations: whether positions of transactions are refused from former generations.

    Attributes:
        written: positions by all records in the log.
        committed: positions by the records below the high watermark.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        membership: Membership,
        *,
        metadata_bytes_max: int,
        retention_ms: int,
        fences_generations: bool = True,
    ) -> None:
        self._log = log
        self._membership = membership
        self._metadata_bytes_max = metadata_bytes_max
        self._retention_ms = retention_ms
        self._fences_generations = fences_generations
        self.written = OffsetTable()
        self.committed = OffsetTable()

    def commit(self, turn: Turn, caller: Caller, request: OffsetCommitRequest) -> None:
        """Commits positions if their sender may; they are compared neither with the log nor with former positions."""
        error = self._commit_error(request)
        if error is not ErrorCode.NONE:
            caller.answer(turn, OffsetCommitResponse(errors=(error,) * len(request.offsets)))
            return
        group = self._membership.found_or_made(request.group_id)
        if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            self._membership.renew_session(turn, group, request.member_id)
        errors = tuple([self._offset_error(offset) for offset in request.offsets])
        records = [
            OffsetCommitted(
                group_id=request.group_id,
                partition=each.partition,
                offset=each.offset,
                leader_epoch=each.leader_epoch,
                metadata=each.metadata,
                topic_id=each.topic_id,
                committed_ms=turn.now_ms,
                retention_ms=request.retention_ms,
                producer=request.producer,
            )
            for each, problem in zip(request.offsets, errors, strict=True)
            if problem is ErrorCode.NONE
        ]

        def done(turn: Turn, failure: ErrorCode) -> None:
            outcomes = tuple([problem or failure for problem in errors])
            caller.answer(turn, OffsetCommitResponse(errors=outcomes))

        self._write(turn, records, done)

    def _commit_error(self, request: OffsetCommitRequest) -> ErrorCode:
        group = self._membership.groups.get(request.group_id)
        is_simple = request.generation_id < 0
        is_transactional = request.producer is not None
        is_from_any_generation = is_transactional and not self._fences_generations
        if group is None:
            if is_simple or is_from_any_generation:
                return ErrorCode.NONE
            is_new = request.api_version >= _UNKNOWN_GROUP_VERSION and not is_transactional
            return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if is_from_any_generation or (group.state is GroupState.EMPTY and is_simple):
            return ErrorCode.NONE
        if is_simple and not request.member_id and request.instance_id is None:
            # Producers from before KIP-447 do not name the consumer that they commit for.
            return ErrorCode.NONE if is_transactional else ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_generation(request.member_id, request.instance_id, request.generation_id)
        if error is not ErrorCode.NONE:
            return error
        is_completing = group.state is GroupState.COMPLETING_REBALANCE and not is_transactional
        return ErrorCode.REBALANCE_IN_PROGRESS if is_completing else ErrorCode.NONE

    def _offset_error(self, offset: CommittedOffset) -> ErrorCode:
        is_too_large = len(offset.metadata) > self._metadata_bytes_max
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_large else ErrorCode.NONE

    def fetch(self, turn: Turn, caller: Answerable, request: OffsetFetchRequest) -> None:
        """Answers positions."""
        if not request.require_stable:
            committed = _fetched(self.committed, request)
            known = _without(committed, self._held(request, committed))
            self._answer(turn, caller, known, self._origins(request.group_id, known, self.committed))
            return
        found = _fetched(self.written, request)
        pending = self.written.pending_of_group(request.group_id)
        unstable = pending if request.partitions is None else pending.intersection(request.partitions)
        found = _without(found, unstable | self._held(request, found))
        origins = self._origins(request.group_id, found, self.written)

        def done(turn: Turn, error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._answer(turn, caller, found, origins)
            else:
                caller.answer(turn, OffsetFetchResponse(error=error))

        self._log.await_appends(turn, done)

    @staticmethod
    def _origins(group_id: str, found: OffsetFetchResponse, table: OffsetTable) -> list[_Origin]:
        return [
            _Origin(group_id, each.partition, Offset(each.offset), table.counts_from(group_id, each.partition))
            for each in found.offsets
        ]

    def _answer(self, turn: Turn, caller: Answerable, found: OffsetFetchResponse, origins: Iterable[_Origin]) -> None:
        for origin in origins:
            self._record_returned(turn, origin)
        caller.answer(turn, found)

    def _record_returned(self, turn: Turn, origin: _Origin) -> None:
        partition = self._log.partition
        turn.record(
            events.PositionReturned(
                cause_id=turn.cause_id,
                topic=partition.name.topic,
                partition=partition.name.partition,
                topic_id=partition.log.topic_id,
                leader_epoch=partition.leader_epoch,
                group_id=origin.group_id,
                source=str(origin.partition),
                position=origin.position,
                counts_from=origin.counts_from,
            )
        )

    def _held(self, request: OffsetFetchRequest, found: OffsetFetchResponse) -> frozenset[TopicPartition]:
        """Returns the partitions whose position is withheld: a newer committed one may have been lost."""
        held_before = self.written.held_before
        if held_before is None:
            return frozenset()
        known = tuple(offset.partition for offset in found.offsets)
        asked = known if request.partitions is None else request.partitions
        set_at = self.committed.set_at
        return frozenset(name for name in asked if set_at(request.group_id, name) < held_before)

    def delete(self, turn: Turn, caller: Caller, request: OffsetDeleteRequest) -> None:
        """Handles OffsetDelete: removes a group's positions, except in topics that its members subscribe to."""
        group = self._membership.groups.get(request.group_id)
        problem = ErrorCode.GROUP_ID_NOT_FOUND if group is None else _delete_error(group)
        if group is None or problem is not ErrorCode.NONE:
            caller.answer(turn, OffsetDeleteResponse(error=problem))
            return
        errors = tuple(
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.subscribes_to(partition.topic) else ErrorCode.NONE
            for partition in request.partitions
        )
        present = self.written.of_group(request.group_id)
        records = [
            OffsetRemoved(group_id=request.group_id, partition=partition)
            for partition, error in zip(request.partitions, errors, strict=True)
            if error is ErrorCode.NONE and partition in present
        ]

        def done(turn: Turn, failure: ErrorCode) -> None:
            caller.answer(turn, OffsetDeleteResponse(error=failure, errors=() if failure else errors))

        self._write(turn, records, done)

    def forget_partitions(self, turn: Turn, partitions: Iterable[TopicPartition]) -> None:
        """Removes all groups' positions in deleted partitions."""
        records = [record for partition in partitions for record in self.written.tombstones(partition)]
        self._write(turn, records, lambda _turn, _error: None)

    def expire(self, turn: Turn, group: Group) -> bool:
        """Removes a group's expired positions (``cleanupExpiredOffsets``).

        Returns:
            Whether the group has no position left, pending ones included.
        """
        positions = self.written.of_group(group.group_id)
        pending = self.written.pending_of_group(group.group_id)
        expired = [
            partition
            for partition, position in positions.items()
            if partition not in pending and self._is_expired(position, group, now_ms=turn.now_ms)
        ]
        is_all = len(expired) == len(positions) and not pending
        records = [OffsetRemoved(group_id=group.group_id, partition=partition) for partition in expired]
        if records:
            self._write(turn, records, lambda _turn, _error: None)
        return is_all

    def _is_expired(self, position: OffsetCommitted, group: Group, *, now_ms: int) -> bool:
        """Returns whether a position has expired (``ClassicGroup.offsetExpirationCondition``).

        After the last member has left, the retention time starts when the group became empty. Positions in topics that
        members subscribe to do not expire.
        """
        since_ms = position.committed_ms
        match group.state:
            case GroupState.EMPTY if group.protocol_type is not None and group.state_ms is not None:
                since_ms = group.state_ms
            case GroupState.EMPTY:
                pass
            case GroupState.STABLE if group.is_of_consumers and not group.subscribes_to(position.partition.topic):
                pass
            case _:
                return False
        if position.retention_ms is not None:
            return now_ms >= position.committed_ms + position.retention_ms
        return now_ms - since_ms >= self._retention_ms

    def _write(self, turn: Turn, records: Sequence[GroupRecord], done: Done) -> None:
        if not records:
            self._log.await_appends(turn, done)
            return
        for appended in self._log.append(turn, records, done):
            self.written.replay(appended)

    def end_transaction(self, turn: Turn, ended: TransactionEnded, done: Done) -> None:
        """Writes a transaction's marker, which puts the transaction's positions into effect or discards them."""
        self._write(turn, (ended,), done)


def _delete_error(group: Group) -> ErrorCode:
    match group.state:
        case GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        case GroupState.EMPTY:
            return ErrorCode.NONE
        case _:
            return ErrorCode.NONE if group.is_of_consumers else ErrorCode.NON_EMPTY_GROUP


def _without(found: OffsetFetchResponse, unstable: Set[TopicPartition]) -> OffsetFetchResponse:
    if not unstable:
        return found
    kept = tuple(offset for offset in found.offsets if offset.partition not in unstable)
    return msgspec.structs.replace(found, offsets=kept, unstable=tuple(sorted(unstable)))


def _fetched(table: OffsetTable, request: OffsetFetchRequest) -> OffsetFetchResponse:
    offsets = table.of_group(request.group_id)
    wanted = offsets if request.partitions is None else [name for name in request.partitions if name in offsets]
    return OffsetFetchResponse(
        error=ErrorCode.NONE,
        offsets=tuple(
            CommittedOffset(
                partition=name,
                offset=offsets[name].offset,
                leader_epoch=offsets[name].leader_epoch,
                metadata=offsets[name].metadata,
                topic_id=offsets[name].topic_id,
            )
            for name in wanted
        ),
    )
