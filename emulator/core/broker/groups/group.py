"""A classic group: its members, its generation, and the requests that wait for an answer.

States and edges (Kafka's ``ClassicGroupState``)::

    EMPTY -> PREPARING_REBALANCE -> COMPLETING_REBALANCE -> STABLE
    STABLE, COMPLETING_REBALANCE -> PREPARING_REBALANCE    a member joined, left, or its session ended
    PREPARING_REBALANCE -> EMPTY                           no member is left
    any -> DEAD                                            removed, or coordinated by another broker

The rules by which members join and leave are in ``membership``.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.broker.coordination.caller import Caller
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.group_messages import GroupProtocol, JoinedMember
from laststand.emulator.core.group_records import CONSUMER_PROTOCOL, GroupMetadata, MemberMetadata


class GroupState(Enum):
    """The state of a group; the value is Kafka's word for it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


NEXT_STATES: Final[Mapping[GroupState, frozenset[GroupState]]] = MappingProxyType(
    {
        GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
        GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}),
        GroupState.COMPLETING_REBALANCE: frozenset(
            {GroupState.PREPARING_REBALANCE, GroupState.STABLE, GroupState.DEAD}
        ),
        GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
        GroupState.DEAD: frozenset({GroupState.DEAD}),
    }
)


class Member:
    """A member of a group.

    Attributes:
        awaiting_join: its JoinGroup, until the generation begins.
        awaiting_sync: its SyncGroup, until the assignment is committed.
        is_new: the member has not been part of a generation; then a waiting JoinGroup does not keep it alive.
    """

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: tuple[GroupProtocol, ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Caller | None = None
        self.awaiting_sync: Caller | None = None
        self.is_new = False

    def protocol(self, name: str | None) -> GroupProtocol | None:
        """Returns the protocol with a name, which the member supports."""
        return next((protocol for protocol in self.protocols if protocol.name == name), None)

    @property
    def is_alive_by_waiting(self) -> bool:
        """The member waits for an answer to JoinGroup or SyncGroup, and needs no heartbeats meanwhile."""
        is_waiting = self.awaiting_join is not None or self.awaiting_sync is not None
        return is_waiting and not self.is_new


class Group:
    """One group, made empty.

    Attributes:
        group_id: of the group.
        state: of the group.
        previous_state: the state before it.
        state_ms: when it reached the state, by the coordinator's clock; ``None`` if it is still in its first state.
        generation_id: of the newest generation.
        protocol_type: of its members, or of its last ones; ``None`` before the first.
        protocol_name: selected for the generation.
        leader: id of the member that computes the assignment.
        members: by id, in the order in which they joined.
        pending_members: ids that were given to members which have not joined with them yet (KIP-394).
        pending_syncs: members of the generation that have not asked for their assignment yet.
        has_grown: a member joined since the delay of the first rebalance was last prolonged.
        initial_delay_left_ms: by how much that delay may still be prolonged.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.EMPTY
        self.state_ms: int | None = None
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.pending_members: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.has_grown = False
        self.initial_delay_left_ms = 0
        self._static_ids: dict[str, str] = {}

    @classmethod
    def of_record(cls, record: GroupMetadata) -> "Group":
        """Returns the group that a record describes: in state STABLE, or EMPTY without members."""
        group = cls(record.group_id)
        group.generation_id = record.generation_id
        group.protocol_type = record.protocol_type or None
        group.protocol_name = record.protocol_name
        for kept in record.members:
            protocol = GroupProtocol(name=record.protocol_name or "", metadata=kept.subscription, topics=kept.topics)
            group.add(
                Member(
                    kept.member_id,
                    instance_id=kept.instance_id,
                    client_id=kept.client_id,
                    client_host=kept.client_host,
                    session_timeout_ms=kept.session_timeout_ms,
                    rebalance_timeout_ms=kept.rebalance_timeout_ms,
                    protocols=(protocol,),
                    assignment=kept.assignment,
                ),
                protocol_type=record.protocol_type,
            )
        group.leader = record.leader
        group.state = GroupState.STABLE if group.members else GroupState.EMPTY
        group.state_ms = record.state_ms
        return group

    def record(self, assignments: Mapping[str, bytes] | None = None) -> GroupMetadata:
        """Returns the record of the generation, with the given assignments or else the members' current ones."""
        return GroupMetadata(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            leader=self.leader,
            members=tuple(
                MemberMetadata(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=b"" if protocol is None else protocol.metadata,
                    topics=None if protocol is None else protocol.topics,
                    assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
                for protocol in (member.protocol(self.protocol_name),)
            ),
            state_ms=self.state_ms,
        )

    # --- States ---------------------------------------------------------------------------------------------------

    def become(self, state: GroupState, *, now_ms: int) -> None:
        """Changes the state.

        Raises:
            InvariantError: there is no such edge.
        """
        if state not in NEXT_STATES[self.state]:
            raise InvariantError(f"group {self.group_id!r} cannot become {state.value} out of {self.state.value}")
        self.previous_state = self.state
        self.state = state
        self.state_ms = now_ms

    @property
    def may_rebalance(self) -> bool:
        """The group's state allows a rebalance to begin."""
        return GroupState.PREPARING_REBALANCE in NEXT_STATES[self.state]

    @property
    def has_all_joined(self) -> bool:
        """Every member has joined, and no id is pending that was given to a client which has yet to join."""
        is_awaited = any(member.awaiting_join is None for member in self.members.values())
        return not is_awaited and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members' rebalance timeouts."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def begin_generation(self, *, now_ms: int) -> None:
        """Begins the next generation, with the current members."""
        self.generation_id += 1
        self.pending_syncs.clear()
        self.protocol_name = self.selected_protocol() if self.members else None
        self.become(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms=now_ms)

    # --- Members --------------------------------------------------------------------------------------------------

    def add(self, member: Member, *, protocol_type: str) -> None:
        """Adds a member that the group supports; the first one leads, and its protocol type is the group's."""
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        self.pending_members.discard(member.member_id)
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Removes a member or a pending member id; if the leader is removed, another member leads."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self._static_ids.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)
        return member

    def replace_static(self, old_id: str, new_id: str) -> Member:
        """Gives a static member's place to its next process, as the last in join order; returns the new member."""
        old = self.members.pop(old_id)
        new = Member(
            new_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            session_timeout_ms=old.session_timeout_ms,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_id] = new
        if self.leader == old_id:
            self.leader = new_id
        if old.instance_id is not None:
            self._static_ids[old.instance_id] = new_id
        return new

    def static_member_id(self, instance_id: str | None) -> str | None:
        """Returns the id of the member that has an instance id."""
        return None if instance_id is None else self._static_ids.get(instance_id)

    def elect_leader(self) -> bool:
        """Keeps the leader if it has joined, else elects the first that has; returns whether there is a leader."""
        leader = None if self.leader is None else self.members.get(self.leader)
        if leader is None:
            return False
        if leader.awaiting_join is None:
            joined = next((each.member_id for each in self.members.values() if each.awaiting_join is not None), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Returns NONE if the id is a member's, and the instance id, if given, belongs to that member."""
        if instance_id is not None:
            current = self._static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_generation(self, member_id: str, instance_id: str | None, generation_id: int) -> ErrorCode:
        """Returns NONE if ``check_member`` does, and the generation is the newest."""
        error = self.check_member(member_id, instance_id)
        if error is ErrorCode.NONE and generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    # --- Protocols ------------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Returns whether a member with these protocols can join: all members support one of them."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        return self.protocol_type == protocol_type and any(self._is_common(name) for name in names)

    def selected_protocol(self) -> str:
        """Returns the protocol with the most votes; a member votes for its first protocol that all members support."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(protocol.name for protocol in member.protocols if self._is_common(protocol.name))
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def _is_common(self, name: str) -> bool:
        return all(member.protocol(name) is not None for member in self.members.values())

    @property
    def is_of_consumers(self) -> bool:
        """The members use Kafka's consumer protocol."""
        return self.protocol_type == CONSUMER_PROTOCOL

    def subscribes_to(self, topic: str) -> bool:
        """Returns whether a member subscribes to a topic, or may subscribe: its subscription cannot be read."""
        if not self.is_of_consumers or self.protocol_name is None:
            return False
        chosen = [member.protocol(self.protocol_name) for member in self.members.values()]
        # One subscription that cannot be read may be of any topic (``ClassicGroup.isSubscribedToTopic``).
        return any(each is None or each.topics is None or topic in each.topics for each in chosen)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Returns the members as JoinGroup lists them to the leader."""
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                metadata=b"" if protocol is None else protocol.metadata,
            )
            for member in self.members.values()
            for protocol in (member.protocol(self.protocol_name),)
        )
