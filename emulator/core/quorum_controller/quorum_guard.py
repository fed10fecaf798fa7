"""Checks who may send requests of the quorum before they are handled, as Kafka's ``ControllerApis`` does.

Every controller decides by the entries that it knows to be committed, whether it is the active one or not.
"""

from collections.abc import Mapping
from typing import Final, cast

from laststand.emulator.core import events, inputs, messages, records
from laststand.emulator.core.acls import CLUSTER, AclOperation
from laststand.emulator.core.authorizer.authorizer import Authorizer
from laststand.emulator.core.authorizer.denials import RecordingAuthorizer
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.message import Message
from laststand.emulator.core.quorum import messages as quorum_messages
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset

OPERATIONS: Final[Mapping[type[Message], AclOperation]] = {
    quorum_messages.VoteRequest: AclOperation.CLUSTER_ACTION,
    quorum_messages.BeginQuorumEpochRequest: AclOperation.CLUSTER_ACTION,
    quorum_messages.EndQuorumEpochRequest: AclOperation.CLUSTER_ACTION,
    quorum_messages.FetchMetadataRequest: AclOperation.CLUSTER_ACTION,
    quorum_messages.FetchSnapshotRequest: AclOperation.CLUSTER_ACTION,
    quorum_messages.UpdateRaftVoterRequest: AclOperation.CLUSTER_ACTION,
    quorum_messages.AddRaftVoterRequest: AclOperation.ALTER,
    quorum_messages.RemoveRaftVoterRequest: AclOperation.ALTER,
    quorum_messages.DescribeQuorumRequest: AclOperation.DESCRIBE,
}
"""The operation on the cluster that each request needs; ApiVersions needs none."""

_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class QuorumGuard:
    """The guard of one controller's part in the quorum.

    Args:
        image: an empty metadata image, to which committed batches are applied.
        authorizer: decides by the entries of that image.
    """

    def __init__(self, image: MetadataImage, authorizer: Authorizer) -> None:
        self._image = image
        self._permissions = RecordingAuthorizer(authorizer)

    def fold(self, batch: records.MetadataBatch) -> None:
        """Applies a committed batch."""
        for offset, record in enumerate(batch.records, batch.base_offset):
            self._image.replay(record, offset=MetadataOffset(offset))

    def refusal(self, received: inputs.RequestReceived) -> messages.Response | None:
        """Returns the response that denies a request; ``None`` if its sender may send it."""
        request, requester = received.request, received.requester
        operation = OPERATIONS.get(type(request))
        if requester is None or operation is None:
            return None
        api = type(request).__name__.removesuffix("Request")
        if self._permissions.is_allowed(api, requester, operation, CLUSTER, cause_id=received.cause_id):
            return None
        kind = quorum_messages.RESPONSE_OF[type(request)]
        if not issubclass(kind, quorum_messages.QuorumResponse):
            return cast(messages.Response, kind(error=_DENIED))
        fields = {"is_granted": False} if kind is quorum_messages.VoteResponse else {}
        answer = kind(error=_DENIED, leader_id=None, leader_epoch=LeaderEpoch(0), is_top_level=True, **fields)
        return cast(messages.Response, answer)

    def pop_denials(self) -> list[events.AuthorizationDenied]:
        """Returns what was denied since the last call, each only once until the entries change."""
        return self._permissions.pop_denials()
