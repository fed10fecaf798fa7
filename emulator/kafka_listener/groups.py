"""Coordinators, and groups: FindCoordinator, DescribeGroups, ListGroups, DeleteGroups.

The coordinator of a group is the leader of a partition of ``__consumer_offsets``, that of a transactional id the leader
of one of ``__transaction_state``. Each topic is created when a client first asks for such a coordinator, as in Kafka.
"""

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

from laststand.emulator.core import admin_messages, group_messages
from laststand.emulator.core.acls import Resource, ResourceType
from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.types import TopicId
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka_listener.authorized_operations import authorized_operations
from laststand.emulator.kafka_listener.group_members import (
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from laststand.emulator.kafka_listener.group_offsets import offset_commit, offset_delete, offset_fetch
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Endpoint, Handler, Served

_TOPICS: Final = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}
"""Topics of coordinators, by the types of their keys."""

_SEVERAL_KEYS_VERSION: Final = 4
_CREATE_TIMEOUT_MS: Final = 1000
_TOPIC_CONFIGS: Final = (("cleanup.policy", "compact"), ("segment.bytes", str(100 << 20)))

_GROUP_TYPE: Final = "classic"
_UNKNOWN_GROUP_VERSION: Final = 6
"""Version of DescribeGroups from which an unknown group is an error, where it was dead before (KIP-1043)."""


class _Coordinator(NamedTuple):
    error: ErrorCode
    node_id: int = -1
    endpoint: Endpoint = Endpoint("", -1)


async def _find_coordinator(served: Served, request: ClientRequest) -> Message:
    body, has_keys = request.body, request.version >= _SEVERAL_KEYS_VERSION
    keys = body["coordinatorKeys"] if has_keys else [body["key"]]
    topic = _TOPICS.get(body["keyType"])
    if topic is None:
        found = [_Coordinator(ErrorCode.INVALID_REQUEST)] * len(keys)
    else:
        if topic not in served.broker.image.topics:
            await _create_topic(served, request, topic)
        found = [_coordinator(served, topic, key) for key in keys]
    if has_keys:
        return {"coordinators": [{"key": key, **_place(each)} for key, each in zip(keys, found, strict=True)]}
    (only,) = found
    return {**_place(only), "errorMessage": only.error.name}


def _place(found: _Coordinator) -> Message:
    host, port = found.endpoint
    return {"errorCode": found.error, "nodeId": found.node_id, "host": host, "port": port}


def _coordinator(served: Served, topic: str, key: str) -> _Coordinator:
    """Returns the coordinator of a group or a transactional id by this broker's metadata."""
    image = served.broker.image
    count = image.partition_counts.get(topic, 0)
    state = image.partitions.get(partition_of(key, topic, count)) if count else None
    if state is None or state.leader is None or state.leader not in served.live_brokers():
        return _Coordinator(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Coordinator(ErrorCode.NONE, state.leader, served.endpoints[state.leader])


async def _create_topic(served: Served, request: ClientRequest, name: str) -> None:
    """Has the controller make a topic of coordinators; clients ask again until metadata has it."""
    properties = served.properties
    is_of_groups = name == OFFSETS_TOPIC
    replicas = (
        properties.offsets_topic_replication_factor
        if is_of_groups
        else properties.transaction_state_log_replication_factor
    )
    # Of all brokers of the cluster, registered or not: a start must not leave the topic with one replica.
    replication_factor = min(replicas, len(served.endpoints))
    min_isr = min(properties.transaction_state_log_min_isr, replication_factor)
    strict_configs = (("unclean.leader.election.enable", "false"), ("min.insync.replicas", str(min_isr)))
    topic = admin_messages.CreatableTopic(
        name=name,
        topic_id=TopicId(uuid_text(secrets.token_bytes(16))),
        num_partitions=properties.offsets_topic_num_partitions
        if is_of_groups
        else properties.transaction_state_log_num_partitions,
        replication_factor=replication_factor,
        configs=_TOPIC_CONFIGS if is_of_groups else (*_TOPIC_CONFIGS, *strict_configs),
    )
    asked = admin_messages.CreateTopicsRequest(topics=(topic,))
    served.note(request, asked, to=served.controller_id)
    await served.controller.ask(served.controller_id, asked, timeout_ms=_CREATE_TIMEOUT_MS)


async def _describe_groups(served: Served, request: ClientRequest) -> Message:
    body = request.body
    groups: list[Message] = []
    for group_id in body["groups"]:
        asked = group_messages.DescribeGroupRequest(group_id=group_id)
        found = await served.ask(asked, group_messages.DescribeGroupResponse)
        is_unknown = found.error is ErrorCode.GROUP_ID_NOT_FOUND
        error = found.error if not is_unknown or request.version >= _UNKNOWN_GROUP_VERSION else ErrorCode.NONE
        is_shown = body["includeAuthorizedOperations"] and error is ErrorCode.NONE
        groups.append(
            {
                "errorCode": error,
                "errorMessage": f"Group {group_id} not found." if error and is_unknown else None,
                "groupId": group_id,
                "groupState": found.state,
                "protocolType": found.protocol_type,
                "protocolData": found.protocol_name,
                "members": [
                    {
                        "memberId": member.member_id,
                        "groupInstanceId": member.instance_id,
                        "clientId": member.client_id,
                        "clientHost": member.client_host,
                        "memberMetadata": member.metadata,
                        "memberAssignment": member.assignment,
                    }
                    for member in found.members
                ],
                "authorizedOperations": authorized_operations(
                    served, request, Resource(ResourceType.GROUP, group_id), is_asked=is_shown
                ),
            }
        )
    return {"groups": groups}


async def _list_groups(served: Served, request: ClientRequest) -> Message:
    states = {state.lower() for state in request.body["statesFilter"]}
    types = {kind.lower() for kind in request.body["typesFilter"]}
    response = await served.ask(group_messages.ListGroupsRequest(), group_messages.ListGroupsResponse)
    return {
        "errorCode": response.error,
        "groups": [
            {
                "groupId": group.group_id,
                "protocolType": group.protocol_type,
                "groupState": group.state,
                "groupType": _GROUP_TYPE,
            }
            for group in response.groups
            if (not states or group.state.lower() in states) and (not types or _GROUP_TYPE in types)
        ],
    }


async def _delete_groups(served: Served, request: ClientRequest) -> Message:
    results = []
    for group_id in dict.fromkeys(request.body["groupsNames"]):
        asked = group_messages.DeleteGroupRequest(group_id=group_id)
        response = await served.ask(asked, group_messages.DeleteGroupResponse)
        results.append({"groupId": group_id, "errorCode": response.error})
    return {"results": results}


GROUPS: Final[Mapping[int, Handler]] = {
    api_named(name).key: handler
    for name, handler in (
        ("FindCoordinator", _find_coordinator),
        ("JoinGroup", join_group),
        ("SyncGroup", sync_group),
        ("Heartbeat", heartbeat),
        ("LeaveGroup", leave_group),
        ("OffsetCommit", offset_commit),
        ("OffsetFetch", offset_fetch),
        ("OffsetDelete", offset_delete),
        ("DescribeGroups", _describe_groups),
        ("ListGroups", _list_groups),
        ("DeleteGroups", _delete_groups),
    )
}
