"""A partition's state node: who leads, in which epoch, with which ISR (Kafka's ``TopicPartitionStateZNode``).

::

    {"version":1,"leader":1,"leader_epoch":5,"controller_epoch":3,"isr":[1,2],"leader_recovery_state":1}

``leader`` is -1 without a leader, and ``leader_recovery_state`` is written only while it is RECOVERING. A release
before 3.2 neither reads nor keeps that field. Version and unknown fields are ignored.
"""

from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core.types import BrokerId, LeaderEpoch, LeaderRecoveryState, NodeId, PartitionEpoch
from laststand.emulator.core.zookeeper.errors import MalformedNodeError
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from laststand.emulator.core.zookeeper.nodes.node_json import JsonObject, decode_object, encode, integer, integers

_WHAT: Final = "partition state"
_NO_LEADER: Final = -1


class StateFormat(Enum):
    """The fields of a state node that a release knows."""

    WITHOUT_RECOVERY = "2.x"
    """Without ``leader_recovery_state``: releases before 3.2, which drop the field when they write the node."""

    WITH_RECOVERY = "3.2"

    @property
    def has_leader_recovery(self) -> bool:
        """The format has the leader's recovery state."""
        return self is StateFormat.WITH_RECOVERY


class LeaderAndIsr(msgspec.Struct, frozen=True, kw_only=True):
    """Leader and ISR as one decision (Kafka's class of that name).

    ``partition_epoch`` is the version of the state node that has it; before it was written, the version that it is to
    replace.
    """

    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: PartitionEpoch = PartitionEpoch(0)

    def next_epoch(self, *, leader: BrokerId | None, isr: tuple[BrokerId, ...]) -> "LeaderAndIsr":
        """Returns the next decision: leader epoch + 1, recovery state kept, to replace the version at hand."""
        return msgspec.structs.replace(self, leader=leader, isr=isr, leader_epoch=LeaderEpoch(self.leader_epoch + 1))

    def recovering(self, *, leader: BrokerId, isr: tuple[BrokerId, ...]) -> "LeaderAndIsr":
        """Returns the next decision after an unclean election that the state node records (KIP-704)."""
        decided = self.next_epoch(leader=leader, isr=isr)
        return msgspec.structs.replace(decided, leader_recovery_state=LeaderRecoveryState.RECOVERING)

    def at_version(self, version: NodeVersion) -> "LeaderAndIsr":
        """Returns the decision as the node with that version has it."""
        return msgspec.structs.replace(self, partition_epoch=PartitionEpoch(version))


class PartitionLeadership(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and the epoch of the controller that made it (Kafka's ``LeaderIsrAndControllerEpoch``).

    A leader that writes its ISR itself repeats the epoch of the controller that made it leader.
    """

    leader_and_isr: LeaderAndIsr
    controller_epoch: ControllerEpoch


def encode_state(leadership: PartitionLeadership, *, state_format: StateFormat) -> bytes:
    """Writes a state node."""
    decided = leadership.leader_and_isr
    content: JsonObject = {
        "version": 1,
        "leader": _NO_LEADER if decided.leader is None else decided.leader,
        "leader_epoch": decided.leader_epoch,
        "controller_epoch": leadership.controller_epoch,
        "isr": [*decided.isr],
    }
    is_recovering = decided.leader_recovery_state is not LeaderRecoveryState.RECOVERED
    if is_recovering and state_format.has_leader_recovery:
        content["leader_recovery_state"] = decided.leader_recovery_state.value
    return encode(content)


def decode_state(data: bytes, version: NodeVersion, *, state_format: StateFormat) -> PartitionLeadership | None:
    """Reads a state node; ``None`` where the text is no JSON.

    Raises:
        MalformedNodeError: a mandatory field is missing, or the recovery state is unknown.
    """
    content = decode_object(data, what=_WHAT)
    if content is None:
        return None
    leader = integer(content, "leader", what=_WHAT)
    recovery_state = LeaderRecoveryState.RECOVERED
    if state_format.has_leader_recovery and "leader_recovery_state" in content:
        number = integer(content, "leader_recovery_state", what=_WHAT)
        if number not in set(LeaderRecoveryState):
            raise MalformedNodeError(what=_WHAT, reason=f"unknown leader recovery state {number}")
        recovery_state = LeaderRecoveryState(number)
    return PartitionLeadership(
        leader_and_isr=LeaderAndIsr(
            leader=None if leader == _NO_LEADER else BrokerId(NodeId(leader)),
            leader_epoch=LeaderEpoch(integer(content, "leader_epoch", what=_WHAT)),
            isr=tuple(BrokerId(NodeId(member)) for member in integers(content, "isr", what=_WHAT)),
            leader_recovery_state=recovery_state,
            partition_epoch=PartitionEpoch(version),
        ),
        controller_epoch=ControllerEpoch(integer(content, "controller_epoch", what=_WHAT)),
    )
