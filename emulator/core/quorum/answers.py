"""Checks that several requests share, and the handling of the epoch and leader that every response names."""

from enum import Enum

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum import messages
from laststand.emulator.core.quorum.replica import Replica
from laststand.emulator.core.quorum.states import IllegalQuorumState, Leader
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import LeaderEpoch, NodeId


class Handled(Enum):
    """The outcome of the checks that every response passes first."""

    DONE = "done"
    """The response was used; nothing is left to do."""

    FAILED = "failed"
    """The response was of no use beyond its epoch and leader: repeat the request after a pause."""

    OPEN = "open"
    """The response is of this epoch and has none of the common errors; its handler goes on."""


def has_other_cluster(replica: Replica, cluster_id: str | None) -> bool:
    """Returns whether a request is meant for another cluster."""
    return cluster_id is not None and cluster_id != replica.settings.cluster_id


def election_error(replica: Replica, *, leader_epoch: LeaderEpoch, sender_id: NodeId) -> ErrorCode | None:
    """Returns why a request of an election, from a candidate or a leader, is refused before it changes anything."""
    if leader_epoch < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender_id < 0 else None


def leader_error(replica: Replica, *, leader_epoch: LeaderEpoch | None = None) -> ErrorCode | None:
    """Returns why a request that only the leader of its epoch serves is refused; with ``None``, any leader does."""
    asked = replica.leader_epoch if leader_epoch is None else leader_epoch
    if asked < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if asked > replica.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.state, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if replica.is_stopping else None


def is_meant_for(replica: Replica, voter: ReplicaKey | None) -> bool:
    """Returns whether a request is addressed to this node and directory; one that it does not name may be any."""
    if voter is None:
        return True
    return voter.node_id == replica.key.node_id and voter.directory_id in (None, replica.key.directory_id)


def handle_answer(replica: Replica, answer: messages.QuorumResponse) -> Handled:
    """Adopts the epoch and leader that a response names (``KafkaRaftClient.maybeHandleCommonResponse``).

    Unlike here, Kafka repeats the request without a pause if the node knows no leader, or the voter key differs.

    Raises:
        IllegalQuorumState: INVALID_REQUEST, or two leaders of one epoch.
    """
    error = answer.error
    if answer.is_top_level:
        return Handled.FAILED
    if answer.leader_epoch < replica.leader_epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return Handled.FAILED
    is_outdated = error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if answer.leader_epoch > replica.leader_epoch or is_outdated:
        replica.hear_of(answer.leader_epoch, answer.leader_id)
        return Handled.FAILED
    if replica.state.leader_id is None and answer.leader_id not in (None, replica.key.node_id):
        replica.hear_of(answer.leader_epoch, answer.leader_id)
        return Handled.OPEN if error is ErrorCode.NONE else Handled.FAILED
    if error in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_VOTER_KEY):
        return Handled.FAILED
    if error is ErrorCode.INVALID_REQUEST:
        raise IllegalQuorumState("a request of this node was refused as invalid")
    return Handled.OPEN
