"""Logs of controllers side by side: who has a record, and what can be said of its commit."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from laststand.cli.main import cli
from laststand.cli.program.user_error import UserError
from laststand.emulator.autopsy.autopsy import examine
from laststand.emulator.autopsy.log_directories import find_log_directories
from laststand.emulator.autopsy.metadata_logs import Committed, ComparedLogs, LeaderAnswer, compare_metadata_logs
from laststand.emulator.core import records
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.quorum.batches import KRaftVoters, LeaderChange, QuorumBatch
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId, TopicId
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka.metadata_values import KafkaValues
from laststand.emulator.storage.metadata_log import MetadataLog
from laststand.emulator.storage.os_filesystem import OsFileSystem
from tests.kafka_logs.archives import unpack

NODES = (NodeId(100), NodeId(101), NodeId(102))
KEYS = tuple(ReplicaKey(node, initial_directory_id("cluster", node)) for node in NODES)
FIRST = (
    LeaderChange(leader_id=NODES[0], voters=NODES, granting_voters=NODES[:2]),
    KRaftVoters(voters=VoterSet.of(Voter(key=key) for key in KEYS)),
)


def write(place: Path, node: NodeId, *epochs: int, name: str = "topic", directory_id: str | None = None) -> None:
    """A voter's disk: two records of the quorum in epoch 1, then a topic in each of these epochs."""
    data = place / f"nodes/{node}/data"
    (data / "__cluster_metadata-0").mkdir(parents=True)
    key = next(key for key in KEYS if key.node_id == node)
    properties = f"version=1\nnode.id={node}\ndirectory.id={directory_id or key.directory_id}\n"
    (data / "meta.properties").write_text(properties, encoding="utf-8")
    log = MetadataLog(OsFileSystem(ledger_folder=str(place / f"ledger-{node}")), str(data / "__cluster_metadata-0"))
    log.append(QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(1), control=FIRST))
    codec = KafkaValues()
    for offset, epoch in enumerate(epochs, start=2):
        topic = records.TopicRecord(name=f"{name}-{offset}", topic_id=TopicId(uuid_text(bytes((offset,) * 16))))
        batch = records.MetadataBatch(base_offset=MetadataOffset(offset), records=(topic,))
        values = codec.encode(batch, ())
        log.append(QuorumBatch(base_offset=MetadataOffset(offset), leader_epoch=LeaderEpoch(epoch), values=values))
    log.sync()
    log.close()


def compared(place: Path, *, answer: LeaderAnswer | None = None) -> ComparedLogs:
    return compare_metadata_logs(find_log_directories([str(place)]), answer=answer)


def at(logs: ComparedLogs, offset: int) -> list[tuple[tuple[NodeId, ...], Committed]]:
    return [(each.nodes, each.committed) for each in logs.records if each.offset == offset]


def test_a_record_of_the_last_epoch_on_a_majority_is_committed_with_all_before_it(tmp_path: Path) -> None:
    write(tmp_path, NODES[0], 1, 2, 2)
    write(tmp_path, NODES[1], 1, 2)
    write(tmp_path, NODES[2], 1)
    logs = compared(tmp_path)
    assert logs.committed_end_offset == 4
    assert at(logs, 3) == [(NODES[:2], Committed.YES)]
    assert at(logs, 4) == [(NODES[:1], Committed.TOO_FEW)]
    assert logs.records[2].record.startswith("Topic name topic-2, topic ")


def test_a_majority_does_not_commit_what_an_earlier_epoch_wrote(tmp_path: Path) -> None:
    write(tmp_path, NODES[0], 1, 2)
    write(tmp_path, NODES[1], 1, 2)
    write(tmp_path, NODES[2], 3, name="other")
    logs = compared(tmp_path)
    assert logs.committed_end_offset == 0
    assert at(logs, 2) == [(NODES[:2], Committed.UNKNOWN), (NODES[2:], Committed.TOO_FEW)]


def test_what_a_leader_overwrote_is_reported(tmp_path: Path) -> None:
    write(tmp_path, NODES[0], 1, name="old")
    write(tmp_path, NODES[1], 2)
    write(tmp_path, NODES[2], 2)
    assert at(compared(tmp_path), 2) == [(NODES[:1], Committed.OVERWRITTEN), (NODES[1:], Committed.YES)]


def test_the_high_watermark_of_a_leader_says_more_than_the_files(tmp_path: Path) -> None:
    write(tmp_path, NODES[0], 1, 2)
    write(tmp_path, NODES[1], 1)
    assert compared(tmp_path).committed_end_offset == 0
    logs = compared(tmp_path, answer=LeaderAnswer(NODES[0], MetadataOffset(4)))
    assert at(logs, 3) == [(NODES[:1], Committed.YES)]


def test_a_voter_of_which_there_is_no_log_may_have_what_is_missing(tmp_path: Path) -> None:
    write(tmp_path, NODES[0], 1)
    logs = compared(tmp_path)
    assert (logs.voters, logs.missing) == (NODES, NODES[1:])
    assert at(logs, 2) == [(NODES[:1], Committed.UNKNOWN)]


def test_another_disk_is_no_voter(tmp_path: Path) -> None:
    write(tmp_path, NODES[0], 1)
    write(tmp_path, NODES[1], 1, directory_id=uuid_text(bytes(16)))
    logs = compared(tmp_path)
    assert [log.is_voter for log in logs.logs] == [True, False]
    assert logs.committed_end_offset == 0


def test_the_command_prints_them(tmp_path: Path) -> None:
    write(tmp_path, NODES[0], *(1,) * 60)
    write(tmp_path, NODES[1], *(1,) * 60)
    result = CliRunner().invoke(cli, ["inspect", "metadata", "--dir", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "the last 50 of 62 records; --from 0 shows all" in result.output
    assert "no log of 102, of the voters 100,101,102" in result.output
    whole = CliRunner().invoke(cli, ["inspect", "metadata", "--from", "0", "--dir", str(tmp_path)])
    assert "LeaderChange leader 100" in whole.output


@pytest.mark.parametrize("version", ["3.9.1", "4.2.0"])
def test_kafkas_own_logs_are_compared(version: str, tmp_path: Path) -> None:
    logs = compared(unpack(version, tmp_path))
    assert logs.voters == (NodeId(100),)
    assert logs.committed_end_offset == next(log for log in logs.logs if log.node_id == 100).end_offset
    assert logs.records[0].record.startswith("LeaderChange leader 100")


def test_a_directory_without_a_metadata_log_is_refused(tmp_path: Path) -> None:
    write(tmp_path, NODES[0])
    (tmp_path / "nodes/100/data/__cluster_metadata-0").rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="none has __cluster_metadata-0"):
        compared(tmp_path)
    for place, problem in ((tmp_path / "nowhere", "no directory"), (tmp_path, "no controller's metadata log")):
        result = CliRunner().invoke(cli, ["inspect", "metadata", "--dir", str(place)])
        assert isinstance(result.exception, UserError)
        assert problem in str(result.exception)


def test_autopsy_takes_the_log_of_the_newest_epoch_and_says_what_voters_prove(tmp_path: Path) -> None:
    """The log of a deposed controller is longer, and its end was never committed."""
    write(tmp_path, NODES[0], 1, 1, 1, 1, name="deposed")
    write(tmp_path, NODES[1], 1, 2)
    write(tmp_path, NODES[2], 1, 2)
    source = examine(find_log_directories([str(tmp_path)])).metadata
    assert source is not None
    assert (source.end_offset, source.voters, source.committed_end_offset) == (4, (100, 101, 102), 4)
    assert "nodes/100" not in source.path
