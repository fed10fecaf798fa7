"""Permissions of Kafka clients, API by API, as Kafka's ``KafkaApis`` requires them.

A rule wraps the handler of its API: it removes unauthorized entries from the request, lets the handler answer the rest,
and adds the errors to the response. Nothing is checked if ``authorizer.class.name`` is not set. The controller itself
checks the requests that it answers, for the principal that is passed on with them (``emulator.core.authorizer``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from laststand.emulator.core.acls import CLUSTER, AclOperation, Resource, ResourceType
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served

_GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_ID_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_ERRORS: Final = {
    ResourceType.TOPIC: _TOPIC_DENIED,
    ResourceType.GROUP: _GROUP_DENIED,
    ResourceType.CLUSTER: _CLUSTER_DENIED,
    ResourceType.TRANSACTIONAL_ID: _ID_DENIED,
}
_SUBJECTS: Final = {
    ResourceType.TOPIC: "each topic",
    ResourceType.GROUP: "the group",
    ResourceType.CLUSTER: "the cluster",
    ResourceType.TRANSACTIONAL_ID: "the transactional id",
}

Refuse = Callable[[ClientRequest, ErrorCode], Message]
"""Makes the answer to a request that is denied as a whole."""


class Rule(Protocol):
    """The permission that an API needs.

    Attributes:
        needs: in words, for the document.
        hides: what a response leaves out for a client without the permission, in words; empty if the client gets an
            error.
    """

    @property
    def needs(self) -> str: ...

    @property
    def hides(self) -> str: ...

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers the authorized part of a client's request."""
        ...


def _name(operation: AclOperation, kind: ResourceType) -> str:
    return f"{operation.name} of {_SUBJECTS[kind]}"


def _with_alternative(needs: str, alternative: AclOperation | None) -> str:
    return needs if alternative is None else f"{needs}, or {_name(alternative, ResourceType.CLUSTER)}"


class Whole:
    """A request that is answered, or refused with an error, as a whole.

    Args:
        operation: that is needed.
        kind: of the resource.
        names: of the resources, by the request; none if it needs no permission. The cluster's by default.
        refuse: makes the answer.
        alternative: an operation on the cluster that is as good.
    """

    hides = ""

    def __init__(
        self,
        operation: AclOperation,
        kind: ResourceType = ResourceType.CLUSTER,
        names: Callable[[ClientRequest], Iterable[str]] | None = None,
        refuse: Refuse = lambda _, error: {"errorCode": error},
        *,
        alternative: AclOperation | None = None,
    ) -> None:
        self.needs = _with_alternative(_name(operation, kind), alternative)
        self._operation = operation
        self._kind = kind
        self._names = names
        self._refuse = refuse
        self._alternative = alternative

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers, or refuses."""
        if self._alternative is not None and served.might(request, self._alternative, CLUSTER):
            return await handler(served, request)
        names = None if self._names is None else self._names(request)
        resources = [CLUSTER] if names is None else [Resource(self._kind, name) for name in names]
        if all(served.may(request, self._operation, resource) for resource in resources):
            return await handler(served, request)
        return self._refuse(request, _ERRORS[self._kind])


class Listed:
    """A request about several things, each answered or refused on its own.

    Args:
        operation: that is needed.
        kind: of the resources.
        asked: list of the request.
        answered: list of the answer.
        refuse: makes the outcome of a denied entry.
        name: returns the name of the resource.
        alternative: an operation on the cluster that is as good.
    """

    hides = ""

    def __init__(
        self,
        operation: AclOperation,
        kind: ResourceType,
        asked: str,
        answered: str,
        refuse: "Callable[[Message, ErrorCode], Message]",
        name: "Callable[[Served, Message], str | None]" = lambda served, each: served.topic_name(each),
        *,
        alternative: AclOperation | None = None,
    ) -> None:
        self.needs = _with_alternative(_name(operation, kind), alternative)
        self._operation = operation
        self._kind = kind
        self._asked = asked
        self._answered = answered
        self._refuse = refuse
        self._name = name
        self._alternative = alternative

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers the authorized entries, and refuses the others."""
        asked = request.body[self._asked] or ()
        if self._alternative is not None and served.might(request, self._alternative, CLUSTER):
            return await handler(served, request)
        denied = [each for each in asked if not self._is_allowed(served, request, each)]
        if not denied:
            return await handler(served, request)
        refused = [self._refuse(each, _ERRORS[self._kind]) for each in denied]
        allowed = [each for each in asked if each not in denied]
        answer: Message | None = {"errorCode": ErrorCode.NONE, self._answered: []}
        if allowed:
            answer = await handler(served, request._replace(body={**request.body, self._asked: allowed}))
        if answer is None:
            return None
        return {**answer, self._answered: [*answer[self._answered], *refused]}

    def _is_allowed(self, served: Served, request: ClientRequest, each: Message) -> bool:
        name = self._name(served, each)
        return name is None or served.may(request, self._operation, Resource(self._kind, name))


