"""Events of several controllers of Kafka, as far as these are seen from outside."""

from pathlib import Path

import pytest

from laststand.chaos.kafka.metadata import KafkaMetadata
from laststand.chaos.kafka.witness import NodeWitness
from laststand.emulator.cluster.child import EndCause
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import LeaderEpoch, NodeId
from laststand.emulator.kafka.metadata_log import METADATA_LOG
from laststand.emulator.storage.line_file import line_files, read_texts
from laststand.emulator.storage.metadata_log import log_content
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.quorum_state import write_quorum_state
from tests.unit.kafka.test_quorum_logs import FIRST, MORE, OTHER, SEGMENT, VOTERS

OF_THE_QUORUM = ("QuorumVoteGranted", "QuorumLeaderElected", "QuorumLeaderFollowed", "MetadataCommittedUpTo")


class Played:
    """Controllers of a run whose disks the test writes."""

    def __init__(self, directory: Path, era: str) -> None:
        (directory / "events").mkdir()
        self.layout = ClusterLayout(
            run="unit",
            directory=directory,
            controller_ids=VOTERS,
            broker_ids=(),
            switches=era_switches(era),
            properties=(),
            toxiproxy=None,
        )
        self.witness = NodeWitness(self.layout)
        self.changes = 0
        self.metadata = KafkaMetadata(self.layout, witness=self.witness, has_ledgers=False, on_change=self._count)
        for node_id in VOTERS:
            self.format(node_id, f"disk-{node_id}")
            self.witness.started(node_id, 0)

    def _count(self) -> None:
        self.changes += 1

    def format(self, node_id: NodeId, directory_id: str) -> None:
        data = self.layout.data_directory(node_id)
        (data / METADATA_LOG).mkdir(parents=True, exist_ok=True)
        (data / "meta.properties").write_text(f"directory.id={directory_id}\n")

    def write(self, batches: tuple[QuorumBatch, ...], *node_ids: NodeId) -> None:
        for node_id in node_ids:
            path = self.layout.data_directory(node_id) / METADATA_LOG / SEGMENT
            path.write_bytes(log_content(batches))

    def follow(self, node_id: NodeId, leader: NodeId, epoch: int) -> None:
        election = Election(leader_epoch=LeaderEpoch(epoch), leader_id=leader, voted=None)
        directory = self.layout.data_directory(node_id) / METADATA_LOG
        write_quorum_state(
            OsFileSystem(ledger_folder=str(self.layout.ledger_directory(node_id))),
            str(directory),
            election,
            kraft_version=1,
        )

    def told_of(self, node_id: NodeId) -> list[tuple[str, int]]:
        found = []
        for path in line_files(self.layout.directory / "events", f"{node_id}-*"):
            for line in read_texts(path, begin=0).content.splitlines():
                kind = next((kind for kind in OF_THE_QUORUM if f'"{kind}"'.encode() in line), None)
                if kind is not None:
                    found.append((kind, int(line.split(b'"quorum_epoch":')[1].split(b",")[0])))
        return found


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path, "kafka-4.2")


def test_an_election_is_reported_of_the_leader_and_its_voters(played: Played) -> None:
    played.write(FIRST, VOTERS[0])
    played.metadata.read()
    assert played.told_of(VOTERS[0]) == [("QuorumVoteGranted", 1), ("QuorumLeaderElected", 1)]
    assert played.told_of(VOTERS[1]) == [("QuorumVoteGranted", 1)]
    assert (played.changes, played.metadata.image.controller_id) == (0, None)


def test_what_is_committed_is_reported_of_the_leader(played: Played) -> None:
    played.write(FIRST, *VOTERS[:2])
    played.metadata.read()
    assert played.told_of(VOTERS[0])[-1] == ("MetadataCommittedUpTo", 1)
    assert played.metadata.image.controller_id == VOTERS[0]
    assert set(played.metadata.image.topics) == {"orders"}
    assert played.changes == 1


def test_whom_a_controller_follows_is_reported_once(played: Played) -> None:
    played.write(FIRST, *VOTERS)
    played.follow(VOTERS[2], VOTERS[0], 1)
    for _ in range(2):
        played.metadata.read()
    assert played.told_of(VOTERS[2]) == [("QuorumLeaderFollowed", 1)]


def test_a_vote_that_is_seen_late_is_not_reported(played: Played) -> None:
    played.follow(VOTERS[1], VOTERS[2], 2)
    played.metadata.read()
    played.write(FIRST, VOTERS[0])
    played.metadata.read()
    assert played.told_of(VOTERS[1]) == [("QuorumLeaderFollowed", 2)]


def test_an_election_that_is_seen_late_is_not_the_last_one(played: Played) -> None:
    played.write(OTHER, VOTERS[2])
    played.metadata.read()
    played.write(FIRST, VOTERS[0])
    played.metadata.read()
    assert (FIRST[0].leader_epoch, OTHER[-1].leader_epoch) == (1, 2)
    assert played.witness.quorum.leader_id == VOTERS[2]


def test_metadata_that_was_forgotten_is_no_more(tmp_path: Path) -> None:
    played = Played(tmp_path, "kafka-3.9")
    played.write(MORE, *VOTERS[:2])
    played.metadata.read()
    assert set(played.metadata.image.topics) == {"orders", "payments"}
    played.format(VOTERS[1], "another")
    played.write(OTHER, *VOTERS[1:])
    played.metadata.read()
    image = played.metadata.image
    assert (set(image.topics), image.next_offset, image.controller_id) == ({"orders", "returns"}, 4, VOTERS[2])


def test_another_disk_is_no_voter_where_voters_have_directories(played: Played) -> None:
    played.witness.ended(VOTERS[1], 0, EndCause.KILLED)
    played.format(VOTERS[1], "another")
    played.witness.started(VOTERS[1], 1)
    played.write(FIRST, *VOTERS[:2])
    played.metadata.read()
    assert played.metadata.image.controller_id is None
    assert played.told_of(VOTERS[0])[-1] == ("QuorumLeaderElected", 1)
