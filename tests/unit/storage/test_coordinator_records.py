"""The records of coordinators, as they are read from a log to coordinate again."""

import msgspec
import pytest

from laststand.emulator.core.batch import Marker, TransactionResult
from laststand.emulator.core.coordinator_records import CoordinatorRecord, LoadedRecord
from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_records import (
    SessionsEnded,
    TransactionEnded,
    TransactionMetadata,
    TransactionRemoved,
    TransactionState,
)
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from laststand.emulator.storage.coordinator_records import decode_log, decode_records, encode_records
from laststand.emulator.storage.record_batch import stamp


def transition(name: str, state: TransactionState) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id=name,
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(0),
        timeout_ms=1000,
        state=state,
        update_ms=1,
    )


def test_the_end_of_sessions_is_read_whatever_follows_it() -> None:
    ended = SessionsEnded(transactional_id="a", producer_id=ProducerId(7))
    records: list[CoordinatorRecord] = [RECORDS[2], ended, transition("a", TransactionState.COMPLETE_ABORT)]
    assert decode_log(log_of(records), topic=TRANSACTIONS_TOPIC) == (
        LoadedRecord(ended, Offset(2)),
        LoadedRecord(records[2], Offset(3)),
    )


def log_of(records: list[CoordinatorRecord]) -> bytes:
    parts: list[bytes] = []
    for offset, record in enumerate(records):
        encoded = encode_records((record,), timestamp_ms=1)
        header = msgspec.structs.replace(
            encoded.header, base_offset=Offset(offset), last_offset=Offset(offset), leader_epoch=LeaderEpoch(0)
        )
        parts.append(bytes(stamp(encoded.content, header)))
    return b"".join(parts)


RECORDS: list[CoordinatorRecord] = [
    transition("a", TransactionState.EMPTY),
    transition("b", TransactionState.EMPTY),
    transition("a", TransactionState.ONGOING),
    TransactionRemoved(transactional_id="b"),
    TransactionEnded(
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(0),
        marker=Marker(result=TransactionResult.COMMIT, coordinator_epoch=0),
    ),
]


def test_of_transactions_the_last_record_of_each_id_is_read() -> None:
    assert decode_log(log_of(RECORDS), topic=TRANSACTIONS_TOPIC) == (
        LoadedRecord(RECORDS[2], Offset(3)),
        LoadedRecord(RECORDS[3], Offset(4)),
    )


def test_every_record_of_a_log_can_be_read() -> None:
    read = decode_records(log_of(RECORDS), is_of_transactions=True)
    assert [loaded.record for loaded in read] == RECORDS


def test_what_is_no_whole_batch_is_an_error() -> None:
    with pytest.raises(CorruptRecordError, match="no whole batch"):
        decode_log(log_of(RECORDS)[:-1], topic=TRANSACTIONS_TOPIC)
