"""Joining, syncing, heartbeats and leaving: the rules of classic groups (Kafka's ``GroupMetadataManager``).

A generation begins when all members have joined, or the longest rebalance timeout is over. It is written to the log
only with the leader's assignment: a coordinator that takes over before that knows the previous generation, and members
of the new one get an error. Sessions, rebalances and the wait for assignments are timers of this broker.
"""

from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from laststand.emulator.core.broker.coordination.caller import Caller
from laststand.emulator.core.broker.coordination.coordinator_log import CoordinatorLog
from laststand.emulator.core.broker.groups.group import Group, GroupState, Member
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import CoordinatorRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from laststand.emulator.core.group_records import (
    GroupMetadata,
    GroupRemoved,
    OffsetCommitted,
)
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.timers import TimerQueue

_MEMBER_ID_REQUIRED_VERSION: Final = 4
_SKIPPED_ASSIGNMENT_VERSION: Final = 9
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""Session of a member that is in no generation yet (``group.new.member.join.timeout``, a constant)."""


class SessionTimer(NamedTuple):
    """The end of a member's session."""

    group_id: str
    member_id: str


class JoinTimer(NamedTuple):
    """The end of a rebalance's join phase: members that have not joined by then are removed."""

    group_id: str


class SyncTimer(NamedTuple):
    """The end of a rebalance's sync phase: members that have not sent SyncGroup by then are removed."""

    group_id: str


GroupTimer: TypeAlias = SessionTimer | JoinTimer | SyncTimer


