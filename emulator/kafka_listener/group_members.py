"""Requests of members to the coordinator of their group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

import uuid
from typing import Final

from laststand.emulator.core import group_messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.requests import ClientRequest, Served
from laststand.emulator.storage.group_records import subscribed_topics

_REBALANCE_TIMEOUT_VERSION: Final = 1
_NULL_PROTOCOL_VERSION: Final = 7
"""Version of JoinGroup from which an answer without a protocol has none, where it had an empty name before."""

_NAMED_PROTOCOL_VERSION: Final = 5
"""Version of SyncGroup from which a member has to repeat the protocol that was chosen (KIP-559)."""

_SEVERAL_MEMBERS_VERSION: Final = 3


async def join_group(served: Served, request: ClientRequest) -> Message:
    """Answers JoinGroup, once the generation begins."""
    body, version, connection = request.body, request.version, request.connection
    error = _join_error(served, body)
    if error is not ErrorCode.NONE:
        return _joined(group_messages.JoinGroupResponse(error=error, member_id=body["memberId"]), version)
    session_ms, instance_id = body["sessionTimeoutMs"], body["groupInstanceId"]
    asked = group_messages.JoinGroupRequest(
        api_version=version,
        group_id=body["groupId"],
        member_id=body["memberId"],
        drawn_member_id=f"{instance_id or connection.client_id}-{uuid.uuid4()}",
        instance_id=instance_id,
        client_id=connection.client_id,
        client_host=f"/{connection.peer.rpartition(':')[0]}",
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=body["rebalanceTimeoutMs"] if version >= _REBALANCE_TIMEOUT_VERSION else session_ms,
        protocol_type=body["protocolType"],
        protocols=tuple(
            group_messages.GroupProtocol(
                name=protocol["name"],
                metadata=protocol["metadata"],
                topics=subscribed_topics(body["protocolType"], protocol["metadata"]),
            )
            for protocol in body["protocols"]
        ),
    )
    return _joined(await served.ask(asked, group_messages.JoinGroupResponse), version)


def _join_error(served: Served, body: Message) -> ErrorCode:
    properties = served.properties
    if not body["groupId"]:
        return ErrorCode.INVALID_GROUP_ID
    least_ms, most_ms = properties.group_min_session_timeout_ms, properties.group_max_session_timeout_ms
    is_legal = least_ms <= body["sessionTimeoutMs"] <= most_ms
    return ErrorCode.NONE if is_legal else ErrorCode.INVALID_SESSION_TIMEOUT


def _joined(response: group_messages.JoinGroupResponse, version: int) -> Message:
    has_null = version >= _NULL_PROTOCOL_VERSION
    return {
        "errorCode": response.error,
        "generationId": response.generation_id,
        "protocolType": response.protocol_type,
        "protocolName": response.protocol_name if has_null else response.protocol_name or "",
        "leader": response.leader,
        "skipAssignment": response.skip_assignment,
        "memberId": response.member_id,
        "members": [
            {"memberId": member.member_id, "groupInstanceId": member.instance_id, "metadata": member.metadata}
            for member in response.members
        ],
    }


async def sync_group(served: Served, request: ClientRequest) -> Message:
    """Answers SyncGroup, once the leader's assignments are committed."""
    body = request.body
    is_named = body["protocolType"] is not None and body["protocolName"] is not None
    if request.version >= _NAMED_PROTOCOL_VERSION and not is_named:
        return {"errorCode": ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
    if not body["groupId"]:
        return {"errorCode": ErrorCode.INVALID_GROUP_ID}
    asked = group_messages.SyncGroupRequest(
        group_id=body["groupId"],
        member_id=body["memberId"],
        instance_id=body["groupInstanceId"],
        generation_id=body["generationId"],
        protocol_type=body["protocolType"],
        protocol_name=body["protocolName"],
        assignments=tuple((each["memberId"], each["assignment"]) for each in body["assignments"]),
    )
    response = await served.ask(asked, group_messages.SyncGroupResponse)
    return {
        "errorCode": response.error,
        "protocolType": response.protocol_type,
        "protocolName": response.protocol_name,
        "assignment": response.assignment,
    }


async def heartbeat(served: Served, request: ClientRequest) -> Message:
    """Answers Heartbeat."""
    body = request.body
    if not body["groupId"]:
        return {"errorCode": ErrorCode.INVALID_GROUP_ID}
    asked = group_messages.HeartbeatRequest(
        group_id=body["groupId"],
        member_id=body["memberId"],
        instance_id=body["groupInstanceId"],
        generation_id=body["generationId"],
    )
    response = await served.ask(asked, group_messages.HeartbeatResponse)
    return {"errorCode": response.error}


async def leave_group(served: Served, request: ClientRequest) -> Message:
    """Answers LeaveGroup."""
    body, has_members = request.body, request.version >= _SEVERAL_MEMBERS_VERSION
    if not body["groupId"]:
        return {"errorCode": ErrorCode.INVALID_GROUP_ID}
    leaving = body["members"] if has_members else [{"memberId": body["memberId"], "groupInstanceId": None}]
    asked = group_messages.LeaveGroupRequest(
        group_id=body["groupId"],
        members=tuple(
            group_messages.LeavingMember(member_id=each["memberId"], instance_id=each["groupInstanceId"])
            for each in leaving
        ),
    )
    response = await served.ask(asked, group_messages.LeaveGroupResponse)
    if not has_members:
        (outcome,) = response.members or (response.error,)
        return {"errorCode": outcome}
    return {
        "errorCode": response.error,
        "members": [
            {"memberId": each["memberId"], "groupInstanceId": each["groupInstanceId"], "errorCode": error}
            for each, error in zip(leaving, response.members, strict=False)
        ],
    }
