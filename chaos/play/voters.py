"""Voters of the metadata quorum, added and removed one at a time (KIP-853), as ``kafka-metadata-quorum.sh`` does it.

Any running controller that is no voter is an observer: it fetches, and does not count for a majority. One whose disk
was replaced is another replica, and its node can be added only after the voter of the old disk was removed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from laststand.chaos.play.target import Target
from laststand.chaos.play.waiting import StepError
from laststand.emulator.client.admin import AdminClient
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum.messages import DescribeQuorumResponse, ReplicaProgress
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import CONTROLLER

_LOOK_INTERVAL_S: Final = 0.1
_TRIES: Final = 600
"""A minute: an observer fetches the whole log first."""

_LATER: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.BROKER_NOT_AVAILABLE})
"""Another change is undecided, or the observer lags, or does not fetch yet."""

_FAILOVER_TRIES: Final = 150
"""Fifteen seconds, as ``ActiveController`` takes to find a leader."""

_LEADS_NOT: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_CONTROLLER})

Pause: TypeAlias = Callable[[float], Awaitable[None]]
"""Lets so many seconds pass."""


class VoterError(AdminError):
    """A change that is refused before the leader is asked, with the error that Kafka's leader would return.

    Attributes:
        expected: the valid values.
    """

    def __init__(self, *, api: str, error: ErrorCode, replica: ReplicaKey, expected: str) -> None:
        super().__init__(api=api, error=error, subject=f"controller {replica}", reason=f"expected {expected}")
        self.expected = expected


class _Asked(NamedTuple):
    """A change that the leader was asked for.

    Attributes:
        replica: that is added or removed.
        end_offset: earlier end of the leader's log.
    """

    replica: ReplicaKey
    end_offset: int


async def add_voter(admin: AdminClient, node_id: NodeId, *, pause: Pause = asyncio.sleep) -> ReplicaKey:
    """Waits until a controller has caught up, adds it to the voters, and returns its node and disk.

    Raises:
        VoterError: the controller, or the replica on its old disk, is a voter already.
        AdminError: the controller did not fetch or catch up in time, or the leader refused.
    """
    asked: list[_Asked] = []
    return await _repeated(lambda: _add(admin, node_id, asked), pause)


async def _add(admin: AdminClient, node_id: NodeId, asked: list[_Asked]) -> ReplicaKey:
    found = await admin.describe_quorum()
    voter, observer = _of(found.voters, node_id), _of(found.observers, node_id)
    before = next((each for each in asked if voter is not None and each.replica == voter.key), None)
    if before is not None:
        # It was not answered, or not in time.
        if _is_undecided(before, found):
            raise _not_added(node_id, ErrorCode.REQUEST_TIMED_OUT, "it is undecided whether it is a voter")
        return before.replica
    if voter is not None:
        expected = "a controller that is no voter"
        if observer is not None:
            old = f"laststand metadata-quorum remove {node_id} --directory-id {voter.key.directory_id}"
            expected = f"its old disk to be no voter any more: {old}"
        raise VoterError(api="AddRaftVoter", error=ErrorCode.DUPLICATE_VOTER, replica=voter.key, expected=expected)
    if observer is None:
        raise _not_added(node_id, ErrorCode.BROKER_NOT_AVAILABLE, "it fetches from nobody")
    if found.high_watermark is None or (observer.log_end_offset or 0) < found.high_watermark:
        behind = f"its log ends at {observer.log_end_offset}, and {found.high_watermark} is committed"
        raise _not_added(node_id, ErrorCode.REQUEST_TIMED_OUT, behind)
    asked.append(_asked(observer.key, found))
    await admin.add_voter(observer.key)
    return observer.key


def _not_added(node_id: NodeId, error: ErrorCode, reason: str) -> AdminError:
    return AdminError(api="AddRaftVoter", error=error, subject=f"controller {node_id}", reason=reason)


async def remove_voter(
    admin: AdminClient, node_id: NodeId, directory_id: str | None = None, *, pause: Pause = asyncio.sleep
) -> ReplicaKey:
    """Removes a voter, and returns its node and disk.

    Args:
        admin: asks the active controller.
        node_id: of the voter.
        directory_id: id of its disk; by default that of the voter.
        pause: between two attempts.

    Raises:
        VoterError: the controller is not a voter with that disk, or is the last voter.
        AdminError: the leader refused, or did not answer.
    """
    asked: list[_Asked] = []

    async def remove() -> ReplicaKey:
        found = await admin.describe_quorum()
        voter = _of(found.voters, node_id)
        wanted = None if directory_id is None else DirectoryId(directory_id)
        if voter is None and asked:
            # It was not answered, or not in time.
            if _is_undecided(asked[-1], found):
                raise AdminError(
                    api="RemoveRaftVoter",
                    error=ErrorCode.REQUEST_TIMED_OUT,
                    subject=f"controller {asked[-1].replica}",
                    reason="it is undecided whether it is a voter",
                )
            return asked[-1].replica
        if voter is None or wanted not in (None, voter.key.directory_id):
            there = ", ".join(str(each.key) for each in found.voters)
            raise _not_removed(ReplicaKey(node_id, wanted), ErrorCode.VOTER_NOT_FOUND, f"a voter: {there}")
        if len(found.voters) == 1:
            raise _not_removed(voter.key, ErrorCode.INVALID_REQUEST, "another controller: it is the last voter")
        asked.append(_asked(voter.key, found))
        await admin.remove_voter(voter.key)
        return voter.key

    return await _repeated(remove, pause)


def _not_removed(replica: ReplicaKey, error: ErrorCode, expected: str) -> VoterError:
    return VoterError(api="RemoveRaftVoter", error=error, replica=replica, expected=expected)


async def _repeated(attempt: Callable[[], Awaitable[ReplicaKey]], pause: Pause) -> ReplicaKey:
    for _ in range(_TRIES):
        try:
            return await attempt()
        except AdminError as refused:
            if refused.error not in _LATER:
                raise
        await pause(_LOOK_INTERVAL_S)
    return await attempt()


def _asked(replica: ReplicaKey, found: DescribeQuorumResponse) -> _Asked:
    leader = _leader(found)
    return _Asked(replica, (found.high_watermark if leader is None else leader.log_end_offset) or 0)


def _is_undecided(asked: _Asked, found: DescribeQuorumResponse) -> bool:
    """Returns whether the leader may have appended the change and not yet committed it."""
    if found.high_watermark is None:
        return True  # it has committed nothing of its epoch
    leader = _leader(found)
    if leader is None:  # it has appended its own removal, after all that it had
        return found.high_watermark <= asked.end_offset
    return (leader.log_end_offset or 0) > found.high_watermark


def _leader(found: DescribeQuorumResponse) -> ReplicaProgress | None:
    """Returns the leader, if it is a voter."""
    return None if found.leader_id is None else _of(found.voters, found.leader_id)


def _of(replicas: Sequence[ReplicaProgress], node_id: NodeId) -> ReplicaProgress | None:
    """Returns a node's replica that fetched last: an observer that is gone is remembered for some minutes."""
    found = (each for each in replicas if each.key.node_id == node_id)
    return max(found, key=lambda each: each.last_fetch_ms or 0, default=None)


