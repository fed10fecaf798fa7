"""Voters that are added and removed: which replica of a node is meant, and what is refused before anybody is asked."""

import asyncio
from typing import cast

import pytest

from laststand.chaos.play.voters import VoterError, add_voter, remove_voter
from laststand.emulator.client.admin import AdminClient
from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum.messages import (
    AddRaftVoterRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    ReplicaProgress,
    VoterChangeResponse,
)
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.types import MetadataOffset, NodeId

LEADER = ReplicaKey(NodeId(100), DirectoryId("disk-100"))
OLD = ReplicaKey(NodeId(102), DirectoryId("old"))
NEW = ReplicaKey(NodeId(102), DirectoryId("new"))


class Quorum:
    """A leader of scripted answers; the last one stays.

    Args:
        described: how it describes the quorum, one after the other.
        change_errors: how it answers the first changes; it carries out those that follow.
    """

    def __init__(self, *described: DescribeQuorumResponse, change_errors: tuple[ErrorCode, ...] = ()) -> None:
        self.described = list(described)
        self.change_errors = list(change_errors)
        self.changes: list[object] = []
        self.admin = AdminClient(self.ask, controller_id=LEADER.node_id)

    async def ask(self, node_id: NodeId, request: messages.Request) -> messages.Response:
        assert node_id == LEADER.node_id
        asked: object = request
        if isinstance(asked, AddRaftVoterRequest | RemoveRaftVoterRequest):
            self.changes.append(asked)
            error = self.change_errors.pop(0) if self.change_errors else ErrorCode.NONE
            return cast(messages.Response, VoterChangeResponse(error=error))
        answer = self.described.pop(0) if len(self.described) > 1 else self.described[0]
        return cast(messages.Response, answer)


def replica(key: ReplicaKey, *, end: int = 10, fetched_ms: int = 1000) -> ReplicaProgress:
    return ReplicaProgress(
        key=key, log_end_offset=MetadataOffset(end), last_fetch_ms=fetched_ms, last_caught_up_ms=fetched_ms
    )


def described(
    *observers: ReplicaProgress, voters: tuple[ReplicaKey, ...] = (LEADER,), end: int = 10, committed: int = 10
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader_id=LEADER.node_id,
        high_watermark=MetadataOffset(committed),
        voters=tuple(replica(voter, end=end) for voter in voters),
        observers=observers,
    )


def test_the_disk_that_a_node_has_now_is_added_once_it_has_caught_up() -> None:
    stale = replica(OLD, end=10, fetched_ms=900)
    quorum = Quorum(described(), described(stale, replica(NEW, end=3)), described(stale, replica(NEW)))
    assert asyncio.run(add_voter(quorum.admin, NEW.node_id)) == NEW
    [change] = quorum.changes
    assert isinstance(change, AddRaftVoterRequest)
    assert change.voter == NEW


def test_the_voter_of_an_old_disk_is_removed_first() -> None:
    quorum = Quorum(described(replica(NEW), voters=(LEADER, OLD)))
    with pytest.raises(VoterError, match="metadata-quorum remove 102 --directory-id old"):
        asyncio.run(add_voter(quorum.admin, NEW.node_id))
    assert asyncio.run(remove_voter(quorum.admin, NEW.node_id, "old")) == OLD


@pytest.mark.parametrize(
    ("voters", "directory_id", "problem"),
    [
        ((LEADER,), None, "expected a voter: 100/disk-100"),
        ((LEADER, OLD), "new", "expected a voter"),
        ((OLD,), None, "it is the last voter"),
    ],
)
def test_a_non_voter_and_the_last_voter_are_not_removed(
    voters: tuple[ReplicaKey, ...], directory_id: str | None, problem: str
) -> None:
    quorum = Quorum(described(voters=voters))
    with pytest.raises(VoterError, match=problem):
        asyncio.run(remove_voter(quorum.admin, NEW.node_id, directory_id))
    assert quorum.changes == []


def test_a_removal_that_timed_out_is_done_once_it_is_committed() -> None:
    # The leader's set of voters is that of its log, and another leader may lack its last record.
    before, after = described(voters=(LEADER, NEW)), described(voters=(LEADER,))
    late = (ErrorCode.REQUEST_TIMED_OUT,)
    undecided = described(voters=(LEADER,), end=11)
    committed = Quorum(before, undecided, undecided, after, change_errors=late)
    assert asyncio.run(remove_voter(committed.admin, NEW.node_id)) == NEW
    assert len(committed.changes) == 1
    taken_back = Quorum(before, undecided, before, change_errors=late)
    assert asyncio.run(remove_voter(taken_back.admin, NEW.node_id)) == NEW
    assert len(taken_back.changes) == 2


def test_an_addition_that_timed_out_is_done_once_it_is_committed() -> None:
    before, voters = described(replica(NEW)), (LEADER, NEW)
    late = (ErrorCode.REQUEST_TIMED_OUT,)
    committed = Quorum(before, described(voters=voters, end=11), described(voters=voters), change_errors=late)
    assert asyncio.run(add_voter(committed.admin, NEW.node_id)) == NEW
    assert len(committed.changes) == 1
    taken_back = Quorum(before, described(voters=voters, end=11), before, change_errors=late)
    assert asyncio.run(add_voter(taken_back.admin, NEW.node_id)) == NEW
    assert len(taken_back.changes) == 2


def test_a_leader_that_has_removed_itself_is_removed_once_that_is_committed() -> None:
    before, late = described(voters=(LEADER, NEW)), (ErrorCode.REQUEST_TIMED_OUT,)
    undecided, committed = described(voters=(NEW,)), described(voters=(NEW,), end=11, committed=11)
    quorum = Quorum(before, undecided, committed, change_errors=late)
    assert asyncio.run(remove_voter(quorum.admin, LEADER.node_id)) == LEADER
    assert quorum.described == [committed]
    assert len(quorum.changes) == 1
