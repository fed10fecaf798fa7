"""One partition on one broker: its role, its ISR, its high watermark (Kafka's ``Partition``).

Roles and edges::

    NONE ----> LEADER <----> FOLLOWER <---- NONE        (each metadata change names a role; the role may stay)

A leader keeps an ISR state of ``isr``, whose transitions are in ``isr_changes``, and a ``FollowerState`` per remote
replica. What a follower adopts from its leader is in ``following``. All changes of its log go through
``log_writer``.

Invariants: leader epoch and partition epoch never go back; as leader the high watermark never goes back.
"""

from collections.abc import Mapping
from enum import Enum

from laststand.emulator.core import events, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.follower_state import FollowerState
from laststand.emulator.core.broker.replicas.high_watermark import (
    HighWatermarkReason,
    advance_high_watermark,
    effective_min_isr,
)
from laststand.emulator.core.broker.replicas.isr import (
    Committed,
    IsrState,
    PendingState,
    can_expand,
    committed_isr,
    is_isr_eligible,
    maximal_isr,
    out_of_sync_members,
)
from laststand.emulator.core.broker.replicas.log_writer import (
    CutDurability,
    append_batches,
    truncate_log,
    write_epochs,
)
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import EncodedBatch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import BrokerRegistration, PartitionState
from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    LeaderRecoveryState,
    Offset,
    PartitionEpoch,
    RequestId,
    TruncationReason,
)


class PartitionRole(Enum):
    """The role of a broker for a partition."""

    NONE = "none"
    LEADER = "leader"
    FOLLOWER = "follower"


