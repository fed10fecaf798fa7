"""The findings of an autopsy: ``laststand autopsy --json`` is ``AutopsyReport`` as JSON, field by field.

Fields are added, never renamed, within one ``version``; ``autopsy.schema.json`` beside this file is its JSON Schema,
and ``docs/autopsy.md`` explains it. Absent values are null; end offsets and high watermarks are exclusive.
"""

from typing import Final

import msgspec

from laststand.emulator.autopsy.broker_logs import Deciding
from laststand.emulator.autopsy.comparison import Parting, Surplus
from laststand.emulator.autopsy.eligibility import Eligibility
from laststand.emulator.autopsy.replica_reader import Damage
from laststand.emulator.core.types import BrokerId, LeaderEpoch, LeaderRecoveryState, NodeId, Offset, TopicId

AUTOPSY_VERSION: Final = 1


class ExaminedDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """A log directory that was read.

    Attributes:
        path: of the directory.
        node_id: the directory's broker or controller.
        directory_id: from its `meta.properties`; null if that names none.
        cluster_id: by its `meta.properties`.
        is_clean: whether its logs were closed in order.
        clean_broker_epoch: which incarnation of the broker closed them.
    """

    path: str
    node_id: NodeId
    directory_id: str | None
    cluster_id: str | None
    is_clean: bool
    clean_broker_epoch: int | None


class MetadataSource(msgspec.Struct, frozen=True, kw_only=True):
    """The copy of the metadata log that was read: the newest epoch of controllers, then the highest end.

    Attributes:
        path: of the copy.
        end_offset: the log end offset; exclusive.
        elr_level: of the feature `eligible.leader.replicas.version`; 0 is off.
        problem: why reading ended early.
        voters: the controllers of which copies of the metadata log were read, too.
        committed_end_offset: every record below it is certainly committed; null if these logs do not prove that.
    """

    path: str
    end_offset: int
    elr_level: int
    problem: str | None
    voters: tuple[int, ...] = ()
    committed_end_offset: int | None = None


class CommittedState(msgspec.Struct, frozen=True, kw_only=True):
    """A partition by the metadata log.

    Attributes:
        replicas: the assignment.
        isr: in-sync replicas.
        elr: eligible leader replicas.
        last_known_leader: the last leader, if the metadata has it.
        leader: the current leader.
        leader_epoch: the leader epoch, which rises at each change of the leader.
        leader_recovery_state: whether the last leader was elected uncleanly and had not recovered.
        min_insync_replicas: as set on the topic or for the cluster; null if it is set in neither place.
        unclean_leader_election_enable: likewise.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]
    last_known_leader: BrokerId | None
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    leader_recovery_state: LeaderRecoveryState
    min_insync_replicas: str | None
    unclean_leader_election_enable: str | None


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """The records of another replica that would be lost if a replica were elected: the other one would truncate them.

    Attributes:
        held_by: broker of the other replica.
        held_in: folder of the other replica's log.
        parting: where the two logs part.
        lost: records that only the other replica holds.
        committed: those of them below a high watermark of the other log, or of a log that agrees with the other.
    """

    held_by: BrokerId
    held_in: str
    parting: Parting
    lost: Surplus
    committed: Surplus


class EpochStart(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a leader epoch in a log.

    Attributes:
        leader_epoch: the epoch.
        start_offset: of its first record.
    """

    leader_epoch: LeaderEpoch
    start_offset: Offset


class CandidateReport(msgspec.Struct, frozen=True, kw_only=True):
    """A replica.

    Attributes:
        broker_id: the replica's broker.
        folder: of its log.
        log_start_offset: of the first record that may be read.
        log_end_offset: where recovery would end the log; exclusive.
        last_leader_epoch: of the newest record; null for an empty log.
        epochs: where each leader epoch begins.
        high_watermark: as checkpointed last; null if it never was.
        recovery_point: offset below which the log was flushed, by the last checkpoint; null without one.
        is_clean: whether the log was closed in order.
        segments: number of segments.
        batches: number of batches.
        records: of producers.
        file_bytes: of all segments.
        crc_checked_bytes: size of the batches whose content was compared with their CRC.
        damage: the damage at which the log ends early; null if there is none.
        eligibility: the rule that would let the replica lead.
        losses: by other replica, the records that would be lost if this replica were elected; only replicas that hold
            more.
        lost_against_longest: records that the longest log has and this log lacks.
        lost_committed: the largest number of committed records that one other log has and this log lacks.
    """

    broker_id: BrokerId
    folder: str
    log_start_offset: Offset
    log_end_offset: Offset
    last_leader_epoch: LeaderEpoch | None
    epochs: tuple[EpochStart, ...]
    high_watermark: Offset | None
    recovery_point: Offset | None
    is_clean: bool
    segments: int
    batches: int
    records: int
    file_bytes: int
    crc_checked_bytes: int
    damage: Damage | None
    eligibility: Eligibility
    losses: tuple[Loss, ...]
    lost_against_longest: int
    lost_committed: int


