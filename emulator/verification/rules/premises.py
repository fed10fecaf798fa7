"""Finds the premises that a run has.

Without its premise a check finds nothing in any case, so its ``ok`` would prove nothing.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.history import FinalReadOperation, MemberStep, OperationType
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.answered_positions import positions_after_commits
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.group_positions import first_reads
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import NO_ERROR, Change
from laststand.emulator.verification.rules.check import Premise
from laststand.emulator.verification.tables.client_history import Poll
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.late_topic_ids import id_by_name
from laststand.emulator.verification.tables.matching import groups_of

_COMMITTED: Final[tuple[type[events.Event], ...]] = (
    events.BrokerRegistered,
    events.BrokerFenced,
    events.BrokerUnfenced,
    events.TopicDeleted,
    events.ConfigChanged,
    events.PartitionChanged,
)
_ANY_OF: Final[tuple[tuple[type[events.Event], Premise], ...]] = (
    (events.HighWatermarkAdvanced, Premise.HIGH_WATERMARK_MOVED),
    (events.BecameLeader, Premise.LED),
    (events.LogDeleted, Premise.LOG_REMOVED),
    (events.LogOpened, Premise.LOG_OPENED),
    (events.LogTruncated, Premise.TRUNCATED),
    (events.RecoveryStarted, Premise.RECOVERY_STARTED),
    (events.TransitionBegun, Premise.TRANSITION),
    (events.MarkersSent, Premise.MARKERS_SENT),
    (events.PositionReturned, Premise.POSITION_RETURNED),
    (events.BitFlipped, Premise.FLIPPED),
)


def premises_of_cluster(cluster: ClusterFacts) -> frozenset[Premise]:
    """Returns the premises of a run's cluster."""
    return frozenset(_of_cluster(cluster))


def premises_of_partition(facts: PartitionFacts) -> frozenset[Premise]:
    """Returns the premises of one partition of a run."""
    found = {*_of_events(facts), *_of_elections(facts), *_of_history(facts), *_of_final_logs(facts)}
    for change in facts.changes:
        found.update(_of_change(change))
    return frozenset(found)


def _of_cluster(cluster: ClusterFacts) -> Iterator[Premise]:
    if not cluster.is_seen_by_clients_alone:
        yield Premise.NODES
    if not cluster.is_seen_from_outside:
        yield Premise.OWN_WORD
    if cluster.transactions.operations:
        yield Premise.TRANSACTION
    sessions = [each.transactional_id for each in cluster.transactions.sessions]
    if len(set(sessions)) < len(sessions):
        yield Premise.SESSION_FOLLOWED
    if any(transaction.is_committed for transaction in cluster.transactions.sent()):
        yield Premise.TRANSACTION_COMMITTED
    positions = cluster.committed_positions
    if any(read.has_committed for read in positions.reads()):
        yield Premise.POSITION_COMMITTED
        yield Premise.POSITION_FOLLOWED
    if any(True for _ in first_reads(cluster.memberships, positions)):
        yield Premise.POSITION_FOLLOWED
    if any(each.is_committed and each.reads for each in cluster.transactions.sent()):
        yield Premise.READ_IN_TRANSACTION
    if any(read.batches for read in cluster.transactions.reads):
        yield Premise.READ_COMMITTED
    if any(True for _ in positions_after_commits(cluster)):
        yield Premise.POSITION_KEPT
    assigned = Counter(line.group_id for line in cluster.memberships.lines if line.step is MemberStep.ASSIGNED)
    if any(count > 1 for count in assigned.values()):
        yield Premise.ASSIGNED_TWICE
    registrations = [registration.event for registration in cluster.registrations]
    if len(registrations) > 1:
        yield Premise.TWO_REGISTRATIONS
    if any(r.stored_broker_epoch not in (None, r.previous_broker_epoch) for r in registrations):
        yield Premise.UNCLEAN_REGISTRATION
    if len({(each.node, each.incarnation) for kind in _COMMITTED for each in cluster.events.of(kind)}) > 1:
        yield Premise.TWO_CONTROLLERS
    if len(cluster.controller_elections) > 1:
        yield Premise.TWO_CONTROLLERS
    if cluster.quorum.elections:
        yield Premise.QUORUM
    if len(cluster.quorum.logs) > 1:
        yield Premise.VOTERS_LOGS
    if cluster.quorum.last_leaders_log is not None:
        yield Premise.LAST_LEADERS_LOG
    if not cluster.quorum.lost_a_majority:
        yield Premise.QUORUM_DISKS
    if cluster.isr_change_notifications:
        yield Premise.NOTIFIED
    if cluster.events.of(events.ClusterSettled):
        yield Premise.SETTLED


