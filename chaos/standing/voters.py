"""Voters of the metadata quorum, added and removed one at a time (KIP-853), as ``kafka-metadata-quorum.sh`` does it.

Any controller that runs and is no voter is an observer: it fetches, and nobody counts it. One whose disk was replaced
is another replica, and its node can be added only after the voter of the old disk was removed.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from laststand.emulator.client.admin import AdminClient
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.quorum.messages import ReplicaProgress
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.types import NodeId

_ADDED_WITHIN_S: Final = 60.0
"""An observer fetches the whole log first."""

_LOOK_INTERVAL_S: Final = 0.1


async def add_voter(admin: AdminClient, node_id: NodeId) -> ReplicaKey:
    """Waits until a controller has caught up, adds it to the voters, and returns its node and disk.

    Raises:
        ConfigError: it is a voter already, or the one of its old disk is.
        AdminError: it did not fetch or catch up in time, or the leader refused.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _ADDED_WITHIN_S
    while True:
        found = await admin.describe_quorum()
        _check_is_new(found.voters, found.observers, node_id)
        observer = _of(found.observers, node_id)
        if observer is None:
            error = _not_added(node_id, ErrorCode.BROKER_NOT_AVAILABLE, "it fetches from nobody")
        elif found.high_watermark is None or (observer.log_end_offset or 0) < found.high_watermark:
            behind = f"its log ends at {observer.log_end_offset}, and {found.high_watermark} is committed"
            error = _not_added(node_id, ErrorCode.REQUEST_TIMED_OUT, behind)
        else:
            try:
                await admin.add_voter(observer.key)
            except AdminError as refused:
                if refused.error is not ErrorCode.REQUEST_TIMED_OUT:
                    raise
                error = refused
            else:
                return observer.key
        if loop.time() > deadline:
            raise error
        await asyncio.sleep(_LOOK_INTERVAL_S)


def _not_added(node_id: NodeId, error: ErrorCode, reason: str) -> AdminError:
    return AdminError(api="AddRaftVoter", error=error, subject=f"controller {node_id}", reason=reason)


async def remove_voter(admin: AdminClient, node_id: NodeId, directory_id: str | None = None) -> ReplicaKey:
    """Removes a voter, and returns its node and disk.

    Args:
        admin: asks the active controller.
        node_id: whose.
        directory_id: of its disk; whichever is a voter if not given.

    Raises:
        ConfigError: it is no voter, with that disk, or the last one.
        AdminError: the leader refused, or did not answer.
    """
    found = await admin.describe_quorum()
    voter = _of(found.voters, node_id)
    wanted = None if directory_id is None else DirectoryId(directory_id)
    if voter is None or wanted not in (None, voter.key.directory_id):
        there = ", ".join(str(each.key) for each in found.voters)
        raise ConfigError(key="NODE", value=str(ReplicaKey(node_id, wanted)), expected=f"a voter: {there}")
    if len(found.voters) == 1:
        raise ConfigError(key="NODE", value=str(node_id), expected="another controller: it is the last voter")
    await admin.remove_voter(voter.key)
    return voter.key


def _check_is_new(voters: Sequence[ReplicaProgress], observers: Sequence[ReplicaProgress], node_id: NodeId) -> None:
    voter, observer = _of(voters, node_id), _of(observers, node_id)
    if voter is None:
        return
    if observer is None:
        raise ConfigError(key="NODE", value=str(node_id), expected="a controller that is no voter")
    old = f"laststand metadata-quorum remove {node_id} --directory-id {voter.key.directory_id}"
    raise ConfigError(key="NODE", value=str(node_id), expected=f"its old disk to be no voter any more: {old}")


def _of(replicas: Sequence[ReplicaProgress], node_id: NodeId) -> ReplicaProgress | None:
    """Returns a node's replica, the one that fetched last: an observer that is gone is remembered for some minutes."""
    found = (each for each in replicas if each.key.node_id == node_id)
    return max(found, key=lambda each: each.last_fetch_ms or 0, default=None)
