"""Keys of acknowledged records are written whatever the compression; nobody waits for compressed ones."""

import threading
from pathlib import Path

import msgspec
import pytest

from laststand.emulator.core.history import AckedKeys
from laststand.emulator.core.types import Offset
from laststand.emulator.kafka_listener import key_file
from laststand.emulator.kafka_listener.key_file import KeyFile, Keys, keys_of
from laststand.emulator.storage.filesystem import Buffer
from laststand.emulator.storage.record_codec import Compression, RecordContent, build_batch

TIMEOUT_S = 10.0


def batch_of(compression: Compression) -> bytes:
    records = [RecordContent(key=key, value=b"v", timestamp_ms=0) for key in (b"a", None, b"b")]
    return build_batch(records, compression=compression)


def acked(base_offset: int) -> AckedKeys:
    return AckedKeys(topic="orders", topic_id=None, partition=0, base_offset=Offset(base_offset), crc=1, keys=())


def lines_of(path: Path) -> list[tuple[int, Keys]]:
    return [(line.base_offset, line.keys) for line in msgspec.json.Decoder(AckedKeys).decode_lines(path.read_bytes())]


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
def test_keys_of_every_compression_are_written(compression: Compression, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "acked.keys")
    file.add(acked(7), file.read(batch_of(compression)))
    file.close()
    assert lines_of(tmp_path / "acked.keys") == [(7, ("a", None, "b"))]


def test_who_sends_a_batch_does_not_wait_for_another_that_is_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def slow(batch: Buffer) -> Keys:
        if threading.current_thread() is not threading.main_thread():
            assert may_go_on.wait(TIMEOUT_S)
        return keys_of(batch)

    monkeypatch.setattr(key_file, "keys_of", slow)
    file = KeyFile(tmp_path / "acked.keys")
    file.add(acked(0), file.read(batch_of(Compression.GZIP)))
    file.add(acked(3), file.read(batch_of(Compression.NONE)))
    file.flush()
    assert lines_of(tmp_path / "acked.keys") == [(3, ("a", None, "b"))]
    may_go_on.set()
    file.close()
    assert lines_of(tmp_path / "acked.keys") == [(3, ("a", None, "b")), (0, ("a", None, "b"))]
