"""Follows the segments of a ``__cluster_metadata-0`` directory that Kafka writes, or has written.

A controller that is the only voter commits what it has appended, so every complete batch in its file is committed. A
follower of the log continues where it stopped; an incomplete batch is read the next time.
"""

from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.records import Record
from laststand.emulator.core.types import MetadataOffset
from laststand.emulator.kafka.metadata_records import MetadataRecordDecoder, OtherRecord
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, ScanEnd, scan_batches
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.record_codec import read_records
from laststand.emulator.user_files import open_file

METADATA_LOG: Final = "__cluster_metadata-0"
"""Name of the metadata log's directory in a log directory."""

CONTROL_RECORD: Final = OtherRecord("ControlRecord")
"""A record of the quorum itself: a change of its leader, or of its voters."""


class CommittedBatch(NamedTuple):
    """Records that the controller wrote together, at consecutive offsets."""

    base_offset: MetadataOffset
    records: tuple[Record | OtherRecord, ...]


class MetadataLogReader:
    """Reads a metadata log from its start, a piece at a time.

    Args:
        directory: of the log; it need not exist yet.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._decoder = MetadataRecordDecoder()
        self._segment: Path | None = None
        self._position = 0

    def read_new(self) -> list[CommittedBatch]:
        """Returns the batches written since the last call.

        Raises:
            StorageError: the log holds other data than metadata records.
        """
        found: list[CommittedBatch] = []
        if self._segment is not None:
            self._read_on(self._segment, found)
        while (following := self._following_segment()) is not None:
            self._segment, self._position = following, 0
            self._read_on(following, found)
        return found

    def _following_segment(self) -> Path | None:
        segments = sorted(self._directory.glob("*.log"))
        return next((each for each in segments if self._segment is None or each.name > self._segment.name), None)

    def _read_on(self, segment: Path, found: list[CommittedBatch]) -> None:
        with open_file(segment) as file:
            file.seek(self._position)
            content = file.read()
        scan = scan_batches(BytesFile(content), check=BatchValidation.CRC)
        if scan.end is ScanEnd.CORRUPT:
            raise StorageError(path=str(segment), reason=f"at byte {self._position + scan.valid_bytes}: {scan.reason}")
        for batch, position in zip(scan.batches, scan.positions, strict=True):
            stored = read_records(content[position : position + batch.size])
            records = [CONTROL_RECORD if batch.is_control else self._decode(segment, each.value) for each in stored]
            found.append(CommittedBatch(MetadataOffset(batch.base_offset), tuple(records)))
        self._position += scan.valid_bytes

    def _decode(self, segment: Path, value: bytes | None) -> Record | OtherRecord:
        try:
            return self._decoder.decode(value or b"")
        except FieldError as error:
            raise StorageError(path=str(segment), reason=str(error)) from None
