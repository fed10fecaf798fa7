"""The metadata log against every crash: what was reported durable is replayed, and nothing that was not appended."""

import msgspec
import pytest

from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.quorum.batches import KRaftVersion, KRaftVoters, LeaderChange, QuorumBatch
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, VersionRange, Voter, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.metadata_log import MetadataLog
from tests.memory_filesystem import CrashPoint, FaultOutcome, MemoryFileSystem, SimulatedCrashError
from tests.unit.storage.log_fixtures import durable_directory, overwrite

DISK = DirectoryId("AAAAAAAAUAAAAAAAAAAAAQ")
BATCHES = [
    QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(0), values=(b"\x01first",)),
    QuorumBatch(
        base_offset=MetadataOffset(1),
        leader_epoch=LeaderEpoch(3),
        control=(
            LeaderChange(leader_id=NodeId(101), voters=(NodeId(100), NodeId(101)), granting_voters=(NodeId(101),)),
            KRaftVersion(level=1),
            KRaftVoters(
                voters=VoterSet.of(
                    [
                        Voter(key=ReplicaKey(NodeId(100), DISK), versions=VersionRange(0, 1)),
                        Voter(key=ReplicaKey(NodeId(101)), listener="localhost:9093"),
                    ]
                )
            ),
        ),
    ),
    QuorumBatch(base_offset=MetadataOffset(4), leader_epoch=LeaderEpoch(3), values=(b"\x01", b"\x01" * 10_000)),
    QuorumBatch(base_offset=MetadataOffset(6), leader_epoch=LeaderEpoch(7), values=(b"\x01last",)),
]
LOG_FILE = "/meta/00000000000000000000.log"


def _play(filesystem: MemoryFileSystem, acknowledged: list[QuorumBatch]) -> None:
    """Appends every batch, syncing after each but the second; notes what was reported durable."""
    log = MetadataLog(filesystem, "/meta")
    appended = list(log.pop_recovered())
    for number, batch in enumerate(BATCHES[len(appended) :], start=len(appended)):
        log.append(batch)
        appended.append(batch)
        if number != 1:
            log.sync()
            acknowledged[:] = appended
    log.close()


def _replayed(filesystem: MemoryFileSystem) -> list[QuorumBatch]:
    return list(MetadataLog(filesystem, "/meta").pop_recovered())


def test_replay_returns_what_was_appended() -> None:
    filesystem = durable_directory("/meta")
    _play(filesystem, [])
    log = MetadataLog(filesystem, "/meta")
    assert log.pop_recovered() == BATCHES
    assert log.end_offset == 7
    assert log.pop_recovered() == ()


@pytest.mark.parametrize("outcome", [FaultOutcome.DONE, FaultOutcome.NOT_DONE])
@pytest.mark.parametrize("keep", [None, *Keep])
def test_crash_at_every_operation(outcome: FaultOutcome, keep: Keep | None) -> None:
    operation = 0
    while True:
        operation += 1
        filesystem = durable_directory("/meta")
        filesystem.restart(crash_at=CrashPoint(operation=operation, outcome=outcome))
        acknowledged: list[QuorumBatch] = []
        try:
            _play(filesystem, acknowledged)
        except SimulatedCrashError:
            if keep is not None:
                filesystem.lose_power(keep=keep, seed=operation)
            filesystem.restart()
            replayed = _replayed(filesystem)
            assert replayed[: len(acknowledged)] == acknowledged
            assert replayed == BATCHES[: len(replayed)]
            _play(filesystem, acknowledged)
            assert _replayed(filesystem) == BATCHES
            continue
        break
    assert operation > 8


def test_what_was_replayed_survives_a_later_power_loss() -> None:
    filesystem = durable_directory("/meta")
    log = MetadataLog(filesystem, "/meta")
    log.append(BATCHES[0])
    filesystem.restart()
    assert _replayed(filesystem) == BATCHES[:1]
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    assert _replayed(filesystem) == BATCHES[:1]


@pytest.mark.parametrize(("end_offset", "kept"), [(7, 4), (6, 3), (5, 2), (4, 2), (1, 1), (0, 0)])
def test_a_cut_is_durable_and_takes_batches_whole(end_offset: int, kept: int) -> None:
    filesystem = durable_directory("/meta")
    _play(filesystem, [])
    log = MetadataLog(filesystem, "/meta")
    log.truncate(MetadataOffset(end_offset))
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    assert _replayed(filesystem) == BATCHES[:kept]


def test_torn_tail_is_cut_and_written_over() -> None:
    filesystem = durable_directory("/meta")
    _play(filesystem, [])
    file = filesystem.open(LOG_FILE, OpenMode.APPEND)
    file.truncate(file.size - 1)
    log = MetadataLog(filesystem, "/meta")
    assert log.pop_recovered() == BATCHES[:-1]
    again = msgspec.structs.replace(BATCHES[-1], values=(b"\x01again",))
    log.append(again)
    assert _replayed(filesystem)[-1] == again


def test_hole_between_batches_is_corruption() -> None:
    filesystem = durable_directory("/meta")
    _play(filesystem, [])
    content = filesystem.open(LOG_FILE, OpenMode.READ).read(position=0, length=1 << 20)
    first_size = 12 + int.from_bytes(content[8:12], "big")
    overwrite(filesystem, LOG_FILE, content[first_size:])
    with pytest.raises(StorageError, match="offset 1 follows 0"):
        MetadataLog(filesystem, "/meta")


@pytest.mark.parametrize("failing", ["append", "sync"])
def test_failure_poisons_the_log(failing: str) -> None:
    filesystem = durable_directory("/meta")
    log = MetadataLog(filesystem, "/meta")
    next_operation = len(filesystem.operations) + (1 if failing == "append" else 2)
    filesystem._crash_at = CrashPoint(operation=next_operation, outcome=FaultOutcome.FAILED)
    with pytest.raises(StorageError):
        _append_and_sync(log)
    with pytest.raises(StorageError):
        log.append(BATCHES[1])
    with pytest.raises(StorageError):
        log.sync()


def _append_and_sync(log: MetadataLog) -> None:
    log.append(BATCHES[0])
    log.sync()


def test_a_log_of_an_earlier_release_is_refused_by_name() -> None:
    filesystem = durable_directory("/meta")
    log = MetadataLog(filesystem, "/meta")
    message_pack = msgspec.msgpack.encode(("a record", ()))
    log.append(msgspec.structs.replace(BATCHES[0], values=(message_pack,)))
    with pytest.raises(StorageError, match="before it wrote Kafka's"):
        MetadataLog(filesystem, "/meta")
