"""Comparison of logs, against a twin that looks at every record."""

import itertools

import pytest

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.quorum.batches import KRaftVoters, LogPosition, QuorumBatch, Snapshot
from laststand.emulator.core.quorum.metadata_log import Comparison, MetadataLog
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId


def _log(*epochs: int) -> MetadataLog:
    """Returns a log with a record of each epoch in turn."""
    log = MetadataLog(bootstrap_voters=VoterSet(), bootstrap_version=1)
    for offset, epoch in enumerate(epochs):
        log.append(_batch(offset, epoch))
    return log


def _batch(offset: int, epoch: int) -> QuorumBatch:
    return QuorumBatch(base_offset=MetadataOffset(offset), leader_epoch=LeaderEpoch(epoch), values=(b"",))


def _agreed(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """Returns how many records two logs have in common; a record is known by its offset and epoch."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


_LOGS = [epochs for length in range(5) for epochs in itertools.combinations_with_replacement((1, 2, 3), length)]


@pytest.mark.parametrize("leader", _LOGS, ids=str)
def test_a_follower_arrives_at_what_it_has_in_common_with_its_leader(leader: tuple[int, ...]) -> None:
    """Logs of a real history: below an offset of the same epoch everything is the same."""
    for follower in _LOGS:
        if not _can_be_of_one_history(leader, follower):
            continue
        ours, theirs = _log(*follower), _log(*leader)
        for _ in range(6):
            verdict, position = theirs.compare(ours.position)
            if verdict is Comparison.VALID:
                break
            ours.truncate(min(ours.truncation_offset(position), ours.end_offset))
        assert verdict is Comparison.VALID
        assert ours.end_offset == _agreed(leader, follower)


def _can_be_of_one_history(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """An epoch has one leader, so logs agree up to the last offset at which their epochs do; none begins twice."""
    agreed = _agreed(first, second)
    return set(first[agreed:]).isdisjoint(second[agreed:]) and set(first[:agreed]).isdisjoint(
        {*first[agreed:], *second[agreed:]} - {first[agreed - 1] if agreed else 0}
    )


def test_the_set_of_voters_in_force_is_the_last_one_and_is_cut_with_its_record() -> None:
    log = _log(1)
    voters = VoterSet.of([Voter(key=ReplicaKey(NodeId(7)))])
    log.append(
        QuorumBatch(base_offset=MetadataOffset(1), leader_epoch=LeaderEpoch(1), control=(KRaftVoters(voters=voters),))
    )
    assert (log.voters, log.voters_offset) == (voters, 1)

    log.truncate(MetadataOffset(1))

    assert (log.voters, log.voters_offset) == (VoterSet(), None)


def test_a_batch_that_does_not_follow_on_changes_nothing() -> None:
    log = _log(2)

    for batch in (_batch(2, 2), _batch(1, 1)):
        with pytest.raises(InvariantError):
            log.append(batch)

    assert log.position == (2, 1)


def test_a_snapshot_above_the_log_replaces_it_at_the_start() -> None:
    """A process that died between storing a snapshot and cutting its log."""
    snapshot = Snapshot(
        position=LogPosition(LeaderEpoch(3), MetadataOffset(9)), voters=None, kraft_version=1, content=b"state"
    )

    log = MetadataLog(bootstrap_voters=VoterSet(), bootstrap_version=1, snapshots=(snapshot,), batches=(_batch(0, 1),))

    assert (log.start_offset, log.position) == (9, (3, 9))


def test_a_log_that_begins_where_no_snapshot_ends_is_refused() -> None:
    """KAFKA-14240."""
    with pytest.raises(InvariantError):
        MetadataLog(bootstrap_voters=VoterSet(), bootstrap_version=1, batches=(_batch(4, 1),))
