"""A flipped bit makes the last batch unreadable, and nothing else."""

from pathlib import Path

from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches
from laststand.emulator.storage.bit_flip import FlippedBit, flip_last_batch
from laststand.emulator.storage.power_loss import scan_log_end
from laststand.emulator.storage.record_batch import crc_of
from tests.unit.storage.log_fixtures import make_batches


def test_the_last_batch_fails_its_crc_and_the_others_do_not(tmp_path: Path) -> None:
    _, contents = make_batches([0, 1, 2])
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(b"".join(contents))
    batches = scan_batches(BytesFile(b"".join(contents)), check=BatchValidation.CRC).batches
    damaged = contents[2][:-1] + bytes([contents[2][-1] ^ 1])
    flipped = flip_last_batch(tmp_path)
    assert flipped == FlippedBit(batches[2], damaged_crc=crc_of(damaged), is_detectable=True)
    assert flipped.damaged_crc != batches[2].crc
    assert scan_log_end(str(tmp_path)) == 2
    assert log.read_bytes()[: -len(contents[2])] == b"".join(contents[:2])
    assert log.stat().st_size == sum(map(len, contents))
    again = flip_last_batch(tmp_path)
    assert again is not None
    assert again.batch == batches[1], "the last one that is intact"


def test_an_empty_segment_is_passed_over(tmp_path: Path) -> None:
    _, contents = make_batches([0])
    (tmp_path / "00000000000000000000.log").write_bytes(contents[0])
    (tmp_path / "00000000000000000001.log").write_bytes(b"")
    flipped = flip_last_batch(tmp_path)
    assert flipped is not None
    assert flipped.batch.base_offset == 0


def test_without_a_batch_there_is_nothing_to_flip(tmp_path: Path) -> None:
    assert flip_last_batch(tmp_path / "nowhere") is None
    (tmp_path / "00000000000000000000.log").write_bytes(b"")
    assert flip_last_batch(tmp_path) is None
