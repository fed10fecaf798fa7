"""Administrators' requests: the broker forwards it to the controller, as Kafka's brokers do (KIP-590).

The controller never answers the client itself. If it gives no answer in time, the client gets REQUEST_TIMED_OUT.
"""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.acls import AclOperation, Resource, ResourceType
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.property_text import LONG_MAX
from laststand.emulator.core.topic_names import is_legal
from laststand.emulator.core.types import BrokerId, ConfigResource, FeatureUpgradeType, TopicId
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka.numbers import OPERATIONS, RESOURCES, UPGRADES
from laststand.emulator.kafka_listener.message_codec import ZERO_UUID
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served
from laststand.emulator.kafka_listener.topic_entries import by_topic, partitions_of

_TIMEOUT_MS: Final = 30_000
"""Of requests that bring none."""

_CONFIGS_OF_TOPIC_VERSION: Final = 5
"""Version of CreateTopics from which an answer has the topics' configuration (KIP-525)."""

_SOURCES: Final = {
    admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG: 1,
    admin_messages.ConfigSource.DYNAMIC_BROKER_CONFIG: 2,
    admin_messages.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: 3,
    admin_messages.ConfigSource.STATIC_BROKER_CONFIG: 4,
    admin_messages.ConfigSource.DEFAULT_CONFIG: 5,
}
_WITHOUT_DEFAULT: Final = frozenset({"log.retention.ms", "log.flush.interval.ms"})
"""Properties of a node that are not set in Kafka unless somebody sets them: others have their defaults."""

_INTS: Final = frozenset(
    {
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "index.interval.bytes",
        "log.index.interval.bytes",
        "log.segment.bytes",
        "max.message.bytes",
        "message.max.bytes",
        "producer.id.expiration.ms",
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.socket.timeout.ms",
        "segment.bytes",
        "segment.index.bytes",
    }
)
"""Properties of a time or a size whose type is INT."""
_RESULTS_OF_FEATURES_BELOW: Final = 2

_ResponseT = TypeVar("_ResponseT", bound=messages.Response)


async def forward(
    served: Served,
    request: ClientRequest,
    asked: messages.Request,
    expected: type[_ResponseT],
    *,
    timeout_ms: int = _TIMEOUT_MS,
) -> _ResponseT | None:
    """Returns the controller's answer to a client's request; ``None`` if there is none in time."""
    served.note(request, asked, to=served.controller_id)
    response = await served.controller.ask(
        served.controller_id, asked, timeout_ms=max(1, timeout_ms), on_behalf_of=request.connection.requester
    )
    assert response is None or isinstance(response, expected), "each request has its response"
    return response


def _wire_error(error: ErrorCode) -> int:
    """Returns an error with its number in Kafka; an error of KIP-966 was never shipped."""
    return ErrorCode.INVALID_REQUEST if error is ErrorCode.REQUEST_LIMIT_REACHED else error


def result_of(error: ErrorCode, message: str = "") -> Message:
    """Returns an error and its message in the form of a response."""
    return {"errorCode": _wire_error(error), "errorMessage": None if error is ErrorCode.NONE else message or error.name}


