"""Checks requests before they are handled: entries that the sender may not access are answered with an error.

A request that is denied as a whole is answered at once. One about several topics goes on without those that are denied;
their errors are put into the answer, at their places, when it leaves. Kafka's ``AuthHelper``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec

from laststand.emulator.core import admin_messages, events, group_messages, messages, transaction_messages
from laststand.emulator.core.acls import CLUSTER, WILDCARD, AclOperation, Resource, ResourceType
from laststand.emulator.core.authorizer.authorizer import Authorizer
from laststand.emulator.core.authorizer.denials import RecordingAuthorizer
from laststand.emulator.core.authorizer.requirements import (
    FORWARDING,
    METADATA_STREAM,
    REQUIREMENTS,
    Requirement,
    Subject,
)
from laststand.emulator.core.effects import SendResponse
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.inputs import RequestReceived
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import Acks, CauseId, ConfigResource, RequestId

_CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_OF_TRANSACTIONS: Final = (transaction_messages.InitTransactionRequest, transaction_messages.EndTxnRequest)
_OF_PRODUCERS: Final = (messages.ProduceRequest, group_messages.OffsetCommitRequest)
_OF_GROUPS: Final = (group_messages.OffsetCommitRequest, group_messages.OffsetFetchRequest)
_OF_MEMBERS: Final = (
    group_messages.JoinGroupRequest,
    group_messages.SyncGroupRequest,
    group_messages.HeartbeatRequest,
    group_messages.LeaveGroupRequest,
)
_ANSWERED_WHOLE: Final = (Subject.CLUSTER, Subject.TRANSACTIONAL_ID, Subject.MEMBERSHIP)
_DESCRIPTIONS: Final = (messages.MetadataRequest, messages.DescribeTopicPartitionsRequest)
_LISTS: Final = ("partitions", "topics", "resources")
"""Names of the lists that a request asks about, and its answer has outcomes of, one by one."""

STREAM_API: Final = "Stream"
"""The metadata stream's name as an API."""

_STREAM_CAUSE: Final = CauseId("stream")

_PartitionEntry: TypeAlias = (
    messages.ProducePartition
    | messages.FetchPartition
    | messages.ListOffsetsPosition
    | messages.EpochPosition
    | messages.DeleteRecordsTarget
)
_ConfigEntry: TypeAlias = admin_messages.AlterConfigsResource | admin_messages.DescribeConfigsResource
_TopicEntry: TypeAlias = str | admin_messages.CreatableTopic | admin_messages.CreatablePartitions
_Entry: TypeAlias = _PartitionEntry | _ConfigEntry | _TopicEntry

_RESULTS: Final[Mapping[type[_PartitionEntry | _ConfigEntry], type[msgspec.Struct]]] = {
    messages.ProducePartition: messages.ProducePartitionResponse,
    messages.FetchPartition: messages.FetchPartitionResponse,
    messages.ListOffsetsPosition: messages.ListOffsetsResult,
    messages.EpochPosition: messages.EpochPositionResult,
    messages.DeleteRecordsTarget: messages.DeleteRecordsResult,
    admin_messages.AlterConfigsResource: admin_messages.ConfigResourceResult,
    admin_messages.DescribeConfigsResource: admin_messages.DescribedConfigResource,
}
"""The outcome of each kind of entry."""


class Refused(NamedTuple):
    """The response to a request that is denied as a whole."""

    response: messages.Response


class _Asked(NamedTuple):
    """A request that may be denied to its sender.

    Attributes:
        api: the request's name.
        requester: the sender.
        cause_id: of the request, and of denials.
    """

    api: str
    requester: Requester
    cause_id: CauseId


