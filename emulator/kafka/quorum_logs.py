"""Follows the metadata logs of several controllers of Kafka, and determines what they have committed.

Files show who has a record. A record is committed if a majority of the voters has it, on disk where that is known, and
none of them has a later epoch: no controller without it can be elected then. All earlier records are committed, too.
That holds as long as voters keep their disks: a voter with a replaced disk may help to put other records at offsets
that were committed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.core import records
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.quorum.batches import ControlRecord, LeaderChange
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.kafka.metadata_log import CommittedBatch
from laststand.emulator.kafka.metadata_records import MetadataRecordDecoder
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches
from laststand.emulator.storage.control_records import decode_control
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.record_codec import read_records
from laststand.emulator.storage.sync_ledger import durable_prefixes

_NO_EPOCH: Final = LeaderEpoch(-1)


class QuorumBatch(NamedTuple):
    """A batch of one of the logs.

    Attributes:
        content: its offset and records.
        leader_epoch: in which a leader appended it.
        crc: of its bytes; it distinguishes the batch from another one at its place.
        elected: the record of an election, which begins an epoch.
    """

    content: CommittedBatch
    leader_epoch: LeaderEpoch
    crc: int
    elected: LeaderChange | None

    @property
    def end_offset(self) -> MetadataOffset:
        """The offset after its last record."""
        return MetadataOffset(self.content.base_offset + len(self.content.records))


class QuorumNews(NamedTuple):
    """News of a quorum since the last look.

    Attributes:
        Changes of a quorum's logs since they were last read.
        kept: number of the batches committed before that are still committed.
        committed: batches that follow those.
    """

    elected: tuple[QuorumBatch, ...]
    kept: int
    committed: tuple[QuorumBatch, ...]


class _Log:
    """The log of one controller.

    Args:
        directory: of the log; it need not exist.
        ledger: folder of its sync ledger; ``None`` if written records count as durable.
    """

    def __init__(self, directory: Path, ledger: Path | None) -> None:
        self.batches: tuple[QuorumBatch, ...] = ()
        self._directory = directory
        self._ledger = ledger
        self._looks: object = ()
        self._decoder = MetadataRecordDecoder()

    @property
    def last_epoch(self) -> LeaderEpoch:
        return self.batches[-1].leader_epoch if self.batches else _NO_EPOCH

    @property
    def end_offset(self) -> MetadataOffset:
        return self.batches[-1].end_offset if self.batches else MetadataOffset(0)

    def read(self) -> bool:
        """Reads the file again if its size or time changed; returns whether it did."""
        try:
            segments = sorted(self._directory.glob("*.log"))
            looks = [_look(path) for path in (*segments, *self._ledger_files())]
            if looks == self._looks:
                return False
            durable = None if self._ledger is None else durable_prefixes(str(self._ledger))
            content = b"".join(_content(path, durable) for path in segments)
        except FileNotFoundError:  # it is being replaced
            return False
        self._looks = looks
        self._take(content)
        return True

    def _take(self, content: bytes) -> None:
        """Takes the content up to the first incomplete batch; only content after the known part is decoded."""
        scan = scan_batches(BytesFile(content), check=BatchValidation.CRC)
        there = [(MetadataOffset(each.base_offset), each.leader_epoch, each.crc) for each in scan.batches]
        if [(each.content.base_offset, each.leader_epoch, each.crc) for each in self.batches] != there[
            : len(self.batches)
        ]:
            self.batches, self._decoder = (), MetadataRecordDecoder()
        known = len(self.batches)
        self.batches += tuple(
            self._decoded(batch, content[position : position + batch.size])
            for batch, position in zip(scan.batches[known:], scan.positions[known:], strict=True)
        )

    def _decoded(self, batch: BatchDescriptor, content: bytes) -> QuorumBatch:
        try:
            stored = [(each.key or b"", each.value or b"") for each in read_records(content)]
            control = tuple(decode_control(key, value) for key, value in stored) if batch.is_control else ()
            values = () if batch.is_control else tuple(self._decoder.decode(value) for _, value in stored)
        except FieldError as error:
            raise StorageError(path=str(self._directory), reason=f"offset {batch.base_offset}: {error}") from None
        elected = next((each for each in control if isinstance(each, LeaderChange)), None)
        read = CommittedBatch(MetadataOffset(batch.base_offset), (*map(_control_record, control), *values))
        return QuorumBatch(read, batch.leader_epoch, batch.crc, elected)

    def _ledger_files(self) -> list[Path]:
        return [] if self._ledger is None else sorted(path for path in self._ledger.glob("*") if path.is_file())


def _control_record(record: ControlRecord) -> records.ControlRecord:
    leader_id = record.leader_id if isinstance(record, LeaderChange) else None
    return records.ControlRecord(name=type(record).__name__, leader_id=leader_id)


def _look(path: Path) -> tuple[str, int, int, int]:
    found = path.stat()
    return path.name, found.st_ino, found.st_size, found.st_mtime_ns


def _content(path: Path, durable: Mapping[int, int] | None) -> bytes:
    content = path.read_bytes()
    return content if durable is None else content[: durable.get(path.stat().st_ino, 0)]


class QuorumLogs:
    """All logs of a quorum.

    Args:
        directories: of the logs, by controller.
        ledgers: folders of their sync ledgers; empty if written records count as durable.
        voters: returns the controllers whose disks are voters at present.

    Attributes:
        committed: the batches known to be committed.
    """

    def __init__(
        self,
        directories: Mapping[NodeId, Path],
        *,
        ledgers: Mapping[NodeId, Path],
        voters: Callable[[], Collection[NodeId]],
    ) -> None:
        self.committed: tuple[QuorumBatch, ...] = ()
        self._logs = {node_id: _Log(path, ledgers.get(node_id)) for node_id, path in directories.items()}
        self._voters = voters
        self._majority = len(directories) // 2 + 1
        self._epochs: set[LeaderEpoch] = set()

    @property
    def committed_end(self) -> MetadataOffset:
        """The end of the committed batches, exclusive."""
        return self.committed[-1].end_offset if self.committed else MetadataOffset(0)

    def read_new(self) -> QuorumNews | None:
        """Returns the changes since the last call; ``None`` if there are none.

        Raises:
            StorageError: a log holds other data than metadata records.
        """
        if True not in [log.read() for log in self._logs.values()]:
            return None
        elected = tuple(self._new_epochs())
        committed = self._committed()
        kept = _common(self.committed, committed)
        added = committed[kept:]
        if kept < len(self.committed) and not added:
            kept = len(self.committed)  # a majority lags, or is down to fewer logs: nothing else took their place
        else:
            self.committed = committed
        return QuorumNews(elected, kept, added) if elected or added else None

    def _new_epochs(self) -> list[QuorumBatch]:
        new = {
            batch.leader_epoch: batch
            for log in self._logs.values()
            for batch in log.batches
            if batch.elected is not None and batch.leader_epoch not in self._epochs
        }
        self._epochs |= new.keys()
        return [new[epoch] for epoch in sorted(new)]

    def _committed(self) -> tuple[QuorumBatch, ...]:
        latest = max(log.last_epoch for log in self._logs.values())
        of_latest = [self._logs[node_id] for node_id in self._voters() if self._logs[node_id].last_epoch == latest]
        if latest == _NO_EPOCH or len(of_latest) < self._majority:
            return self.committed
        return sorted(of_latest, key=lambda log: log.end_offset)[-self._majority].batches


def _common(first: Sequence[QuorumBatch], second: Sequence[QuorumBatch]) -> int:
    """Returns the number of batches that two logs have in common at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    differing = (at for at, (one, two) in pairs if (one.leader_epoch, one.crc) != (two.leader_epoch, two.crc))
    return next(differing, min(len(first), len(second)))