class Hidden:
    """A request for all resources of a kind; a client sees those that it may describe.

    Args:
        kind: of the resources.
        answered: list of the answer.
        name: field that has a resource's name.
        alternative: an operation on the cluster that permits to see everything.

    Attributes:
        answered: the given fields.
    """

    def __init__(
        self, kind: ResourceType, answered: str, name: str, *, alternative: AclOperation | None = None
    ) -> None:
        self.needs = _with_alternative(_name(AclOperation.DESCRIBE, kind), alternative)
        self.hides = "the others are left out"
        self._kind = kind
        self.answered = answered
        self._name = name
        self._alternative = alternative

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers with the resources that the client may see."""
        answer = await handler(served, request)
        sees_all = self._alternative is not None and served.might(request, self._alternative, CLUSTER)
        if answer is None or sees_all:
            return answer
        seen = [
            each
            for each in answer[self.answered]
            if served.might(request, AclOperation.DESCRIBE, Resource(self._kind, each[self._name]))
        ]
        return {**answer, self.answered: seen}


class Both:
    """Two rules, one around the other: the first one that denies the request answers."""

    def __init__(self, outer: Rule, inner: Rule) -> None:
        self.needs = f"{outer.needs}; {inner.needs}"
        self.hides = outer.hides or inner.hides
        self._outer = outer
        self._inner = inner

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers what both allow."""

        async def inner(served: Served, request: ClientRequest) -> Message | None:
            return await self._inner(served, request, handler)

        return await self._outer(served, request, inner)


class _OwnCheck(NamedTuple):
    """A rule that the handler, or the controller, applies by itself, because it decides what the response shows."""

    needs: str
    hides: str = ""

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Has the handler answer."""
        return await handler(served, request)


class _ProducerId:
    """The rule of InitProducerId: the transactional id, or else IDEMPOTENT_WRITE or WRITE to any topic."""

    needs = "WRITE of the transactional id; without one IDEMPOTENT_WRITE of the cluster, or WRITE of any topic"
    hides = ""

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers, or refuses."""
        name = request.body["transactionalId"]
        if name is not None:
            resource = Resource(ResourceType.TRANSACTIONAL_ID, name)
            is_allowed, error = served.may(request, AclOperation.WRITE, resource), _ID_DENIED
        else:
            is_allowed = served.might_on_any(request, AclOperation.WRITE, ResourceType.TOPIC) or served.may(
                request, AclOperation.IDEMPOTENT_WRITE, CLUSTER
            )
            error = _CLUSTER_DENIED
        return await handler(served, request) if is_allowed else {"errorCode": error, "producerEpoch": -1}


