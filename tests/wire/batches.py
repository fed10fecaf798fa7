"""Record batches as cases describe them, and records of an answer as cases expect them.

Batches that are said to be compressed by anything but gzip hold their records as they are: no listener reads them.
"""

import gzip
import struct
import zlib
from typing import Any, Final

from crc32c import crc32c

_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_TIMESTAMP_MS: Final = 1_700_000_000_000
_HEADER: Final = struct.Struct(">hiqqqhii")
_CURRENT_MAGIC: Final = 2
_TRANSACTIONAL, _CONTROL = 0x10, 0x20


def make_batch(
    records: list[list[str | None]] | None = None,
    *,
    codec: str = "none",
    timestamp: int = _TIMESTAMP_MS,
    size: int | None = None,
    magic: int = _CURRENT_MAGIC,
    corrupt: str | None = None,
    **fields: Any,
) -> bytes:
    """Returns the bytes of a batch.

    Args:
        records: key and value of each.
        codec: that the attributes name.
        timestamp: of all records, in ms.
        size: instead of ``records``, one record with a value of so many bytes.
        magic: version of the format; 0 and 1 make message sets.
        corrupt: what is wrong with it: ``crc``, ``short``, ``attr`` or ``relative``.
        fields: of the header, by Kafka's names.
    """
    given = [[None, "x" * size]] if size else records if records is not None else [["k", "v"]]
    pairs = [tuple(None if text is None else text.encode() for text in record) for record in given]
    if magic < _CURRENT_MAGIC:
        return b"".join(
            _old_message(index, *pair, magic=magic, timestamp=timestamp) for index, pair in enumerate(pairs)
        )
    is_control = fields.get("control", False)
    if is_control:
        pairs = [(struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0)) for _ in pairs]
    skew = 7 if corrupt == "relative" else 0
    body = b"".join(_record(index + skew, *pair) for index, pair in enumerate(pairs))
    attributes = 7 if corrupt == "attr" else _CODECS.index(codec)
    attributes |= _TRANSACTIONAL * fields.get("transactional", False) | _CONTROL * is_control
    tail = _HEADER.pack(
        attributes,
        len(pairs) - 1,
        timestamp,
        timestamp,
        fields.get("producerId", -1),
        fields.get("producerEpoch", -1),
        fields.get("baseSequence", -1),
        len(pairs),
    ) + (gzip.compress(body, mtime=0) if codec == "gzip" else body)
    crc = crc32c(tail) ^ (corrupt == "crc")
    batch = struct.pack(">ibI", fields.get("leaderEpoch", -1), magic, crc) + tail
    whole = struct.pack(">qi", fields.get("baseOffset", 0), len(batch)) + batch
    return whole[:-3] if corrupt == "short" else whole


def _record(offset_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0\0" + _varint(offset_delta)
    for part in (key, value):
        body += _varint(-1) if part is None else _varint(len(part)) + part
    body += b"\0"
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    rest = (value << 1 ^ value >> 63) & (1 << 64) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _old_message(offset: int, key: bytes | None, value: bytes | None, *, magic: int, timestamp: int) -> bytes:
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def summarize(records: bytes) -> dict[str, Any]:
    """Returns the headers of whole batches, and how many bytes of a cut one follow."""
    batches: list[dict[str, Any]] = []
    position = 0
    while position + 61 <= len(records):
        base, length, leader_epoch, magic, crc = struct.unpack_from(">qiibI", records, position)
        end = position + 12 + length
        if end > len(records):
            break
        attributes, last, _, _, producer_id, epoch, sequence, count = _HEADER.unpack_from(records, position + 21)
        assert magic == _CURRENT_MAGIC, "a log holds batches of the current format"
        batch = {
            "baseOffset": base,
            "lastOffset": base + last,
            "leaderEpoch": leader_epoch,
            "codec": _CODECS[attributes & 7],
            "count": count,
            "producerId": producer_id,
            "producerEpoch": epoch,
            "baseSequence": sequence,
            "crcOk": crc32c(records[position + 21 : end]) == crc,
        }
        flags = {"control": _CONTROL, "transactional": _TRANSACTIONAL, "logAppendTime": 8}
        batches.append({**batch, **{name: True for name, bit in flags.items() if attributes & bit}})
        position = end
    rest = len(records) - position
    return {"batches": batches, **({"cutBytes": rest} if rest else {})}
