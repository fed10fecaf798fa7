"""Kafka's own tool reads what a recovery writes into the logs of coordinators, where Kafka is installed."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from laststand.emulator.core.broker.groups.recovery import GENERATION_JUMP, fences
from laststand.emulator.core.broker.transactions.recovery import aborts, ends_of_sessions
from laststand.emulator.core.coordinator_records import CoordinatorRecord, LoadedRecord
from laststand.emulator.core.group_records import GroupMetadata, OffsetCommitted
from laststand.emulator.core.transaction_records import TransactionMetadata, TransactionState
from laststand.emulator.core.types import GroupRecovery, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition
from laststand.emulator.storage.coordinator_records import encode_records
from laststand.emulator.storage.record_batch import stamp
from tests.cluster.dump_tool import dumped

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

ORDERS = TopicPartition("orders", 0)
_FOUND = re.compile(r"^\| .* key: (.*?)(?: payload: (.*))?$", re.MULTILINE)


def read_by_kafka(path: Path, decoder: str, batches: Sequence[Sequence[CoordinatorRecord]]) -> list[tuple[str, str]]:
    """Returns the keys and values of a log with these records, as Kafka's tool prints them."""
    content, end = b"", 0
    for records in batches:
        encoded = encode_records(records, timestamp_ms=1000)
        last = Offset(end + len(records) - 1)
        header = replace(
            encoded.header, base_offset=Offset(end), last_offset=last, leader_epoch=LeaderEpoch(1 if end else 0)
        )
        content += bytes(stamp(encoded.content, header))
        end += len(records)
    path.write_bytes(content)
    return _FOUND.findall(dumped(path, decoder))


def test_the_fences_of_groups_are_read_and_a_hold_is_passed_over(tmp_path: Path) -> None:
    group = GroupMetadata(group_id="readers", protocol_type="consumer", generation_id=2, protocol_name="range")
    position = OffsetCommitted(group_id="readers", partition=ORDERS, offset=7, committed_ms=1000)
    log = [LoadedRecord(group, Offset(1)), LoadedRecord(position, Offset(2))]
    written = tuple(fences(log, GroupRecovery.HOLD, now_ms=2000))
    batches = [(group, position), written, (replace(position, offset=9),)]
    _, before, fence, hold, after = read_by_kafka(tmp_path / f"{0:020}.log", "--offsets-decoder", batches)
    assert json.loads(fence[0]) == {"type": "2", "data": {"group": "readers"}}
    told = json.loads(fence[1])["data"]
    assert (told["generation"], told["members"]) == (2 + GENERATION_JUMP, [])
    assert hold == ("Unknown record type 704 at offset 3, skipping.", "")
    assert [json.loads(value)["data"]["offset"] for _, value in (before, after)] == [7, 9]


def test_the_aborts_of_transactions_are_read_and_ends_of_sessions_are_passed_over(tmp_path: Path) -> None:
    ongoing = TransactionMetadata(
        transactional_id="payments",
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(3),
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({ORDERS}),
        start_ms=1000,
        update_ms=1000,
    )
    log = [LoadedRecord(ongoing, Offset(1))]
    written = [tuple(aborts(log, raises_epoch=raises, now_ms=2000)) for raises in (False, True)]
    batches: list[Sequence[CoordinatorRecord]] = [(ongoing,), tuple(ends_of_sessions(log)), *written]
    _, ended, *found = read_by_kafka(tmp_path / f"{0:020}.log", "--transaction-log-decoder", batches)
    assert ended == ("Unknown record type 704 at offset 1, skipping.", "")
    assert [json.loads(key) for key, _ in found] == 2 * [{"type": "0", "data": {"transactionalId": "payments"}}]
    for _, value in found:
        told = json.loads(value)["data"]
        state = (told["transactionStatus"], told["producerEpoch"], told["transactionPartitions"])
        assert state == (TransactionState.PREPARE_ABORT, 4, [{"topic": "orders", "partitionIds": [0]}])
