"""Reader of Kafka's files: segments of batches of version 2, and checkpoints."""

import struct
from pathlib import Path
from typing import NamedTuple

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = (_byte >> 1) ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)

HEADER_BYTES = 61
TRANSACTIONAL, CONTROL = 0x10, 0x20
CONTROL_KEY = 5
"""The key of a control record comes after its length, attributes, two deltas and the length of the key: a byte each."""

CRC_BEGIN = 21
"""The CRC covers a batch from its attributes on; base offset and leader epoch are outside of it."""


class Batch(NamedTuple):
    """A batch as its header has it. ``last_offset`` is inclusive; ``producer_id`` is -1 without idempotence.

    Of a final log, ``is_transactional`` and the ``end`` of a transaction are known, too: 0 aborts it, 1 commits it.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    end: int = -1

    @property
    def place(self) -> tuple[int, int]:
        """Identity of its content for a client: a fetch may begin within a batch, so it has the last offset."""
        return self.last_offset, self.crc


class FinalLog(NamedTuple):
    """A replica's log as the run left it."""

    topic_id: str
    log_start_offset: int
    batches: tuple[Batch, ...]

    @property
    def log_end_offset(self) -> int:
        """Exclusive."""
        return self.batches[-1].last_offset + 1 if self.batches else self.log_start_offset


def crc32c(data: bytes) -> int:
    """Returns the CRC of Castagnoli."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def read_batches(data: bytes) -> list[Batch]:
    """Returns the whole batches of a segment, up to the first one that is torn or whose CRC is wrong."""
    batches = []
    place = 0
    while place + HEADER_BYTES <= len(data):
        base, length, epoch, magic, crc, attributes, last_delta, _, _, producer, producer_epoch, sequence, _ = (
            struct.unpack_from(">qiibIhiqqqhii", data, place)
        )
        end = place + 12 + length
        if magic != 2 or end > len(data) or length < HEADER_BYTES - 12 or crc32c(data[place + CRC_BEGIN : end]) != crc:
            break
        control = -1
        if attributes & CONTROL:
            _, control = struct.unpack_from(">hh", data, place + HEADER_BYTES + CONTROL_KEY)
        header = (base, base + last_delta, epoch, crc, producer, producer_epoch, sequence)
        batches.append(Batch(*header, bool(attributes & TRANSACTIONAL), control))
        place = end
    return batches


def read_checkpoint(file: Path) -> dict[str, int]:
    """Returns the offsets of a checkpoint by partition (``orders-0``); nothing where it is missing."""
    if not file.is_file():
        return {}
    lines = file.read_text().splitlines()[2:]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in (line.rsplit(" ", 2) for line in lines)}


def read_log(directory: Path, log_start_offset: int | None) -> FinalLog:
    """Returns the log of one partition's directory."""
    metadata = directory / "partition.metadata"
    lines = metadata.read_text().splitlines() if metadata.is_file() else []
    topic_id = next((line.partition(": ")[2] for line in lines if line.startswith("topic_id: ")), "")
    segments = sorted(directory.glob("*.log"))
    batches = [batch for segment in segments for batch in read_batches(segment.read_bytes())]
    start = log_start_offset
    if start is None:
        start = int(segments[0].stem) if segments else 0
    return FinalLog(topic_id, start, tuple(batch for batch in batches if batch.last_offset >= start))