def _of_events(facts: PartitionFacts) -> Iterator[Premise]:
    yield from (premise for kind, premise in _ANY_OF if facts.events.of(kind))
    batches = facts.events.rows(events.BatchAppended)
    if np.any(batches.has("role", events.AppendRole.LEADER)):
        yield Premise.STORED
    if np.any(batches.has("role", events.AppendRole.FOLLOWER)):
        yield Premise.REPLICATED
    if any(decided.event.error == NO_ERROR for decided in facts.events.of(events.AlterPartitionDecided)):
        yield Premise.PROPOSAL_ACCEPTED
    moves = facts.events.rows(events.HighWatermarkAdvanced)
    for led in facts.events.of(events.BecameLeader):
        if np.any(moves["leader_epoch"][moves.has("topic_id", led.event.topic_id)] < led.event.leader_epoch):
            yield Premise.LED_AFTER_COMMIT


def _of_history(facts: PartitionFacts) -> Iterator[Premise]:
    sent, received = facts.sent, facts.received
    acked = sent.only(sent.has("type", OperationType.OK) & (sent["acks"] == ACKS_ALL) & (sent["base_offset"] != NONE))
    if len(acked):
        yield Premise.ACKED_ALL
    for places in groups_of(acked["history"]):
        if acked["invoked"][places].max() > acked["completed"][places].min():
            yield Premise.SENT_AFTER_ACK
    if np.any(sent.has("type", OperationType.FAIL)):
        yield Premise.REFUSED
    given: set[str] = set()
    for poll in facts.polls:
        if poll.phase == "live" and poll.process in given:
            yield Premise.POLLED_AGAIN
            break
        if poll.crcs:
            given.add(poll.process)
    if any(before.topic_id != after.topic_id for before, after in _successive_polls(facts)):
        yield Premise.TOPIC_SUCCEEDED
    if len(received):
        yield Premise.CONSUMED
    if np.any(received["served_epoch"] != NONE):
        yield Premise.CONSUMED_BY_EPOCH
    for read in facts.final_reads:
        match read:
            case FinalReadOperation(type=OperationType.OK, start_offset=int() as start, end_offset=int() as end):
                if start < end:
                    yield Premise.READ_AT_THE_END
            case _:
                pass


def _successive_polls(facts: PartitionFacts) -> Iterator[tuple[Poll, Poll]]:
    """Yields pairs of a consumer's successive polls without an error; topics that have no id are left out."""
    before: dict[str, Poll] = {}
    for poll in facts.polls:
        if poll.error is None and poll.topic_id not in {None, id_by_name(facts.topic)}:
            if poll.process in before:
                yield before[poll.process], poll
            before[poll.process] = poll


def _of_elections(facts: PartitionFacts) -> Iterator[Premise]:
    if any(
        each.event.method is events.UncleanMethod.LONGEST_LOG for each in facts.events.of(events.UncleanLeaderElected)
    ):
        yield Premise.LOGS_COMPARED


def _of_final_logs(facts: PartitionFacts) -> Iterator[Premise]:
    if facts.final_logs:
        yield Premise.FINAL_LOG
    cluster = facts.cluster
    if cluster.is_seen_by_clients_alone and cluster.has_plan and len(facts.final_batches):
        yield Premise.STORED
    final = facts.final_batches
    if len(np.unique(final["topic_id"])) < len(list(groups_of(final["topic_id"], final["node"]))):
        yield Premise.FINAL_REPLICAS
    batches = facts.settled_batches.only(facts.settled_batches["is_control"] == 0)
    if len(batches):
        yield Premise.SETTLED_RECORDS
    if np.any(facts.settled_batches["coordinator_epoch"] != NONE):
        yield Premise.SETTLED_MARKERS
    own = batches.only(batches["producer_id"] != NONE)
    if any(len(places) > 1 for places in groups_of(own["topic_id"], own["producer_id"], own["producer_epoch"])):
        yield Premise.SETTLED_SEQUENCES


def _of_change(change: Change) -> Iterator[Premise]:
    new, old = change.new, change.old
    yield Premise.COMMITTED
    if len(new.isr) < new.effective_min_isr:
        yield Premise.BELOW_MIN_ISR
    if new.elr or new.last_known_elr:
        yield Premise.ELR
    is_moving = bool(new.adding_replicas or new.removing_replicas)
    if is_moving:
        yield Premise.REASSIGNMENT
    if old is None:
        return
    yield Premise.CHANGED
    if new.leader is not None and new.leader_epoch != old.leader_epoch and new.election is not events.Election.NONE:
        yield Premise.ELECTED
    if change.is_unclean:
        yield Premise.UNCLEAN_ELECTION
    if set(new.isr) - set(old.isr):
        yield Premise.ISR_GREW
    if (old.adding_replicas or old.removing_replicas) and not is_moving:
        is_cancelled = new.reason is ChangeReason.REASSIGNMENT
        yield Premise.REASSIGNMENT_CANCELLED if is_cancelled else Premise.REASSIGNMENT_COMPLETED
