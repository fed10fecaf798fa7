"""ISR changes that a leader writes itself, below IBP 2.7-IV2 (Kafka's ``ReplicationUtils.updateLeaderAndIsr``).

The leader sets the partition's state node, conditional on the version that it knows, and waits. Until ZooKeeper
answers, the partition accepts no append, no fetch and no role (Kafka holds the partition's lock). After BADVERSION, the
leader reads the node: if the node holds the intended state, the leader's own write succeeded and its answer was lost.

States and edges of a partition here::

    FREE --change decided--> WRITING --written--> FREE, the new ISR holds
                                     --refused--> FREE, and the old ISR holds: the same is tried again (KEEP)
                                                  FREE, and the larger ISR holds until LeaderAndIsr (PENDING)
"""

from collections.abc import Callable

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.isr import IsrProposal, proposed_isr
from laststand.emulator.core.broker.replicas.isr_changes import handle_answer
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, PartitionEpoch, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.errors import ZooKeeperRefusedError
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import (
    LeaderAndIsr,
    PartitionLeadership,
    StateFormat,
    decode_state,
    encode_state,
)
from laststand.emulator.core.zookeeper.rules import IsrWriteUnknown, ZooKeeperRules


class IsrWrite(msgspec.Struct, frozen=True, kw_only=True):
    """The partition state that a leader wants to write."""

    name: TopicPartition
    wanted: PartitionLeadership


def leader_write(proposal: IsrProposal, *, leader: BrokerId, decider: ControllerEpoch) -> IsrWrite:
    """Returns the write of an ISR change: leader, leader epoch, and epoch of the controller that elected the leader."""
    leader_and_isr = LeaderAndIsr(
        leader=leader,
        leader_epoch=proposal.leader_epoch,
        isr=proposed_isr(proposal.state),
        partition_epoch=proposal.partition_epoch,
    )
    return IsrWrite(
        name=proposal.partition,
        wanted=PartitionLeadership(leader_and_isr=leader_and_isr, controller_epoch=decider),
    )


def write_isr(write: IsrWrite, *, state_format: StateFormat) -> operations.Program[NodeVersion | None]:
    """Sets the state node; returns its new version, or ``None`` if the node holds another state or is gone.

    Raises:
        ZooKeeperRefusedError: the write was refused for another reason.
    """
    path = paths.state_node(write.name)
    data = encode_state(write.wanted, state_format=state_format)
    expected = NodeVersion(write.wanted.leader_and_isr.partition_epoch)
    (answer,) = yield (operations.SetData(path=path, data=data, version=expected),)
    if isinstance(answer, operations.DataSet):
        return answer.stat.version
    match operations.failure(answer):
        case operations.ZooKeeperFailure.BAD_VERSION:
            return (yield from _recognise(write, state_format))
        case operations.ZooKeeperFailure.NO_NODE:
            return None
        case reason:
            raise ZooKeeperRefusedError(path=path, reason=reason or operations.ZooKeeperFailure.NOT_EXECUTED)


def _recognise(write: IsrWrite, state_format: StateFormat) -> operations.Program[NodeVersion | None]:
    (answer,) = yield (operations.GetData(path=paths.state_node(write.name)),)
    if not isinstance(answer, operations.DataRead):
        return None
    stored = decode_state(answer.data, answer.stat.version, state_format=state_format)
    return answer.stat.version if stored is not None and _says(stored, write.wanted) else None


def _says(stored: PartitionLeadership, wanted: PartitionLeadership) -> bool:
    found, asked = stored.leader_and_isr, wanted.leader_and_isr
    return stored.controller_epoch == wanted.controller_epoch and (found.leader, found.leader_epoch, found.isr) == (
        asked.leader,
        asked.leader_epoch,
        asked.isr,
    )


class LeaderIsrWrites:
    """A leader's own ISR writes that are under way."""

    def __init__(self, rules: ZooKeeperRules) -> None:
        self._rules = rules
        self._under_way: dict[TopicPartition, IsrProposal] = {}

    @property
    def is_any_under_way(self) -> bool:
        """At least one write of an ISR waits for ZooKeeper's answer."""
        return bool(self._under_way)

    def is_locked(self, name: TopicPartition) -> bool:
        """Returns whether a partition is locked: its ISR write, and so its requests, wait for ZooKeeper."""
        return name in self._under_way

    def begin(self, proposal: IsrProposal) -> None:
        """Locks a partition when its write is sent."""
        self._under_way[proposal.partition] = proposal

    def finish(self, turn: Turn, partition: Partition, proposal: IsrProposal, version: NodeVersion | None) -> None:
        """Applies a write's outcome: the new ISR, or the release's reaction to a refusal."""
        self.forget(partition.name)
        if version is None:
            handle_answer(turn, partition, proposal, _result(proposal, self._refusal()))
            return
        result = msgspec.structs.replace(
            _result(proposal, ErrorCode.NONE),
            leader_epoch=proposal.leader_epoch,
            isr=proposed_isr(proposal.state),
            partition_epoch=PartitionEpoch(version),
        )
        handle_answer(turn, partition, proposal, result)

    def forget(self, name: TopicPartition) -> None:
        """Unlocks a partition that is no longer hosted."""
        self._under_way.pop(name, None)

    def give_up(self, turn: Turn, find: Callable[[TopicPartition], Partition | None]) -> None:
        """Ends the writes of an expired session as if refused, although ZooKeeper may have performed them."""
        for name, proposal in list(self._under_way.items()):
            partition = find(name)
            self.forget(name)
            if partition is not None:
                handle_answer(turn, partition, proposal, _result(proposal, self._refusal()))

    def _refusal(self) -> ErrorCode:
        """Returns the AlterPartition error that has the same effect as the release's reaction."""
        is_kept = self._rules.isr_write_unknown is IsrWriteUnknown.KEEP
        return ErrorCode.OPERATION_NOT_ATTEMPTED if is_kept else ErrorCode.INVALID_UPDATE_VERSION


def _result(proposal: IsrProposal, error: ErrorCode) -> messages.AlterPartitionResult:
    return messages.AlterPartitionResult(
        topic=proposal.partition.topic,
        topic_id=proposal.topic_id,
        partition=proposal.partition.partition,
        error=error,
    )
