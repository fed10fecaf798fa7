"""One of several controllers on a disk in memory: what it makes durable, and on what it does not start."""

import pytest

from laststand.emulator.core import effects
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.inputs import Started
from laststand.emulator.core.quorum.batches import KRaftVersion, KRaftVoters, LeaderChange, QuorumBatch
from laststand.emulator.core.quorum.messages import VoteRequest
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.quorum.states import IllegalQuorumState
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.node.metadata_journal import DIRECTORY
from laststand.emulator.node.quorum_turn import QuorumTurns
from laststand.emulator.storage.filesystem import read_file
from laststand.emulator.storage.memory_filesystem import MemoryFileSystem
from laststand.emulator.storage.meta_properties import MetaProperties, format_directory, read_meta_properties
from laststand.emulator.storage.metadata_log import MetadataLog
from laststand.emulator.storage.quorum_state import quorum_state_path, read_quorum_state
from tests.unit.storage.log_fixtures import durable_directory

DATA = "/data"
METADATA = f"{DATA}/{DIRECTORY}"
FIRST, SECOND, THIRD = (NodeId(node_id) for node_id in (100, 101, 102))


def turns(filesystem: MemoryFileSystem, node_id: NodeId = FIRST) -> QuorumTurns:
    config = NodeConfig(
        run="run",
        node_id=node_id,
        incarnation=0,
        cluster_id="cluster",
        controller_ids=(FIRST, SECOND, THIRD),
        data_dirs=(DATA,),
        ledger_dir="/ledger",
        event_file="/events",
        token_file="/token",
    )
    return QuorumTurns(config, filesystem, now_ms=0, unreported=list)


def test_the_first_controller_of_a_new_cluster_asks_for_votes_at_once() -> None:
    _, departures = turns(durable_directory(DATA)).run([Started(cause_id=CauseId("start"))], now_ms=0)
    asked = [each for each in departures if isinstance(each, effects.SendRequest)]
    assert [each.destination for each in asked] == [SECOND, THIRD]
    assert all(isinstance(each.request, VoteRequest) and each.request.is_pre_vote for each in asked)
    _, departures = turns(durable_directory(DATA), SECOND).run([Started(cause_id=CauseId("start"))], now_ms=0)
    assert not any(
        isinstance(each, effects.SendRequest) and isinstance(each.request, VoteRequest) for each in departures
    )


def test_epoch_and_directory_survive_a_power_loss() -> None:
    filesystem = durable_directory(DATA)
    turns(filesystem).run([Started(cause_id=CauseId("start"))], now_ms=0)
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    assert read_quorum_state(filesystem, METADATA) is not None
    meta = read_meta_properties(filesystem, DATA)
    assert meta is not None
    assert meta.directory_id == initial_directory_id("cluster", FIRST)


def test_a_disk_with_another_directory_id_is_no_voter() -> None:
    filesystem = durable_directory(DATA)
    format_directory(filesystem, DATA, MetaProperties(cluster_id="cluster", node_id=FIRST, directory_id="another"))
    _, departures = turns(filesystem).run([Started(cause_id=CauseId("start"))], now_ms=0)
    asked = [each.request for each in departures if isinstance(each, effects.SendRequest)]
    assert asked, "it looks for a leader to fetch from"
    assert not any(isinstance(request, VoteRequest) for request in asked)


def test_a_log_without_its_file_of_epoch_and_vote_stops_the_process() -> None:
    filesystem = durable_directory(DATA)
    turns(filesystem).run([Started(cause_id=CauseId("start"))], now_ms=0)
    batch = QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(1), values=(b"\x01value",))
    MetadataLog(filesystem, METADATA).append(batch)
    filesystem.restart()
    turns(filesystem)
    filesystem.unlink(quorum_state_path(METADATA))
    with pytest.raises(IllegalQuorumState, match="who was voted for is unknown"):
        turns(filesystem)


@pytest.mark.parametrize("has_directory_ids", [False, True])
def test_a_later_era_leaves_the_voters_as_the_cluster_was_formatted(*, has_directory_ids: bool) -> None:
    filesystem = durable_directory(DATA)
    turns(filesystem).run([Started(cause_id=CauseId("start"))], now_ms=0)
    nodes = (FIRST, SECOND, THIRD)
    of_voters = (
        KRaftVersion(level=1),
        KRaftVoters(
            voters=VoterSet.of(Voter(key=ReplicaKey(each, initial_directory_id("cluster", each))) for each in nodes)
        ),
    )
    control = (
        LeaderChange(leader_id=SECOND, voters=nodes, granting_voters=nodes),
        *(of_voters if has_directory_ids else ()),
    )
    log = MetadataLog(filesystem, METADATA)
    log.append(QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(1), control=control))
    log.sync()
    filesystem.restart()
    turns(filesystem).run([Started(cause_id=CauseId("start"))], now_ms=0)
    written = read_file(filesystem, quorum_state_path(METADATA))
    assert (b'"data_version":1' in written) is has_directory_ids
