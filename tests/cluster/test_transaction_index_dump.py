"""Kafka's own tool reads the aborted transactions of a segment, where Kafka is installed."""

from pathlib import Path

import pytest

from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.partition_log import LogSettings
from laststand.emulator.storage.recovery import create_log
from tests.cluster.dump_tool import dumped
from tests.unit.storage.log_fixtures import PARTITION, TOPIC_ID
from tests.unit.storage.test_transaction_index import ABORT, COMMIT, ended, written

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


def test_kafkas_own_tool_reads_our_index(tmp_path: Path) -> None:
    filesystem = OsFileSystem(ledger_folder=str(tmp_path / "ledger"))
    path = tmp_path / "orders-0"
    log = create_log(
        filesystem, str(path), partition=PARTITION, topic_id=TOPIC_ID, settings=LogSettings(), memory=BatchMemory()
    )
    for producer_id, result in ((7, COMMIT), (8, ABORT), (9, ABORT)):
        written(log, producer_id)
        ended(log, producer_id, result)
    log.close()
    output = dumped(path / f"{0:020}.txnindex")
    found = [line for line in output.splitlines() if "producerId" in line]
    assert found == [
        "version: 0 producerId: 8 firstOffset: 2 lastOffset: 3 lastStableOffset: 4",
        "version: 0 producerId: 9 firstOffset: 4 lastOffset: 5 lastStableOffset: 6",
    ]