class _FindCoordinator:
    """The rule of FindCoordinator: DESCRIBE of each group or transactional id."""

    needs = "DESCRIBE of the group or the transactional id"
    hides = ""

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers, and refuses single keys."""
        body = request.body
        kind = ResourceType.TRANSACTIONAL_ID if body["keyType"] == 1 else ResourceType.GROUP
        keys = body["coordinatorKeys"] or [body["key"]]
        denied = [key for key in keys if not served.may(request, AclOperation.DESCRIBE, Resource(kind, key))]
        if not denied:
            return await handler(served, request)
        refused: Message = {"errorCode": _ERRORS[kind], "nodeId": -1, "host": "", "port": -1}
        if not body["coordinatorKeys"]:
            return {**refused, "errorMessage": _ERRORS[kind].name}
        allowed = [key for key in keys if key not in denied]
        answer: Message | None = {"coordinators": []}
        if allowed:
            answer = await handler(served, request._replace(body={**body, "coordinatorKeys": allowed}))
        assert answer is not None, "it has an answer"
        return {"coordinators": [*answer["coordinators"], *({**refused, "key": key} for key in denied)]}


class _OffsetFetch:
    """The rule of OffsetFetch: DESCRIBE of each group, and of each of its topics."""

    needs = "DESCRIBE of the group; DESCRIBE of each topic"
    hides = "topics that are not named are left out"
    _error_version: Final = 2
    """Version from which an answer has an error of its own, beside those of partitions."""

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers, and refuses groups and topics."""
        body = request.body
        if body["groups"]:
            groups = [await self._group(served, request, group, handler) for group in body["groups"]]
            return {"groups": groups}
        answer = await self._group(served, request, body, handler)
        return {name: value for name, value in answer.items() if name != "groupId"}

    async def _group(self, served: Served, request: ClientRequest, group: Message, handler: Handler) -> Message:
        group_id, topics = group["groupId"], group["topics"]
        if not served.may(request, AclOperation.DESCRIBE, Resource(ResourceType.GROUP, group_id)):
            of_partitions = topics or () if request.version < self._error_version else ()
            refused = [_refused_offsets(topic, _GROUP_DENIED) for topic in of_partitions]
            return {"groupId": group_id, "errorCode": _GROUP_DENIED, "topics": refused}
        denied = [topic for topic in topics or () if not self._sees(served, request, topic)]
        kept = {**group, "topics": topics if topics is None else [each for each in topics if each not in denied]}
        body = {**request.body, "groups": [kept]} if request.body["groups"] else {**request.body, **kept}
        answer = await handler(served, request._replace(body=body))
        assert answer is not None, "it has an answer"
        found: Message = answer["groups"][0] if request.body["groups"] else answer
        seen = [each for each in found["topics"] if topics is not None or self._sees(served, request, each)]
        return {
            "groupId": group_id,
            **found,
            "topics": [*seen, *(_refused_offsets(topic, _TOPIC_DENIED) for topic in denied)],
        }

    @staticmethod
    def _sees(served: Served, request: ClientRequest, topic: Message) -> bool:
        name = served.topic_name(topic)
        return name is None or served.may(request, AclOperation.DESCRIBE, Resource(ResourceType.TOPIC, name))


def _refused_offsets(topic: Message, error: ErrorCode) -> Message:
    return {
        "name": topic.get("name"),
        "topicId": topic.get("topicId"),
        "partitions": [
            {
                "partitionIndex": index,
                "committedOffset": -1,
                "committedLeaderEpoch": -1,
                "metadata": "",
                "errorCode": error,
            }
            for index in topic["partitionIndexes"]
        ],
    }


class _AddPartitions:
    """The rule of AddPartitionsToTxn: brokers need CLUSTER_ACTION, clients the transactional id and every topic."""

    needs = "WRITE of the transactional id; WRITE of each topic; from version 4 on CLUSTER_ACTION of the cluster"
    hides = "the other topics get OPERATION_NOT_ATTEMPTED"
    _batched_version: Final = 4

    async def __call__(self, served: Served, request: ClientRequest, handler: Handler) -> Message | None:
        """Answers the request, or refuses it as a whole."""
        if request.version >= self._batched_version:
            is_allowed = served.may(request, AclOperation.CLUSTER_ACTION, CLUSTER)
            return await handler(served, request) if is_allowed else {"errorCode": _CLUSTER_DENIED}
        topics: Sequence[Message] = request.body["v3AndBelowTopics"]
        own = Resource(ResourceType.TRANSACTIONAL_ID, request.body["v3AndBelowTransactionalId"])
        if not served.may(request, AclOperation.WRITE, own):
            return self._refused(dict.fromkeys((topic["name"] for topic in topics), _ID_DENIED), topics)
        errors = {
            topic["name"]: ErrorCode.OPERATION_NOT_ATTEMPTED
            if served.may(request, AclOperation.WRITE, Resource(ResourceType.TOPIC, topic["name"]))
            else _TOPIC_DENIED
            for topic in topics
        }
        if _TOPIC_DENIED in errors.values():
            return self._refused(errors, topics)
        return await handler(served, request)

    @staticmethod
    def _refused(errors: Mapping[str, ErrorCode], topics: Sequence[Message]) -> Message:
        return {
            "resultsByTopicV3AndBelow": [
                {
                    "name": topic["name"],
                    "resultsByPartition": [
                        {"partitionIndex": index, "partitionErrorCode": errors[topic["name"]]}
                        for index in topic["partitions"]
                    ],
                }
                for topic in topics
            ]
        }


