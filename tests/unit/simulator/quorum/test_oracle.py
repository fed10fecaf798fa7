"""Each check of the quorum's oracle fires on the one history that breaks it, and on no other of these."""

from collections.abc import Callable
from typing import Final

import pytest

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.quorum import events
from laststand.emulator.core.quorum.batches import KRaftVoters, QuorumBatch
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.simulator.quorum.disk import MetadataDisk
from laststand.emulator.simulator.quorum.oracle import PROMISE_OF, QuorumCheck, QuorumOracle
from tests.simulation.quorum.member import QuorumMember

_IDS: Final = tuple(NodeId(number) for number in (100, 101, 102))
_KEYS: Final = tuple(ReplicaKey(node_id, DirectoryId(f"d{node_id}")) for node_id in _IDS)


class _Member(QuorumMember):
    """A node whose leadership is what the test says."""

    leads = False


class _World:
    """Three voters with the first record of epoch 1 on every disk, synced."""

    def __init__(self) -> None:
        self.oracle = QuorumOracle()
        self.members = [_Member(key.node_id, DirectoryId(str(key.directory_id))) for key in _KEYS]
        self.oracle.members = {member.node_id: member for member in self.members}
        voters = VoterSet.of(Voter(key=key) for key in _KEYS)
        first = QuorumBatch(
            base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(1), control=(KRaftVoters(voters=voters),)
        )
        for member in self.members:
            member.disk.append((first,))
            member.disk.sync(MetadataOffset(1))

    def elect(self, index: int, epoch: int) -> None:
        for member in self.members:
            member.leads = False
        self.members[index].leads = True
        end = self.members[index].disk.batches[-1].end_offset
        self.oracle.recorded(
            self.members[index],
            events.LeaderElected(replica=_KEYS[index], leader_epoch=LeaderEpoch(epoch), start_offset=end),
        )

    def append(self, epoch: int, *indexes: int, value: bytes = b"x", is_synced: bool = True) -> int:
        end = 0
        for index in indexes:
            disk = self.members[index].disk
            batch = QuorumBatch(
                base_offset=disk.batches[-1].end_offset, leader_epoch=LeaderEpoch(epoch), values=(value,)
            )
            disk.append((batch,))
            end = batch.end_offset
            if is_synced:
                disk.sync(batch.end_offset)
        return end

    def expose(self, index: int, epoch: int, high_watermark: int) -> None:
        self.oracle.recorded(
            self.members[index],
            events.HighWatermarkAdvanced(
                replica=_KEYS[index],
                leader_epoch=LeaderEpoch(epoch),
                high_watermark=MetadataOffset(high_watermark),
                is_leader=self.members[index].leads,
            ),
        )


def _two_leaders(world: _World) -> None:
    world.elect(0, 2)
    world.elect(1, 2)


def _another_is_believed(world: _World) -> None:
    world.elect(0, 2)
    world.oracle.recorded(
        world.members[2],
        events.LeaderLearned(replica=_KEYS[2], leader_epoch=LeaderEpoch(2), leader_id=_IDS[1]),
    )


def _two_votes(world: _World) -> None:
    for candidate in _KEYS[:2]:
        world.oracle.recorded(
            world.members[2],
            events.VoteGranted(replica=_KEYS[2], leader_epoch=LeaderEpoch(2), candidate=candidate),
        )


def _logs_part_and_meet(world: _World) -> None:
    world.append(2, 0, value=b"a")
    world.append(2, 1, value=b"b")
    world.append(3, 0, 1)
    world.oracle.compare_logs()


def _leader_lacks_a_record(world: _World) -> None:
    world.elect(0, 2)
    world.expose(0, 2, world.append(2, 0, 1))
    world.elect(2, 3)


def _states_differ(world: _World) -> None:
    for member, value in zip(world.members, (b"a", b"b"), strict=False):
        member.applied_end_offset, member.applied_sum = MetadataOffset(1), value
        world.oracle.applied(member)


def _high_watermark_falls(world: _World) -> None:
    world.elect(0, 2)
    world.append(2, 0, 1)
    end = world.append(2, 0, 1)
    world.expose(1, 2, end)
    world.expose(1, 2, end - 1)


def _epoch_falls(world: _World) -> None:
    for epoch in (5, 4):
        world.oracle.recorded(
            world.members[0],
            events.LeaderLearned(replica=_KEYS[0], leader_epoch=LeaderEpoch(epoch), leader_id=_IDS[1]),
        )


def _one_copy_is_not_synced(world: _World) -> None:
    world.elect(0, 2)
    world.append(2, 0, is_synced=False)
    world.expose(0, 2, world.append(2, 1))


def _record_of_an_older_epoch(world: _World) -> None:
    world.append(1, 0, 1, 2)
    world.elect(0, 2)
    world.expose(0, 2, 2)


