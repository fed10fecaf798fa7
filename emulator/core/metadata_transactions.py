"""Metadata transactions (KIP-868): records of the metadata log that take effect together, or not at all.

They lie between BeginTransactionRecord and EndTransactionRecord, in one batch or several. AbortTransactionRecord undoes
them: a controller that is elected while one is open writes it before anything else.
"""

from laststand.emulator.core import records
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import MetadataOffset


def open_after(
    start: MetadataOffset | None, record: records.Record, *, offset: MetadataOffset
) -> MetadataOffset | None:
    """Returns the offset of the transaction that is open after a record; ``None`` if none is.

    Args:
        start: offset of the transaction that was open before.
        record: the next record of the log.
        offset: the record's offset.

    Raises:
        InvariantError: the record begins a transaction inside another, or ends or aborts none.
    """
    match record:
        case records.BeginTransactionRecord():
            if start is not None:
                raise InvariantError(f"a metadata transaction begins at {offset} in the one that began at {start}")
            return offset
        case records.EndTransactionRecord() | records.AbortTransactionRecord():
            if start is None:
                raise InvariantError(f"{type(record).__name__} at {offset}, where no metadata transaction is open")
            return None
        case _:
            return start