def _partitions(
    index: str = "partitionIndex", *, name: str = "name", asked: str = "partitions", **unknown: int | str | None
) -> Callable[[Message, ErrorCode], Message]:
    """Returns a function that makes a topic of a response, with an error for each of its partitions.

    Args:
        index: field with a partition's number, in both messages.
        name: field with a topic's name, in both messages.
        asked: list of partitions in the request, which has numbers or structures.
        unknown: further fields of a partition.
    """

    def refuse(topic: Message, error: ErrorCode) -> Message:
        numbers = (each if isinstance(each, int) else each[index] for each in topic[asked])
        return {
            name: topic.get(name),
            "topicId": topic.get("topicId"),
            "partitions": [{index: number, "errorCode": error, **unknown} for number in numbers],
        }

    return refuse


def _of_body(field: str) -> Callable[[ClientRequest], Iterable[str]]:
    return lambda request: (request.body[field],)


def _itself(_: Served, each: Message) -> str:
    return str(each)


def _all_partitions(request: ClientRequest, error: ErrorCode) -> Message:
    return {"topics": [_partitions()(topic, error) for topic in request.body["topics"]]}


def _marker_errors(request: ClientRequest, error: ErrorCode) -> Message:
    return {
        "markers": [
            {
                "producerId": marker["producerId"],
                "topics": [_partitions(asked="partitionIndexes")(topic, error) for topic in marker["topics"]],
            }
            for marker in request.body["markers"]
        ]
    }


_GROUP, _TOPIC, _ID = ResourceType.GROUP, ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID
_READ, _WRITE, _DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
_READ_GROUP: Final = Whole(_READ, _GROUP, _of_body("groupId"))
_DESCRIBE_CLUSTER: Final = Whole(_DESCRIBE)
_COMMIT_OFFSETS: Final = Both(
    Whole(_READ, _GROUP, _of_body("groupId"), _all_partitions),
    Listed(_READ, _TOPIC, "topics", "topics", _partitions()),
)
_AT_THE_CONTROLLER: Final = "(at the controller)"


def _of_controller(needs: str) -> _OwnCheck:
    return _OwnCheck(f"{needs} {_AT_THE_CONTROLLER}")