class Partition:
    """A hosted partition. ``registrations`` is the broker's live view of the cluster.

    Attributes:
        log: the replica's log.
        role: this broker's role.
        leader: the leader by the last metadata, or ``None``.
        leader_epoch: of the last metadata; -1 before any.
        partition_epoch: of the last metadata or AlterPartition answer; -1 before any.
        replicas: assigned brokers, those being added included.
        isr_state: the ISR and the change proposed to the controller; empty on a follower.
        leader_recovery_state: by the last metadata or AlterPartition answer; always RECOVERED without the gate.
        epoch_start_offset: where this leader's epoch starts in the log.
        topic_properties: effective properties of the topic.
    """

    def __init__(
        self,
        log: ReplicaLog,
        *,
        config: BrokerConfig,
        registrations: Mapping[BrokerId, BrokerRegistration],
        topic_properties: TopicProperties,
    ) -> None:
        self.log = log
        self.name = log.partition
        self.topic_properties = topic_properties
        self.role = PartitionRole.NONE
        self.leader: BrokerId | None = None
        self.leader_epoch = LeaderEpoch(-1)
        self.partition_epoch = PartitionEpoch(-1)
        self.replicas: tuple[BrokerId, ...] = ()
        self.isr_state: IsrState = Committed(())
        self.leader_recovery_state = LeaderRecoveryState.RECOVERED
        self.epoch_start_offset = Offset(0)
        self._config = config
        self._registrations = registrations
        self._followers: dict[BrokerId, FollowerState] = {}

    # --- What it is -----------------------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """This broker believes that it leads the partition."""
        return self.role is PartitionRole.LEADER

    @property
    def is_recovering(self) -> bool:
        """The leader recovers from an unclean election; leader and followers serve no requests (KIP-704)."""
        return self.leader_recovery_state is LeaderRecoveryState.RECOVERING

    @property
    def committed_isr(self) -> tuple[BrokerId, ...]:
        """The last ISR known to be accepted by the controller."""
        return committed_isr(self.isr_state)

    @property
    def maximal_isr(self) -> tuple[BrokerId, ...]:
        """The ISR that bounds the high watermark."""
        return maximal_isr(self.isr_state, rule=self._config.switches.maximal_isr)

    @property
    def effective_min_isr(self) -> int:
        """Min ISR, capped by the number of assigned replicas that this leader knows."""
        return effective_min_isr(
            min_insync_replicas=self.topic_properties.min_insync_replicas,
            replica_count=len(self.replicas),
            switches=self._config.switches,
        )

    @property
    def is_under_min_isr(self) -> bool:
        """This broker leads with a committed ISR that is too small to commit records."""
        return self.is_leader and len(self.committed_isr) < self.effective_min_isr

    @property
    def followers(self) -> Mapping[BrokerId, FollowerState]:
        """The leader's state of each other replica."""
        return self._followers

    def low_watermark(self) -> Offset:
        """Returns the smallest log start over the live replicas (DeleteRecords)."""
        starts = [self.log.log_start_offset]
        for broker_id, follower in self._followers.items():
            registration = self._registrations.get(broker_id)
            if registration is not None and not registration.fenced:
                starts.append(Offset(-1) if follower.log_start_offset is None else follower.log_start_offset)
        return min(starts)

    # --- Metadata -------------------------------------------------------------------------------------------------

    def _apply_recovery_state(self, state: PartitionState) -> None:
        # When the leader has recovered, metadata repeats the leader epoch, so this must not depend on a higher epoch.
        if self._config.switches.recovering_gate:
            self.leader_recovery_state = state.leader_recovery_state

    def become_leader(self, turn: Turn, state: PartitionState) -> None:
        """Becomes or stays leader by ``state``.

        An older partition epoch is ignored. If both epochs equal the current ones, an AlterPartition answer has
        delivered the same state before: only the assignment is adopted, so that a change sent since then stays pending
        (a hazard in Kafka's ``Partition.makeLeader``).
        """
        if state.partition_epoch < self.partition_epoch:
            return
        former_role = self.role
        was_leader = former_role is PartitionRole.LEADER
        self.replicas = state.replicas
        if was_leader and (state.leader_epoch, state.partition_epoch) == (self.leader_epoch, self.partition_epoch):
            return
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self.role = PartitionRole.LEADER
        self.leader = self._config.broker_id
        self.partition_epoch = state.partition_epoch
        self._apply_recovery_state(state)
        self.isr_state = Committed(state.isr)
        self._assign_followers(state.replicas)
        if is_new_epoch:
            self._start_epoch(turn, state, former_role=former_role)
        self.advance_high_watermark(turn)
        turn.turned[self.name] = None
        if is_new_epoch or not was_leader:
            turn.record(
                events.BecameLeader(
                    cause_id=turn.cause_id,
                    topic=self.name.topic,
                    partition=self.name.partition,
                    topic_id=self.log.topic_id,
                    leader_epoch=self.leader_epoch,
                    partition_epoch=self.partition_epoch,
                    epoch_start_offset=self.epoch_start_offset,
                    high_watermark=self.log.high_watermark,
                    isr=state.isr,
                )
            )

    def _assign_followers(self, replicas: tuple[BrokerId, ...]) -> None:
        self._followers = {
            broker_id: self._followers.get(broker_id) or FollowerState(broker_id)
            for broker_id in replicas
            if broker_id != self._config.broker_id
        }

    def _start_epoch(self, turn: Turn, state: PartitionState, *, former_role: PartitionRole) -> None:
        # In a skipped epoch another broker may have led, and followers may have truncated their logs.
        is_next_epoch = state.leader_epoch == self.leader_epoch + 1
        is_same_term = is_next_epoch or not self._config.switches.progress_of_this_term
        self.leader_epoch = state.leader_epoch
        self.epoch_start_offset = self.log.log_end_offset
        # Added before any append: followers of a later epoch without records truncate at it (KAFKA-7415).
        if self.log.epochs.assign(state.leader_epoch, self.log.log_end_offset):
            write_epochs(turn, self.log)
        for follower in self._followers.values():
            caught_up_ms = turn.now_ms if follower.broker_id in state.isr else 0
            if former_role is PartitionRole.LEADER and is_same_term:
                follower.restart_lag_clock(last_caught_up_ms=caught_up_ms, leader_end_offset=self.log.log_end_offset)
            else:
                follower.forget(last_caught_up_ms=caught_up_ms)

    def become_follower(self, turn: Turn, state: PartitionState) -> bool:
        """Becomes or stays follower by ``state``; returns whether the leader epoch rose, so that fetching restarts.

        The high watermark stays as it is. An older partition epoch is ignored.
        """
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        is_new_role = self.role is not PartitionRole.FOLLOWER
        self.role = PartitionRole.FOLLOWER
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self._apply_recovery_state(state)
        self.replicas = state.replicas
        self.isr_state = Committed(())
        self._followers = {}
        turn.turned[self.name] = None
        if is_new_epoch or is_new_role:
            turn.record(
                events.BecameFollower(
                    cause_id=turn.cause_id,
                    topic=self.name.topic,
                    partition=self.name.partition,
                    topic_id=self.log.topic_id,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    partition_epoch=state.partition_epoch,
                    log_end_offset=self.log.log_end_offset,
                    high_watermark=self.log.high_watermark,
                )
            )
        return is_new_epoch

    # --- Leader ---------------------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        turn: Turn,
        batch: BatchDescriptor,
        request_id: RequestId | None = None,
        contents: tuple[bytes, ...] | None = None,
    ) -> None:
        """Appends a batch stamped with this epoch, and applies the high watermark rule.

        ``request_id`` and ``contents`` are as in ``effects.AppendToLog``.
        """
        append_batches(
            turn,
            self.log,
            (batch,),
            role=events.AppendRole.LEADER,
            current_leader_epoch=self.leader_epoch,
            contents=contents,
            request_id=request_id,
        )
        self.advance_high_watermark(turn)

    def append_own(self, turn: Turn, made: EncodedBatch) -> Offset:
        """Appends a batch that this broker made itself, as leader; returns its base offset."""
        batch = made.header.stamped(self.log.log_end_offset, self.leader_epoch)
        self.append_as_leader(turn, batch, contents=(made.content,))
        return batch.base_offset

    def advance_high_watermark(self, turn: Turn) -> HighWatermarkReason:
        """Applies the high watermark rule to the followers' current state; returns the outcome."""
        if self.is_recovering:
            return HighWatermarkReason.RECOVERING
        maximal = self.maximal_isr
        leader = self._config.broker_id
        joiners = self._joiners(turn.now_ms, maximal)
        waited_for = [
            follower.log_end_offset
            for broker_id, follower in self._followers.items()
            if broker_id in maximal or broker_id in joiners
        ]
        min_isr = self.effective_min_isr
        old = self.log.high_watermark
        decision = advance_high_watermark(
            high_watermark=old,
            log_end_offset=self.log.log_end_offset,
            waited_for=waited_for,
            committed_isr_size=len(self.committed_isr),
            required_isr_size=min_isr if self._config.switches.hw_requires_min_isr else 0,
        )
        if decision.reason is HighWatermarkReason.ADVANCED:
            self.log.high_watermark = decision.high_watermark
            turn.advanced[self.name] = None
            turn.record(
                events.HighWatermarkAdvanced(
                    cause_id=turn.cause_id,
                    topic=self.name.topic,
                    partition=self.name.partition,
                    topic_id=self.log.topic_id,
                    old=old,
                    new=decision.high_watermark,
                    leader_epoch=self.leader_epoch,
                    log_end_offset=self.log.log_end_offset,
                    committed_isr=self.committed_isr,
                    maximal_isr=maximal,
                    joiners=joiners,
                    effective_min_isr=min_isr,
                    replicas=(
                        events.ReplicaProgress(leader, self.log.log_end_offset, self.leader_epoch),
                        *(
                            events.ReplicaProgress(broker_id, follower.log_end_offset, follower.learned_in_epoch)
                            for broker_id, follower in self._followers.items()
                        ),
                    ),
                )
            )
        return decision.reason

    def _joiners(self, now_ms: int, maximal: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
        """Returns the caught-up replicas outside the ISR that the high watermark waits for, so that they can join.

        Replicas that may not join are left out: a dead former member would delay commits for the lag time
        (KAFKA-15021).
        """
        if len(maximal) == len(self.replicas):
            return ()
        return tuple(
            broker_id
            for broker_id, follower in self._followers.items()
            if broker_id not in maximal
            and follower.is_caught_up(
                log_end_offset=self.log.log_end_offset,
                now_ms=now_ms,
                lag_time_max_ms=self._config.properties.replica_lag_time_max_ms,
            )
            and is_isr_eligible(broker_id, fetch_broker_epoch=follower.broker_epoch, registrations=self._registrations)
        )

    def note_fetch(
        self,
        turn: Turn,
        replica_id: BrokerId,
        *,
        fetch_offset: Offset,
        log_start_offset: Offset | None,
        broker_epoch: BrokerEpoch | None,
    ) -> ErrorCode:
        """Records a follower's successful fetch, and advances the high watermark if the fetch allows it.

        Args:
            turn: the step under way.
            replica_id: the follower.
            fetch_offset: the fetch offset; inside a batch it counts as the batch's base offset (KAFKA-17803).
            log_start_offset: the follower's log start offset.
            broker_epoch: the follower's broker epoch, if the fetch has one. An epoch below the registered one is of
                an earlier incarnation, and is refused (KIP-903).

        Returns:
            NONE, or NOT_LEADER_OR_FOLLOWER if the fetch was refused.
        """
        registration = self._registrations.get(replica_id)
        if broker_epoch is not None and registration is not None and broker_epoch < registration.broker_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        follower = self._followers[replica_id]
        old_end_offset, old_start_offset = follower.log_end_offset, follower.log_start_offset
        follower.update(
            fetch_offset=self.log.batch_base_offset(fetch_offset),
            log_start_offset=log_start_offset,
            leader_end_offset=self.log.log_end_offset,
            leader_epoch=self.leader_epoch,
            broker_epoch=broker_epoch,
            now_ms=turn.now_ms,
        )
        if log_start_offset != old_start_offset:
            turn.advanced[self.name] = None
        if follower.log_end_offset != old_end_offset:
            self.advance_high_watermark(turn)
        return ErrorCode.NONE

    def may_join(self, replica_id: BrokerId) -> bool:
        """Returns whether a follower that just fetched may be proposed as a member."""
        return can_expand(
            self.isr_state,
            self._followers[replica_id],
            high_watermark=self.log.high_watermark,
            epoch_start_offset=self.epoch_start_offset,
            registrations=self._registrations,
        )

    def out_of_sync_members(self, *, now_ms: int) -> frozenset[BrokerId]:
        """Returns the members that a shrink would drop now."""
        return out_of_sync_members(
            self.isr_state,
            self._followers,
            leader=self._config.broker_id,
            log_end_offset=self.log.log_end_offset,
            now_ms=now_ms,
            lag_time_max_ms=self._config.properties.replica_lag_time_max_ms,
        )

    def truncate(
        self,
        turn: Turn,
        offset: Offset,
        *,
        reason: TruncationReason,
        leader: BrokerId | None,
        leader_epoch: LeaderEpoch,
    ) -> None:
        """Truncates the log at ``offset``, to agree with the leader of that epoch."""
        switches = self._config.switches
        if switches.truncation_ends_at_batch:
            # The whole batch is removed. Kafka's log then still ends at the offset, inside a batch of its leader: S49.
            offset = max(self.log.batch_base_offset(offset), min(offset, self.log.log_start_offset))
        durability = CutDurability.SYNCED if switches.truncation_sync else CutDurability.CACHED
        truncate_log(
            turn, self.log, offset, reason=reason, leader=leader, leader_epoch=leader_epoch, durability=durability
        )

    def cut_corrupt(self, turn: Turn, offset: Offset) -> None:
        """Truncates a recovering leader's log at a bad batch; the leader's epoch starts at the new log end."""
        self.truncate(
            turn, offset, reason=TruncationReason.RECOVERED, leader=self.leader, leader_epoch=self.leader_epoch
        )
        self.epoch_start_offset = self.log.log_end_offset
        if self.log.epochs.assign(self.leader_epoch, self.log.log_end_offset):
            write_epochs(turn, self.log)

    def isr_member(self, broker_id: BrokerId) -> messages.IsrMember:
        """Returns a proposed ISR member: a replica and its broker epoch, own or by the replica's last fetch."""
        if broker_id == self._config.broker_id:
            registration = self._registrations.get(broker_id)
            return messages.IsrMember(broker_id, None if registration is None else registration.broker_epoch)
        follower = self._followers.get(broker_id)
        return messages.IsrMember(broker_id, None if follower is None else follower.broker_epoch)

    def await_isr(self, state: PendingState) -> None:
        """Enters the pending state of a change, which ``isr_changes`` proposes to the controller."""
        self.isr_state = state

    def commit_isr(self, turn: Turn, result: messages.AlterPartitionResult) -> None:
        """Adopts the ISR that the controller committed, and advances the high watermark if that ISR allows it."""
        self.isr_state = Committed(result.isr)
        self.partition_epoch = result.partition_epoch
        # Only the end of a recovery is learned here; metadata starts one.
        if result.leader_recovery_state is LeaderRecoveryState.RECOVERED:
            self.leader_recovery_state = LeaderRecoveryState.RECOVERED
        turn.turned[self.name] = None
        self.advance_high_watermark(turn)

    def revert_isr(self, turn: Turn) -> None:
        """Falls back to the committed ISR, which bounds the high watermark again."""
        self.isr_state = Committed(self.committed_isr)
        self.advance_high_watermark(turn)
