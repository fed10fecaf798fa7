"""The file of a segment's aborted transactions, as the log is written, cut, and opened again."""

import msgspec
import pytest

from laststand.emulator.core.batch import BatchDescriptor, Marker, TransactionResult
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.control_batch import encode_marker
from laststand.emulator.storage.filesystem import FileSystem, read_file
from laststand.emulator.storage.partition_log import LogSettings, PartitionLog
from laststand.emulator.storage.record_batch import PARSE_ANYTHING, parse_batch, stamp
from laststand.emulator.storage.record_codec import ProducerFields, RecordContent, build_batch
from laststand.emulator.storage.recovery import LogCheckpoints, create_log, load_log
from laststand.emulator.storage.transaction_index import decode_index
from tests.unit.storage.log_fixtures import PARTITION, TOPIC_ID, durable_directory, overwrite

PATH = "/logs/orders-0"
FIRST = f"{PATH}/00000000000000000000.txnindex"
ABORT, COMMIT = TransactionResult.ABORT, TransactionResult.COMMIT


def written(log: PartitionLog, producer_id: int) -> None:
    producer = ProducerFields(producer_id=ProducerId(producer_id), producer_epoch=ProducerEpoch(0), base_sequence=0)
    content = build_batch([RecordContent(value=b"value", timestamp_ms=1)], producer=producer, is_transactional=True)
    parsed = parse_batch(content, max_message_bytes=PARSE_ANYTHING)
    assert isinstance(parsed, BatchDescriptor)
    append(log, parsed, content)


def ended(log: PartitionLog, producer_id: int, result: TransactionResult) -> None:
    marker = TransactionEnded(
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(0),
        marker=Marker(result=result, coordinator_epoch=0),
    )
    encoded = encode_marker(marker, timestamp_ms=1)
    append(log, encoded.header, encoded.content)


def append(log: PartitionLog, batch: BatchDescriptor, content: bytes | memoryview) -> None:
    end = log.log_end_offset
    batch = msgspec.structs.replace(batch, base_offset=end, last_offset=end, leader_epoch=LeaderEpoch(0))
    log.append([batch], [bytes(stamp(content, batch))])


def entries(filesystem: FileSystem, path: str = FIRST) -> list[tuple[int, int, int, int]]:
    """Returns producer, first offset, offset of the marker, and last stable offset of each entry."""
    if not filesystem.exists(path):
        return []
    found = decode_index(read_file(filesystem, path), path=path, base_offset=Offset(0))
    return [(each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset) for each in found]


def opened(filesystem: FileSystem, *, is_clean: bool) -> PartitionLog:
    return load_log(
        filesystem,
        PATH,
        partition=PARTITION,
        is_clean=is_clean,
        checkpoints=LogCheckpoints(),
        settings=LogSettings(),
        memory=BatchMemory(),
    )[0]


def test_it_names_what_was_aborted_and_follows_the_log() -> None:
    filesystem = durable_directory("/logs")
    log = create_log(
        filesystem, PATH, partition=PARTITION, topic_id=TOPIC_ID, settings=LogSettings(), memory=BatchMemory()
    )
    filesystem.sync_directory("/logs")
    written(log, 7)
    ended(log, 7, COMMIT)
    assert not filesystem.exists(FIRST)
    written(log, 8)
    written(log, 7)
    ended(log, 7, ABORT)
    ended(log, 8, ABORT)
    assert entries(filesystem) == [(7, 3, 4, 2), (8, 2, 5, 6)]
    log.truncate_to(Offset(5))
    assert entries(filesystem) == [(7, 3, 4, 2)]
    ended(log, 8, ABORT)
    assert entries(filesystem) == [(7, 3, 4, 2), (8, 2, 5, 6)]
    log.roll(Offset(6))
    written(log, 9)
    ended(log, 9, ABORT)
    assert entries(filesystem, f"{PATH}/00000000000000000006.txnindex") == [(9, 6, 7, 8)]
    log.close()
    again = opened(filesystem, is_clean=True)
    assert entries(filesystem) == [(7, 3, 4, 2), (8, 2, 5, 6)]
    again.abandon()


@pytest.mark.parametrize("left", [None, b"\0\0", b"\0" * 40])
def test_what_a_loss_of_power_took_of_it_is_made_again(left: bytes | None) -> None:
    filesystem = durable_directory("/logs")
    log = create_log(
        filesystem, PATH, partition=PARTITION, topic_id=TOPIC_ID, settings=LogSettings(), memory=BatchMemory()
    )
    filesystem.sync_directory("/logs")
    written(log, 7)
    ended(log, 7, ABORT)
    log.flush()
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    assert entries(filesystem) == [(7, 0, 1, 2)]
    if left is None:
        filesystem.unlink(FIRST)
    else:
        overwrite(filesystem, FIRST, left)
    opened(filesystem, is_clean=False).abandon()
    assert entries(filesystem) == [(7, 0, 1, 2)]


def test_what_another_log_s_transaction_left_in_it_goes() -> None:
    filesystem = durable_directory("/logs")
    log = create_log(
        filesystem, PATH, partition=PARTITION, topic_id=TOPIC_ID, settings=LogSettings(), memory=BatchMemory()
    )
    written(log, 7)
    written(log, 8)
    ended(log, 7, ABORT)
    stale = read_file(filesystem, FIRST)
    log.truncate_to(Offset(1))
    ended(log, 7, COMMIT)
    written(log, 8)
    ended(log, 8, COMMIT)
    log.close()
    assert not filesystem.exists(FIRST)
    overwrite(filesystem, FIRST, stale)  # the file was removed, and a loss of power had it back
    opened(filesystem, is_clean=True).abandon()
    assert entries(filesystem) == []
