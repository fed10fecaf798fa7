"""Requests of members in Kafka's protocol."""

import datetime

from kio.schema.errors import ErrorCode as KafkaError
from kio.schema.heartbeat.v4 import request as heartbeat
from kio.schema.heartbeat.v4 import response as heard
from kio.schema.join_group.v9 import request as join
from kio.schema.join_group.v9 import response as joined
from kio.schema.leave_group.v5 import request as leave
from kio.schema.leave_group.v5 import response as left
from kio.schema.sync_group.v5 import request as sync
from kio.schema.sync_group.v5 import response as synced
from kio.static.primitive import i32, i32Timedelta

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    GroupProtocol,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from laststand.emulator.kafka.membership_calls import (
    heartbeat_call,
    join_group_call,
    leave_group_call,
    sync_group_call,
)

AT_ONCE = i32Timedelta.parse(datetime.timedelta())


def test_a_join_has_the_member_s_protocols_and_its_answer_everybody_s() -> None:
    call = join_group_call(
        JoinGroupRequest(
            api_version=9,
            group_id="shop",
            member_id="m",
            drawn_member_id="drawn",
            instance_id="i",
            client_id="c",
            client_host="/h",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(GroupProtocol(name="range", metadata=b"topics"),),
        )
    )
    request = call.request
    assert isinstance(request, join.JoinGroupRequest)
    assert (request.member_id, request.group_instance_id) == ("m", "i")
    assert request.session_timeout == datetime.timedelta(seconds=10)
    assert request.protocols == (join.JoinGroupRequestProtocol(name="range", metadata=b"topics"),)
    answer = joined.JoinGroupResponse(
        throttle_time=AT_ONCE,
        error_code=KafkaError.none,
        generation_id=i32(4),
        protocol_type="consumer",
        protocol_name="range",
        leader="m",
        member_id="m",
        members=(joined.JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=b"topics"),),
    )
    assert call.decode(answer) == (
        JoinGroupResponse(
            error=ErrorCode.NONE,
            member_id="m",
            generation_id=4,
            protocol_type="consumer",
            protocol_name="range",
            leader="m",
            members=(JoinedMember(member_id="m", instance_id="i", metadata=b"topics"),),
        ),
        (),
    )


def test_a_sync_brings_assignments_and_gets_one() -> None:
    call = sync_group_call(
        SyncGroupRequest(
            group_id="shop",
            member_id="m",
            instance_id=None,
            generation_id=4,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(("m", b"mine"), ("n", b"yours")),
        )
    )
    request = call.request
    assert isinstance(request, sync.SyncGroupRequest)
    assert [(each.member_id, each.assignment) for each in request.assignments] == [("m", b"mine"), ("n", b"yours")]
    answer = synced.SyncGroupResponse(throttle_time=AT_ONCE, error_code=KafkaError.none, assignment=b"mine")
    assert call.decode(answer) == (SyncGroupResponse(error=ErrorCode.NONE, assignment=b"mine"), ())


def test_a_heartbeat_names_member_and_generation() -> None:
    call = heartbeat_call(HeartbeatRequest(group_id="shop", member_id="m", instance_id=None, generation_id=4))
    request = call.request
    assert isinstance(request, heartbeat.HeartbeatRequest)
    assert (request.member_id, request.generation_id) == ("m", 4)
    answer = heard.HeartbeatResponse(throttle_time=AT_ONCE, error_code=KafkaError.rebalance_in_progress)
    assert call.decode(answer) == (HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS), ())


def test_a_leaving_member_gets_each_outcome() -> None:
    call = leave_group_call(LeaveGroupRequest(group_id="shop", members=(LeavingMember(member_id="m"),)))
    request = call.request
    assert isinstance(request, leave.LeaveGroupRequest)
    assert [each.member_id for each in request.members] == ["m"]
    outcome = left.MemberResponse(member_id="m", group_instance_id=None, error_code=KafkaError.unknown_member_id)
    answer = left.LeaveGroupResponse(throttle_time=AT_ONCE, error_code=KafkaError.none, members=(outcome,))
    told = LeaveGroupResponse(error=ErrorCode.NONE, members=(ErrorCode.UNKNOWN_MEMBER_ID,))
    assert call.decode(answer) == (told, ())
