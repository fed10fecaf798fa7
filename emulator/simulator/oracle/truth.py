"""The promises of a partition to the outside world, kept apart from every replica.

*Committed*: records below a leader's high watermark. *Acked*: records acknowledged with acks=all. *Exposed*: records
that a consumer received. Each entry has the moment from which it must not be lost.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.history import PolledBatch
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import CauseId, LeaderEpoch, Offset, TopicPartition
from laststand.emulator.simulator.oracle.guarantee import GuaranteeLedger


class PromisedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that must not be lost: its offsets, its CRC, the moment of the promise, and the leader's epoch if known.

    A retry may be acknowledged in a later epoch than ``appended_epoch``, in which the leader's copy was appended. For
    an acknowledgement, ``incarnation`` is the leader process that sent it.
    """

    base_offset: Offset
    last_offset: Offset
    crc: int
    moment: int
    leader_epoch: LeaderEpoch | None
    appended_epoch: LeaderEpoch | None = None
    incarnation: int | None = None


class LostCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A committed batch that is known to be lost: the leader epoch that committed it, its CRC, and the moment."""

    leader_epoch: LeaderEpoch
    crc: int
    moment: int


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True):
    """A leader's acknowledgement of a batch: its epoch, its process, and the moment from which the promise counts.

    ``appended_epoch`` is the epoch of the copy in the leader's log; ``None`` if the log no longer has the batch.
    """

    leader_epoch: LeaderEpoch
    appended_epoch: LeaderEpoch | None
    incarnation: int
    moment: int


class _Deletion(NamedTuple):
    """A broker's deletion of the records between two offsets, under a leader epoch, with the batches if known."""

    since: Offset
    below: Offset
    leader_epoch: LeaderEpoch
    held: tuple[BatchDescriptor, ...]

    def is_of(self, promise: "PromisedBatch", offset: Offset) -> bool:
        """Returns whether a batch's record was deleted; if another record is at its offset, it was not."""
        there = [batch for batch in self.held if batch.base_offset <= offset <= batch.last_offset]
        own = (promise.last_offset, promise.crc)
        return self.since <= offset < self.below and all((batch.last_offset, batch.crc) == own for batch in there)