class RequestGuard:
    """The guard of one node.

    Args:
        authorizer: of the node.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._permissions = RecordingAuthorizer(authorizer)
        self._denied: dict[RequestId, dict[int, msgspec.Struct]] = {}

    def admit(self, received: RequestReceived) -> RequestReceived | Refused:
        """Returns the request without its denied entries, or the response if no entry is left."""
        request, requester = received.request, received.requester
        requirement = REQUIREMENTS.get(type(request))
        if requester is None or requirement is None:
            return received
        asked = _asked(received, requester)
        if not self._may_forward(asked):
            return Refused(refusal(request, _CLUSTER_DENIED))
        if isinstance(request, _OF_PRODUCERS) and not self._may_use_transaction(asked, request):
            return Refused(refusal(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        if isinstance(request, _OF_GROUPS):
            error = self._group_error(asked, request, requirement)
            return received if error is None else Refused(refusal(request, error))
        if isinstance(request, _OF_MEMBERS):
            is_met = self._is_allowed(asked, requirement.operation, Resource(ResourceType.GROUP, request.group_id))
            return received if is_met else Refused(refusal(request, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        if isinstance(request, _OF_TRANSACTIONS):
            named = Resource(ResourceType.TRANSACTIONAL_ID, request.transactional_id)
            is_met = self._is_allowed(asked, requirement.operation, named)
            return received if is_met else Refused(refusal(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        if requirement.subject is Subject.CLUSTER:
            is_met = self._is_met_on_cluster(asked, requirement)
            return received if is_met else Refused(refusal(request, _CLUSTER_DENIED))
        if isinstance(request, _DESCRIPTIONS):
            return received  # what is denied is not in the answer: ``unseen``
        return self._admit_entries(received, asked, requirement)

    def may_read_metadata(self, requester: Requester | None) -> bool:
        """Returns whether a requester may read the metadata log."""
        if requester is None:
            return True
        return self._is_met_on_cluster(_Asked(STREAM_API, requester, _STREAM_CAUSE), METADATA_STREAM)

    def unseen(self, received: RequestReceived, existing: Iterable[str]) -> frozenset[str]:
        """Returns the topics of a request to describe topics that its sender may not describe.

        Args:
            received: the request.
            existing: the topics that a request without names is about; their denials are not recorded.
        """
        request, requester = received.request, received.requester
        if requester is None:
            return frozenset()
        match request:
            case messages.MetadataRequest(topics=topics) | messages.DescribeTopicPartitionsRequest(topics=topics):
                if not topics:
                    return self._authorizer.unseen(requester, existing)
                asked = _asked(received, requester)
                named = ((name, Resource(ResourceType.TOPIC, name)) for name in topics)
                return frozenset(
                    name for name, topic in named if not self._is_allowed(asked, AclOperation.DESCRIBE, topic)
                )
            case _:
                return frozenset()

    @property
    def has_denials(self) -> bool:
        """A denial is not recorded yet, or its errors wait for their response."""
        return bool(self._denied) or self._permissions.has_denials

    def pop_denials(self) -> list[events.AuthorizationDenied]:
        """Returns what was denied since the last call, each only once until the lists change."""
        return self._permissions.pop_denials()

    # --- Permissions ----------------------------------------------------------------------------------------------

    def _is_allowed(self, asked: _Asked, operation: AclOperation, resource: Resource) -> bool:
        return self._permissions.is_allowed(asked.api, asked.requester, operation, resource, cause_id=asked.cause_id)

    def _may_forward(self, asked: _Asked) -> bool:
        requester = asked.requester
        if requester.forwarder is None:
            return True
        by_forwarder = asked._replace(requester=Requester(requester.forwarder, requester.host))
        return self._is_allowed(by_forwarder, FORWARDING.operation, CLUSTER)

    def _may_use_transaction(
        self, asked: _Asked, request: messages.ProduceRequest | group_messages.OffsetCommitRequest
    ) -> bool:
        if not request.transactional_id:
            return True
        resource = Resource(ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        return self._is_allowed(asked, AclOperation.WRITE, resource)

    def _group_error(
        self,
        asked: _Asked,
        request: group_messages.OffsetCommitRequest | group_messages.OffsetFetchRequest,
        requirement: Requirement,
    ) -> ErrorCode | None:
        """Returns why a group's offsets may not be committed or fetched; one denied topic denies the whole request."""
        if not self._is_allowed(asked, requirement.operation, Resource(ResourceType.GROUP, request.group_id)):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if isinstance(request, group_messages.OffsetCommitRequest):
            topics = [each.partition.topic for each in request.offsets]
        elif request.partitions is not None:
            topics = [each.topic for each in request.partitions]
        else:
            topics = [WILDCARD]
        for topic in dict.fromkeys(topics):
            if not self._is_allowed(asked, requirement.operation, Resource(ResourceType.TOPIC, topic)):
                return _TOPIC_DENIED
        return None

    def _has_alternative(self, requester: Requester, requirement: Requirement) -> bool:
        alternative = requirement.on_cluster
        return alternative is not None and self._authorizer.is_allowed(requester, alternative, CLUSTER)

    def _is_met_on_cluster(self, asked: _Asked, requirement: Requirement) -> bool:
        any_topic = requirement.on_any_topic
        if any_topic is not None and self._authorizer.is_allowed_on_any(asked.requester, any_topic, ResourceType.TOPIC):
            return True
        if self._has_alternative(asked.requester, requirement):
            return True
        return self._is_allowed(asked, requirement.operation, CLUSTER)

    def _admit_entries(
        self, received: RequestReceived, asked: _Asked, requirement: Requirement
    ) -> RequestReceived | Refused:
        """Returns a request without its denied entries; their errors are kept for the response."""
        request = received.request
        is_follower = isinstance(request, messages.FetchRequest) and request.replica_id is not None
        if is_follower and requirement.of_followers is not None:
            follows = self._is_allowed(asked, requirement.of_followers, CLUSTER)
            return received if follows else Refused(refusal(request, _TOPIC_DENIED))
        if self._has_alternative(asked.requester, requirement):
            return received
        field, entries = _entries_of(request)
        denied: dict[int, msgspec.Struct] = {}
        for index, entry in enumerate(entries):
            resource = _resource_of(entry)
            if not self._is_allowed(asked, requirement.operation, resource):
                is_topic = resource.resource_type is ResourceType.TOPIC
                denied[index] = _refused_entry(entry, _TOPIC_DENIED if is_topic else _CLUSTER_DENIED)
        if not denied:
            return received
        if len(denied) == len(entries) or is_unanswered(request):
            return Refused(_answer(request, field, denied.values()))
        self._denied[received.request_id] = denied
        allowed = tuple(entry for index, entry in enumerate(entries) if index not in denied)
        return msgspec.structs.replace(received, request=msgspec.structs.replace(request, **{field: allowed}))

    # --- Answers --------------------------------------------------------------------------------------------------

    def complete(self, answer: SendResponse) -> SendResponse:
        """Returns a response with the errors of the denied entries added."""
        denied = self._denied.pop(answer.request_id, None)
        if denied is None:
            return answer
        field, outcomes = _entries_of(answer.response)
        rest = iter(cast(Sequence[msgspec.Struct], outcomes))
        merged = tuple(denied[index] if index in denied else next(rest) for index in range(len(denied) + len(outcomes)))
        return msgspec.structs.replace(answer, response=msgspec.structs.replace(answer.response, **{field: merged}))


