"""A metadata log that is read while it grows: segments only, piece by piece (``tests/kafka_logs/make.py``)."""

import shutil
from pathlib import Path

import pytest

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import MetadataOffset
from laststand.emulator.kafka.metadata_copy import fold, read_metadata_copy
from laststand.emulator.kafka.metadata_log import METADATA_LOG, CommittedBatch, MetadataLogReader
from laststand.emulator.kafka.metadata_records import OtherRecord
from tests.kafka_logs.archives import VERSIONS, unpack

FIRST_SEGMENT = f"{0:020}.log"
BOOTSTRAP_CHECKPOINT = f"{0:020}-{0:010}.checkpoint"


@pytest.fixture(params=VERSIONS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path) / "node-100" / METADATA_LOG


def image_of(batches: list[CommittedBatch]) -> MetadataImage:
    image = MetadataImage()
    for batch in batches:
        for place, record in enumerate(batch.records):
            offset = MetadataOffset(batch.base_offset + place)
            if isinstance(record, OtherRecord):
                image.skip(offset=offset)
            else:
                image.replay(record, offset=offset)
    return image


def test_the_log_alone_has_all_that_was_committed(log: Path) -> None:
    image = image_of(MetadataLogReader(log).read_new())
    known = fold(read_metadata_copy(log))
    assert (image.partitions, image.features) == (known.partitions, known.features)
    assert set(image.brokers) == set(known.brokers)


def test_the_features_that_a_controller_was_formatted_with_are_in_the_log(log: Path) -> None:
    # Also since KIP-1170: the active controller writes them again, so that the first checkpoint need not be read.
    assert image_of(MetadataLogReader(log).read_new()).feature_level("metadata.version") > 0


def test_checkpoints_beside_the_segments_are_passed_over(log: Path) -> None:
    without = MetadataLogReader(log).read_new()
    [snapshot, *_] = sorted(log.glob("*.checkpoint"))
    if snapshot.name != BOOTSTRAP_CHECKPOINT:
        shutil.copy(snapshot, log / BOOTSTRAP_CHECKPOINT)
    assert MetadataLogReader(log).read_new() == without
    assert read_metadata_copy(log).snapshot_offset is None


def test_a_log_is_read_on_from_where_it_was(log: Path, tmp_path: Path) -> None:
    content = (log / FIRST_SEGMENT).read_bytes()
    growing = tmp_path / "growing"
    reader = MetadataLogReader(growing)
    assert reader.read_new() == []
    growing.mkdir()
    (growing / FIRST_SEGMENT).write_bytes(content[: len(content) // 2])
    first = reader.read_new()
    assert reader.read_new() == []
    (growing / FIRST_SEGMENT).write_bytes(content)
    assert first + reader.read_new() == MetadataLogReader(log).read_new()


def test_a_following_segment_is_found(log: Path) -> None:
    reader = MetadataLogReader(log)
    whole = reader.read_new()
    content, parted = (log / FIRST_SEGMENT).read_bytes(), len(whole) // 2
    at = content.index(whole[parted].base_offset.to_bytes(8, "big"))
    (log / FIRST_SEGMENT).write_bytes(content[:at])
    (log / f"{whole[parted].base_offset:020}.log").write_bytes(content[at:])
    assert MetadataLogReader(log).read_new() == whole


def test_what_is_no_metadata_log_is_refused(log: Path) -> None:
    shutil.copy(log.parent.parent / "node-1" / "orders-0" / FIRST_SEGMENT, log / FIRST_SEGMENT)
    with pytest.raises(StorageError, match="frame version"):
        MetadataLogReader(log).read_new()