class Membership:
    """The groups of one partition of ``__consumer_offsets``, and their members.

    Args:
        log: of the partition.
        properties: of the node.

    Attributes:
        groups: by id.
        timers: of the groups.
    """

    def __init__(self, log: CoordinatorLog, properties: NodeProperties) -> None:
        self._log = log
        self._properties = properties
        self.groups: dict[str, Group] = {}
        self.timers: TimerQueue[GroupTimer] = TimerQueue()

    def found_or_made(self, group_id: str) -> Group:
        """Returns a group; a new one without members if there is none."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id)
        return group

    # --- Loading and unloading ------------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord) -> None:
        """Applies a record of the log; a committed offset of an unknown group creates a group without members."""
        match record:
            case GroupMetadata(group_id=group_id):
                self.groups[group_id] = Group.of_record(record)
            case OffsetCommitted(group_id=group_id):
                self.found_or_made(group_id)
            case GroupRemoved(group_id=group_id):
                self.groups.pop(group_id, None)
            case _:
                pass

    def start_sessions(self, turn: Turn) -> None:
        """Starts every member's session once all groups are loaded; a group over the size limit rebalances."""
        for group in list(self.groups.values()):
            for member in group.members.values():
                self._start_session(turn, group, member)
            if len(group.members) > self._properties.group_max_size:
                self._prepare_rebalance(turn, group)

    def unload(self, turn: Turn) -> None:
        """Discards all groups: this broker no longer coordinates them."""
        for group in self.groups.values():
            for member in group.members.values():
                _answer_join(turn, member, JoinGroupResponse(error=ErrorCode.NOT_COORDINATOR))
                _answer_sync(turn, member, SyncGroupResponse(error=ErrorCode.NOT_COORDINATOR))
            group.become(GroupState.DEAD, now_ms=turn.now_ms)
        self.groups.clear()

    # --- Join -----------------------------------------------------------------------------------------------------

    def join(self, turn: Turn, caller: Caller, request: JoinGroupRequest) -> None:
        """Handles JoinGroup; if a rebalance is needed, the answer waits until the generation begins."""
        group = self.groups.get(request.group_id)
        made: GroupMetadata | None = None
        if group is None:
            if request.member_id:
                _refuse_join(turn, caller, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
                return
            group = self.found_or_made(request.group_id)
            made = group.record()
        if not self._accepts(group, request.member_id):
            group.remove(request.member_id)
            _refuse_join(turn, caller, ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif request.member_id:
            self._join_again(turn, caller, group, request)
        else:
            self._join_anew(turn, caller, group, request)
        if made is not None:
            self._log.append(turn, (made,), _ignore)

    def _accepts(self, group: Group, member_id: str) -> bool:
        size_max = self._properties.group_max_size
        match group.state:
            case GroupState.EMPTY | GroupState.DEAD:
                return True
            case GroupState.PREPARING_REBALANCE:
                member = group.members.get(member_id)
                is_waiting = member is not None and member.awaiting_join is not None
                waiting = sum(each.awaiting_join is not None for each in group.members.values())
                return is_waiting or waiting < size_max
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                return member_id in group.members or len(group.members) < size_max

    def _join_anew(self, turn: Turn, caller: Caller, group: Group, request: JoinGroupRequest) -> None:
        if not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
            _refuse_join(turn, caller, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        former_id = group.static_member_id(request.instance_id)
        if former_id is not None:
            self._replace_static(turn, caller, group, request, former_id)
        elif request.instance_id is None and request.api_version >= _MEMBER_ID_REQUIRED_VERSION:
            member_id = request.drawn_member_id
            group.pending_members.add(member_id)
            session_end_ms = turn.now_ms + request.session_timeout_ms
            self.timers.set(SessionTimer(group.group_id, member_id), at_ms=session_end_ms)
            _refuse_join(turn, caller, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(turn, caller, group, request, request.drawn_member_id)

    def _join_again(self, turn: Turn, caller: Caller, group: Group, request: JoinGroupRequest) -> None:
        member_id = request.member_id
        if not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
            _refuse_join(turn, caller, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
            return
        if member_id in group.pending_members:
            self._add(turn, caller, group, request, member_id)
            return
        error = group.check_member(member_id, request.instance_id)
        if error is not ErrorCode.NONE:
            _refuse_join(turn, caller, error, member_id)
            return
        member = group.members[member_id]
        is_unchanged = member.protocols == request.protocols
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                self._update(turn, caller, group, member, request)
            case GroupState.COMPLETING_REBALANCE if is_unchanged:
                # It may have missed the answer to its first JoinGroup of this generation.
                caller.answer(turn, _joined(group, member))
            case GroupState.STABLE if is_unchanged and group.leader != member_id:
                caller.answer(turn, _joined(group, member))
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                # A leader that joins again asks for a rebalance, be it for a change that only it sees.
                self._update(turn, caller, group, member, request)
            case _:
                _refuse_join(turn, caller, ErrorCode.UNKNOWN_MEMBER_ID, member_id)

    def _add(self, turn: Turn, caller: Caller, group: Group, request: JoinGroupRequest, member_id: str) -> None:
        member = Member(
            member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
        )
        member.is_new = True
        member.awaiting_join = caller
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.has_grown = True
        group.add(member, protocol_type=request.protocol_type)
        # Its client cannot send heartbeats yet; one that has gone away must not be waited for in every rebalance.
        self.timers.set(SessionTimer(group.group_id, member_id), at_ms=turn.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance_or_go_on(turn, group)

    def _update(self, turn: Turn, caller: Caller, group: Group, member: Member, request: JoinGroupRequest) -> None:
        _take_over(turn, member, request, caller)
        self._rebalance_or_go_on(turn, group)

    def _replace_static(
        self, turn: Turn, caller: Caller, group: Group, request: JoinGroupRequest, former_id: str
    ) -> None:
        """Gives a static member's place to its next process; the group rebalances only if something else changes."""
        former_leader = group.leader
        former = group.members[former_id]
        _answer_join(turn, former, JoinGroupResponse(error=ErrorCode.FENCED_INSTANCE_ID, member_id=former_id))
        _answer_sync(turn, former, SyncGroupResponse(error=ErrorCode.FENCED_INSTANCE_ID))
        self.timers.cancel(SessionTimer(group.group_id, former_id))
        member = group.replace_static(former_id, request.drawn_member_id)
        _take_over(turn, member, request, caller)
        self._start_session(turn, group, member)
        match group.state:
            case GroupState.STABLE if group.selected_protocol() == group.protocol_name:

                def done(turn: Turn, error: ErrorCode) -> None:
                    if error is not ErrorCode.NONE:
                        self._restore_static(turn, group, former, member)
                        _answer_join(turn, member, JoinGroupResponse(error=error))
                    elif request.api_version >= _SKIPPED_ASSIGNMENT_VERSION:
                        is_leader = group.leader == member.member_id
                        _answer_join(turn, member, _joined(group, member, skip_assignment=is_leader))
                    else:
                        # A leader would compute an assignment; so the answer names the former leader id.
                        joined = replace(_joined(group, member), leader=former_leader or "", members=())
                        _answer_join(turn, member, joined)

                self._log.append(turn, (group.record(),), done)
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                # The leader may know the member by its former id, and would assign to that id.
                self._prepare_rebalance(turn, group)
            case _:
                self._complete_if_all_joined(turn, group)

    def _restore_static(self, turn: Turn, group: Group, former: Member, member: Member) -> None:
        if group.members.get(member.member_id) is member:
            self.timers.cancel(SessionTimer(group.group_id, member.member_id))
            restored = group.replace_static(member.member_id, former.member_id)
            restored.protocols = former.protocols
            restored.session_timeout_ms = former.session_timeout_ms
            restored.rebalance_timeout_ms = former.rebalance_timeout_ms
            self._start_session(turn, group, restored)

    # --- Rebalances -----------------------------------------------------------------------------------------------

    def _rebalance_or_go_on(self, turn: Turn, group: Group) -> None:
        if group.may_rebalance:
            self._prepare_rebalance(turn, group)
        else:
            self._complete_if_all_joined(turn, group)

    def _prepare_rebalance(self, turn: Turn, group: Group) -> None:
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._fail_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
        self.timers.cancel(SyncTimer(group.group_id))
        is_first = group.state is GroupState.EMPTY
        group.become(GroupState.PREPARING_REBALANCE, now_ms=turn.now_ms)
        if is_first:
            # More members may be about to join.
            delay_ms = self._properties.group_initial_rebalance_delay_ms
            group.has_grown = False
            group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self.timers.set(JoinTimer(group.group_id), at_ms=turn.now_ms + delay_ms)
        elif group.has_all_joined:
            self._complete_join(turn, group)
        else:
            self.timers.set(JoinTimer(group.group_id), at_ms=turn.now_ms + group.rebalance_timeout_ms)

    def _complete_if_all_joined(self, turn: Turn, group: Group) -> None:
        is_first = group.previous_state is GroupState.EMPTY
        if group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined and not is_first:
            self._complete_join(turn, group)

    def _join_time_is_over(self, turn: Turn, group: Group) -> None:
        delay_ms = min(self._properties.group_initial_rebalance_delay_ms, group.initial_delay_left_ms)
        if group.previous_state is GroupState.EMPTY and group.has_grown and delay_ms > 0:
            group.has_grown = False
            group.initial_delay_left_ms -= delay_ms
            self.timers.set(JoinTimer(group.group_id), at_ms=turn.now_ms + delay_ms)
        else:
            self._complete_join(turn, group)

    def _complete_join(self, turn: Turn, group: Group) -> None:
        """Begins a generation with the members that joined and the static members; others are removed."""
        self.timers.cancel(JoinTimer(group.group_id))
        for member in list(group.members.values()):
            if member.awaiting_join is None and member.instance_id is None:
                group.remove(member.member_id)
                self.timers.cancel(SessionTimer(group.group_id, member.member_id))
        if not group.elect_leader() and group.members:
            # Static members only, and none has joined: their sessions decide.
            self.timers.set(JoinTimer(group.group_id), at_ms=turn.now_ms + group.rebalance_timeout_ms)
            return
        group.begin_generation(now_ms=turn.now_ms)
        if group.state is GroupState.EMPTY:
            self._log.append(turn, (group.record(),), _ignore)
            return
        for member in group.members.values():
            _answer_join(turn, member, _joined(group, member))
            self._start_session(turn, group, member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self.timers.set(SyncTimer(group.group_id), at_ms=turn.now_ms + group.rebalance_timeout_ms)

    # --- Sync -----------------------------------------------------------------------------------------------------

    def sync(self, turn: Turn, caller: Caller, request: SyncGroupRequest) -> None:
        """Gives a member its assignment, once the leader's assignments are committed."""
        group = self.groups.get(request.group_id)
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _sync_error(group, request)
        if group is None or error is not ErrorCode.NONE:
            caller.answer(turn, SyncGroupResponse(error=error))
            return
        member = group.members[request.member_id]
        group.pending_syncs.discard(request.member_id)
        if not group.pending_syncs:
            self.timers.cancel(SyncTimer(group.group_id))
        if group.state is GroupState.STABLE:
            caller.answer(turn, _synced(group, member))
            self._start_session(turn, group, member)
            return
        _answer_sync(turn, member, SyncGroupResponse(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = caller
        if group.leader == request.member_id:
            self._assign(turn, group, dict(request.assignments))

    def _assign(self, turn: Turn, group: Group, assignments: dict[str, bytes]) -> None:
        generation_id = group.generation_id

        def done(turn: Turn, error: ErrorCode) -> None:
            # A rebalance may have begun meanwhile; then the record stays in the log, and has no effect here.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation_id != generation_id:
                return
            if error is not ErrorCode.NONE:
                self._fail_syncs(turn, group, error)
                self._rebalance_or_go_on(turn, group)
                return
            group.become(GroupState.STABLE, now_ms=turn.now_ms)
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
                if _answer_sync(turn, member, _synced(group, member)):
                    self._start_session(turn, group, member)

        self._log.append(turn, (group.record(assignments),), done)

    def _fail_syncs(self, turn: Turn, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if _answer_sync(turn, member, SyncGroupResponse(error=error)):
                self._start_session(turn, group, member)

    def _sync_time_is_over(self, turn: Turn, group: Group) -> None:
        for member_id in list(group.pending_syncs):
            group.remove(member_id)
            self.timers.cancel(SessionTimer(group.group_id, member_id))
        self._prepare_rebalance(turn, group)

    # --- Sessions -------------------------------------------------------------------------------------------------

    def heartbeat(self, turn: Turn, caller: Caller, request: HeartbeatRequest) -> None:
        """Renews a member's session, and answers whether the member has to join again."""
        outcome = self._heartbeat(turn, request)

        def done(turn: Turn, error: ErrorCode) -> None:
            caller.answer(turn, HeartbeatResponse(error=error or outcome))

        self._log.await_appends(turn, done)

    def _heartbeat(self, turn: Turn, request: HeartbeatRequest) -> ErrorCode:
        group = self.groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_generation(request.member_id, request.instance_id, request.generation_id)
        if error is not ErrorCode.NONE:
            return error
        self.renew_session(turn, group, request.member_id)
        is_rebalancing = group.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE

    def renew_session(self, turn: Turn, group: Group, member_id: str) -> None:
        """Restarts the session of a member that has sent a request."""
        member = group.members.get(member_id)
        if member is not None:
            self._start_session(turn, group, member)

    def _start_session(self, turn: Turn, group: Group, member: Member) -> None:
        session_end_ms = turn.now_ms + member.session_timeout_ms
        self.timers.set(SessionTimer(group.group_id, member.member_id), at_ms=session_end_ms)

    def _session_is_over(self, turn: Turn, group: Group, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None and not member.is_alive_by_waiting:
            self._remove(turn, group, member_id)
            self._go_on_without(turn, group)
        elif member_id in group.pending_members:
            group.remove(member_id)
            self._complete_if_all_joined(turn, group)

    def handle_timer(self, turn: Turn) -> None:
        """Handles each timer that is due: sessions, join phases, sync phases."""
        for timer in self.timers.pop_due(now_ms=turn.now_ms):
            group = self.groups.get(timer.group_id)
            if group is None:
                continue
            match timer:
                case SessionTimer(member_id=member_id):
                    self._session_is_over(turn, group, member_id)
                case JoinTimer() if group.state is GroupState.PREPARING_REBALANCE:
                    self._join_time_is_over(turn, group)
                case SyncTimer() if group.pending_syncs:
                    self._sync_time_is_over(turn, group)
                case _:
                    pass

    # --- Leave ----------------------------------------------------------------------------------------------------

    def leave(self, turn: Turn, caller: Caller, request: LeaveGroupRequest) -> None:
        """Removes members; if the group becomes empty, the answer waits until its record is committed."""
        group = self.groups.get(request.group_id)
        if group is None:
            unknown = (ErrorCode.UNKNOWN_MEMBER_ID,) * len(request.members)
            caller.answer(turn, LeaveGroupResponse(error=ErrorCode.NONE, members=unknown))
            return
        errors = tuple([self._leave(turn, group, member) for member in request.members])
        if ErrorCode.NONE in errors:
            self._go_on_without(turn, group)

        def done(turn: Turn, error: ErrorCode) -> None:
            caller.answer(turn, LeaveGroupResponse(error=error, members=() if error else errors))

        self._log.await_appends(turn, done)

    def _leave(self, turn: Turn, group: Group, leaving: LeavingMember) -> ErrorCode:
        member_id = leaving.member_id
        if not member_id:
            # An administrator names a static member by its instance id alone (KIP-345).
            found = group.static_member_id(leaving.instance_id)
            if found is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = found
        elif member_id not in group.pending_members:
            error = group.check_member(member_id, leaving.instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._remove(turn, group, member_id)
        return ErrorCode.NONE

    def _remove(self, turn: Turn, group: Group, member_id: str) -> None:
        removed = group.remove(member_id)
        self.timers.cancel(SessionTimer(group.group_id, member_id))
        if removed is not None:
            _answer_join(turn, removed, JoinGroupResponse(error=ErrorCode.UNKNOWN_MEMBER_ID))
            _answer_sync(turn, removed, SyncGroupResponse(error=ErrorCode.UNKNOWN_MEMBER_ID))

    def _go_on_without(self, turn: Turn, group: Group) -> None:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare_rebalance(turn, group)
        else:
            self._complete_if_all_joined(turn, group)


def _ignore(_turn: Turn, _error: ErrorCode) -> None:
    """Does nothing: no answer depends on whether the record of a group without members commits."""


def _take_over(turn: Turn, member: Member, request: JoinGroupRequest, caller: Caller) -> None:
    """Updates a member from its newest JoinGroup, which is answered later; an earlier one is answered at once."""
    _answer_join(turn, member, JoinGroupResponse(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id))
    member.protocols = request.protocols
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.awaiting_join = caller


def _sync_error(group: Group, request: SyncGroupRequest) -> ErrorCode:
    error = group.check_generation(request.member_id, request.instance_id, request.generation_id)
    if error is not ErrorCode.NONE:
        return error
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
        None,
        group.protocol_name,
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            return ErrorCode.NONE
        case GroupState.EMPTY | GroupState.DEAD:
            return ErrorCode.UNKNOWN_MEMBER_ID


def _joined(group: Group, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
    is_leader = group.leader == member.member_id
    return JoinGroupResponse(
        error=ErrorCode.NONE,
        member_id=member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        members=group.joined_members() if is_leader else (),
    )


def _synced(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        error=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def _refuse_join(turn: Turn, caller: Caller, error: ErrorCode, member_id: str = "") -> None:
    caller.answer(turn, JoinGroupResponse(error=error, member_id=member_id))


def _answer_join(turn: Turn, member: Member, response: JoinGroupResponse) -> None:
    caller, member.awaiting_join = member.awaiting_join, None
    if caller is not None:
        caller.answer(turn, response)


def _answer_sync(turn: Turn, member: Member, response: SyncGroupResponse) -> bool:
    """Answers a SyncGroup that waits; returns whether one did."""
    caller, member.awaiting_sync = member.awaiting_sync, None
    if caller is not None:
        caller.answer(turn, response)
    return caller is not None
