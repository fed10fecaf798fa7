"""Records that brokers write themselves, and load again as coordinators.

The driver encodes them as batches and decodes them, in Kafka's format. The core handles them as values, and passes the
bytes of an encoded batch to the log unread.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.group_records import GroupRecord
from laststand.emulator.core.transaction_records import SessionsEnded, TransactionMetadata, TransactionRemoved
from laststand.emulator.core.types import Offset

CoordinatorRecord: TypeAlias = GroupRecord | TransactionMetadata | TransactionRemoved | SessionsEnded


class LoadedRecord(NamedTuple):
    """A record that was read from the log, and the offset after it."""

    record: CoordinatorRecord
    next_offset: Offset


class EncodedBatch(NamedTuple):
    """A batch that a broker made itself, with offsets from 0: its header, and its bytes."""

    header: BatchDescriptor
    content: bytes


EncodeRecords: TypeAlias = Callable[[Sequence[CoordinatorRecord]], EncodedBatch]
"""Makes one batch of at least one record."""