TIMED_OUT: Final = result_of(ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer in time")
_DUPLICATE: Final = result_of(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
_NAMED_BY_ID_TOO: Final = result_of(
    ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
)
_HIDDEN_CONFIGS: Final[Message] = {
    "topicConfigErrorCode": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "numPartitions": -1,
    "replicationFactor": -1,
}
"""Of a topic that was created by a client that may not describe its configuration."""

_NO_ASSIGNMENT: Final = result_of(
    ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment is of no partition."
)


# --- Topics -------------------------------------------------------------------------------------------------------


async def _create_topics(served: Served, request: ClientRequest) -> Message:
    body = request.body
    counts = Counter(topic["name"] for topic in body["topics"])
    answers: dict[str, Message] = {}
    topics: dict[str, admin_messages.CreatableTopic] = {}
    for topic in body["topics"]:
        name = topic["name"]
        refusal = _DUPLICATE if counts[name] > 1 else _refusal_of_topic(topic)
        if refusal is not None:
            answers[name] = {**refusal, "name": name}
        else:
            topics[name] = _creatable(topic)
    if topics:
        asked = admin_messages.CreateTopicsRequest(topics=tuple(topics.values()), validate_only=body["validateOnly"])
        response = await forward(
            served, request, asked, admin_messages.CreateTopicsResponse, timeout_ms=body["timeoutMs"]
        )
        results = {} if response is None else {result.name: result for result in response.topics}
        for name, topic in topics.items():
            answers[name] = _created(served, topic, results.get(name))
        if request.version >= _CONFIGS_OF_TOPIC_VERSION:
            made = [name for name in topics if answers[name]["errorCode"] == ErrorCode.NONE]
            shown = [name for name in made if _may_describe_configs(served, request, name)]
            answers |= {name: {**answers[name], **_HIDDEN_CONFIGS} for name in made if name not in shown}
            if not body["validateOnly"]:
                for name, configs in (await _configs_of(served, request, shown)).items():
                    answers[name] |= configs
    return {"topics": [answers[name] for name in counts]}


def _may_describe_configs(served: Served, request: ClientRequest, topic: str) -> bool:
    return served.might(request, AclOperation.DESCRIBE_CONFIGS, Resource(ResourceType.TOPIC, topic))


async def _configs_of(served: Served, request: ClientRequest, topics: Sequence[str]) -> dict[str, Message]:
    """Returns the part of an answer that has the effective configuration of existing topics."""
    if not topics:
        return {}
    resources = tuple(
        admin_messages.DescribeConfigsResource(resource=ConfigResource.TOPIC, resource_name=name) for name in topics
    )
    response = await forward(
        served,
        request,
        admin_messages.DescribeConfigsRequest(resources=resources),
        admin_messages.DescribeConfigsResponse,
    )
    return {
        found.resource_name: _HIDDEN_CONFIGS
        if found.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else {"configs": [_config(config, has_synonyms=False) for config in found.configs]}
        for found in (() if response is None else response.resources)
    }


def _refusal_of_topic(topic: Message) -> Message | None:
    placed = [each["partitionIndex"] for each in topic["assignments"]]
    if not is_legal(topic["name"]):
        return result_of(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {topic['name']!r}")
    if placed and topic["replicationFactor"] != -1:
        reason = "A manual partition assignment was specified, but replication factor was not set to -1."
        return result_of(ErrorCode.INVALID_REQUEST, reason)
    if placed and topic["numPartitions"] != -1:
        reason = "A manual partition assignment was specified, but numPartitions was not set to -1."
        return result_of(ErrorCode.INVALID_REQUEST, reason)
    if sorted(placed) != [*range(len(placed))]:
        reason = "partitions should be a consecutive 0-based integer sequence"
        return result_of(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    for config in topic["configs"]:
        if config["value"] is None:
            return result_of(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {config['name']}")
    return None


def _creatable(topic: Message) -> admin_messages.CreatableTopic:
    placed = sorted(topic["assignments"], key=lambda each: each["partitionIndex"])
    return admin_messages.CreatableTopic(
        name=topic["name"],
        topic_id=TopicId(uuid_text(secrets.token_bytes(16))),
        num_partitions=None if topic["numPartitions"] == -1 else topic["numPartitions"],
        replication_factor=None if topic["replicationFactor"] == -1 else topic["replicationFactor"],
        assignments=tuple(tuple(map(BrokerId, each["brokerIds"])) for each in placed),
        configs=tuple((config["name"], config["value"]) for config in topic["configs"]),
    )


def _created(
    served: Served, topic: admin_messages.CreatableTopic, result: admin_messages.TopicResult | None
) -> Message:
    answer = TIMED_OUT if result is None else result_of(result.error, result.error_message)
    if result is None or result.error is not ErrorCode.NONE:
        return {**answer, "name": topic.name}
    count, factor = len(topic.assignments), len(topic.assignments[0]) if topic.assignments else 0
    return {
        **answer,
        "name": topic.name,
        "topicId": topic.topic_id,
        "numPartitions": count or topic.num_partitions or served.properties.num_partitions,
        "replicationFactor": factor or topic.replication_factor or served.properties.default_replication_factor,
    }


async def _delete_topics(served: Served, request: ClientRequest) -> Message:
    body, image = request.body, served.broker.image
    asked = body["topics"] or [{"name": name, "topicId": ZERO_UUID} for name in body["topicNames"]]
    answers: dict[tuple[str | None, str], Message] = {}
    names: dict[tuple[str | None, str], str] = {}
    counts = Counter((topic["name"], topic["topicId"]) for topic in asked)
    for topic in asked:
        name, topic_id = place = topic["name"], topic["topicId"]
        is_named, is_given_by_id = name is not None, topic_id != ZERO_UUID
        if is_named is is_given_by_id:
            reason = (
                "You may not specify both topic name and topic id."
                if is_named
                else "Neither topic name nor id were specified."
            )
            answers[place] = result_of(ErrorCode.INVALID_REQUEST, reason)
        elif counts[place] > 1:
            answers[place] = _DUPLICATE
        elif is_given_by_id and topic_id not in image.topic_names:
            answers[place] = result_of(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        else:
            names[place] = image.topic_names[topic_id] if name is None else name
    ids = {name: image.topics.get(name, ZERO_UUID) for name in names.values()}
    for place in [
        place
        for place, name in names.items()
        if place[0] is not None
        and (None, ids[name]) in counts
        and served.might(request, AclOperation.DELETE, Resource(ResourceType.TOPIC, name))
    ]:
        topic_id = ids[names.pop(place)]
        names.pop((None, topic_id), None)
        answers[place] = {**_NAMED_BY_ID_TOO, "topicId": topic_id}
    if names:
        response = await forward(
            served,
            request,
            admin_messages.DeleteTopicsRequest(topics=tuple(names.values())),
            admin_messages.DeleteTopicsResponse,
            timeout_ms=body["timeoutMs"],
        )
        for number, (place, name) in enumerate(names.items()):
            result = None if response is None else response.topics[number]
            answer = TIMED_OUT if result is None else result_of(result.error, result.error_message)
            is_denied = result is not None and result.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if is_denied and not served.might(request, AclOperation.DESCRIBE, Resource(ResourceType.TOPIC, name)):
                answers[place] = answer
            else:
                answers[place] = {**answer, "name": name, "topicId": place[1] if is_denied else ids[name]}
    return {
        "responses": [{"name": place[0], "topicId": place[1], **answers[place]} for place in counts if place in answers]
    }


async def _create_partitions(served: Served, request: ClientRequest) -> Message:
    body = request.body
    counts = Counter(topic["name"] for topic in body["topics"])
    asked = [
        admin_messages.CreatablePartitions(
            name=topic["name"],
            count=topic["count"],
            assignments=tuple(tuple(map(BrokerId, each["brokerIds"])) for each in topic["assignments"] or ()),
        )
        for topic in body["topics"]
        if counts[topic["name"]] == 1 and topic["assignments"] != []
    ]
    response = await forward(
        served,
        request,
        admin_messages.CreatePartitionsRequest(topics=tuple(asked), validate_only=body["validateOnly"]),
        admin_messages.CreatePartitionsResponse,
        timeout_ms=body["timeoutMs"],
    )
    answers = {topic["name"]: _NO_ASSIGNMENT for topic in body["topics"] if topic["assignments"] == []}
    answers |= {name: _DUPLICATE for name, count in counts.items() if count > 1}
    for number, topic in enumerate(asked):
        result = None if response is None else response.topics[number]
        answers[topic.name] = TIMED_OUT if result is None else result_of(result.error, result.error_message)
        if result is not None and result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            answers[topic.name]["errorMessage"] = None
    return {"results": [{**answers[name], "name": name} for name in counts]}


# --- Partitions ---------------------------------------------------------------------------------------------------


async def _elect_leaders(served: Served, request: ClientRequest) -> Message:
    body = request.body
    asked = body["topicPartitions"]
    partitions = None
    if asked is not None:
        partitions = tuple(
            admin_messages.ElectablePartition(topic=topic["topic"], partition=index)
            for topic in asked
            for index in topic["partitions"]
        )
    # Versions below 1 know the preferred election alone; those of KIP-966 from 2 on were never shipped.
    wanted = body["electionType"]
    if wanted not in (0, 1) and partitions == ():
        return {"errorCode": ErrorCode.NONE}
    if wanted not in (0, 1):
        return _no_election(partitions, ErrorCode.INVALID_REQUEST, f"Unknown election type {wanted}")
    response = await forward(
        served,
        request,
        admin_messages.ElectLeadersRequest(election_type=wanted, partitions=partitions),
        admin_messages.ElectLeadersResponse,
        timeout_ms=body["timeoutMs"],
    )
    if response is None:
        return {"errorCode": ErrorCode.REQUEST_TIMED_OUT}
    if response.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return _no_election(partitions, response.error)
    results = by_topic(
        (each.topic, {**result_of(each.error, each.error_message), "partitionId": each.partition})
        for each in response.partitions
    )
    for name in served.broker.image.topics if asked is None else [topic["topic"] for topic in asked]:
        results.setdefault(name, [])
    return {
        "errorCode": _wire_error(response.error),
        "replicaElectionResults": _listed(results, "partitionResult", "topic"),
    }


def _no_election(
    partitions: Sequence[admin_messages.ElectablePartition] | None, error: ErrorCode, message: str = ""
) -> Message:
    """Returns the answer to a request that fails for each named partition; ``None`` names none."""
    failed = result_of(error, message)
    results = by_topic((each.topic, {**failed, "partitionId": each.partition}) for each in partitions or ())
    return {"errorCode": error, "replicaElectionResults": _listed(results, "partitionResult", "topic")}


async def _alter_reassignments(served: Served, request: ClientRequest) -> Message:
    body = request.body
    asked = [
        admin_messages.ReassignablePartition(
            topic=topic,
            partition=each["partitionIndex"],
            replicas=None if each["replicas"] is None else tuple(map(BrokerId, each["replicas"])),
        )
        for topic, each in partitions_of(body["topics"])
    ]
    is_free = body["allowReplicationFactorChange"]
    response = await forward(
        served,
        request,
        admin_messages.AlterPartitionReassignmentsRequest(
            partitions=tuple(asked), allow_replication_factor_change=is_free
        ),
        admin_messages.AlterPartitionReassignmentsResponse,
        timeout_ms=body["timeoutMs"],
    )
    if response is None:
        return {**TIMED_OUT, "allowReplicationFactorChange": is_free}
    results = by_topic(
        (each.topic, {**_reassignment_result(each), "partitionIndex": each.partition}) for each in response.partitions
    )
    for topic in body["topics"]:
        results.setdefault(topic["name"], [])
    return {
        **result_of(response.error, response.error_message),
        "allowReplicationFactorChange": is_free,
        "responses": _listed(results, "partitions", "name"),
    }


def _reassignment_result(result: admin_messages.PartitionResult) -> Message:
    if result.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
        return {"errorCode": result.error, "errorMessage": None}
    return result_of(result.error, result.error_message)


async def _list_reassignments(served: Served, request: ClientRequest) -> Message:
    body = request.body
    asked = body["topics"]
    partitions = None
    if asked is not None:
        partitions = tuple((topic["name"], index) for topic in asked for index in topic["partitionIndexes"])
    response = await forward(
        served,
        request,
        admin_messages.ListPartitionReassignmentsRequest(partitions=partitions),
        admin_messages.ListPartitionReassignmentsResponse,
        timeout_ms=body["timeoutMs"],
    )
    if response is None:
        return TIMED_OUT
    ongoing = by_topic(
        (
            each.topic,
            {
                "partitionIndex": each.partition,
                "replicas": each.replicas,
                "addingReplicas": each.adding_replicas,
                "removingReplicas": each.removing_replicas,
            },
        )
        for each in response.partitions
    )
    return {**result_of(response.error), "topics": _listed(ongoing, "partitions", "name")}


def _listed(topics: Mapping[str, list[Message]], entries: str, name: str) -> list[Message]:
    return [{name: topic, entries: listed} for topic, listed in topics.items()]


# --- Configuration ------------------------------------------------------------------------------------------------


def _resource_problem(served: Served, resource: Message) -> Message | None:
    kind, name = RESOURCES.get(resource["resourceType"]), resource["resourceName"]
    if kind is None:
        return result_of(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource['resourceType']}")
    if kind is ConfigResource.BROKER and name not in ("", str(served.broker_id)):
        reason = f"Unexpected broker id, expected {served.broker_id} or empty string, but received {name}"
        return result_of(ErrorCode.INVALID_REQUEST, reason)
    if kind is ConfigResource.TOPIC and not is_legal(name):
        return result_of(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {name!r}")
    return None


async def _describe_configs(served: Served, request: ClientRequest) -> Message:
    body = request.body
    problems = [_resource_problem(served, resource) for resource in body["resources"]]
    asked = [
        admin_messages.DescribeConfigsResource(
            resource=RESOURCES[resource["resourceType"]],
            resource_name=resource["resourceName"],
            configuration_keys=None if resource["configurationKeys"] is None else tuple(resource["configurationKeys"]),
        )
        for resource, problem in zip(body["resources"], problems, strict=True)
        if problem is None
    ]
    response = None
    if asked:
        response = await forward(
            served,
            request,
            admin_messages.DescribeConfigsRequest(resources=tuple(asked)),
            admin_messages.DescribeConfigsResponse,
        )
    described = iter(() if response is None else response.resources)
    results: list[Message] = []
    for resource, problem in zip(body["resources"], problems, strict=True):
        named = {"resourceType": resource["resourceType"], "resourceName": resource["resourceName"]}
        found = None if problem is not None else next(described, None)
        if found is None:
            results.append({**named, **(problem or TIMED_OUT)})
            continue
        answer = result_of(found.error, found.error_message)
        if found.error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            answer["errorMessage"] = ""
        configs = [_config(config, has_synonyms=body["includeSynonyms"]) for config in found.configs]
        results.append({**named, **answer, "configs": configs})
    return {"results": results}


def _config(config: admin_messages.DescribedConfig, *, has_synonyms: bool) -> Message:
    return {
        "name": config.name,
        "value": f"{LONG_MAX}" if config.name == "flush.ms" and config.value is None else config.value,
        "readOnly": config.read_only,
        "configSource": _SOURCES[config.source],
        "isSensitive": False,
        "synonyms": [
            {"name": synonym.name, "value": synonym.value, "source": _SOURCES[synonym.source]}
            for synonym in (config.synonyms if has_synonyms else ())
            if synonym.source is not admin_messages.ConfigSource.DEFAULT_CONFIG or synonym.name not in _WITHOUT_DEFAULT
        ],
        "configType": _config_type(config),
    }


def _config_type(config: admin_messages.DescribedConfig) -> int:
    """Returns Kafka's number of an entry's type: BOOLEAN, STRING, INT, LONG, DOUBLE or LIST."""
    if config.name.endswith(".ratio"):
        return 6
    if config.name in ("flush.ms", *_WITHOUT_DEFAULT):
        return 5
    value = config.value or ""
    if value in ("true", "false"):
        return 1
    if value.removeprefix("-").isdigit():
        return 5 if config.name.endswith((".ms", ".bytes", ".messages")) and config.name not in _INTS else 3
    return 7 if config.name.endswith(("cleanup.policy", ".throttled.replicas")) else 2


async def _alter_configs(served: Served, request: ClientRequest) -> Message:
    body = request.body
    problems = [_resource_problem(served, resource) or _changes_problem(resource) for resource in body["resources"]]
    asked = [
        admin_messages.AlterConfigsResource(
            resource=RESOURCES[resource["resourceType"]],
            resource_name=resource["resourceName"],
            configs=tuple(
                admin_messages.AlterableConfig(
                    name=config["name"],
                    operation=OPERATIONS[config["configOperation"]],
                    value=None
                    if OPERATIONS[config["configOperation"]] is admin_messages.ConfigOperation.DELETE
                    else config["value"],
                )
                for config in resource["configs"]
            ),
        )
        for resource, problem in zip(body["resources"], problems, strict=True)
        if problem is None
    ]
    response = None
    if asked:
        altered = admin_messages.IncrementalAlterConfigsRequest(
            resources=tuple(asked), validate_only=body["validateOnly"]
        )
        response = await forward(served, request, altered, admin_messages.IncrementalAlterConfigsResponse)
    outcomes = iter(() if response is None else response.resources)
    results: list[Message] = []
    for resource, problem in zip(body["resources"], problems, strict=True):
        named = {"resourceType": resource["resourceType"], "resourceName": resource["resourceName"]}
        outcome = None if problem is not None else next(outcomes, None)
        answer = problem or (TIMED_OUT if outcome is None else result_of(outcome.error, outcome.error_message))
        results.append({**named, **answer})
    return {"responses": results}


def _changes_problem(resource: Message) -> Message | None:
    counts = Counter(config["name"] for config in resource["configs"])
    for config in resource["configs"]:
        operation = OPERATIONS.get(config["configOperation"])
        if operation is None:
            return {"errorCode": ErrorCode.UNKNOWN_SERVER_ERROR, "errorMessage": None}
        if counts[config["name"]] > 1:
            return result_of(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        if operation is not admin_messages.ConfigOperation.DELETE and config["value"] is None:
            return result_of(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config['name']}")
    return None


# --- Features and brokers -----------------------------------------------------------------------------------------


async def _update_features(served: Served, request: ClientRequest) -> Message:
    body = request.body
    for each in body["featureUpdates"]:
        if each["upgradeType"] not in UPGRADES:
            return _feature_problem(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Invalid update version {each['maxVersionLevel']} for feature {each['feature']}. "
                "The controller does not support the given upgrade type.",
            )
    updates = [
        admin_messages.FeatureUpdate(
            feature=each["feature"],
            max_version_level=each["maxVersionLevel"],
            upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE if each["allowDowngrade"] else UPGRADES[each["upgradeType"]],
        )
        for each in {each["feature"]: each for each in body["featureUpdates"]}.values()
    ]
    response = await forward(
        served,
        request,
        admin_messages.UpdateFeaturesRequest(feature_updates=tuple(updates), validate_only=body["validateOnly"]),
        admin_messages.UpdateFeaturesResponse,
        timeout_ms=body["timeoutMs"],
    )
    if response is None:
        return TIMED_OUT
    if response.error is not ErrorCode.NONE:
        return _feature_problem(response.error, response.error_message)
    done = {"errorCode": ErrorCode.NONE, "errorMessage": "NONE"}
    results = [{**done, "feature": update.feature} for update in updates]
    return {"errorCode": ErrorCode.NONE, "results": results if request.version < _RESULTS_OF_FEATURES_BELOW else []}


def _feature_problem(error: ErrorCode, message: str) -> Message:
    return result_of(error, f"The update failed for all features since the following feature had an error: {message}")


async def _unregister_broker(served: Served, request: ClientRequest) -> Message:
    asked = admin_messages.UnregisterBrokerRequest(broker_id=BrokerId(request.body["brokerId"]))
    response = await forward(served, request, asked, admin_messages.UnregisterBrokerResponse)
    return TIMED_OUT if response is None else result_of(response.error, response.error_message)


ADMINISTRATION: Final[Mapping[int, Handler]] = {
    api_named(name).key: handler
    for name, handler in (
        ("CreateTopics", _create_topics),
        ("DeleteTopics", _delete_topics),
        ("CreatePartitions", _create_partitions),
        ("ElectLeaders", _elect_leaders),
        ("AlterPartitionReassignments", _alter_reassignments),
        ("ListPartitionReassignments", _list_reassignments),
        ("DescribeConfigs", _describe_configs),
        ("IncrementalAlterConfigs", _alter_configs),
        ("UpdateFeatures", _update_features),
        ("UnregisterBroker", _unregister_broker),
    )
}
