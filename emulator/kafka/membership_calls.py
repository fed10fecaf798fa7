"""Requests of members of groups to their coordinator: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from kio.schema.heartbeat.v4 import request as heartbeat
from kio.schema.heartbeat.v4 import response as heard
from kio.schema.join_group.v9 import request as join
from kio.schema.join_group.v9 import response as joined
from kio.schema.leave_group.v5 import request as leave
from kio.schema.leave_group.v5 import response as left
from kio.schema.sync_group.v5 import request as sync
from kio.schema.sync_group.v5 import response as synced
from kio.schema.types import GroupId
from kio.static.primitive import i32

from laststand.emulator.core import messages
from laststand.emulator.core.group_messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from laststand.emulator.kafka.calls import Call, call_of, error_of, to_milliseconds


def join_group_call(request: JoinGroupRequest) -> Call:
    """Returns the call of JoinGroupRequest; the coordinator draws the member's id."""
    return call_of(
        join.JoinGroupRequest(
            group_id=GroupId(request.group_id),
            session_timeout=to_milliseconds(request.session_timeout_ms),
            rebalance_timeout=to_milliseconds(request.rebalance_timeout_ms),
            member_id=request.member_id,
            group_instance_id=request.instance_id,
            protocol_type=request.protocol_type,
            protocols=tuple(
                join.JoinGroupRequestProtocol(name=protocol.name, metadata=protocol.metadata)
                for protocol in request.protocols
            ),
        ),
        joined.JoinGroupResponse,
        _joined,
    )


def _joined(response: joined.JoinGroupResponse) -> messages.Response:
    members = tuple(
        JoinedMember(member_id=member.member_id, instance_id=member.group_instance_id, metadata=member.metadata)
        for member in response.members
    )
    return JoinGroupResponse(
        error=error_of(response.error_code),
        member_id=response.member_id,
        generation_id=response.generation_id,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        leader=response.leader,
        skip_assignment=response.skip_assignment,
        members=members,
    )


def sync_group_call(request: SyncGroupRequest) -> Call:
    """Returns the call of SyncGroupRequest."""
    return call_of(
        sync.SyncGroupRequest(
            group_id=GroupId(request.group_id),
            generation_id=i32(request.generation_id),
            member_id=request.member_id,
            group_instance_id=request.instance_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignments=tuple(
                sync.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in request.assignments
            ),
        ),
        synced.SyncGroupResponse,
        _synced,
    )


def _synced(response: synced.SyncGroupResponse) -> messages.Response:
    return SyncGroupResponse(
        error=error_of(response.error_code),
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        assignment=response.assignment,
    )


def heartbeat_call(request: HeartbeatRequest) -> Call:
    """Returns the call of HeartbeatRequest."""
    return call_of(
        heartbeat.HeartbeatRequest(
            group_id=GroupId(request.group_id),
            generation_id=i32(request.generation_id),
            member_id=request.member_id,
            group_instance_id=request.instance_id,
        ),
        heard.HeartbeatResponse,
        lambda response: HeartbeatResponse(error=error_of(response.error_code)),
    )


def leave_group_call(request: LeaveGroupRequest) -> Call:
    """Returns the call of LeaveGroupRequest."""
    return call_of(
        leave.LeaveGroupRequest(
            group_id=GroupId(request.group_id),
            members=tuple(
                leave.MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id)
                for member in request.members
            ),
        ),
        left.LeaveGroupResponse,
        _left,
    )


def _left(response: left.LeaveGroupResponse) -> messages.Response:
    return LeaveGroupResponse(
        error=error_of(response.error_code),
        members=tuple(error_of(member.error_code) for member in response.members),
    )
