"""One of several controllers on a disk in memory: what it makes durable, and on what it does not start."""

import pytest

from laststand.emulator.core import admin_messages, effects
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.events import OperationFailed
from laststand.emulator.core.inputs import RequestReceived, Started
from laststand.emulator.core.quorum.batches import KRaftVersion, KRaftVoters, LeaderChange, QuorumBatch
from laststand.emulator.core.quorum.messages import VoteRequest
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.quorum.states import IllegalQuorumState
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset, NodeId, RequestId
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.node.metadata_journal import DIRECTORY
from laststand.emulator.node.quorum_turn import QuorumTurns
from laststand.emulator.storage.filesystem import read_file
from laststand.emulator.storage.meta_properties import MetaProperties, format_directory, read_meta_properties
from laststand.emulator.storage.metadata_log import MetadataLog
from laststand.emulator.storage.quorum_state import quorum_state_path, read_quorum_state
from tests.memory_filesystem import MemoryFileSystem
from tests.unit.storage.log_fixtures import durable_directory

DATA = "/data"
METADATA = f"{DATA}/{DIRECTORY}"
FIRST, SECOND, THIRD = (NodeId(node_id) for node_id in (100, 101, 102))


def turns(
    filesystem: MemoryFileSystem,
    node_id: NodeId = FIRST,
    *,
    controllers: tuple[NodeId, ...] = (FIRST, SECOND, THIRD),
) -> QuorumTurns:
    config = NodeConfig(
        run="run",
        node_id=node_id,
        incarnation=0,
        cluster_id="cluster",
        controller_ids=controllers,
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


def test_a_bug_in_an_operation_is_on_record_and_costs_the_leadership(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = turns(durable_directory(DATA), controllers=(FIRST,))
    leader.run([Started(cause_id=CauseId("start"))], now_ms=0)
    assert leader.active is not None
    monkeypatch.setattr(leader.active, "step", lambda *_, **__: 1 / 0)
    asked = RequestReceived(
        cause_id=CauseId("asked"), request_id=RequestId(1), request=admin_messages.DescribeClusterRequest()
    )
    events, _ = leader.run([asked], now_ms=1)
    failed = [event for event in events if isinstance(event, OperationFailed)]
    assert [(each.cause_id, each.operation, each.error) for each in failed] == [
        ("asked", "DescribeClusterRequest", "ZeroDivisionError('division by zero')")
    ]
    assert leader.active is None


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