RULES: Final[Mapping[str, Rule]] = {
    "ApiVersions": _OwnCheck("nothing"),
    "SaslHandshake": _OwnCheck("nothing"),
    "SaslAuthenticate": _OwnCheck("nothing"),
    "GetTelemetrySubscriptions": _OwnCheck("nothing"),
    "Produce": _OwnCheck("WRITE of each topic; WRITE of the transactional id"),
    "Fetch": _OwnCheck("READ of each topic; of replicas CLUSTER_ACTION of the cluster"),
    "ListOffsets": Listed(_DESCRIBE, _TOPIC, "topics", "topics", _partitions(timestamp=-1, offset=-1, leaderEpoch=-1)),
    "OffsetForLeaderEpoch": Listed(
        _DESCRIBE,
        _TOPIC,
        "topics",
        "topics",
        _partitions("partition", name="topic", leaderEpoch=-1, endOffset=-1),
        alternative=AclOperation.CLUSTER_ACTION,
    ),
    "DeleteRecords": Listed(AclOperation.DELETE, _TOPIC, "topics", "topics", _partitions(lowWatermark=-1)),
    "DescribeProducers": Listed(
        _READ, _TOPIC, "topics", "topics", _partitions(asked="partitionIndexes", errorMessage=_TOPIC_DENIED.name)
    ),
    "Metadata": _OwnCheck("DESCRIBE of each topic", "topics that are not named are left out"),
    "DescribeTopicPartitions": _OwnCheck("DESCRIBE of each topic", "topics that are not named are left out"),
    "DescribeCluster": _OwnCheck("nothing", "without DESCRIBE of the cluster, what may be done to it"),
    "InitProducerId": _ProducerId(),
    "AddPartitionsToTxn": _AddPartitions(),
    "AddOffsetsToTxn": Both(Whole(_WRITE, _ID, _of_body("transactionalId")), _READ_GROUP),
    "EndTxn": Whole(_WRITE, _ID, _of_body("transactionalId")),
    "TxnOffsetCommit": Both(
        Whole(_WRITE, _ID, _of_body("transactionalId"), _all_partitions),
        _COMMIT_OFFSETS,
    ),
    "WriteTxnMarkers": Whole(AclOperation.CLUSTER_ACTION, refuse=_marker_errors, alternative=AclOperation.ALTER),
    "DescribeTransactions": Both(
        Listed(
            _DESCRIBE,
            _ID,
            "transactionalIds",
            "transactionStates",
            lambda each, error: {"errorCode": error, "transactionalId": each},
            _itself,
        ),
        _OwnCheck("DESCRIBE of each topic", "the other topics are left out"),
    ),
    "ListTransactions": Hidden(_ID, "transactionStates", "transactionalId"),
    "FindCoordinator": _FindCoordinator(),
    "JoinGroup": _READ_GROUP,
    "SyncGroup": _READ_GROUP,
    "Heartbeat": _READ_GROUP,
    "LeaveGroup": _READ_GROUP,
    "OffsetCommit": _COMMIT_OFFSETS,
    "OffsetFetch": _OffsetFetch(),
    "OffsetDelete": Both(
        Whole(AclOperation.DELETE, _GROUP, _of_body("groupId")),
        Listed(_READ, _TOPIC, "topics", "topics", _partitions()),
    ),
    "DescribeGroups": Listed(
        _DESCRIBE, _GROUP, "groups", "groups", lambda each, error: {"errorCode": error, "groupId": each}, _itself
    ),
    "ListGroups": Hidden(_GROUP, "groups", "groupId", alternative=_DESCRIBE),
    "DeleteGroups": Listed(
        AclOperation.DELETE,
        _GROUP,
        "groupsNames",
        "results",
        lambda each, error: {"errorCode": error, "groupId": each},
        _itself,
    ),
    "DescribeLogDirs": _DESCRIBE_CLUSTER,
    "DescribeQuorum": _DESCRIBE_CLUSTER,
    "ListConfigResources": Whole(AclOperation.DESCRIBE_CONFIGS),
    "DescribeClientQuotas": Whole(AclOperation.DESCRIBE_CONFIGS),
    "AlterClientQuotas": _of_controller("ALTER_CONFIGS of the cluster"),
    "DescribeAcls": _DESCRIBE_CLUSTER,
    "CreateAcls": _of_controller("ALTER of the cluster"),
    "DeleteAcls": _of_controller("ALTER of the cluster"),
    "CreateTopics": _of_controller("CREATE of the cluster, or of each topic"),
    "DeleteTopics": _of_controller("DELETE of each topic"),
    "CreatePartitions": _of_controller("ALTER of each topic"),
    "ElectLeaders": _of_controller("ALTER of the cluster"),
    "AlterPartitionReassignments": _of_controller("ALTER of the cluster"),
    "ListPartitionReassignments": _of_controller("DESCRIBE of the cluster"),
    "DescribeConfigs": _of_controller("DESCRIBE_CONFIGS of each topic, or of the cluster for a broker"),
    "IncrementalAlterConfigs": _of_controller("ALTER_CONFIGS of each topic, or of the cluster for a broker"),
    "UpdateFeatures": _of_controller("ALTER of the cluster"),
    "UnregisterBroker": _of_controller("ALTER of the cluster"),
}
"""The rule of each API, by its name."""

_BY_KEY: Final = {api_named(name).key: rule for name, rule in RULES.items()}


async def answer_as_allowed(served: Served, request: ClientRequest, handler: Handler) -> Message | None:
    """Has a handler answer the permitted part of a client's request."""
    if served.permissions is None:
        return await handler(served, request)
    return await _BY_KEY[request.key](served, request, handler)