# --- As a step --------------------------------------------------------------------------------------------------------


async def change_voters(target: Target, action: actions.VoterChange[NodeId]) -> actions.Outcome:
    """Performs a step of a scenario; the outcome has the leader's answer.

    Raises:
        StepError: the answer is an error that the step does not allow.
    """

    async def ask(node_id: NodeId, request: messages.Request) -> messages.Response:
        for _ in range(_FAILOVER_TRIES):
            response = await target.ask_controller(request)
            if getattr(response, "error", None) not in _LEADS_NOT:
                break
            await pause(_LOOK_INTERVAL_S)
        return response

    async def pause(duration_s: float) -> None:
        await target.pause(duration_ms=round(duration_s * 1000))

    admin = AdminClient(ask, controller_id=CONTROLLER)
    try:
        if isinstance(action, actions.AddVoter):
            replica = await add_voter(admin, action.node, pause=pause)
        else:
            replica = await remove_voter(admin, action.node, pause=pause)
    except AdminError as refused:
        if refused.error not in action.answers:
            raise StepError(str(refused)) from None
        return actions.no_op(str(refused))
    if ErrorCode.NONE not in action.answers:
        allowed = ", ".join(error.name for error in action.answers)
        raise StepError(f"the leader changed the voters, allowed: {allowed}")
    return actions.effective(f"controller {replica}: {'voter' if isinstance(action, actions.AddVoter) else 'observer'}")