def _asked(received: RequestReceived, requester: Requester) -> _Asked:
    return _Asked(type(received.request).__name__.removesuffix("Request"), requester, received.cause_id)


def is_inactive(request: messages.Request, response: messages.Response) -> bool:
    """Returns whether a controller refused a request because another one, or none, is active.

    Every controller gives the same answer to a request without entries.
    """
    return response == refusal(request, ErrorCode.NOT_CONTROLLER) != refusal(request, ErrorCode.NONE)


def refusal(request: messages.Request, error: ErrorCode) -> messages.Response:
    """Returns the answer to a request that is denied as a whole, in its own form of an error."""
    match request:
        case messages.GetReplicaLogInfoRequest(partitions=partitions):
            infos = tuple(
                messages.ReplicaLogInfo(topic_id=topic_id, partition=partition, error=error)
                for topic_id, partition in partitions
            )
            return messages.GetReplicaLogInfoResponse(broker_epoch=None, partitions=infos)
        case transaction_messages.WriteTxnMarkersRequest(markers=markers):
            outcomes = tuple(
                transaction_messages.MarkerOutcome(errors=(error,) * len(marker.partitions)) for marker in markers
            )
            return transaction_messages.WriteTxnMarkersResponse(markers=outcomes)
        case admin_messages.CreateAclsRequest(acls=acls):
            return admin_messages.CreateAclsResponse(results=(admin_messages.AclResult(error=error),) * len(acls))
        case admin_messages.DeleteAclsRequest(filters=filters):
            return admin_messages.DeleteAclsResponse(results=(admin_messages.DeletedAcls(error=error),) * len(filters))
        case admin_messages.AlterClientQuotasRequest(entries=entries):
            results = (admin_messages.QuotaResult(error=error),) * len(entries)
            return admin_messages.AlterClientQuotasResponse(results=results)
        case group_messages.OffsetCommitRequest(offsets=offsets):
            return group_messages.OffsetCommitResponse(errors=(error,) * len(offsets))
        case group_messages.OffsetFetchRequest():
            return group_messages.OffsetFetchResponse(error=error)
        case messages.MetadataRequest():
            return messages.MetadataResponse(brokers=(), controller_id=None, topics=())
        case messages.DescribeTopicPartitionsRequest():
            return messages.DescribeTopicPartitionsResponse(error=error)
        case admin_messages.DescribeFeaturesRequest():
            return admin_messages.DescribeFeaturesResponse(error=error)
        case admin_messages.DescribeClusterRequest():
            return admin_messages.DescribeClusterResponse(error=error)
        case _ if REQUIREMENTS[type(request)].subject in _ANSWERED_WHOLE:
            return _response(request, error=error)
        case _:
            field, asked = _entries_of(request)
            return _answer(request, field, (_refused_entry(entry, error) for entry in asked))