class PartitionTruth:
    """One partition of one topic.

    Args:
        ledger: knows which brokers are outstanding when the partition is created.

    Attributes:
        high_watermark: the largest that any leader ever set.
        high_watermarks: the largest that the leader of each epoch set.
        log_start_offset: the largest offset below which records were deleted on request or by retention.
        committed: leader epoch and CRC of each committed batch by last offset; a batch may be committed twice.
        lost_commits: committed batches that are known to be lost, by last offset; the latest for each offset.
        acked: by base offset.
        ever_acked: by base offset and CRC, including batches that are known to be lost.
        acknowledgements: leaders' acknowledgements, by produce operation.
        exposed: by base offset.
        given_too_early: uncommitted batches that a consumer received; the last leader must still have them.
        reported_end_offset: the largest log end that a leader could report to a client.
        ledger: the ledger of its guarantee.
    """

    def __init__(self, ledger: GuaranteeLedger) -> None:
        self.high_watermark = Offset(0)
        self.high_watermarks: dict[LeaderEpoch, Offset] = {}
        self.log_start_offset = Offset(0)
        self.reported_end_offset = Offset(0)
        self.committed: dict[Offset, tuple[LeaderEpoch, int]] = {}
        self.lost_commits: dict[Offset, LostCommit] = {}
        self.acked: dict[Offset, PromisedBatch] = {}
        self.ever_acked: dict[tuple[Offset, int], PromisedBatch] = {}
        self.acknowledgements: dict[CauseId, Acknowledgement] = {}
        self.exposed: dict[Offset, PromisedBatch] = {}
        self.given_too_early: list[PromisedBatch] = []
        self.ledger = ledger
        self._deleted: list[_Deletion] = []
        self._marks: list[Offset] = []
        self._moments: list[int] = []

    def acknowledge(self, promise: PromisedBatch) -> None:
        """A batch was acknowledged to a producer with acks=all."""
        self.acked[promise.base_offset] = promise
        self.ever_acked[promise.base_offset, promise.crc] = promise

    def commit(
        self, old: Offset, new: Offset, log: list[BatchDescriptor], *, leader_epoch: LeaderEpoch, moment: int
    ) -> None:
        """A leader's high watermark rose; ``log`` is the leader's."""
        self.high_watermarks[leader_epoch] = max(new, self.high_watermarks.get(leader_epoch, Offset(0)))
        if new <= self.high_watermark:
            self._commit_beside(old, new, log, moment=moment)
            return
        for batch in reversed(log):
            if batch.last_offset < self.high_watermark:
                break
            if batch.last_offset < new:
                self.committed[batch.last_offset] = (batch.leader_epoch, batch.crc)
        self.high_watermark = new
        self._marks.append(new)
        self._moments.append(moment)

    def _commit_beside(self, old: Offset, new: Offset, log: list[BatchDescriptor], *, moment: int) -> None:
        """A deposed leader commits batches; those are lost where its successors have committed other batches."""
        for batch in reversed(log):
            if batch.last_offset < old:
                break
            known = self.committed.get(batch.last_offset)
            if batch.last_offset < new and known is not None and known != (batch.leader_epoch, batch.crc):
                lost = LostCommit(leader_epoch=batch.leader_epoch, crc=batch.crc, moment=moment)
                self.lost_commits[batch.last_offset] = lost

    def delete(
        self, below: Offset, log: Sequence[BatchDescriptor] | None, *, since: Offset, leader_epoch: LeaderEpoch
    ) -> None:
        """A broker deleted records on request or by retention, from its former log start ``since`` on.

        The ``log``, if given, still contains them.
        """
        self.log_start_offset = max(self.log_start_offset, below)
        held = tuple(batch for batch in log or () if batch.base_offset < below)
        self._deleted.append(_Deletion(since=since, below=below, leader_epoch=leader_epoch, held=held))

    def is_deleted(self, promise: PromisedBatch, offset: Offset) -> bool:
        """Returns whether a batch's record at ``offset`` was deleted by a replica that had it."""
        appended = promise.leader_epoch if promise.appended_epoch is None else promise.appended_epoch
        return any(
            deletion.is_of(promise, offset) and (appended is None or appended <= deletion.leader_epoch)
            for deletion in self._deleted
        )

    @property
    def committed_end_offset(self) -> Offset:
        """The largest high watermark that any leader ever set, even over records that are lost by now."""
        return max(self.high_watermarks.values(), default=Offset(0))

    def committed_since(self, offset: Offset) -> int:
        """Returns the moment at which the record at ``offset``, below the high watermark, was committed."""
        return self._moments[bisect_right(self._marks, offset)]

    def was_committed_before(self, leader_epoch: LeaderEpoch, offset: Offset) -> bool:
        """Returns whether a leader of an earlier epoch committed an offset, perhaps after its deposition."""
        return any(epoch < leader_epoch and end > offset for epoch, end in self.high_watermarks.items())

    def committed_epoch(self, offset: Offset) -> LeaderEpoch | None:
        """Returns the leader epoch of the committed batch at ``offset``, or of the next one; ``None`` past the last."""
        last_offset = min((last for last in self.committed if last >= offset), default=None)
        return None if last_offset is None else self.committed[last_offset][0]

    def committed_up_to_epoch(self, offset: Offset, leader_epoch: LeaderEpoch) -> Offset:
        """Returns the largest high watermark of the leaders up to ``leader_epoch`` that had the batch at ``offset``.

        It is 0 if that batch was appended in a later epoch: earlier leaders had another batch there, which is lost.
        """
        appended_in = self.committed_epoch(offset)
        if appended_in is None:
            return Offset(0)
        ends = (end for epoch, end in self.high_watermarks.items() if appended_in <= epoch <= leader_epoch)
        return max(ends, default=Offset(0))

    def counts_since(self, promise: PromisedBatch) -> int:
        """Returns the moment from which a promise counts: when it was made, or its leader's earlier deposition.

        A deposed leader acknowledges until it learns of its successor, which may commit another batch at that offset.
        """
        if promise.leader_epoch is None:
            return promise.moment
        return min(promise.moment, self.ledger.deposed_at(promise.leader_epoch))

    def expose(self, batch: PolledBatch, *, moment: int, leader_epoch: LeaderEpoch | None) -> None:
        """Notes that a consumer received a batch, or a part of one, in a leader epoch.

        Only the last leader must have a batch that is not committed, or known to be lost; D16 judges that it was served
        at all. A committed batch counts from its commit: it was replicated under the min ISR of that time.
        """
        given = PromisedBatch(
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            crc=batch.crc,
            moment=moment,
            leader_epoch=leader_epoch,
            appended_epoch=batch.leader_epoch,
        )
        if self.committed.get(batch.last_offset) != (batch.leader_epoch, batch.crc):
            self.given_too_early.append(given)
            return
        if batch.last_offset < self.high_watermark:
            moment = min(moment, self.committed_since(batch.last_offset))
            given = msgspec.structs.replace(given, moment=moment)
        self.exposed.setdefault(batch.base_offset, given)

    def forget_from(self, offset: Offset) -> None:
        """Records from ``offset`` on are known to be lost and were reported: removes their promises."""
        for promises in (self.acked, self.exposed):
            for base in [base for base, promise in promises.items() if promise.last_offset >= offset]:
                del promises[base]
        for last in [last for last in self.committed if last >= offset]:
            moment = self.committed_since(last)
            leader_epoch, crc = self.committed.pop(last)
            self.lost_commits[last] = LostCommit(leader_epoch=leader_epoch, crc=crc, moment=moment)
        self.reported_end_offset = min(self.reported_end_offset, offset)
        if offset < self.high_watermark:
            self.high_watermark = offset
            kept = bisect_right(self._marks, offset)
            self._marks[kept:] = [offset]
            del self._moments[kept + 1 :]


def deleted_below(truths: Mapping[TopicPartition, PartitionTruth], check_id: str, name: TopicPartition) -> Offset:
    """Returns the offset below which a check does not require a partition's records, because they were deleted."""
    is_exempt = PROMISES[check_id].leaves_out(Exemption.DELETED_RECORDS)
    return truths[name].log_start_offset if is_exempt and name in truths else Offset(0)