def _claims_on_a_prefix(world: _World) -> None:
    world.elect(0, 2)
    world.expose(0, 2, world.append(2, 0, 1))
    world.oracle.recorded(
        world.members[0],
        events.LeaderClaimed(replica=_KEYS[0], leader_epoch=LeaderEpoch(2), applied_end_offset=MetadataOffset(1)),
    )


def _what_was_committed_is_gone(world: _World) -> None:
    world.elect(0, 2)
    world.expose(0, 2, world.append(2, 0, 1))
    disk = world.members[0].disk
    disk.truncate(MetadataOffset(disk.batches[-1].base_offset))
    world.oracle.finish()


def _process_stops(world: _World) -> None:
    world.oracle.stopped(world.members[0], InvariantError("two leaders"))


_HISTORIES: Final[dict[Callable[[_World], None], QuorumCheck]] = {
    _two_leaders: QuorumCheck.ELECTION_SAFETY,
    _another_is_believed: QuorumCheck.ELECTION_SAFETY,
    _two_votes: QuorumCheck.VOTE_ONCE,
    _logs_part_and_meet: QuorumCheck.LOG_MATCHING,
    _leader_lacks_a_record: QuorumCheck.LEADER_COMPLETENESS,
    _states_differ: QuorumCheck.STATE_MACHINE_SAFETY,
    _high_watermark_falls: QuorumCheck.MONOTONIC_HIGH_WATERMARK,
    _epoch_falls: QuorumCheck.MONOTONIC_EPOCH,
    _one_copy_is_not_synced: QuorumCheck.COMMIT_BY_QUORUM,
    _record_of_an_older_epoch: QuorumCheck.COMMIT_OWN_EPOCH,
    _claims_on_a_prefix: QuorumCheck.CLAIM_COMPLETE,
    _what_was_committed_is_gone: QuorumCheck.COMMITTED_STAYS,
    _process_stops: QuorumCheck.NO_ILLEGAL_STATE,
}
CASES: Final = [(PROMISE_OF[check], history) for history, check in _HISTORIES.items() if check in PROMISE_OF]
"""Promises of whole clusters, and the history that breaks each."""


@pytest.mark.parametrize(("history", "check"), _HISTORIES.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_check_fires_on_the_history_that_breaks_it(history: Callable[[_World], None], check: QuorumCheck) -> None:
    world = _World()

    history(world)

    assert [finding.check for finding in world.oracle.findings] == [check]


def test_an_orderly_history_breaks_nothing() -> None:
    world = _World()
    world.elect(0, 2)
    world.expose(0, 2, world.append(2, 0, 1))
    world.append(2, 2)
    world.elect(1, 3)
    world.expose(1, 3, world.append(3, 1, 2))
    world.oracle.compare_logs()

    assert world.oracle.findings == []


def test_a_disk_that_was_replaced_counts_with_what_it_had_acknowledged() -> None:
    world = _World()
    world.elect(0, 2)
    end = world.append(2, 0, 1)
    lost = world.members[1]
    followed = events.LeaderLearned(replica=_KEYS[1], leader_epoch=LeaderEpoch(2), leader_id=_IDS[0])
    world.oracle.recorded(lost, followed)
    lost.disk = MetadataDisk(DirectoryId("another"))

    world.expose(0, 2, end)

    assert world.oracle.findings == []


def test_a_leader_whose_disk_was_replaced_since_had_everything() -> None:
    world = _World()
    world.elect(0, 2)
    world.expose(0, 2, world.append(2, 0, 1))
    world.members[0].disk = MetadataDisk(DirectoryId("another"))

    world.oracle.finish()

    assert world.oracle.findings == []


def test_a_node_that_lost_its_file_of_votes_may_refuse_to_start() -> None:
    world = _World()
    world.oracle.lost_state.add(_IDS[0])

    _process_stops(world)

    assert world.oracle.findings == []


@pytest.mark.parametrize(("lost", "caught_up", "found"), [(1, False, True), (2, False, False), (2, True, True)])
def test_a_minority_of_replaced_disks_takes_nothing_and_a_majority_may(
    *, lost: int, caught_up: bool, found: bool
) -> None:
    """A disk that has what was committed before counts again."""
    world = _World()
    world.oracle.first_disks = {member.node_id: member.disk.directory_id for member in world.members}
    world.elect(0, 2)
    world.expose(0, 2, world.append(2, 0, 1))

    for member in world.members[:lost]:
        before, member.disk = member.disk, MetadataDisk(DirectoryId("new"))
        assert not world.oracle.lost_a_majority or member is world.members[1]
        if caught_up:
            member.disk.append(tuple(before.batches))
            member.disk.sync(before.durable_end_offset)
        assert world.oracle.lost_a_majority is not (found or member is world.members[0])
    world.elect(2, 3)

    assert bool(world.oracle.findings) is found


def test_every_check_has_a_history_or_is_asked_after_healing() -> None:
    assert set(QuorumCheck) - set(_HISTORIES.values()) == {QuorumCheck.PROGRESS}