class PartitionAutopsy(msgspec.Struct, frozen=True, kw_only=True):
    """A partition.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        topic_id: by the replicas' folders; replicas of another topic of that name are a partition of their own.
        is_of_other_topic: whether the metadata log names another topic id: the topic was deleted, or is another
            cluster's.
        is_compacted: whether a log has gaps, as a cleaner leaves them: then only leader epochs are compared.
        committed: by the metadata log; null without one, or if it does not have the partition.
        candidates: replicas that were read, by broker.
        longest: broker of the replica with the newest epoch and, among those, the highest end (KIP-966's unclean
            recovery takes it).
        longest_folder: folder of that replica's log.
        highest_high_watermark: of all replicas; null if none was checkpointed.
        unread: brokers whose log was found but could not be read.
        absent: brokers that the partition is assigned to and of which no log was found.
    """

    topic: str
    partition: int
    topic_id: TopicId | None
    is_of_other_topic: bool
    is_compacted: bool
    committed: CommittedState | None
    candidates: tuple[CandidateReport, ...]
    longest: BrokerId
    longest_folder: str
    highest_high_watermark: Offset | None
    unread: tuple[BrokerId, ...]
    absent: tuple[BrokerId, ...]

    @property
    def differs(self) -> bool:
        """True if two replicas that were read hold different records, or one is damaged."""
        return any(candidate.losses or candidate.damage is not None for candidate in self.candidates)

    @property
    def is_alike(self) -> bool:
        """True if all replicas that were found could be read, hold the same records, and are undamaged."""
        return not self.differs and not self.unread

    @property
    def is_leaderless(self) -> bool:
        """The metadata log names no leader of the partition."""
        return self.committed is not None and self.committed.leader is None


class UnreadReplica(msgspec.Struct, frozen=True, kw_only=True):
    """A log that could not be read.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        broker_id: the log's broker.
        folder: of the log.
        reason: the reason, in words.
    """

    topic: str
    partition: int
    broker_id: BrokerId
    folder: str
    reason: str


class SeveralLogs(msgspec.Struct, frozen=True, kw_only=True):
    """Several logs of a partition in directories of one broker.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        broker_id: the broker of the logs.
        folders: the logs that may be the current one; several if nothing distinguishes them.
        other_folders: folders of the other logs.
        deciding: the evidence that decides which log is current.

    """

    topic: str
    partition: int
    broker_id: BrokerId
    folders: tuple[str, ...]
    other_folders: tuple[str, ...]
    deciding: Deciding


class BrokerReturn(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of bringing a broker back on the partitions without a leader.

    Attributes:
        broker_id: of the broker.
        replicas: number of replicas of leaderless partitions on this broker.
        eligible: number of these that the broker may lead without an unclean election after its restart.
        complete: number of these for which no other log that was read holds a record that the broker lacks.
        eligible_and_complete: number of these that are both.
        added: number of these that are both, and that no broker before it in the list leads so.
        complete_otherwise: number of partitions that no broker leads so and for which this broker is complete: only its
            unclean election loses nothing there.
    """

    broker_id: BrokerId
    replicas: int
    eligible: int
    complete: int
    eligible_and_complete: int
    added: int
    complete_otherwise: int


class AutopsyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an autopsy.

    Attributes:
        version: of this form.
        directories: that were read.
        metadata: the metadata log that was read; null if none was found.
        partitions: by name.
        brokers_to_return: brokers with replicas of partitions without a leader, those first that should return first.
        several_logs: partitions of which a broker has more than one log.
        unread: logs that could not be read.
        problems: unreadable files and contradictions, in words.
    """

    version: int = AUTOPSY_VERSION
    directories: tuple[ExaminedDirectory, ...]
    metadata: MetadataSource | None
    partitions: tuple[PartitionAutopsy, ...]
    brokers_to_return: tuple[BrokerReturn, ...]
    several_logs: tuple[SeveralLogs, ...]
    unread: tuple[UnreadReplica, ...]
    problems: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """All files could be read, and it is known which log each broker had of each partition."""
        return not self.problems and not any(each.deciding is Deciding.NOTHING for each in self.several_logs)
