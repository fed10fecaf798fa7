"""The aborted transactions of one segment, as a file that Kafka's own tools read.

``.txnindex`` has an entry for each marker of the segment that aborted a transaction, in the order of the markers::

    version i16 = 0 | producer id i64 | first offset i64 | offset of the marker i64 | last stable offset i64

Source: Kafka's ``TransactionIndex``, ``AbortedTxn``.
"""

import struct
from collections.abc import Iterable
from typing import Final

from laststand.emulator.core.broker.replicas.transaction_index import CompletedTransaction
from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.types import Offset, ProducerId

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


def encode_index(aborted: Iterable[CompletedTransaction]) -> bytes:
    """Returns the content of a file."""
    return b"".join(
        _ENTRY.pack(_VERSION, each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
        for each in aborted
    )


def decode_index(content: bytes, *, path: str, base_offset: Offset) -> tuple[CompletedTransaction, ...]:
    """Inverse of ``encode_index``.

    Args:
        content: of the file.
        path: for the error.
        base_offset: of the segment.

    Raises:
        CorruptRecordError: an entry is cut, has another version, or ends before the segment.
    """
    whole = len(content) - len(content) % _ENTRY.size
    found: list[CompletedTransaction] = []
    for position in range(0, whole, _ENTRY.size):
        version, producer_id, first_offset, last_offset, last_stable_offset = _ENTRY.unpack_from(content, position)
        if version != _VERSION or last_offset < base_offset:
            raise CorruptRecordError(path=path, position=position, reason=f"version {version}, marker at {last_offset}")
        found.append(
            CompletedTransaction(
                producer_id=ProducerId(producer_id),
                first_offset=Offset(first_offset),
                last_offset=Offset(last_offset),
                is_aborted=True,
                last_stable_offset=Offset(last_stable_offset),
            )
        )
    if whole < len(content):
        raise CorruptRecordError(path=path, position=whole, reason="a cut entry")
    return tuple(found)
