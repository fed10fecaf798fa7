"""Effects of one of several controllers: those of quorum and controller, except those that one has for the other."""

from typing import TypeAlias

from laststand.emulator.core.effects import (
    DrawNumber,
    Effect,
    PublishMetadata,
    RecordEvent,
    SendRequest,
    SendResponse,
    StopNode,
)
from laststand.emulator.core.events import ControllerEvent, OperationFailed
from laststand.emulator.core.quorum.effects import (
    AppendBatches,
    RecordQuorumEvent,
    SyncMetadata,
    TruncateMetadata,
    WriteElection,
)
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset


class ServeMetadata(Effect, frozen=True, kw_only=True):
    """Serve metadata streams as the active controller of an epoch; ``None`` ends those that are open."""

    controller_epoch: LeaderEpoch | None


class RecordFacts(Effect, frozen=True, kw_only=True):
    """Write the events of an earlier leader's batch, unless that leader, which may have been killed, wrote them."""

    base_offset: MetadataOffset
    events: tuple[ControllerEvent, ...]


class ReportFault(Effect, frozen=True, kw_only=True):
    """Report a bug: an operation of the active controller failed, which cost the leadership.

    Attributes:
        failure: the event to write.
        error: the exception, with its traceback.
    """

    failure: OperationFailed
    error: Exception


QuorumControllerEffect: TypeAlias = (
    SendRequest
    | SendResponse
    | WriteElection
    | AppendBatches
    | SyncMetadata
    | TruncateMetadata
    | RecordQuorumEvent
    | RecordEvent
    | RecordFacts
    | PublishMetadata
    | ServeMetadata
    | ReportFault
    | DrawNumber
    | StopNode
)