def _answer(request: messages.Request, field: str, outcomes: Iterable[msgspec.Struct]) -> messages.Response:
    return _response(request, **{field: tuple(outcomes)})


def _response(request: messages.Request, **fields: ErrorCode | tuple[msgspec.Struct, ...]) -> messages.Response:
    return cast(messages.Response, messages.RESPONSE_OF[type(request)](**fields))


def _entries_of(message: messages.Request | messages.Response) -> tuple[str, tuple[_Entry, ...]]:
    """Returns the field of a message that lists its entries (subjects or outcomes), and the list."""
    field = next(name for name in _LISTS if name in message.__struct_fields__)
    return field, getattr(message, field)


def _resource_of(entry: _Entry) -> Resource:
    match entry:
        case str():
            return Resource(ResourceType.TOPIC, entry)
        case admin_messages.CreatableTopic() | admin_messages.CreatablePartitions():
            return Resource(ResourceType.TOPIC, entry.name)
        case admin_messages.AlterConfigsResource() | admin_messages.DescribeConfigsResource():
            is_topic = entry.resource is ConfigResource.TOPIC
            return Resource(ResourceType.TOPIC, entry.resource_name) if is_topic else CLUSTER
        case _:
            return Resource(ResourceType.TOPIC, entry.topic)


def _refused_entry(entry: _Entry, error: ErrorCode) -> msgspec.Struct:
    match entry:
        case str():
            return admin_messages.TopicResult(name=entry, error=error)
        case admin_messages.CreatableTopic() | admin_messages.CreatablePartitions():
            return admin_messages.TopicResult(name=entry.name, error=error)
        case admin_messages.AlterConfigsResource() | admin_messages.DescribeConfigsResource():
            return _RESULTS[type(entry)](resource=entry.resource, resource_name=entry.resource_name, error=error)
        case _:
            return _RESULTS[type(entry)](topic=entry.topic, partition=entry.partition, error=error)


def is_unanswered(request: messages.Request) -> bool:
    """Returns whether a request has no answer: a produce request with acks=0, whose denial ends its connection."""
    return isinstance(request, messages.ProduceRequest) and request.acks == Acks.NONE
