r"""A member of a classic group: joins, reads what it is assigned, commits its positions, and joins again when it must.

::

    (no id) --MEMBER_ID_REQUIRED--> JOINING -> SYNCING -> READING --rebalance or session over--> JOINING
                                                               \--LeaveOffered--> LEAVING -> OVER

Besides heartbeats and metadata requests, one request is in flight at a time: JoinGroup, SyncGroup (the leader's has all
assignments), then for each partition in turn OffsetFetch once, Fetch, and OffsetCommit with member id and generation.
Before a member joins, it gives up its partitions (the eager protocol); records read but not committed are read again.
If a topic has more partitions than the leader assigned, the leader joins again, and so do the other members.

Errors are handled as in Kafka's client: UNKNOWN_MEMBER_ID resets the member id, ILLEGAL_GENERATION and
REBALANCE_IN_PROGRESS do not, and FENCED_INSTANCE_ID ends the member, as another process has its place. Unlike Kafka's
client, a member whose session is over by its own clock stops reading and joins again.
"""

from collections import deque
from enum import Enum
from typing import Final, assert_never

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.group_reading import GroupReading
from laststand.emulator.core.client.network_client import SEEK_COORDINATOR, NetworkClient
from laststand.emulator.core.client.range_assignor import (
    RANGE,
    Subscriber,
    assign_ranges,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from laststand.emulator.core.client.settings import MemberSettings
from laststand.emulator.core.errors import ErrorCode, InvariantError
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
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from laststand.emulator.core.group_records import CONSUMER_PROTOCOL
from laststand.emulator.core.history import MemberStep, OperationType
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import BrokerId, CauseId, CorrelationId, Offset, TopicPartition

_HEARTBEAT: Final = "heartbeat"
_SESSION: Final = "session"

_JOIN_VERSION: Final = 9
_OFFSET_COMMIT_VERSION: Final = 9

_AGAIN: Final = frozenset({*SEEK_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
_REJOIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
_FATAL: Final = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
    }
)
"""Answers after which a member does not try again."""


class _State(Enum):
    JOINING = "joining"
    SYNCING = "syncing"
    READING = "reading"
    LEAVING = "leaving"
    OVER = "over"


class _Read:
    """Records being read from a partition; their end position is committed next."""

    def __init__(self, operation_id: CauseId, reading: GroupReading) -> None:
        self.operation_id = operation_id
        self.reading = reading
        self.may_be_committed = False


class GroupMember:
    """State machine of one member.

    Args:
        name: the member's name in the history and its client id; unique in the run.
        group_id: of the group.
        settings: of the member.
        bootstrap: brokers to request metadata from.
        topics: the topics that it subscribes to.
        instance_id: of a static member (KIP-345).
        reads: it reads by itself; otherwise operations read on its behalf, and commit with its ``identity``.

    Attributes:
        metadata: its view of the cluster.
        member_id: the id given by the coordinator; empty if it has none.
        generation_id: its current or last generation; -1 before the first.
        assigned: the partitions that it owns now.
    """

    def __init__(
        self,
        *,
        name: str,
        group_id: str,
        settings: MemberSettings,
        bootstrap: tuple[BrokerId, ...],
        topics: tuple[str, ...],
        instance_id: str | None = None,
        reads: bool = True,
    ) -> None:
        self._effects: list[steps.MemberEffect] = []
        self._network = NetworkClient(
            bootstrap=bootstrap,
            topics=(*topics, OFFSETS_TOPIC),
            settings=settings,
            emit=self._effects.append,
            needed=topics,
        )
        self.metadata = self._network.metadata
        self.member_id = ""
        self.generation_id = -1
        self.assigned: tuple[TopicPartition, ...] = ()
        self._name = name
        self._group_id = group_id
        self._settings = settings
        self._topics = topics
        self._instance_id = instance_id
        self._reads = reads
        self._state = _State.JOINING
        self._ids_drawn = 0
        self._operations = 0
        self._protocol_name: str | None = None
        self._joined: tuple[JoinedMember, ...] = ()
        self._leads = False
        self._assigned_counts: tuple[int, ...] = ()
        self._positions: dict[TopicPartition, Offset] = {}
        self._turns: deque[TopicPartition] = deque()
        self._read: _Read | None = None
        self._has_to_join = False
        self._sent_ms: dict[CorrelationId, int] = {}
        self._work: CorrelationId | None = None
        self._heartbeat: CorrelationId | None = None
        self._alive_ms = 0
        self._timers = self._network.timers

    @property
    def is_over(self) -> bool:
        """The member has left the group, or must not join again."""
        return self._state is _State.OVER

    @property
    def session_timeout_ms(self) -> int:
        """Time without a heartbeat after which the coordinator removes the member."""
        return self._settings.session_timeout_ms

    @property
    def identity(self) -> steps.GroupIdentity:
        """The member as commits of positions name it: with its current generation, or its last one."""
        return steps.GroupIdentity(
            member_id=self.member_id, instance_id=self._instance_id, generation_id=self.generation_id
        )

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None``."""
        return self._timers.earliest_ms

    def step(self, incoming: steps.MemberInput, *, now_ms: int) -> list[steps.MemberEffect]:
        """Handles one input; returns the effects, in order."""
        self._look_at_session(now_ms)
        match incoming:
            case inputs.Started():
                self._network.want_metadata(now_ms)
            case inputs.ResponseReceived():
                self._answered(incoming, now_ms)
            case steps.RecordsReceived(correlation_id=correlation_id):
                self._network.answered(correlation_id)
                del self._sent_ms[correlation_id]
                if self._take(correlation_id) and self._read is not None:
                    self._went_on(self._read, self._read.reading.fetched(incoming), now_ms)
            case inputs.RequestFailed(correlation_id=correlation_id):
                self._unanswered(correlation_id, now_ms)
            case inputs.TimerFired():
                self._network.timer_fired(now_ms)
            case steps.LeaveOffered():
                self._leave()
            case steps.Abandoned():
                self._end(MemberStep.DIED)
            case _:
                assert_never(incoming)
        self._pump(now_ms)
        effects = list(self._effects)
        self._effects.clear()
        return effects

    # --- What is next ---------------------------------------------------------------------------------------------

    def _pump(self, now_ms: int) -> None:
        """Sends the next request, unless one is in flight or a backoff runs."""
        if self._state is _State.OVER:
            return
        self._send_heartbeat(now_ms)
        if self._work is not None:
            return
        if self._network.backs_off(now_ms):
            return
        match self._state:
            case _State.JOINING:
                self._join(now_ms)
            case _State.SYNCING:
                self._ask_coordinator(self._sync_request(), now_ms)
            case _State.READING:
                self._go_on_reading(now_ms)
            case _State.LEAVING:
                self._ask_coordinator(self._leave_request(), now_ms)
            case _:
                assert_never(self._state)

    def _go_on_reading(self, now_ms: int) -> None:
        read = self._read
        if read is not None and read.reading.is_over:
            self._ask_coordinator(self._commit_request(read), now_ms)
            return
        if self._has_to_join or (self._leads and self._partition_counts() != self._assigned_counts):
            self._give_up()
            self._join(now_ms)
            return
        if not self._turns:
            return
        if read is None:
            partition = self._turns[0]
            self._turns.rotate(-1)
            source = steps.Source(
                group_id=self._group_id,
                partition=partition,
                records=self._settings.records,
                reset=self._settings.auto_offset_reset,
            )
            operation_id = CauseId(f"{self._name}:read:{self._operations}")
            self._operations += 1
            read = self._read = _Read(
                operation_id, GroupReading(source, self._positions.get(partition), is_one_answer=True)
            )
        self._send_reading(read, now_ms)

    def _send_reading(self, read: _Read, now_ms: int) -> None:
        reading = read.reading
        if reading.wants_position:
            self._ask_coordinator(reading.position_request(), now_ms)
            return
        found = self._network.known_leader(reading.source.partition, now_ms)
        if found is None:
            self._read = None  # the next partition's turn comes
            return
        leader, leadership = found
        self._work = self._send(leader, reading.request(leader, leadership), now_ms)

    def _pass_on(self, now_ms: int) -> None:
        """Moves on to the next partition, as this one cannot be read now."""
        self._read = None
        self._network.retry(now_ms, wants_metadata=True)

    def _send_heartbeat(self, now_ms: int) -> None:
        if self._state is not _State.READING or self._heartbeat is not None or self._has_to_join:
            return
        if self._timers.is_set(_HEARTBEAT):
            return
        coordinator = self._coordinator()
        self._timers.set(_HEARTBEAT, at_ms=now_ms + self._settings.heartbeat_interval_ms)
        if coordinator is None:
            self._network.want_metadata(now_ms)
            return
        request = HeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            instance_id=self._instance_id,
            generation_id=self.generation_id,
        )
        self._heartbeat = self._send(coordinator, request, now_ms)

    # --- Requests -------------------------------------------------------------------------------------------------

    def _join(self, now_ms: int) -> None:
        if self._coordinator() is not None:
            self._record_step(MemberStep.JOINING)
        self._ask_coordinator(self._join_request(), now_ms)

    def _join_request(self) -> JoinGroupRequest:
        self._ids_drawn += 1
        settings = self._settings
        return JoinGroupRequest(
            api_version=_JOIN_VERSION,
            group_id=self._group_id,
            member_id=self.member_id,
            drawn_member_id=f"{self._name}-{self._ids_drawn}",
            instance_id=self._instance_id,
            client_id=self._name,
            client_host="/client",
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=(GroupProtocol(name=RANGE, metadata=encode_subscription(self._topics), topics=self._topics),),
        )

    def _sync_request(self) -> SyncGroupRequest:
        """Returns the SyncGroup request; if this member leads the group, with assignments for all ``_joined``."""
        subscribers = [
            Subscriber(member.member_id, member.instance_id, decode_subscription(member.metadata))
            for member in self._joined
        ]
        assigned = assign_ranges(subscribers, self.metadata.partition_counts)
        self._assigned_counts = self._partition_counts()
        return SyncGroupRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            instance_id=self._instance_id,
            generation_id=self.generation_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=self._protocol_name,
            assignments=tuple((member_id, encode_assignment(names)) for member_id, names in assigned.items()),
        )

    def _partition_counts(self) -> tuple[int, ...]:
        return tuple([self.metadata.partition_counts.get(topic, 0) for topic in self._topics])

    def _leave_request(self) -> LeaveGroupRequest:
        leaving = LeavingMember(member_id=self.member_id, instance_id=self._instance_id)
        return LeaveGroupRequest(group_id=self._group_id, members=(leaving,))

    def _commit_request(self, read: _Read) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            api_version=_OFFSET_COMMIT_VERSION,
            group_id=self._group_id,
            member_id=self.member_id,
            instance_id=self._instance_id,
            generation_id=self.generation_id,
            offsets=(read.reading.to_commit(),),
        )

    def _coordinator(self) -> BrokerId | None:
        partition = self._network.coordinating(self._group_id, OFFSETS_TOPIC)
        leadership = None if partition is None else self.metadata.leader_of(partition)
        return None if leadership is None else leadership.leader

    def _ask_coordinator(self, request: messages.Request, now_ms: int) -> None:
        found = self._network.known_leader(self._network.coordinating(self._group_id, OFFSETS_TOPIC), now_ms)
        if found is not None:
            self._work = self._send(found[0], request, now_ms)

    def _send(self, destination: BrokerId, request: messages.Request, now_ms: int) -> CorrelationId:
        # JoinGroup is answered when all members have joined, SyncGroup when the leader has sent the assignment.
        is_of_rebalance = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        waits_ms = self._settings.rebalance_timeout_ms if is_of_rebalance else 0
        cause_id = CauseId(self._name) if self._read is None else self._read.operation_id
        correlation_id = self._network.send(destination, request, cause_id, waits_ms=waits_ms)
        self._sent_ms[correlation_id] = now_ms
        return correlation_id

    # --- Answers --------------------------------------------------------------------------------------------------

    def _take(self, correlation_id: CorrelationId) -> bool:
        """Marks a request as no longer in flight; returns whether its answer still matters."""
        if correlation_id == self._heartbeat:
            self._heartbeat = None
        elif correlation_id == self._work:
            self._work = None
        else:
            return False
        return True

    def _answered(self, incoming: inputs.ResponseReceived, now_ms: int) -> None:
        self._network.answered(incoming.correlation_id)
        sent_ms = self._sent_ms.pop(incoming.correlation_id, now_ms)
        is_metadata = isinstance(incoming.response, messages.MetadataResponse)
        if not (self._take(incoming.correlation_id) or is_metadata) or self._state is _State.OVER:
            return
        match incoming.response:
            case messages.MetadataResponse() as response:
                self._network.learn(response, now_ms)
                self._network.goes_on(now_ms)
            case JoinGroupResponse() as response:
                self._join_answered(response, sent_ms, now_ms)
            case SyncGroupResponse() as response:
                self._sync_answered(response, sent_ms, now_ms)
            case HeartbeatResponse(error=error):
                self._heartbeat_answered(error, sent_ms, now_ms)
            case LeaveGroupResponse(error=error):
                if error in _AGAIN:
                    self._network.retry(now_ms, wants_metadata=error in SEEK_COORDINATOR)
                else:
                    self._end(MemberStep.LEFT)
            case OffsetFetchResponse() as response if self._read is not None:
                self._went_on(self._read, self._read.reading.positioned(response), now_ms)
            case messages.ListOffsetsResponse(partitions=partitions) if self._read is not None:
                self._went_on(self._read, self._read.reading.listed(partitions[0]), now_ms)
            case OffsetCommitResponse(errors=errors) if self._read is not None:
                self._commit_answered(self._read, errors[0], now_ms)
            case other:
                raise InvariantError(f"a member was answered {other!r}")

    def _join_answered(self, response: JoinGroupResponse, sent_ms: int, now_ms: int) -> None:
        error = response.error
        if error is ErrorCode.NONE:
            self.member_id, self.generation_id = response.member_id, response.generation_id
            self._protocol_name = response.protocol_name
            self._leads = response.leader == response.member_id
            self._joined = response.members if self._leads and not response.skip_assignment else ()
            self._alive_ms = max(sent_ms, self._alive_ms)
            self._state = _State.SYNCING
        elif error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error in _FATAL:
            self._end(MemberStep.LEFT)
        else:
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            self._network.retry(now_ms, wants_metadata=error in SEEK_COORDINATOR)

    def _sync_answered(self, response: SyncGroupResponse, sent_ms: int, now_ms: int) -> None:
        error = response.error
        if error is not ErrorCode.NONE:
            self._join_again(error, now_ms)
            return
        if now_ms >= max(sent_ms, self._alive_ms) + self._settings.session_timeout_ms:
            self._give_up()
            return
        self.assigned = decode_assignment(response.assignment)
        self._positions.clear()
        self._turns = deque(self.assigned if self._reads else ())
        self._has_to_join = False
        self._state = _State.READING
        self._lives(sent_ms)
        self._timers.set(_HEARTBEAT, at_ms=now_ms + self._settings.heartbeat_interval_ms)
        self._record_step(MemberStep.ASSIGNED)

    def _heartbeat_answered(self, error: ErrorCode, sent_ms: int, now_ms: int) -> None:
        if self._state is not _State.READING:
            return
        if error is ErrorCode.NONE:
            self._lives(sent_ms)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._lives(sent_ms)
            self._has_to_join = True
        elif error in _AGAIN:
            self._network.want_metadata(now_ms)
            self._timers.set(_HEARTBEAT, at_ms=now_ms + self._settings.retry_backoff_ms)
        else:
            self._join_again(error, now_ms)

    def _commit_answered(self, read: _Read, error: ErrorCode, now_ms: int) -> None:
        if error in _AGAIN:
            read.may_be_committed |= error in SEEK_COORDINATOR
            self._network.retry(now_ms, wants_metadata=error in SEEK_COORDINATOR)
            return
        is_ok = error is ErrorCode.NONE
        failed = OperationType.INFO if read.may_be_committed else OperationType.FAIL
        self._record_commit(read, OperationType.OK if is_ok else failed, None if is_ok else error.name)
        self._read = None
        if is_ok:
            self._positions[read.reading.source.partition] = read.reading.next_position
        elif error in _REJOIN or error in _FATAL:
            self._join_again(error, now_ms)
        else:
            self._positions.pop(read.reading.source.partition, None)
            self._network.retry(now_ms)

    def _went_on(self, read: _Read, error: ErrorCode, now_ms: int) -> None:
        """Continues after the answer to a Fetch or ListOffsets."""
        partition = read.reading.source.partition
        if error in _AGAIN:
            self._network.retry(now_ms, wants_metadata=True)
        elif error is not ErrorCode.NONE:
            self._positions.pop(partition, None)
            if error is not ErrorCode.OFFSET_OUT_OF_RANGE:
                self._pass_on(now_ms)
        elif read.reading.is_over:
            if read.reading.batches:
                self._effects.append(
                    read.reading.recorded(read.operation_id, member_id=self.member_id, generation_id=self.generation_id)
                )
            else:
                self._positions[partition] = read.reading.next_position
                self._read = None

    def _unanswered(self, correlation_id: CorrelationId, now_ms: int) -> None:
        request = self._network.unanswered(correlation_id, now_ms)
        self._sent_ms.pop(correlation_id, None)
        if not self._take(correlation_id):
            return
        match request:
            case HeartbeatRequest():
                self._network.want_metadata(now_ms)
                self._timers.set(_HEARTBEAT, at_ms=now_ms + self._settings.retry_backoff_ms)
                return
            case OffsetCommitRequest() if self._read is not None:
                self._read.may_be_committed = True
            case SyncGroupRequest():
                self._state = _State.JOINING
            case messages.FetchRequest() | messages.ListOffsetsRequest():
                self._pass_on(now_ms)
                return
            case _:
                pass
        self._network.retry(now_ms, wants_metadata=True)

    # --- Membership -----------------------------------------------------------------------------------------------

    def _lives(self, sent_ms: int) -> None:
        """Restarts the session at the time when the renewing request was sent: the coordinator's ends no earlier."""
        self._alive_ms = max(sent_ms, self._alive_ms)
        self._timers.set(_SESSION, at_ms=self._alive_ms + self._settings.session_timeout_ms)

    def _look_at_session(self, now_ms: int) -> None:
        overdue_ms = now_ms - self._alive_ms - self._settings.session_timeout_ms
        if self._state is _State.READING and overdue_ms >= 0:
            self._record_step(MemberStep.EXPIRED, overdue_ms=overdue_ms)
            self._give_up()

    def _join_again(self, error: ErrorCode, now_ms: int) -> None:
        """Handles an error which shows that the member is not in the current generation."""
        if error in _FATAL:
            self._end(MemberStep.LEFT)
            return
        if self._state is _State.READING:
            self._record_step(MemberStep.EXPIRED)
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._give_up()
        if error is not ErrorCode.REBALANCE_IN_PROGRESS:
            self._network.retry(now_ms, wants_metadata=error in SEEK_COORDINATOR)

    def _give_up(self) -> None:
        """Gives up the member's partitions, and joins next; answers still to come are ignored."""
        if self._read is not None and self._read.reading.is_over:
            is_asked = self._work is not None or self._read.may_be_committed
            self._record_commit(self._read, OperationType.INFO if is_asked else OperationType.FAIL, "GIVEN_UP")
        self._read = None
        self.assigned = ()
        self._turns.clear()
        self._work = self._heartbeat = None
        self._timers.cancel(_SESSION)
        self._timers.cancel(_HEARTBEAT)
        self._has_to_join = False
        self._state = _State.JOINING

    def _leave(self) -> None:
        if self._state in (_State.LEAVING, _State.OVER):
            return
        if not self.member_id or self._instance_id is not None:
            self._end(MemberStep.LEFT)  # static members end without LeaveGroup
            return
        self._record_step(MemberStep.LEFT)
        self._give_up()
        self._state = _State.LEAVING

    def _end(self, step: MemberStep) -> None:
        if self._state is _State.OVER:
            return
        if self._state is not _State.LEAVING:
            self._record_step(step)
        self._give_up()
        self._state = _State.OVER
        self._network.close()

    # --- History --------------------------------------------------------------------------------------------------

    def _record_step(self, step: MemberStep, *, overdue_ms: int = 0) -> None:
        self._effects.append(
            steps.GroupMemberRecorded(
                group_id=self._group_id,
                step=step,
                member_id=self.member_id,
                instance_id=self._instance_id,
                generation_id=self.generation_id,
                partitions=self.assigned if step is MemberStep.ASSIGNED else (),
                overdue_ms=overdue_ms,
            )
        )

    def _record_commit(self, read: _Read, type_: OperationType, error: str | None) -> None:
        self._effects.append(
            steps.GroupCommitRecorded(
                type=type_,
                operation_id=read.operation_id,
                group_id=self._group_id,
                partition=read.reading.source.partition,
                offset=read.reading.next_position,
                error=error,
                member_id=self.member_id,
                generation_id=self.generation_id,
            )
        )
