"""Commits of several controllers, by their logs while these grow, are cut and are replaced."""

import shutil
from pathlib import Path

import pytest

from laststand.emulator.core import records
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.quorum.batches import LeaderChange, QuorumBatch
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId, TopicId
from laststand.emulator.kafka.metadata_values import KafkaValues
from laststand.emulator.kafka.quorum_logs import QuorumLogs
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.metadata_log import log_content
from laststand.emulator.storage.os_filesystem import OsFileSystem

VOTERS = (NodeId(100), NodeId(101), NodeId(102))
SEGMENT = f"{0:020}.log"


def election(base_offset: int, epoch: int, leader: NodeId) -> QuorumBatch:
    change = LeaderChange(leader_id=leader, voters=VOTERS, granting_voters=(leader, VOTERS[1]))
    return QuorumBatch(base_offset=MetadataOffset(base_offset), leader_epoch=LeaderEpoch(epoch), control=(change,))


def topic(base_offset: int, epoch: int, name: str) -> QuorumBatch:
    record = records.TopicRecord(name=name, topic_id=TopicId("bGFzdHN0YW5kLXRvcGljcw"))
    batch = records.MetadataBatch(base_offset=MetadataOffset(base_offset), records=(record,))
    values = tuple(KafkaValues().encode(batch, ()))
    return QuorumBatch(base_offset=MetadataOffset(base_offset), leader_epoch=LeaderEpoch(epoch), values=values)


FIRST = (election(0, 1, VOTERS[0]), topic(1, 1, "orders"))
MORE = (*FIRST, topic(2, 1, "payments"))
OTHER = (*FIRST, election(2, 2, VOTERS[2]), topic(3, 2, "returns"))


class Disks:
    """Logs of three controllers, as files."""

    def __init__(self, directory: Path) -> None:
        self.directories = {node_id: directory / str(node_id) for node_id in VOTERS}
        self.voters = list(VOTERS)

    def write(self, node_id: NodeId, batches: tuple[QuorumBatch, ...]) -> None:
        path = self.directories[node_id] / SEGMENT
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(log_content(batches))

    def logs(self, ledgers: dict[NodeId, Path] | None = None) -> QuorumLogs:
        return QuorumLogs(self.directories, ledgers=ledgers or {}, voters=lambda: self.voters)


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    return Disks(tmp_path)


def test_what_a_majority_has_is_committed(disks: Disks) -> None:
    logs = disks.logs()
    assert logs.read_new() is None
    disks.write(VOTERS[0], FIRST)
    news = logs.read_new()
    assert news is not None
    assert [batch.leader_epoch for batch in news.elected] == [1]
    assert news.committed == ()
    disks.write(VOTERS[1], FIRST)
    news = logs.read_new()
    assert news is not None
    assert news.elected == ()
    [change], [made] = (batch.content.records for batch in news.committed)
    assert change == records.ControlRecord(name="LeaderChange", leader_id=VOTERS[0])
    assert isinstance(made, records.TopicRecord)
    assert logs.committed_end == 2
    assert logs.read_new() is None


def test_what_one_has_alone_is_not_committed(disks: Disks) -> None:
    logs = disks.logs()
    disks.write(VOTERS[0], MORE)
    disks.write(VOTERS[1], FIRST)
    logs.read_new()
    assert logs.committed_end == 2


def test_a_disk_that_is_no_voter_does_not_count(disks: Disks) -> None:
    disks.voters.remove(VOTERS[1])
    logs = disks.logs()
    disks.write(VOTERS[0], FIRST)
    disks.write(VOTERS[1], FIRST)
    logs.read_new()
    assert logs.committed_end == 0


def test_records_of_an_older_epoch_wait_for_one_of_the_latest(disks: Disks) -> None:
    # Raft, figure 8: two have the record at offset 2, and another may be there once the leader of epoch 2 has counted.
    logs = disks.logs()
    disks.write(VOTERS[0], MORE)
    disks.write(VOTERS[1], MORE)
    disks.write(VOTERS[2], OTHER)
    logs.read_new()
    assert logs.committed_end == 0


def test_a_log_that_was_cut_and_written_again_is_read_again(disks: Disks) -> None:
    logs = disks.logs()
    disks.write(VOTERS[0], MORE)
    disks.write(VOTERS[1], FIRST)
    logs.read_new()
    for node_id in (VOTERS[0], VOTERS[2]):
        disks.write(node_id, OTHER)
    news = logs.read_new()
    assert news is not None
    assert [batch.leader_epoch for batch in news.elected] == [2]
    assert (news.kept, [batch.content.base_offset for batch in news.committed]) == (2, [2, 3])


def test_a_replaced_disk_that_votes_has_the_quorum_forget(disks: Disks) -> None:
    logs = disks.logs()
    disks.write(VOTERS[0], MORE)
    disks.write(VOTERS[1], MORE)
    disks.write(VOTERS[2], FIRST)
    logs.read_new()
    assert logs.committed_end == 3
    shutil.rmtree(disks.directories[VOTERS[1]])
    assert logs.read_new() is None
    disks.write(VOTERS[1], OTHER)
    disks.write(VOTERS[2], OTHER)
    news = logs.read_new()
    assert news is not None
    assert (news.kept, logs.committed_end) == (2, 4)
    assert [batch.leader_epoch for batch in logs.committed] == [1, 1, 2, 2]


def test_only_what_is_synced_counts_where_that_is_recorded(disks: Disks, tmp_path: Path) -> None:
    ledgers = {node_id: tmp_path / f"ledger-{node_id}" for node_id in VOTERS}
    logs = disks.logs(ledgers)
    written = []
    for node_id in VOTERS[:2]:
        filesystem = OsFileSystem(ledger_folder=str(ledgers[node_id]))
        disks.directories[node_id].mkdir()
        file = filesystem.open(str(disks.directories[node_id] / SEGMENT), OpenMode.APPEND)
        file.append([log_content(FIRST)])
        written.append(file)
    logs.read_new()
    assert logs.committed_end == 0
    for file in written:
        file.sync()
    logs.read_new()
    assert logs.committed_end == 2


def test_what_is_no_metadata_log_is_refused(disks: Disks) -> None:
    nonsense = QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(1), values=(b"\x07nonsense",))
    disks.write(VOTERS[0], (nonsense,))
    with pytest.raises(StorageError, match="offset 0"):
        disks.logs().read_new()
