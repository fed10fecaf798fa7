"""Promises of a quorum, judged from evidence, from the logs on disk, and from what state machines applied.

Names are those of the TLA+ specifications of KRaft, or of Raft's dissertation. The oracle has its own arithmetic: it
shares only the types of events and batches with the core.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.quorum import events
from laststand.emulator.core.quorum.batches import KRaftVoters, QuorumBatch
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.simulator.quorum.disk import MetadataDisk


class QuorumCheck(Enum):
    """A promise, by its name in the specifications."""

    ELECTION_SAFETY = "ElectionSafety"
    """At most one leader per epoch, and no two nodes believe in different leaders of one epoch."""

    VOTE_ONCE = "VoteOnce"
    """A replica votes for one candidate per epoch, over all of its processes."""

    LOG_MATCHING = "LogMatching"
    """Two logs that agree in epoch and offset of a record agree in everything before it."""

    LEADER_COMPLETENESS = "LeaderCompleteness"
    """A leader has every record that was committed in an epoch before its own."""

    STATE_MACHINE_SAFETY = "StateMachineSafety"
    """No two state machines apply different records at one offset."""

    COMMITTED_STAYS = "CommittedStays"
    """The last leader has every record that was committed."""

    MONOTONIC_HIGH_WATERMARK = "MonotonicHighWatermark"
    """The high watermark never falls within a process, and the log is never cut below it."""

    MONOTONIC_EPOCH = "MonotonicEpoch"
    """A replica's epoch never falls, over all of its processes; nor do the epochs of a log."""

    COMMIT_BY_QUORUM = "CommitByQuorum"
    """A leader commits what a majority of the set in force has durably."""

    COMMIT_OWN_EPOCH = "CommitOwnEpoch"
    """A leader commits nothing before a record of its own epoch."""

    CLAIM_COMPLETE = "ClaimComplete"
    """A state machine that hears that it leads has every record that was committed before."""

    NO_ILLEGAL_STATE = "NoIllegalState"
    """No process stops because of a state that cannot be."""

    PROGRESS = "Progress"
    """Once everything is mended, a leader commits within bounded time."""


PROMISE_OF: Final[Mapping[QuorumCheck, str]] = MappingProxyType(
    {
        QuorumCheck.ELECTION_SAFETY: "Q1",
        QuorumCheck.VOTE_ONCE: "Q1",
        QuorumCheck.LOG_MATCHING: "Q2",
        QuorumCheck.LEADER_COMPLETENESS: "Q3",
        QuorumCheck.CLAIM_COMPLETE: "Q3",
        QuorumCheck.STATE_MACHINE_SAFETY: "Q4",
        QuorumCheck.COMMITTED_STAYS: "Q5",
        QuorumCheck.MONOTONIC_HIGH_WATERMARK: "Q6",
        QuorumCheck.MONOTONIC_EPOCH: "Q6",
        QuorumCheck.COMMIT_BY_QUORUM: "Q7",
        QuorumCheck.COMMIT_OWN_EPOCH: "Q7",
    }
)
"""Promises of ``core/promises.py``, where a whole cluster is judged."""


_OF_WHAT_WAS_COMMITTED: Final = frozenset(
    {
        QuorumCheck.LEADER_COMPLETENESS,
        QuorumCheck.CLAIM_COMPLETE,
        QuorumCheck.STATE_MACHINE_SAFETY,
        QuorumCheck.COMMITTED_STAYS,
    }
)
"""Promised while fewer than a majority of the disks were lost."""


class QuorumFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A check that fired."""

    check: QuorumCheck
    at_ms: int
    text: str

    def describe(self) -> str:
        """Returns one line."""
        return f"{self.check.value} at {self.at_ms} ms: {self.text}"


_NOTHING: Final = MetadataOffset(0)


class JudgedMember(Protocol):
    """A node of a quorum, as the oracle sees it.

    Attributes:
        node_id: the node's id.
        incarnation: of its process.
        disk: survives the process.
        applied_sum: sum over all records that its state machine has applied.
    """

    node_id: NodeId
    incarnation: int
    disk: MetadataDisk
    applied_sum: bytes

    @property
    def applied_end_offset(self) -> MetadataOffset:
        """The end of the records that its state machine has applied."""
        ...

    @property
    def leads(self) -> bool:
        """True if the node believes that it leads."""
        ...


class QuorumOracle:
    """Judges a run while it is played.

    Attributes:
        members: all nodes; set by the code that creates the cluster.
        formatted: the voters before any record names them.
        first_disks: first disks of all voters; empty if replaced disks do not matter.
        asked: the checks to make; all of them, unless a rule is known to be missing.
        findings: the findings so far.
        lost_state: nodes that lost their ``quorum-state``, and therefore refuse to start.
        committed_end_offset: the highest high watermark of a leader.
        now_ms: virtual time, kept up to date by the schedule.
    """

    def __init__(self) -> None:
        self.members: Mapping[NodeId, JudgedMember] = {}
        self.formatted: tuple[ReplicaKey, ...] = ()
        self.first_disks: dict[NodeId, DirectoryId] = {}
        self.asked: AbstractSet[QuorumCheck] = frozenset(QuorumCheck)
        self.findings: list[QuorumFinding] = []
        self.lost_state: set[NodeId] = set()
        self.now_ms = 0
        self._leaders: dict[LeaderEpoch, ReplicaKey] = {}
        self._starts: dict[LeaderEpoch, MetadataOffset] = {}
        self._votes: dict[tuple[ReplicaKey, LeaderEpoch], ReplicaKey] = {}
        self._epochs: dict[ReplicaKey, LeaderEpoch] = {}
        self._exposed: dict[tuple[ReplicaKey, int], MetadataOffset] = {}
        self._exposed_by_leaders: dict[LeaderEpoch, MetadataOffset] = {}
        self._committed: list[tuple[QuorumBatch, LeaderEpoch]] = []
        self.committed_end_offset = _NOTHING
        self._disks: dict[ReplicaKey, MetadataDisk] = {}
        self._present_disks: dict[NodeId, DirectoryId] = {}
        self._lost: dict[NodeId, MetadataOffset] = {}
        self._has_lost_a_majority = False
        self._sums: dict[MetadataOffset, bytes] = {}

    @property
    def elections(self) -> int:
        """The number of leaders that were elected."""
        return len(self._starts)

    @property
    def lost_a_majority(self) -> bool:
        """True if a majority of the voters had lost their disks at one time, so that committed records may be gone."""
        self._note_disks()
        return self._has_lost_a_majority

    def _note_disks(self) -> None:
        """Updates the set of lost disks: a replaced disk counts again once it has all records committed before."""
        for node_id, disk in self.first_disks.items():
            present = self.members[node_id].disk
            if present.directory_id != self._present_disks.get(node_id, disk):
                self._present_disks[node_id] = present.directory_id
                self._lost[node_id] = self.committed_end_offset
            if node_id in self._lost and present.durable_end_offset >= self._lost[node_id]:
                del self._lost[node_id]
        if self._lost:
            last = self._disks[max(self._leaders.items())[1]] if self._leaders else None
            voters = (None if last is None else voters_in(last)) or self.formatted
            lost = [voter for voter in voters if voter.node_id in self._lost]
            self._has_lost_a_majority = self._has_lost_a_majority or 2 * len(lost) > len(voters)

    def find(self, check: QuorumCheck, text: str) -> None:
        """Records that a check fired; only the first finding of each check is kept."""
        if check not in self.asked or (check in _OF_WHAT_WAS_COMMITTED and self.lost_a_majority):
            return
        if all(finding.check is not check for finding in self.findings):
            self.findings.append(QuorumFinding(check=check, at_ms=self.now_ms, text=text))

    # --- Evidence ---------------------------------------------------------------------------------------------------

    def recorded(self, member: JudgedMember, event: events.QuorumEvent) -> None:
        """Judges an event."""
        self._note_disks()
        key = ReplicaKey(member.node_id, member.disk.directory_id)
        self._disks[key] = member.disk
        if event.leader_epoch < self._epochs.get(key, 0):
            self.find(QuorumCheck.MONOTONIC_EPOCH, f"{key} falls from {self._epochs[key]} to {event}")
        self._epochs[key] = max(event.leader_epoch, self._epochs.get(key, event.leader_epoch))
        match event:
            case events.VoteGranted():
                self._judge_vote(key, event)
            case events.LeaderElected():
                self._judge_election(key, member, event)
            case events.LeaderLearned():
                self._judge_belief(key, event.leader_epoch, event.leader_id)
            case events.LeaderClaimed():
                if event.applied_end_offset < self.committed_end_offset:
                    text = f"{key} leads with {event.applied_end_offset} of {self.committed_end_offset} applied"
                    self.find(QuorumCheck.CLAIM_COMPLETE, text)
            case events.HighWatermarkAdvanced():
                self._judge_high_watermark(key, member, event)
            case events.LogTruncated():
                exposed = self._exposed.get((key, member.incarnation), 0)
                if event.end_offset < exposed:
                    text = f"{key} cuts its log at {event.end_offset}, and has exposed {exposed}"
                    self.find(QuorumCheck.MONOTONIC_HIGH_WATERMARK, text)
            case _:
                pass

    def _judge_vote(self, key: ReplicaKey, event: events.VoteGranted) -> None:
        before = self._votes.setdefault((key, event.leader_epoch), event.candidate)
        if before != event.candidate:
            self.find(QuorumCheck.VOTE_ONCE, f"{key} voted for {before} and {event.candidate} in {event.leader_epoch}")

    def _judge_belief(self, key: ReplicaKey, leader_epoch: LeaderEpoch, leader_id: NodeId) -> None:
        leader = self._leaders.get(leader_epoch)
        if leader is not None and leader.node_id != leader_id:
            self.find(QuorumCheck.ELECTION_SAFETY, f"{key} follows {leader_id} in {leader_epoch}, {leader} leads it")

    def _judge_election(self, key: ReplicaKey, member: JudgedMember, event: events.LeaderElected) -> None:
        epoch = event.leader_epoch
        if self._leaders.setdefault(epoch, key) != key:
            self.find(QuorumCheck.ELECTION_SAFETY, f"{key} and {self._leaders[epoch]} both lead {epoch}")
        self._starts[epoch] = event.start_offset
        held = {batch.base_offset: batch for batch in member.disk.batches}
        for batch, committed_in in self._committed:
            is_expected = committed_in < epoch and batch.base_offset >= member.disk.start_offset
            if is_expected and held.get(batch.base_offset) != batch:
                text = f"{key} leads {epoch} without offset {batch.base_offset}, committed in {committed_in}"
                self.find(QuorumCheck.LEADER_COMPLETENESS, text)
                return
        self.compare_logs()

    def _judge_high_watermark(self, key: ReplicaKey, member: JudgedMember, event: events.HighWatermarkAdvanced) -> None:
        process = (key, member.incarnation)
        if event.high_watermark < self._exposed.get(process, 0):
            self.find(QuorumCheck.MONOTONIC_HIGH_WATERMARK, f"{key} falls from {self._exposed[process]} to {event}")
        self._exposed[process] = event.high_watermark
        if self._leaders.get(event.leader_epoch) != key or not member.leads:
            return
        older = [end for epoch, end in self._exposed_by_leaders.items() if epoch < event.leader_epoch]
        if event.leader_epoch not in self._exposed_by_leaders and event.high_watermark < max(older, default=0):
            text = f"{key} exposes {event.high_watermark} first, a leader before {max(older)}"
            self.find(QuorumCheck.LEADER_COMPLETENESS, text)
        self._exposed_by_leaders[event.leader_epoch] = event.high_watermark
        if event.high_watermark <= self._starts[event.leader_epoch]:
            text = f"{key} commits {event.high_watermark}, its epoch begins at {self._starts[event.leader_epoch]}"
            self.find(QuorumCheck.COMMIT_OWN_EPOCH, text)
        self._judge_commit(key, member, event)

    def _judge_commit(self, key: ReplicaKey, member: JudgedMember, event: events.HighWatermarkAdvanced) -> None:
        voters = voters_in(member.disk) or self.formatted
        if voters:
            holders = [voter for voter in voters if self._holds(voter, member, event.high_watermark)]
            if 2 * len(holders) <= len(voters):
                text = f"{key} commits {event.high_watermark}, durable on {', '.join(map(str, holders)) or 'nobody'}"
                self.find(QuorumCheck.COMMIT_BY_QUORUM, text)
        for batch in member.disk.batches:
            if self.committed_end_offset <= batch.base_offset and batch.end_offset <= event.high_watermark:
                self._committed.append((batch, event.leader_epoch))
        self.committed_end_offset = max(self.committed_end_offset, event.high_watermark)

    def _holds(self, voter: ReplicaKey, leader: JudgedMember, end_offset: MetadataOffset) -> bool:
        """Returns whether a voter has the leader's records below an offset durably, on the voter's own disk.

        A replaced disk counts with its last content: the voter may have acknowledged those records before.
        """
        present = self.members[voter.node_id].disk
        disk = present if voter.directory_id in (None, present.directory_id) else self._disks.get(voter)
        if disk is None:
            return False
        return disk.durable_end_offset >= end_offset and not divergence(disk, leader.disk, end_offset)

    # --- State machines and processes -------------------------------------------------------------------------------

    def applied(self, member: JudgedMember) -> None:
        """Judges the records that a state machine has applied, by their sum."""
        expected = self._sums.setdefault(member.applied_end_offset, member.applied_sum)
        if expected != member.applied_sum:
            text = f"{member.node_id} differs from another below {member.applied_end_offset}"
            self.find(QuorumCheck.STATE_MACHINE_SAFETY, text)

    def stopped(self, member: JudgedMember, error: InvariantError) -> None:
        """A process stopped by itself."""
        if member.node_id not in self.lost_state:
            self.find(QuorumCheck.NO_ILLEGAL_STATE, f"{member.node_id}: {error}")

    def finish(self) -> None:
        """Judges the logs on disk at the end of a run."""
        self.compare_logs()
        if not self._leaders:
            return
        epoch, leader = max(self._leaders.items())
        disk = self._disks[leader]  # as it was, where it was replaced since
        held = {batch.base_offset: batch for batch in disk.batches}
        for batch, committed_in in self._committed:
            if batch.base_offset >= disk.start_offset and held.get(batch.base_offset) != batch:
                text = f"{leader} led last, in {epoch}, without offset {batch.base_offset}, committed in {committed_in}"
                self.find(QuorumCheck.COMMITTED_STAYS, text)
                return

    # --- Logs -------------------------------------------------------------------------------------------------------

    def compare_logs(self) -> None:
        """Compares every two logs on disk."""
        disks = [(node_id, member.disk) for node_id, member in sorted(self.members.items())]
        for index, (node_id, disk) in enumerate(disks):
            epochs = [batch.leader_epoch for batch in disk.batches]
            if epochs != sorted(epochs):
                self.find(QuorumCheck.MONOTONIC_EPOCH, f"the log of {node_id} has epochs {epochs}")
            for other_id, other in disks[index + 1 :]:
                if found := contradiction(disk, other):
                    self.find(QuorumCheck.LOG_MATCHING, f"{node_id} and {other_id} {found}")


def voters_in(disk: MetadataDisk) -> tuple[ReplicaKey, ...] | None:
    """Returns the last set of voters that a log names; ``None`` if it names none."""
    for batch in reversed(disk.batches):
        for record in reversed(batch.control):
            if isinstance(record, KRaftVoters):
                return record.voters.keys
    snapshot = disk.latest_snapshot
    return None if snapshot is None or snapshot.voters is None else snapshot.voters.keys


def divergence(first: MetadataDisk, second: MetadataDisk, end_offset: MetadataOffset) -> bool:
    """Returns whether two logs differ in a batch that both have below an offset."""
    others = {batch.base_offset: batch for batch in second.batches}
    return any(
        others.get(batch.base_offset, batch) != batch for batch in first.batches if batch.end_offset <= end_offset
    )


def contradiction(first: MetadataDisk, second: MetadataDisk) -> str | None:
    """Returns how two logs contradict each other below their last batch of the same offset and epoch."""
    others = {batch.base_offset: batch for batch in second.batches}
    must_agree = False
    for batch in reversed(first.batches):
        other = others.get(batch.base_offset)
        if other is None:
            if must_agree and batch.base_offset >= second.start_offset:
                return f"differ at {batch.base_offset}, and agree later"
            continue
        must_agree = must_agree or other.leader_epoch == batch.leader_epoch
        if must_agree and other != batch:
            return f"differ at {batch.base_offset} in epochs {batch.leader_epoch} and {other.leader_epoch}"
    return None
